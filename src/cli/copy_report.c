#include "cli/copy_report.h"

#include "cli/process.h"
#include "util/error.h"

#include <inttypes.h>

static void show_progress(void *context, const spill_copy_result_t *result)
{
    spill_cli_copy_t *copy = context;
    double seconds = spill_cli_progress_seconds(&copy->progress);
    spill_cli_progress_print(
        &copy->progress,
        "%" PRId64 " owners, %" PRId64 " elements copied, %.0f/s, %" PRId64 " verified",
        result->owners, result->elements, (double)result->elements / seconds, result->verified);
}

static bool has_seq(const void *record)
{
    return ((const spill_copy_difference_t *)record)->seq >= 0;
}

#define DIFFERENCE(type, member, ...)                                                              \
    SPILL_FIELD(type, spill_copy_difference_t, member, __VA_ARGS__)
static const spill_field_t difference_fields[] = {
    DIFFERENCE(TEXT, definition, "definition"),
    DIFFERENCE(POINTER, owner, "owner"),
    DIFFERENCE(TEXT, window, "window", .flags = SPILL_FIELD_SPARSE),
    DIFFERENCE(INT64, seq, "seq", .flags = SPILL_FIELD_OMIT_UNLESS, .when = has_seq),
    DIFFERENCE(INT64, count, "differences"),
    DIFFERENCE(TEXT, text, "text")};
static const spill_record_t difference_record =
    SPILL_RECORD("difference", spill_copy_difference_t, difference_fields);

#define RESULT(member, ...) SPILL_FIELD(INT64, spill_copy_result_t, member, __VA_ARGS__)
static const spill_field_t result_fields[] = {
    RESULT(owners, "owners"),          RESULT(windows, "windows", .flags = SPILL_FIELD_SPARSE),
    RESULT(elements, "elements"),      RESULT(before, "before"),
    RESULT(verified, "verified"),      RESULT(dropped, "dropped", .flags = SPILL_FIELD_SPARSE),
    RESULT(differences, "differences")};
static const spill_record_t result_record =
    SPILL_RECORD("result", spill_copy_result_t, result_fields);

static void print_difference(void *context, const spill_copy_difference_t *difference)
{
    spill_cli_copy_t *copy = context;
    spill_cli_progress_break(&copy->progress);
    if (copy->invocation->json) {
        spill_cli_print_record(&difference_record, difference);
        return;
    }
    spill_cli_print("%s: owner ", difference->definition);
    spill_cli_print_value(difference->owner, false);
    if (difference->window)
        printf(", window %s", difference->window);
    if (difference->seq >= 0)
        printf(", element %" PRId64, difference->seq);
    spill_cli_print(": %s", difference->text);
    if (difference->count > 1)
        printf(", and %" PRId64 " more %s", difference->count - 1,
               spill_cli_plural(difference->count - 1, "difference", "differences"));
    putchar('\n');
}

void spill_cli_copy_print_result(const spill_cli_copy_t *copy)
{
    const spill_copy_result_t *result = &copy->result;
    double seconds = spill_cli_progress_seconds(&copy->progress);
    if (!copy->invocation->quiet && result->elements > 0)
        fprintf(stderr, "%.1f s, %.0f elements/s\n", seconds, (double)result->elements / seconds);
    spill_cli_print_record(&result_record, result);
}

void spill_cli_copy_start(spill_cli_copy_t *copy, const spill_invocation_t *invocation)
{
    copy->invocation = invocation;
    spill_cli_progress_start(&copy->progress, invocation->quiet);
}

static spill_code_t check_interrupt(void *context, int64_t elements, spill_error_t *error)
{
    (void)context;
    (void)elements;
    return spill_cli_interrupted() ? spill_fail(error, SPILL_CANCELLED, "interrupted") : SPILL_OK;
}

void spill_cli_copy_hook(spill_cli_copy_t *copy, const spill_cli_copy_given_t *given,
                         spill_copy_options_t *options)
{
    options->bounds = (spill_bounds_t){.threshold = given->threshold,
                                       .page_capacity = given->page,
                                       .head_bytes_max = given->head_bytes,
                                       .page_bytes_max = given->page_bytes};
    options->unverified = given->no_verify;
    options->differs = print_difference;
    options->progress = show_progress;
    options->turn = check_interrupt;
    options->context = copy;
}

spill_exit_t spill_cli_copy_exit(const spill_cli_copy_t *copy, spill_code_t code,
                                 spill_exit_t closed)
{
    if (code != SPILL_OK && code != SPILL_CANCELLED && copy->result.elements > 0)
        fprintf(stderr,
                "spillway: %" PRId64 " %s copied; after removing the cause, run the same command "
                "to continue\n",
                copy->result.elements,
                spill_cli_plural(copy->result.elements, "element is", "elements are"));
    return closed == SPILL_EXIT_DONE && copy->result.differences > 0 ? SPILL_EXIT_FOUND : closed;
}

spill_code_t spill_cli_copy_interrupted(const spill_cli_copy_t *copy, spill_code_t code,
                                        spill_error_t *error)
{
    if (code != SPILL_CANCELLED || !spill_cli_interrupted())
        return code;
    return spill_fail(
        error, code, "interrupted after %" PRId64 " %s: run the same command to continue",
        copy->result.elements, spill_cli_plural(copy->result.elements, "element", "elements"));
}
