#include "support/interrupted.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

bson_t *interrupted_element(int64_t number)
{
    return BCON_NEW("n", BCON_INT64(number), "rating", BCON_INT32((int32_t)(number * 7 % 5)), "at",
                    BCON_DATE_TIME(interrupted_time(number)), "word", BCON_UTF8("spill"));
}

int64_t interrupted_time(int64_t number)
{
    return INT64_C(1767225600000) + number * 6 * 3600 * 1000;
}

/* ---- elements and ids ------------------------------------------------------------------------ */

void interrupted_make_batch(batch_t *batch, int64_t first, size_t count)
{
    batch->count = count;
    for (size_t i = 0; i < count; i++) {
        batch->documents[i] = interrupted_element(first + (int64_t)i);
        batch->values[i] = spill_value_from_document(batch->documents[i]);
    }
}

void interrupted_free_batch(batch_t *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        bson_destroy(batch->documents[i]);
}

spill_value_t interrupted_id(const int64_t *id)
{
    return (spill_value_t){
        .data = (const uint8_t *)id, .size_bytes = sizeof *id, .type = BSON_TYPE_INT64};
}

void interrupted_print(bson_string_t *out, int64_t seq, const spill_value_t *value)
{
    char *json = spill_value_to_json(value, false);
    bson_string_append_printf(out, "%" PRId64 " %s\n", seq, json);
    bson_free(json);
}

static void print_slice(bson_string_t *out, spill_slice_t *slice)
{
    if (!slice)
        return;
    for (size_t i = 0; i < slice->count; i++)
        interrupted_print(out, slice->elements[i].seq, &slice->elements[i].value);
    spill_slice_free(slice);
}

/* ---- append ---------------------------------------------------------------------------------- */

static spill_code_t append_batch(stage_t *stage, size_t count, bool fill, const bson_t *update,
                                 spill_error_t *error)
{
    static const char id[] = "the operation";
    spill_op_t op = {.id = id, .id_bytes = sizeof id, .base = stage->base};
    spill_append_options_t options;
    spill_append_result_t result;
    batch_t batch;
    spill_append_options_init(&options);
    options.op = &op;
    options.fill = fill;
    options.update = update;
    interrupted_make_batch(&batch, NEXT, count);
    spill_code_t code = spill_array_append(stage->array, &stage->owner, batch.values, count,
                                           &options, &result, error);
    interrupted_free_batch(&batch);
    return code;
}

static spill_code_t append_one(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return append_batch(stage, 1, false, NULL, error);
}

static spill_code_t append_two(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return append_batch(stage, 2, false, NULL, error);
}

static spill_code_t append_many(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return append_batch(stage, BATCH_MAX, false, NULL, error);
}

static spill_code_t append_filling(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return append_batch(stage, BATCH_MAX, true, NULL, error);
}

static spill_code_t append_with_update(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    bson_t *update = BCON_NEW("$set", "{", "name", BCON_UTF8("Ada"), "}");
    spill_code_t code = append_batch(stage, 1, false, update, error);
    bson_destroy(update);
    return code;
}

static spill_code_t update_fields(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    bson_t *update = BCON_NEW("$set", "{", "name", BCON_UTF8("Ada"), "}");
    spill_code_t code = spill_array_update(stage->array, &stage->owner, update, error);
    bson_destroy(update);
    return code;
}

static spill_code_t read_base(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    int64_t base;
    return spill_array_op_base(stage->array, &stage->owner, &base, error);
}

/* ---- read ------------------------------------------------------------------------------------ */

static spill_code_t read_run(stage_t *stage, const spill_read_options_t *options,
                             bson_string_t *out, spill_error_t *error)
{
    spill_slice_t *slice;
    spill_code_t code = spill_array_read(stage->array, &stage->owner, options, &slice, error);
    assert_true(code == SPILL_OK || !slice);
    print_slice(out, slice);
    return code;
}

