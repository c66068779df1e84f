#include "support/interrupted.h"

#include <inttypes.h>
#include <string.h>

static spill_code_t append_to_windows(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    static const char id[] = "the operation";
    spill_bucket_append_options_t options;
    batch_t batch;
    spill_bucket_append_options_init(&options);
    options.op_id = id;
    options.op_id_bytes = sizeof id;
    options.bases = stage->bases;
    options.base_count = stage->base_count;
    interrupted_make_batch(&batch, NEXT - 4, BATCH_MAX);
    spill_bucket_appended_t *appended;
    size_t windows;
    spill_code_t code = spill_bucket_append(stage->array, &stage->owner, batch.values, batch.count,
                                            &options, &appended, &windows, error);
    bson_free(appended);
    interrupted_free_batch(&batch);
    return code;
}

static spill_code_t read_window_bases(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    batch_t batch;
    spill_bucket_base_t *bases;
    size_t found;
    interrupted_make_batch(&batch, NEXT - 4, BATCH_MAX);
    spill_code_t code = spill_bucket_op_bases(stage->array, &stage->owner, batch.values,
                                              batch.count, &bases, &found, error);
    bson_free(bases);
    interrupted_free_batch(&batch);
    return code;
}

static bool print_window(void *context, const spill_bucket_window_t *window)
{
    bson_string_append_printf(context, "%s %" PRId64 " %" PRId64 " %g\n", window->window,
                              window->parts, window->statistics.count,
                              window->statistics.sum.value);
    return true;
}

static spill_code_t list_windows(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_code_t code = spill_bucket_windows(stage->array, &stage->owner, NULL, NULL,
                                             SPILL_OLDEST_FIRST, print_window, out, error);
    if (code != SPILL_OK)
        return code;
    return spill_bucket_windows(stage->array, &stage->owner, "2026-01-02", "2026-01-03",
                                SPILL_NEWEST_FIRST, print_window, out, error);
}

static spill_code_t sum_windows(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_statistics_t statistics;
    int64_t windows;
    spill_code_t code = spill_bucket_statistics(stage->array, &stage->owner, NULL, NULL,
                                                &statistics, &windows, error);
    if (code == SPILL_OK)
        bson_string_append_printf(out, "%" PRId64 " %" PRId64 " %g\n", windows, statistics.count,
                                  statistics.sum.value);
    return code;
}

static spill_code_t read_windows(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    for (int i = 0; i < 4; i++) {
        spill_bucket_read_options_t options;
        spill_bucket_slice_t *slice;
        spill_bucket_read_options_init(&options);
        options.order = i % 2 == 0 ? SPILL_NEWEST_FIRST : SPILL_OLDEST_FIRST;
        options.limit = i < 2 ? 1000 : 6;
        if (i >= 2) {
            options.from_ms = interrupted_time(1);
            options.to_ms = interrupted_time(10);
            options.cursor_window = "2026-01-02";
            options.cursor_seq = 1;
        }
        spill_code_t code = spill_bucket_read(stage->array, &stage->owner, &options, &slice, error);
        if (code != SPILL_OK)
            return code;
        for (size_t at = 0; at < slice->count; at++)
            interrupted_print(out, slice->elements[at].seq, &slice->elements[at].value);
        spill_bucket_slice_free(slice);
    }
    return SPILL_OK;
}

static spill_code_t find_in_windows(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    static const int64_t ids[] = {IN_PAGE, NEWEST, MISSING};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        spill_value_t id = interrupted_id(&ids[i]);
        char window[SPILL_WINDOW_SIZE];
        int64_t seq;
        spill_code_t code =
            spill_bucket_find_id(stage->array, &stage->owner, &id, window, &seq, error);
        if (code != SPILL_OK && code != SPILL_NOT_FOUND)
            return code;
        bson_string_append_printf(out, "%s %s %" PRId64 "\n", spill_code_name(code), window, seq);
    }
    return SPILL_OK;
}

static spill_code_t edit_in_window(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    static const int64_t number = IN_PAGE;
    spill_value_t id = interrupted_id(&number);
    bson_t *document = BCON_NEW("n", BCON_INT64(104), "rating", BCON_INT32(5), "at",
                                BCON_DATE_TIME(interrupted_time(IN_PAGE)));
    spill_value_t element = spill_value_from_document(document);
    char window[SPILL_WINDOW_SIZE];
    int64_t seq;
    spill_code_t code =
        spill_bucket_edit_id(stage->array, &stage->owner, &id, &element, window, &seq, error);
    bson_destroy(document);
    return code;
}

static spill_code_t remove_in_window(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    static const int64_t number = IN_PAGE;
    spill_value_t id = interrupted_id(&number);
    char window[SPILL_WINDOW_SIZE];
    int64_t seq;
    return spill_bucket_remove_id(stage->array, &stage->owner, &id, window, &seq, error);
}

static spill_code_t remove_where_in_windows(stage_t *stage, bson_string_t *out,
                                            spill_error_t *error)
{
    (void)out;
    bson_t *filter = BCON_NEW("rating", "{", "$gte", BCON_INT32(3), "}");
    spill_code_t code =
        spill_bucket_remove_where(stage->array, &stage->owner, filter, 0, NULL, error);
    bson_destroy(filter);
    return code;
}

static spill_code_t trim_windows_older(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_bucket_trim_older(stage->array, &stage->owner, interrupted_time(7), error);
}

static spill_code_t trim_windows_keeping(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_bucket_trim_keep(stage->array, &stage->owner, 5, error);
}

static bool print_owner(void *context, const spill_value_t *owner)
{
    interrupted_print(context, 0, owner);
    return true;
}

static spill_code_t list_window_owners(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    return spill_bucket_owners(stage->array, print_owner, out, error);
}

static spill_code_t drop_windows_before(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_bucket_drop_before(stage->array, &stage->owner, "2026-01-03", NULL, error);
}

static spill_code_t drop_windows_older(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_bucket_drop_older(stage->array, &stage->owner, interrupted_time(8), NULL, error);
}

const operation_t window_operations[] = {
    {.name = "append to windows", .shapes = ON_BUCKET, .run = append_to_windows},
    {.name = "bases of windows", .shapes = ON_BUCKET, .run = read_window_bases, .reads = true},
    {.name = "windows", .shapes = ON_BUCKET, .run = list_windows, .reads = true},
    {.name = "sum windows", .shapes = ON_BUCKET, .run = sum_windows, .reads = true},
    {.name = "read windows", .shapes = ON_BUCKET, .run = read_windows, .reads = true},
    {.name = "find in windows", .shapes = ON_BUCKET, .run = find_in_windows, .reads = true},
    {.name = "edit in a window", .shapes = ON_BUCKET, .run = edit_in_window, .deleted = true},
    {.name = "remove in a window", .shapes = ON_BUCKET, .run = remove_in_window, .deleted = true},
    {.name = "remove where, in windows", .shapes = ON_BUCKET, .run = remove_where_in_windows},
    {.name = "trim windows older", .shapes = ON_BUCKET, .run = trim_windows_older},
    {.name = "trim windows, keeping", .shapes = ON_BUCKET, .run = trim_windows_keeping},
    {.name = "owners of windows", .shapes = ON_BUCKET, .run = list_window_owners, .whole = true},
    {.name = "drop windows before",
     .shapes = ON_BUCKET,
     .run = drop_windows_before,
     .deleted = true},
    {.name = "drop windows older", .shapes = ON_BUCKET, .run = drop_windows_older, .deleted = true},
    {.name = NULL},
};
