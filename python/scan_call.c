#include "scan_call.h"

#include "tools/scan/scan.h"
#include "util/error.h"

#include <bson/bson.h>
#include <errno.h>
#include <stdlib.h>

struct spill_scan_call {
    atomic_bool stop;
};

spill_scan_call_t *spill_scan_call_new(void)
{
    return bson_malloc0(sizeof(spill_scan_call_t));
}

void spill_scan_call_free(spill_scan_call_t *call)
{
    bson_free(call);
}

void spill_scan_call_stop(spill_scan_call_t *call)
{
    atomic_store(&call->stop, true);
}

static char *to_json(const spill_scan_result_t *result, const char *source, spill_error_t *error)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to) {
        spill_fail_errno(error, errno, "the result of the scan");
        return NULL;
    }
    spill_scan_write_json(result, spill_scan_shown_source(result, source), to);
    if (fclose(to) != 0) {
        spill_fail_errno(error, errno, "the result of the scan");
        free(text);
        return NULL;
    }
    char *copy = bson_strdup(text);
    free(text);
    return copy;
}

char *spill_scan_call_run(spill_scan_call_t *call, const char *source, const char *format,
                          const char *collections, int64_t max_elements, int64_t max_bytes,
                          int64_t sample, int64_t rate, spill_error_t *error)
{
    spill_scan_options_t options;
    spill_scan_options_init(&options);
    options.source = source;
    options.format = format;
    options.only = collections;
    options.sample = sample;
    options.rate = rate;
    options.stop = &call->stop;
    if (max_elements > 0)
        options.limits.elements = max_elements;
    if (max_bytes > 0)
        options.limits.bytes = max_bytes;

    spill_scan_result_t result;
    char *json = NULL;
    if (spill_scan(&options, &result, error) == SPILL_OK)
        json = to_json(&result, source, error);
    spill_scan_release(&result);
    return json;
}