static spill_code_t read_newest(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.limit = 7;
    return read_run(stage, &options, out, error);
}

static spill_code_t read_oldest(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    return read_run(stage, &options, out, error);
}

static spill_code_t read_between(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.after = 2;
    options.before = 9;
    options.order = SPILL_OLDEST_FIRST;
    spill_code_t code = read_run(stage, &options, out, error);
    options.order = SPILL_NEWEST_FIRST;
    return code == SPILL_OK ? read_run(stage, &options, out, error) : code;
}

static spill_code_t read_skipping(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.limit = 3;
    options.skip = 7;
    spill_code_t code = read_run(stage, &options, out, error);
    options.order = SPILL_OLDEST_FIRST;
    return code == SPILL_OK ? read_run(stage, &options, out, error) : code;
}

static spill_code_t read_activities(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_slice_t *slice;
    spill_code_t code = spill_array_read_newest(stage->array, &stage->owner, 1, 5, &slice, error);
    print_slice(out, slice);
    return code;
}

static spill_code_t read_top(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_slice_t *slice;
    spill_code_t code = spill_array_top(stage->array, &stage->owner, 3, &slice, error);
    print_slice(out, slice);
    return code;
}

static spill_code_t count(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_count_t counted;
    spill_code_t code = spill_array_count(stage->array, &stage->owner, &counted, error);
    if (code == SPILL_OK)
        bson_string_append_printf(out, "%d %" PRId64 " %" PRId64 " %g\n", counted.exists,
                                  counted.count, counted.next, counted.sum);
    return code;
}

/* ---- change ---------------------------------------------------------------------------------- */

static spill_code_t edit_one(stage_t *stage, int64_t seq, int64_t number, spill_error_t *error)
{
    bson_t *document = interrupted_element(number);
    spill_value_t element = spill_value_from_document(document);
    spill_code_t code = spill_array_edit(stage->array, &stage->owner, seq, &element, error);
    bson_destroy(document);
    return code;
}

static spill_code_t edit_in_page(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return edit_one(stage, IN_PAGE, 104, error);
}

static spill_code_t edit_newest(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return edit_one(stage, NEWEST, 108, error);
}

/* The element of the summary that is edited ranks lowest then. */
static spill_code_t edit_top_n(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    spill_code_t code = edit_one(stage, 7, 100, error);
    return code == SPILL_OK ? edit_one(stage, 2, 105, error) : code;
}

static spill_code_t remove_in_page(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_array_remove(stage->array, &stage->owner, IN_PAGE, error);
}

static spill_code_t remove_beside(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_array_remove(stage->array, &stage->owner, IN_PAGE_TOO, error);
}

static spill_code_t remove_newest(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_array_remove(stage->array, &stage->owner, NEWEST, error);
}

static spill_code_t remove_top_n(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_array_remove(stage->array, &stage->owner, 7, error);
}

static spill_code_t find_ids(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    static const int64_t ids[] = {IN_PAGE, NEWEST, MISSING};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        spill_value_t id = interrupted_id(&ids[i]);
        int64_t seq;
        spill_code_t code = spill_array_find_id(stage->array, &stage->owner, &id, &seq, error);
        if (code != SPILL_OK && code != SPILL_NOT_FOUND)
            return code;
        bson_string_append_printf(out, "%s %" PRId64 "\n", spill_code_name(code), seq);
    }
    return SPILL_OK;
}

static spill_code_t edit_by_id(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    static const int64_t number = IN_PAGE;
    spill_value_t id = interrupted_id(&number);
    bson_t *document = interrupted_element(104);
    spill_value_t element = spill_value_from_document(document);
    spill_code_t code =
        spill_array_edit_id(stage->array, &stage->owner, &id, &element, NULL, error);
    bson_destroy(document);
    return code;
}

