/*
 * The input is a scan's JSON from an untrusted source: it is planned, reported and written again.
 * No text of it may become a command in gnuplot's script, or markup in the page. gnuplot itself is
 * replaced: its script is checked line by line.
 */
#include "fuzz.h"
#include "tools/report/report.h"
#include "tools/report/svg.h"
#include "tools/scan/plan.h"
#include "tools/scan/scan.h"

#include <string.h>

enum { SCRIPT_BYTES_MAX = 4 << 20 };

static bool begins_with(const char *line, size_t length, const char *word)
{
    return length >= strlen(word) && memcmp(line, word, strlen(word)) == 0;
}

static void check_command(const char *line, size_t length)
{
    bool known = length == 0 || line[0] == '$' || begins_with(line, length, "set ") ||
                 begins_with(line, length, "unset ") || begins_with(line, length, "plot ");
    if (!known || memchr(line, '`', length) || memmem(line, length, "system", strlen("system"))) {
        fprintf(stderr, "gnuplot: %.*s\n", (int)length, line);
        abort();
    }
}

/* Replaces the function that runs gnuplot. */
spill_code_t spill_gnuplot(const char *script, size_t size, spill_buffer_t *out,
                           spill_error_t *error)
{
    static const char picture[] = "<svg width=\"1\"></svg>";
    const char *end = script + size;
    bool in_data = false;
    (void)error;
    REQUIRE(size <= SCRIPT_BYTES_MAX);
    for (const char *at = script, *next; at < end; at = next + 1) {
        next = memchr(at, '\n', (size_t)(end - at));
        next = next ? next : end;
        size_t length = (size_t)(next - at);
        if (in_data) {
            in_data = !(length == 3 && begins_with(at, length, "END"));
            continue;
        }
        check_command(at, length);
        in_data = at[0] == '$' && memmem(at, length, "<< END", strlen("<< END"));
    }
    spill_buffer_append(out, picture, strlen(picture));
    return SPILL_OK;
}

static void report(const spill_scan_result_t *result, const spill_plan_t *plan)
{
    spill_error_t error;
    char *page = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&page, &size);
    spill_report_write(result, plan, result->source ? result->source : "a scan", to, &error);
    fclose(to);
    REQUIRE(!memmem(page, size, "<script", strlen("<script")));
    REQUIRE(!memmem(page, size, "<img", strlen("<img")));
    free(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spill_scan_result_t result;
    spill_error_t error;
    fuzz_file_t file = fuzz_open(data, size);
    if (spill_scan_read_json(file.path, &result, &error) == SPILL_OK) {
        spill_plan_t plan = spill_plan_make(&result, 200000);
        char *text = NULL;
        size_t length = 0;
        report(&result, &plan);
        FILE *to = open_memstream(&text, &length);
        spill_plan_write_json(&plan, "fuzz", to, NULL);
        spill_scan_write_json(&result, "fuzz", to);
        fclose(to);
        free(text);
        spill_plan_release(&plan);
    }
    spill_scan_release(&result);
    fuzz_close(&file);
    return 0;
}
