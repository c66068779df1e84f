/* The counters of a long job: what is counted, their text, and the health. */
#include "service/exposition.h"
#include "service/job_metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <bson/bson.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Return the answer to a path as text. Free it with bson_free. */
static char *answer_of(spill_job_metrics_t *metrics, const char *path, unsigned status)
{
    spill_http_answer_t answer = {.status = SPILL_HTTP_OK, .type = SPILL_HTTP_PLAIN};
    spill_job_metrics_answer(metrics, path, &answer);
    assert_int_equal(answer.status, status);
    spill_buffer_append_byte(&answer.text, '\0');
    return (char *)answer.text.data;
}

static void assert_has(spill_job_metrics_t *metrics, const char *path, unsigned status,
                       const char *part)
{
    char *text = answer_of(metrics, path, status);
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
    bson_free(text);
}

static void test_owners_are_counted(void **state)
{
    (void)state;
    spill_job_metrics_t metrics;
    spill_error_t failed = {.code = SPILL_CORRUPT};
    spill_job_metrics_init(&metrics, "sweep");
    spill_job_metrics_begin(&metrics, "orders");
    spill_job_metrics_owner(&metrics,
                            &(spill_migrated_t){.adopted = true, .moved = 30, .pages = 3});
    spill_job_metrics_owner(&metrics, &(spill_migrated_t){.elements = 7, .caught_up = true});
    spill_job_metrics_owner(&metrics, &(spill_migrated_t){.moved = 9, .failed = &failed});
    spill_job_metrics_documents(&metrics, 5);
    const char *const lines[] = {"spillway_job_owners_total{command=\"sweep\"} 3\n",
                                 "spillway_job_owners_adopted_total{command=\"sweep\"} 1\n",
                                 "spillway_job_owners_skipped_total{command=\"sweep\"} 1\n",
                                 "spillway_job_elements_moved_total{command=\"sweep\"} 30\n",
                                 "spillway_job_pages_written_total{command=\"sweep\"} 3\n",
                                 "spillway_job_elements_compared_total{command=\"sweep\"} 7\n",
                                 "spillway_job_documents_written_total{command=\"sweep\"} 5\n",
                                 "spillway_job_info{command=\"sweep\",definition=\"orders\"} 1\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_has(&metrics, "/metrics", SPILL_HTTP_OK, lines[i]);
}

/* The owner in progress is shown by its time only: a metric has no data of users. */
static void test_owner_in_progress_is_the_longest(void **state)
{
    (void)state;
    spill_job_metrics_t metrics;
    spill_job_owner_t longest;
    bson_t storage = BSON_INITIALIZER;
    char text[SPILL_JOB_OWNER_BYTES + 1];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    spill_value_t ada = spill_value_from_utf8(&storage, "ada");
    spill_value_t large = spill_value_from_utf8(&storage, text);
    spill_job_metrics_init(&metrics, "migrate");
    assert_false(spill_job_metrics_longest(&metrics, &longest));
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK,
               "spillway_job_owner_seconds{command=\"migrate\"} 0\n");
    spill_job_metrics_owner_begins(&metrics, &ada);
    spill_job_metrics_owner_begins(&metrics, &large);
    assert_true(spill_job_metrics_longest(&metrics, &longest));
    spill_value_t owner = spill_job_owner_value(&longest);
    assert_true(spill_value_equal(&owner, &ada));
    metrics.working[0].since_us -= 90 * 1000000;
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK,
               "spillway_job_owner_seconds{command=\"migrate\"} 90");
    char *metric = answer_of(&metrics, "/metrics", SPILL_HTTP_OK);
    assert_null(strstr(metric, "ada"));
    bson_free(metric);
    metrics.working[0].since_us = 0;
    assert_true(spill_job_metrics_longest(&metrics, &longest));
    assert_int_equal(spill_job_owner_value(&longest).type, BSON_TYPE_EOD);
    spill_job_metrics_owner_ends(&metrics);
    assert_false(spill_job_metrics_longest(&metrics, &longest));
    bson_destroy(&storage);
}

static void test_health_is_that_of_the_last_pass(void **state)
{
    (void)state;
    spill_job_metrics_t metrics;
    const spill_error_t failed = {.code = SPILL_IO};
    spill_job_metrics_init(&metrics, "sweep");
    assert_has(&metrics, "/healthz", SPILL_HTTP_OK, "ok\n");
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK,
               "spillway_job_last_success_time_seconds{command=\"sweep\"} 0\n");
    spill_job_metrics_end(&metrics, SPILL_IO, &failed);
    spill_job_metrics_end(&metrics, SPILL_IO, &failed);
    spill_job_metrics_end(&metrics, SPILL_CANCELLED, &failed); /* is no failure */
    assert_has(&metrics, "/healthz", SPILL_HTTP_UNAVAILABLE, "the last pass failed: IO;");
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK,
               "spillway_job_failures_total{command=\"sweep\",code=\"IO\"} 2\n");
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK,
               "spillway_job_failures_total{command=\"sweep\",code=\"CORRUPT\"} 0\n");
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK,
               "spillway_job_failures_in_a_row{command=\"sweep\"} 2\n");
    spill_job_metrics_end(&metrics, SPILL_OK, NULL);
    assert_has(&metrics, "/healthz", SPILL_HTTP_OK, "ok\n");
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK,
               "spillway_job_failures_in_a_row{command=\"sweep\"} 0\n");
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK,
               "spillway_job_passes_total{command=\"sweep\"} 1\n");
    assert_has(&metrics, "/", SPILL_HTTP_NOT_FOUND, "try /metrics or /healthz\n");
}