static spill_code_t remove_by_id(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    static const int64_t number = IN_PAGE;
    spill_value_t id = interrupted_id(&number);
    int64_t seq;
    return spill_array_remove_id(stage->array, &stage->owner, &id, &seq, error);
}

static spill_code_t remove_where(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    bson_t *filter = BCON_NEW("rating", "{", "$gte", BCON_INT32(3), "}");
    spill_code_t code =
        spill_array_remove_where(stage->array, &stage->owner, filter, 0, NULL, error);
    bson_destroy(filter);
    return code;
}

static spill_code_t trim(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_array_trim(stage->array, &stage->owner, 8, error);
}

static spill_code_t trim_keeping(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_array_trim_keep(stage->array, &stage->owner, 3, NULL, error);
}

static spill_code_t trim_older(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_array_trim_older(stage->array, &stage->owner, interrupted_time(7), NULL, error);
}

static spill_code_t drop_owner(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_array_drop_owner(stage->array, &stage->owner, error);
}

/* ---- walks ----------------------------------------------------------------------------------- */

static bool print_owner(void *context, const spill_value_t *owner)
{
    interrupted_print(context, 0, owner);
    return true;
}

static bool print_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    (void)owner;
    interrupted_print(context, element->seq, &element->value);
    return true;
}

/* Documents hold clock times, and collections the number of a run: the walk's order is compared. */
static bool print_document(void *context, const char *collection, const bson_t *document)
{
    bool pages = strstr(collection, "Pages") != NULL;
    (void)document;
    bson_string_append(context, pages ? "page\n" : "head\n");
    return true;
}

static spill_code_t list_owners(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    return spill_array_owners(stage->array, print_owner, out, error);
}

static spill_code_t export_owner(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    return spill_array_export(stage->array, &stage->owner, print_element, out, error);
}

static spill_code_t export_all(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    return spill_array_export(stage->array, NULL, print_element, out, error);
}

static spill_code_t documents_of_owner(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    return spill_array_documents(stage->array, &stage->owner, false, print_document, out, error);
}

static spill_code_t documents_of_all(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    return spill_array_documents(stage->array, NULL, true, print_document, out, error);
}

static void count_finding(void *context, const spill_finding_t *finding)
{
    bson_string_append_printf(context, "I%d\n", finding->invariant);
}

static spill_code_t verify_owner(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_verify_summary_t summary;
    return spill_array_verify(stage->array, &stage->owner, count_finding, out, &summary, error);
}

static spill_code_t verify_all(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_verify_summary_t summary;
    return spill_array_verify(stage->array, NULL, count_finding, out, &summary, error);
}

/* A second repair may have nothing left to report: the findings are not compared. */
static spill_code_t repair_owner(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    spill_repair_summary_t summary;
    return spill_array_repair(stage->array, &stage->owner, false, NULL, NULL, &summary, error);
}

static spill_code_t repair_all(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    spill_repair_summary_t summary;
    return spill_array_repair(stage->array, NULL, false, NULL, NULL, &summary, error);
}

