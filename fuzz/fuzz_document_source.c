/*
 * The first byte of the input chooses a format; the rest is a file, which is scanned completely.
 * The scan's JSON must read back with the same collections and findings. Both must give a plan.
 */
#include "fuzz.h"
#include "tools/scan/plan.h"
#include "tools/scan/scan.h"

#include <string.h>

static const char *const FORMATS[] = {"bson",    "archive",   "ndjson",     "json",
                                      "bson.gz", "bson.zst",  "archive.gz", "archive.zst",
                                      "json.gz", "ndjson.zst"};
enum { FORMAT_COUNT = sizeof FORMATS / sizeof FORMATS[0] };

static char *json_of(const spill_scan_result_t *result, size_t *size)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, size);
    spill_scan_write_json(result, "fuzz", to);
    fclose(to);
    return text;
}

static void make_plan(const spill_scan_result_t *result)
{
    char *text = NULL;
    size_t size = 0;
    spill_plan_t plan = spill_plan_make(result, 1000);
    FILE *to = open_memstream(&text, &size);
    spill_plan_write_json(&plan, "fuzz", to, NULL);
    fclose(to);
    free(text);
    spill_plan_release(&plan);
}

static void read_back(const spill_scan_result_t *result)
{
    spill_scan_result_t again;
    spill_error_t error;
    size_t size = 0;
    char *text = json_of(result, &size);
    fuzz_file_t file = fuzz_open(text, size);
    if (spill_scan_read_json(file.path, &again, &error) != SPILL_OK) {
        fprintf(stderr, "%s\n%.4000s\n", error.message, text);
        abort();
    }
    REQUIRE(again.collection_count == result->collection_count);
    REQUIRE(again.finding_count == result->finding_count);
    make_plan(&again);
    spill_scan_release(&again);
    fuzz_close(&file);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    spill_scan_options_t options;
    spill_scan_result_t result;
    spill_error_t error;
    fuzz_file_t file = fuzz_open(data + 1, size - 1);
    spill_scan_options_init(&options);
    options.source = file.path;
    options.format = FORMATS[data[0] % FORMAT_COUNT];
    options.threads = 1;
    options.limits = (spill_scan_limits_t){
        .elements = 4, .bytes = 64, .document_bytes = 1024, .paid_per_cent = 50};
    options.collections_max = 3;
    if (spill_scan(&options, &result, &error) == SPILL_OK) {
        read_back(&result);
        make_plan(&result);
    }
    spill_scan_release(&result);
    fuzz_close(&file);
    return 0;
}
