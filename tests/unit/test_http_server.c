/* The server of metrics, in a process that has many files open. */
#include "service/http_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FILES = 1200, WAIT_MS = 10000 };

static void answer_ok(void *context, const char *path, spill_http_answer_t *answer)
{
    (void)context;
    assert_string_equal(path, "/metrics");
    spill_buffer_append(&answer->text, "ok\n", 3);
}

/* Read the whole answer to a GET of /metrics. */
static void get_metrics(uint16_t port, char *text, size_t size)
{
    static const char request[] =
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(port)};
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(client > FILES);
    assert_int_equal(connect(client, (const struct sockaddr *)&place, sizeof place), 0);
    assert_int_equal(write(client, request, sizeof request - 1), sizeof request - 1);
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && length + 1 < size) {
        struct pollfd ready = {.fd = client, .events = POLLIN};
        assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
        got = read(client, text + length, size - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    text[length] = '\0';
    close(client);
}

/* select() knows the files below 1024 only. A gateway with many clients has more. */
static void metrics_beside_many_open_files(void **state)
{
    (void)state;
    struct rlimit limit;
    char text[1024];
    int files[FILES];
    spill_http_server_t *server;
    spill_error_t error;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(limit.rlim_max > FILES + 100);
    limit.rlim_cur = FILES + 100;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < FILES; i++)
        assert_true((files[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
    assert_int_equal(spill_http_start("127.0.0.1:0", answer_ok, NULL, &server, &error), SPILL_OK);
    get_metrics(spill_http_port(server), text, sizeof text);
    assert_non_null(strstr(text, "200 OK"));
    assert_non_null(strstr(text, "ok\n"));
    spill_http_stop(server);
    for (int i = 0; i < FILES; i++)
        close(files[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_beside_many_open_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