static spill_code_t look_at_repair(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_repair_summary_t summary;
    return spill_array_repair(stage->array, &stage->owner, true, count_finding, out, &summary,
                              error);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static spill_code_t open_again(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    spill_array_t *array;
    spill_code_t code = spill_array_open(stage->store, stage->definition.name, &array, error);
    assert_true(code == SPILL_OK || !array);
    spill_array_close(array);
    return code;
}

static spill_code_t define_again(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_store_define(stage->store, &stage->definition, error);
}

static spill_code_t define_larger(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    spill_definition_t larger = stage->definition;
    larger.bounds.threshold += 3;
    larger.op_window += 1;
    return spill_store_define(stage->store, &larger, error);
}

/* Elements would have other ids: refused while there is an owner. */
static spill_code_t define_other(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_definition_t other = stage->definition;
    snprintf(other.id_field, SPILL_NAME_SIZE, "word");
    spill_code_t code = spill_store_define(stage->store, &other, error);
    if (code != SPILL_REFUSED)
        return code;
    bson_string_append(out, spill_code_name(code));
    return SPILL_OK;
}

static spill_code_t define_new(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    spill_definition_t beside = stage->definition;
    snprintf(beside.name, SPILL_NAME_SIZE, "%.100s-new", stage->definition.name);
    snprintf(beside.collection, SPILL_NAME_SIZE, "%.100s-new", stage->definition.name);
    if (beside.page_collection[0] != '\0')
        snprintf(beside.page_collection, SPILL_NAME_SIZE, "%.100s-newPages",
                 stage->definition.name);
    return spill_store_define(stage->store, &beside, error);
}

static spill_code_t list_definitions(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    spill_definition_t *definitions;
    size_t found;
    bool listed = false;
    spill_code_t code = spill_store_definitions(stage->store, &definitions, &found, error);
    for (size_t i = 0; code == SPILL_OK && i < found; i++)
        listed = listed || strcmp(definitions[i].name, stage->definition.name) == 0;
    bson_string_append(out, listed ? "listed\n" : "missing\n");
    bson_free(definitions);
    return code;
}

static spill_code_t drop_definition(stage_t *stage, bson_string_t *out, spill_error_t *error)
{
    (void)out;
    return spill_store_drop(stage->store, stage->definition.name, error);
}

/* ---- the table ------------------------------------------------------------------------------- */

const operation_t array_operations[] = {
    {.name = "append", .shapes = ON_OWNERS, .run = append_one},
    {.name = "append 2", .shapes = ON_PAGED, .run = append_two},
    {.name = "append 8", .shapes = ON_OWNERS, .run = append_many},
    {.name = "append 8, filling", .shapes = ON_PAGED, .run = append_filling},
    {.name = "append and update", .shapes = ON_OWNERS, .run = append_with_update},
    {.name = "update", .shapes = ON_OWNERS, .run = update_fields},
    {.name = "base", .shapes = ON_OWNERS, .run = read_base, .reads = true},
    {.name = "read newest", .shapes = ON_OWNERS, .run = read_newest, .reads = true},
    {.name = "read oldest", .shapes = ON_OWNERS, .run = read_oldest, .reads = true},
    {.name = "read between", .shapes = ON_PAGED, .run = read_between, .reads = true},
    {.name = "read, skipping", .shapes = ON_OWNERS, .run = read_skipping, .reads = true},
    {.name = "activities", .shapes = ON_NEWEST, .run = read_activities, .reads = true},
    {.name = "top", .shapes = ON_SUBSET | ON_TOP_N, .run = read_top, .reads = true},
    {.name = "count", .shapes = ON_OWNERS, .run = count, .reads = true},
    {.name = "edit", .shapes = ON_PAGED, .run = edit_in_page},
    {.name = "edit newest", .shapes = ON_OWNERS, .run = edit_newest},
    {.name = "edit best", .shapes = ON_SUBSET, .run = edit_top_n},
    {.name = "remove", .shapes = ON_PAGED, .run = remove_in_page, .deleted = true},
    {.name = "remove newest", .shapes = ON_OWNERS, .run = remove_newest, .deleted = true},
    {.name = "remove best", .shapes = ON_SUBSET, .run = remove_top_n, .deleted = true},
    {.name = "find", .shapes = ON_OWNERS, .run = find_ids, .reads = true},
    {.name = "edit by id", .shapes = ON_PAGED, .run = edit_by_id, .deleted = true},
    {.name = "remove by id", .shapes = ON_PAGED, .run = remove_by_id, .deleted = true},
    {.name = "remove where", .shapes = ON_OWNERS, .run = remove_where},
    {.name = "trim", .shapes = ON_OWNERS, .run = trim},
    {.name = "trim, keeping", .shapes = ON_OWNERS, .run = trim_keeping},
    {.name = "trim older", .shapes = ON_OWNERS, .run = trim_older},
    {.name = "drop owner", .shapes = ON_OWNERS, .run = drop_owner, .deleted = true},
    {.name = "owners", .shapes = ON_ALL, .run = list_owners, .whole = true},
    {.name = "export", .shapes = ON_OWNERS, .run = export_owner, .reads = true},
    {.name = "export all", .shapes = ON_ALL, .run = export_all, .whole = true},
    {.name = "documents", .shapes = ON_OWNERS, .run = documents_of_owner, .reads = true},
    {.name = "documents of all", .shapes = ON_ALL, .run = documents_of_all, .whole = true},
    {.name = "verify", .shapes = ON_OWNERS, .run = verify_owner, .reads = true, .reports = true},
    {.name = "verify all", .shapes = ON_ALL, .run = verify_all, .reports = true, .whole = true},
    {.name = "look at repair",
     .shapes = ON_OWNERS,
     .run = look_at_repair,
     .reads = true,
     .reports = true},
    {.name = "repair", .shapes = ON_OWNERS, .run = repair_owner, .reports = true},
    {.name = "repair all", .shapes = ON_ALL, .run = repair_all, .reports = true, .whole = true},
    {.name = "open", .shapes = ON_ALL, .run = open_again, .reads = true},
    {.name = "define again", .shapes = ON_ALL, .run = define_again},
    {.name = "define larger", .shapes = ON_ALL, .run = define_larger, .whole = true},
    {.name = "define other", .shapes = ON_ALL, .run = define_other, .whole = true},
    {.name = "define new", .shapes = ON_NEWEST, .run = define_new, .whole = true},
    {.name = "definitions", .shapes = ON_ALL, .run = list_definitions, .whole = true},
    {.name = "drop",
     .shapes = ON_ALL,
     .run = drop_definition,
     .deleted = true,
     .ends = true,
     .whole = true},

    /* After a client that died. */
    {.name = "repair a removal",
     .shapes = ON_PAGED,
     .half = remove_in_page,
     .run = repair_owner,
     .reports = true},
    {.name = "repair an edit",
     .shapes = ON_REFERENCED,
     .half = edit_in_page,
     .run = repair_owner,
     .reports = true},
    {.name = "repair a trim",
     .shapes = ON_PAGED,
     .half = trim,
     .run = repair_owner,
     .reports = true},
    {.name = "repair a drop",
     .shapes = ON_PAGED,
     .half = drop_owner,
     .run = repair_owner,
     .reports = true},
    {.name = "repair all of a drop",
     .shapes = ON_PAGED,
     .half = drop_owner,
     .run = repair_all,
     .reports = true,
     .whole = true},
    {.name = "repair a seal",
     .shapes = ON_OLDEST,
     .half = append_two,
     .run = repair_owner,
     .reports = true},
    {.name = "append after a seal", .shapes = ON_OLDEST, .half = append_two, .run = append_one},
    {.name = "append after a removal",
     .shapes = ON_PAGED,
     .half = remove_in_page,
     .run = append_one},
    {.name = "remove after a removal",
     .shapes = ON_PAGED,
     .half = remove_in_page,
     .run = remove_beside,
     .deleted = true},
    {.name = "trim after a removal", .shapes = ON_PAGED, .half = remove_in_page, .run = trim},
    {.name = "remove after an edit",
     .shapes = ON_REFERENCED,
     .half = edit_in_page,
     .run = remove_beside,
     .deleted = true},
    {.name = "append after a drop", .shapes = ON_PAGED, .half = drop_owner, .run = append_two},
    {.name = "read after a drop", .shapes = ON_PAGED, .half = drop_owner, .run = read_oldest},
    {.name = "verify after a drop",
     .shapes = ON_PAGED,
     .half = drop_owner,
     .run = verify_all,
     .reports = true,
     .whole = true},
    {.name = NULL},
};