static void test_the_last_failure_is_kept(void **state)
{
    (void)state;
    spill_job_metrics_t metrics;
    spill_job_failures_t failures;
    const spill_error_t failed = {.message = "mongodb://ada:secret@host/shop: no server"};
    spill_job_metrics_init(&metrics, "sweep");
    spill_job_metrics_begin(&metrics, "orders");
    spill_job_metrics_failures(&metrics, &failures);
    assert_string_equal(failures.definition, "orders");
    assert_string_equal(failures.message, "");
    assert_int_equal(failures.failures + failures.in_a_row + failures.failed_us + failures.next_us,
                     0);
    spill_job_metrics_end(&metrics, SPILL_IO, &failed);
    spill_job_metrics_end(&metrics, SPILL_BUSY, &failed);
    spill_job_metrics_next(&metrics, 77);
    spill_job_metrics_gives_up(&metrics, 99);
    spill_job_metrics_failures(&metrics, &failures);
    assert_int_equal(failures.failures, 2);
    assert_int_equal(failures.in_a_row, 2);
    assert_int_equal(failures.next_us, 77);
    assert_int_equal(failures.gives_up_us, 99);
    assert_true(failures.failed_us > 0);
    assert_non_null(strstr(failures.message, "no server"));
    assert_null(strstr(failures.message, "secret"));
    spill_job_metrics_end(&metrics, SPILL_OK, NULL);
    spill_job_metrics_failures(&metrics, &failures);
    assert_int_equal(failures.passes, 1);
    assert_int_equal(failures.failures, 2);
    assert_int_equal(failures.in_a_row, 0);
    assert_non_null(strstr(failures.message, "no server"));
}

/* A log that lacks lines is named, and does not change the health of the work. */
static void test_a_log_that_lacks_lines_is_named(void **state)
{
    (void)state;
    spill_job_metrics_t metrics;
    spill_lost_lines_t losses = {.path = "/var/log/sweep"};
    const spill_error_t failed = {.code = SPILL_IO};
    spill_job_metrics_init(&metrics, "sweep");
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK,
               "spillway_log_lines_lost_total{command=\"sweep\"} 0\n");
    metrics.log = &losses;
    spill_lost_lines_count(&losses, 0);
    char *text = answer_of(&metrics, "/healthz", SPILL_HTTP_OK);
    assert_string_equal(text, "ok\n");
    bson_free(text);
    spill_lost_lines_count(&losses, ENOSPC);
    spill_lost_lines_count(&losses, ENOSPC);
    assert_has(&metrics, "/healthz", SPILL_HTTP_OK,
               "ok\nthe log: /var/log/sweep cannot be written, and lacks 2 lines (No space left on "
               "device)\n");
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK,
               "spillway_log_lines_lost_total{command=\"sweep\"} 2\n");
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK, "spillway_log_failing{command=\"sweep\"} 1\n");
    spill_lost_lines_count(&losses, 0);
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK, "spillway_log_failing{command=\"sweep\"} 0\n");
    spill_job_metrics_end(&metrics, SPILL_IO, &failed);
    assert_has(&metrics, "/healthz", SPILL_HTTP_UNAVAILABLE,
               "the log: /var/log/sweep lacks 2 lines (No space left on device)\n");
}

static void test_a_paused_job_waits_also_between_passes(void **state)
{
    (void)state;
    spill_job_metrics_t metrics;
    spill_job_metrics_init(&metrics, "sweep");
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK, "spillway_job_waiting{command=\"sweep\"} 0\n");
    atomic_store(&metrics.paused, true);
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK, "spillway_job_waiting{command=\"sweep\"} 1\n");
}

static void test_progress_stays_between_0_and_1(void **state)
{
    (void)state;
    spill_job_metrics_t metrics;
    spill_job_metrics_init(&metrics, "migrate");
    static const struct {
        int64_t done, whole;
        const char *ratio;
    } cases[] = {{0, 0, "0"}, {1, 4, "0.25"}, {9, 4, "1"}, {5, 0, "0"}, {4, 4, "1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[100];
        snprintf(line, sizeof line, "spillway_job_progress_ratio{command=\"migrate\"} %s\n",
                 cases[i].ratio);
        spill_job_metrics_progress(&metrics, cases[i].done, cases[i].whole);
        assert_has(&metrics, "/metrics", SPILL_HTTP_OK, line);
    }
}

static void test_labels_are_escaped(void **state)
{
    (void)state;
    spill_job_metrics_t metrics;
    spill_job_metrics_init(&metrics, "sweep");
    spill_job_metrics_begin(&metrics, "a\"b\\c\nspillway_job_passes_total 7");
    assert_has(&metrics, "/metrics", SPILL_HTTP_OK,
               "definition=\"a\\\"b\\\\c\\nspillway_job_passes_total 7\"} 1\n");
}

static void test_addresses_are_checked(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", "x", "70000", "-1", "1.2.3", "1.2.3.4:70000", "host:80", "99999999999999999999"};
    spill_job_metrics_t metrics;
    spill_http_server_t *server;
    spill_error_t error;
    spill_job_metrics_init(&metrics, "sweep");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(
            spill_http_start(wrong[i], spill_job_metrics_answer, &metrics, &server, &error),
            SPILL_INVALID);
        assert_null(server);
        assert_non_null(strstr(error.message, "--metrics"));
    }
    spill_http_stop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_owners_are_counted),
        cmocka_unit_test(test_owner_in_progress_is_the_longest),
        cmocka_unit_test(test_health_is_that_of_the_last_pass),
        cmocka_unit_test(test_the_last_failure_is_kept),
        cmocka_unit_test(test_a_log_that_lacks_lines_is_named),
        cmocka_unit_test(test_a_paused_job_waits_also_between_passes),
        cmocka_unit_test(test_progress_stays_between_0_and_1),
        cmocka_unit_test(test_labels_are_escaped),
        cmocka_unit_test(test_addresses_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
