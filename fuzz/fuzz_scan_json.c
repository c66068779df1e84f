/*
 * The input is a scan's JSON from an untrusted source: it is planned, reported and written again.
 * No text of it may become markup in the page.
 */
#include "fuzz.h"
#include "tools/report/report.h"
#include "tools/scan/plan.h"
#include "tools/scan/scan.h"

#include <string.h>

enum { PAGE_BYTES_MAX = 16 << 20 };

static void report(const spill_scan_result_t *result, const spill_plan_t *plan)
{
    char *page = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&page, &size);
    spill_report_write(result, plan, result->source ? result->source : "a scan", to);
    fclose(to);
    REQUIRE(size <= PAGE_BYTES_MAX);
    REQUIRE(!memmem(page, size, "<script", strlen("<script")));
    REQUIRE(!memmem(page, size, "<img", strlen("<img")));
    REQUIRE(!memmem(page, size, "\"nan", strlen("\"nan")));
    REQUIRE(!memmem(page, size, "\"inf", strlen("\"inf")));
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
