#include "support/exercise.h"
#include "core/building.h"

#include "bson/value.h"
#include "core/array.h"
#include "definition/schema.h"
#include "store/embedded/embedded.h"
#include "tools/definition_jobs.h"
#include "tools/import/import_chunk.h"
#include "tools/migrate/migrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMPORT_NAME "feed:0123456789abcdef"

/* ---- rules ----------------------------------------------------------------------------------- */

#define REQUIRE(condition, ...)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static const char *store_place = "memory:";

/* A message names a place if it names the store, the array, or a catalog entry. */
static bool names_place(const char *message)
{
    return strstr(message, store_place) != NULL || strstr(message, "'feed'") != NULL ||
           strstr(message, "definition") != NULL || strstr(message, IMPORT_NAME) != NULL ||
           strstr(message, "spillway.") != NULL;
}

static spill_code_t note(exercise_result_t *result, const char *operation, spill_code_t code,
                         const spill_error_t *error)
{
    result->operations++;
    if (code == SPILL_OK)
        return code;
    result->failed++;
    result->corrupt += code == SPILL_CORRUPT ? 1 : 0;
    result->conflicts += code == SPILL_CONFLICT && error->retryable ? 1 : 0;
    REQUIRE(error->code == code && error->message[0] != '\0', "%s: %s without a message", operation,
            spill_code_name(code));
    REQUIRE(code != SPILL_CORRUPT || names_place(error->message), "%s: no place in: %s", operation,
            error->message);
    if (getenv("EXERCISE_TRACE"))
        fprintf(stderr, "%s: %s: %s\n", operation, spill_code_name(code), error->message);
    return code;
}

#define NOTE(operation, code) note(ground->result, operation, code, &ground->error)

/* ---- the clock ------------------------------------------------------------------------------- */

/* Time passes with each question. Pauses take none. */
static int64_t next_moment(void *context)
{
    return ++*(int64_t *)context;
}

static void pause_nothing(void *context, int64_t duration_us)
{
    *(int64_t *)context += duration_us;
}

static int64_t moment_us = INT64_C(1700000000000000);

spill_clock_t exercise_clock(void)
{
    return (spill_clock_t){&moment_us, next_moment, pause_nothing};
}

static spill_store_t *open_store(void *disk, bool read_only, spill_error_t *error)
{
    spill_store_options_t options;
    spill_store_t *store;
    spill_store_options_init(&options);
    options.read_only = read_only;
    options.clock = exercise_clock();
    spill_kv_t *kv = disk_open(disk);
    return spill_embedded_open_kv(kv, "memory:", &options, &store, error) == SPILL_OK ? store
                                                                                      : NULL;
}

/* ---- records --------------------------------------------------------------------------------- */

static void write_batch(disk_t *disk, spill_batch_t *batch)
{
    spill_kv_t *kv = disk_open(disk);
    kv->ops->write(kv, batch, true, NULL);
    kv->ops->close(kv, NULL);
    spill_batch_release(batch);
}

void exercise_put(disk_t *disk, const uint8_t *key, size_t key_bytes, const uint8_t *value,
                  size_t value_bytes)
{
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_batch_put(&batch, key, key_bytes, value, value_bytes);
    write_batch(disk, &batch);
}

void exercise_delete(disk_t *disk, const uint8_t *key, size_t key_bytes)
{
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_batch_delete(&batch, key, key_bytes);
    write_batch(disk, &batch);
}

disk_t *exercise_disk(const exercise_store_t *store)
{
    disk_t *disk = disk_new();
    spill_batch_t batch = SPILL_BATCH_INIT;
    for (size_t i = 0; i < store->count; i++)
        spill_batch_put(&batch, store->records[i].key, store->records[i].key_bytes,
                        store->records[i].value, store->records[i].value_bytes);
    write_batch(disk, &batch);
    return disk;
}

static uint8_t *copy_bytes(const uint8_t *data, size_t size)
{
    uint8_t *copy = bson_malloc(size + 1);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

static void read_records(exercise_store_t *store, disk_t *disk)
{
    spill_kv_t *kv = disk_open(disk);
    spill_kv_iter_t *iter = kv->ops->iterate(kv);
    for (iter->ops->seek(iter, (const uint8_t *)"", 0); iter->valid; iter->ops->next(iter)) {
        store->records = bson_realloc(store->records, (store->count + 1) * sizeof *store->records);
        store->records[store->count++] =
            (exercise_record_t){.key = copy_bytes(iter->key, iter->key_bytes),
                                .key_bytes = iter->key_bytes,
                                .value = copy_bytes(iter->value, iter->value_bytes),
                                .value_bytes = iter->value_bytes};
    }
    iter->ops->free(iter);
    kv->ops->close(kv, NULL);
}

void exercise_store_release(exercise_store_t *store)
{
    for (size_t i = 0; i < store->count; i++) {
        bson_free(store->records[i].key);
        bson_free(store->records[i].value);
    }
    bson_free(store->records);
    *store = (exercise_store_t){0};
}

/* ---- kinds of records --------------------------------------------------------------------------
 */

/*
 * What distinguishes the kinds: for a system record its kind byte, and the first letter of a
 * catalog entry's name with the last; for other fields FIELDS; for an owner's record its kind byte.
 */
enum { FIELDS = 0x1000, SYSTEM = 0x2000 };

int exercise_kind_of(const exercise_record_t *record)
{
    static const uint8_t system[4];
    if (record->key_bytes > 4 && memcmp(record->key, system, 4) == 0) {
        bool catalog = record->key[4] == SPILL_SYSTEM_CATALOG && record->key_bytes > 5;
        return SYSTEM + record->key[4] +
               (catalog ? record->key[5] + 7 * record->key[record->key_bytes - 1] : 0);
    }
    size_t owner = spill_owner_key_length(record->key + 4, record->key_bytes - 4);
    return record->key_bytes == 4 + owner ? FIELDS : record->key[4 + owner];
}

bool exercise_is_new_kind(const exercise_store_t *store, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (exercise_kind_of(&store->records[i]) == exercise_kind_of(&store->records[index]))
            return false;
    return true;
}

/* ---- writing a store ------------------------------------------------------------------------- */

static void must(spill_code_t code, const spill_error_t *error)
{
    REQUIRE(code == SPILL_OK, "%s: %s", spill_code_name(code), error->message);
}

static bson_t *new_element(int number)
{
    return BCON_NEW("id", BCON_INT32(number), "rating", BCON_INT32(number % 5), "at",
                    BCON_DATE_TIME(INT64_C(1700000000000) + number * INT64_C(1500000000)));
}

static const struct {
    const char *name;
    const char *preset;
    spill_layout_t layout;
    const char *sort_field;
} layouts[EXERCISE_LAYOUTS] = {
    {"keep newest", "feed-recent", SPILL_LAYOUT_OUTLIER, ""},
    {"keep oldest", "feed", SPILL_LAYOUT_OUTLIER, ""},
    {"reference", "reviews-separate", SPILL_LAYOUT_REFERENCE, ""},
    {"subset", "reviews-subset", SPILL_LAYOUT_SUBSET, "rating"},
    {"bucket", "reviews-bucket", SPILL_LAYOUT_BUCKET, ""},
    {"capped", "feed-recent", SPILL_LAYOUT_CAPPED, ""},
    {"capped by rank", "feed-recent", SPILL_LAYOUT_CAPPED, "rating"},
};

static spill_definition_t definition_of(int layout)
{
    spill_definition_t definition;
    spill_error_t error;
    must(spill_definition_preset(&definition, layouts[layout].preset, "feed", &error), &error);
    spill_definition_set_layout(&definition, layouts[layout].layout);
    strcpy(definition.sort_field, layouts[layout].sort_field);
    strcpy(definition.time_field, "at");
    strcpy(definition.id_field, "id");
    definition.op_window = 8;
    definition.bounds.threshold = 4;
    if (definition.bounds.page_capacity > 0)
        definition.bounds.page_capacity = layouts[layout].layout == SPILL_LAYOUT_OUTLIER ? 3 : 4;
    definition.largest = definition.bounds;
    return definition;
}

static void append_to(spill_array_t *array, const char *owner, int number, spill_code_t *code,
                      spill_error_t *error)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    bson_t *document = new_element(number);
    spill_value_t element = spill_value_from_document(document);
    char id[16];
    snprintf(id, sizeof id, "op%d", number);
    if (spill_schema_of(spill_array_get_definition(array))->has_windows) {
        spill_bucket_append_options_t options;
        spill_bucket_base_t *bases;
        size_t count;
        spill_bucket_append_options_init(&options);
        options.op_id = id;
        options.op_id_bytes = strlen(id);
        *code = spill_bucket_op_bases(array, &name, &element, 1, &bases, &count, error);
        options.bases = bases;
        options.base_count = count;
        if (*code == SPILL_OK)
            *code = spill_bucket_append(array, &name, &element, 1, &options, NULL, NULL, error);
        bson_free(bases);
    } else {
        spill_append_options_t options;
        spill_append_options_init(&options);
        spill_op_t op = {.id = id, .id_bytes = strlen(id)};
        options.op = &op;
        *code = spill_array_op_base(array, &name, &op.base, error);
        if (*code == SPILL_OK)
            *code = spill_array_append(array, &name, &element, 1, &options, NULL, error);
    }
    bson_destroy(document);
    bson_destroy(&storage);
}

static void write_checkpoints(spill_store_t *store)
{
    spill_error_t error;
    bson_t *stored = NULL;
    spill_import_checkpoint_t import = {.definition = "feed",
                                        .source = "s",
                                        .format = "json",
                                        .given = {.owner = "o", .id = "i"},
                                        .end_offset = 7};
    must(spill_import_checkpoint_save(store, IMPORT_NAME, &import, &stored, &error), &error);
    bson_destroy(stored);
    spill_convert_checkpoint_t convert = {0};
    must(spill_convert_checkpoint_save(store, "feed", "other", true, &convert, &error), &error);
    spill_convert_checkpoint_release(&convert);
    spill_building_t building = {0};
    must(spill_building_save(store, "other", "feed", false, &building, &error), &error);
    spill_building_release(&building);
}

static void update_fields(spill_array_t *array, spill_code_t *code, spill_error_t *error)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    bson_t *update = BCON_NEW("$set", "{", "name", "A", "}", "$inc", "{", "n", BCON_INT32(1), "}");
    *code = spill_array_update(array, &owner, update, error);
    bson_destroy(update);
    bson_destroy(&storage);
}

/* An owner that has left pages behind, as a drop that died leaves them, is in keep newest only. */
static void fill_store(spill_store_t *store, spill_array_t *array)
{
    spill_error_t error;
    spill_code_t code;
    bool bucket = spill_schema_of(spill_array_get_definition(array))->has_windows;
    for (int i = 0; i < 12; i++) {
        append_to(array, "ada", i, &code, &error);
        must(code, &error);
    }
    append_to(array, "bob", 50, &code, &error);
    must(code, &error);
    bson_t storage = BSON_INITIALIZER, text = BSON_INITIALIZER;
    spill_value_t ada = spill_value_from_utf8(&storage, "ada");
    spill_value_t owner = bucket ? spill_bucket_name(&text, &ada, "2023-11") : ada;
    code = spill_array_remove(array, &owner, 3, &error);
    REQUIRE(code == SPILL_OK || code == SPILL_NOT_FOUND, "remove: %s", error.message);
    if (!bucket) {
        update_fields(array, &code, &error);
        must(code, &error);
    }
    bson_destroy(&storage);
    bson_destroy(&text);
    write_checkpoints(store);
}

const char *exercise_layout_name(int layout)
{
    return layouts[layout].name;
}

void exercise_store_fill(spill_store_t *store, int layout)
{
    spill_error_t error;
    spill_array_t *array;
    spill_definition_t definition = definition_of(layout);
    must(spill_store_define(store, &definition, &error), &error);
    must(spill_array_open(store, "feed", &array, &error), &error);
    fill_store(store, array);
    spill_array_close(array);
}

void exercise_store_make(exercise_store_t *store, int layout)
{
    spill_error_t error;
    disk_t *disk = disk_new();
    *store = (exercise_store_t){.layout = layouts[layout].name};
    moment_us = INT64_C(1700000000000000);
    spill_store_t *open = open_store(disk, false, &error);
    REQUIRE(open != NULL, "%s", error.message);
    exercise_store_fill(open, layout);
    must(spill_store_close(open, &error), &error);
    read_records(store, disk);
    disk_free(disk);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* What the operations of a group share. */
typedef struct ground {
    exercise_result_t *result;
    spill_store_t *store;
    spill_array_t *array;
    bool bucket;
    bool checked;        /* findings of verify count */
    spill_value_t ada;   /* the owner */
    spill_value_t owner; /* the owner in calls of array.h: in a bucket, a window */
    spill_value_t id;
    bson_t storage[3];
    spill_error_t error;
} ground_t;

static void check_value(const spill_value_t *value)
{
    REQUIRE(spill_value_valid(value), "an operation returned a malformed value");
}

static void check_slice(spill_slice_t *slice)
{
    for (size_t i = 0; slice != NULL && i < slice->count; i++)
        check_value(&slice->elements[i].value);
    spill_slice_free(slice);
}

static bool visit_owner(void *context, const spill_value_t *owner)
{
    (void)context;
    check_value(owner);
    return true;
}

static bool visit_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    ++*(int64_t *)context;
    check_value(owner);
    check_value(&element->value);
    return true;
}

static bool visit_document(void *context, const char *collection, const bson_t *document)
{
    (void)context;
    REQUIRE(collection != NULL && spill_document_valid(document), "a malformed document");
    return true;
}

static bool visit_window(void *context, const spill_bucket_window_t *window)
{
    (void)context;
    REQUIRE(strlen(window->window) < SPILL_WINDOW_SIZE, "a window's text is too long");
    return true;
}

static void hear_finding(void *context, const spill_finding_t *finding)
{
    (void)context;
    REQUIRE(finding->definition != NULL && finding->text[0] != '\0', "a finding without a text");
    if (getenv("EXERCISE_TRACE"))
        fprintf(stderr, "finding: page %lld: %s\n", (long long)finding->page, finding->text);
}

/* Return the number of findings; -1: it failed. */
static int64_t verify_all(ground_t *ground)
{
    spill_verify_summary_t summary;
    if (NOTE("verify", spill_array_verify(ground->array, NULL, hear_finding, NULL, &summary,
                                          &ground->error)) != SPILL_OK) {
        ground->result->verified = false;
        return -1;
    }
    ground->result->findings += summary.findings;
    return summary.findings;
}

/* Return the number of findings that are left; -1: it failed. */
static int64_t repair_all(ground_t *ground)
{
    spill_repair_summary_t summary;
    spill_code_t code = NOTE("repair", spill_array_repair(ground->array, NULL, false, hear_finding,
                                                          NULL, &summary, &ground->error));
    return code == SPILL_OK ? summary.left : -1;
}

static void read_slices(ground_t *ground)
{
    spill_read_options_t options;
    spill_slice_t *slice = NULL;
    spill_read_options_init(&options);
    NOTE("read newest first",
         spill_array_read(ground->array, &ground->owner, &options, &slice, &ground->error));
    check_slice(slice);
    options.order = SPILL_OLDEST_FIRST;
    options.limit = 5;
    options.skip = 2;
    slice = NULL;
    NOTE("read with skip",
         spill_array_read(ground->array, &ground->owner, &options, &slice, &ground->error));
    check_slice(slice);
    options = (spill_read_options_t){.version = SPILL_READ_OPTIONS_VERSION,
                                     .order = SPILL_OLDEST_FIRST,
                                     .limit = 3,
                                     .before = 9,
                                     .after = 3};
    slice = NULL;
    NOTE("read a range",
         spill_array_read(ground->array, &ground->owner, &options, &slice, &ground->error));
    check_slice(slice);
    slice = NULL;
    NOTE("top", spill_array_top(ground->array, &ground->owner, 5, &slice, &ground->error));
    check_slice(slice);
}

static void read_bucket(ground_t *ground)
{
    spill_bucket_read_options_t options;
    spill_bucket_slice_t *slice = NULL;
    spill_statistics_t statistics;
    char window[SPILL_WINDOW_SIZE];
    int64_t number;
    spill_bucket_read_options_init(&options);
    NOTE("bucket read",
         spill_bucket_read(ground->array, &ground->ada, &options, &slice, &ground->error));
    for (size_t i = 0; slice != NULL && i < slice->count; i++)
        check_value(&slice->elements[i].value);
    spill_bucket_slice_free(slice);
    NOTE("windows", spill_bucket_windows(ground->array, &ground->ada, NULL, NULL,
                                         SPILL_OLDEST_FIRST, visit_window, NULL, &ground->error));
    NOTE("statistics", spill_bucket_statistics(ground->array, &ground->ada, NULL, NULL, &statistics,
                                               &number, &ground->error));
    NOTE("bucket find id", spill_bucket_find_id(ground->array, &ground->ada, &ground->id, window,
                                                &number, &ground->error));
    NOTE("bucket owners", spill_bucket_owners(ground->array, visit_owner, NULL, &ground->error));
}

static void read_checkpoints(ground_t *ground)
{
    spill_import_checkpoint_t import;
    spill_convert_checkpoint_t convert;
    spill_building_t building;
    bson_t *stored;
    char name[SPILL_NAME_SIZE];
    NOTE("import checkpoint", spill_import_checkpoint_load(ground->store, IMPORT_NAME, &stored,
                                                           &import, &ground->error));
    bson_destroy(stored);
    spill_import_checkpoint_release(&import);
    NOTE("convert checkpoint",
         spill_convert_checkpoint_load(ground->store, "feed", &convert, &ground->error));
    spill_convert_checkpoint_release(&convert);
    NOTE("migrate checkpoint",
         spill_building_load(ground->store, "other", &building, &ground->error));
    spill_building_release(&building);
    NOTE("migrate checkpoint of an original",
         spill_building_of_original(ground->store, "feed", name, &ground->error));
}

static void list_oversized(ground_t *ground)
{
    spill_binding_t binding;
    spill_listing_t found = SPILL_LISTING_INIT;
    const spill_definition_t *definition = spill_array_get_definition(ground->array);
    spill_list_query_t query = {
        .list = SPILL_LIST_OVERSIZED, .limit = 100, .oversized = {.slots = 1, .bytes = 1}};
    if (NOTE("bind", ground->store->ops->bind(ground->store, definition, &binding,
                                              &ground->error)) == SPILL_OK)
        NOTE("oversized heads",
             spill_store_list(ground->store, definition, &binding, &query, &found, &ground->error));
    spill_listing_release(&found);
}

static void run_reads(ground_t *ground)
{
    spill_count_t count;
    spill_repair_summary_t summary;
    int64_t number;
    read_checkpoints(ground);
    if (ground->array == NULL)
        return;
    int64_t before = ground->result->corrupt, findings = ground->result->findings;
    NOTE("count", spill_array_count(ground->array, &ground->owner, &count, &ground->error));
    NOTE("base", spill_array_op_base(ground->array, &ground->owner, &number, &ground->error));
    read_slices(ground);
    NOTE("find id",
         spill_array_find_id(ground->array, &ground->owner, &ground->id, &number, &ground->error));
    if (ground->bucket)
        read_bucket(ground);
    NOTE("owners", spill_array_owners(ground->array, visit_owner, NULL, &ground->error));
    ground->result->elements = 0;
    if (NOTE("export", spill_array_export(ground->array, NULL, visit_element,
                                          &ground->result->elements, &ground->error)) != SPILL_OK)
        ground->result->elements = -1;
    NOTE("documents",
         spill_array_documents(ground->array, NULL, false, visit_document, NULL, &ground->error));
    list_oversized(ground);
    int64_t corrupt = ground->result->corrupt;
    verify_all(ground);
    if (corrupt > before && ground->result->corrupt == corrupt &&
        ground->result->findings == findings)
        ground->result->unnoticed += corrupt - before;
    NOTE("repair that only looks",
         spill_array_repair(ground->array, &ground->owner, true, hear_finding, NULL, &summary,
                            &ground->error));
}

static void append_one(ground_t *ground, int number, const char *what)
{
    spill_code_t code;
    append_to(ground->array, "ada", number, &code, &ground->error);
    NOTE(what, code);
}

static void append_without_op(ground_t *ground, int number)
{
    bson_t *document = new_element(number);
    spill_value_t element = spill_value_from_document(document);
    if (ground->bucket)
        NOTE("bucket append", spill_bucket_append(ground->array, &ground->ada, &element, 1, NULL,
                                                  NULL, NULL, &ground->error));
    else
        NOTE("append", spill_array_append(ground->array, &ground->owner, &element, 1, NULL, NULL,
                                          &ground->error));
    bson_destroy(document);
}

static void edit_elements(ground_t *ground)
{
    bson_t *document = new_element(9);
    spill_value_t element = spill_value_from_document(document);
    char window[SPILL_WINDOW_SIZE];
    int64_t seq;
    for (int64_t number = 1; number <= 9; number += 4)
        NOTE("edit",
             spill_array_edit(ground->array, &ground->owner, number, &element, &ground->error));
    NOTE("edit by id", spill_array_edit_id(ground->array, &ground->owner, &ground->id, &element,
                                           &seq, &ground->error));
    if (ground->bucket)
        NOTE("bucket edit by id", spill_bucket_edit_id(ground->array, &ground->ada, &ground->id,
                                                       &element, window, &seq, &ground->error));
    bson_destroy(document);
}

static void remove_elements(ground_t *ground)
{
    bson_t *filter = BCON_NEW("rating", "{", "$gte", BCON_INT32(4), "}");
    char window[SPILL_WINDOW_SIZE];
    int64_t number;
    for (int64_t seq = 0; seq <= 10; seq += 5)
        NOTE("remove", spill_array_remove(ground->array, &ground->owner, seq, &ground->error));
    NOTE("remove by id", spill_array_remove_id(ground->array, &ground->owner, &ground->id, &number,
                                               &ground->error));
    NOTE("remove where", spill_array_remove_where(ground->array, &ground->owner, filter, 1, &number,
                                                  &ground->error));
    if (ground->bucket) {
        NOTE("bucket remove by id", spill_bucket_remove_id(ground->array, &ground->ada, &ground->id,
                                                           window, &number, &ground->error));
        NOTE("bucket remove where", spill_bucket_remove_where(ground->array, &ground->ada, filter,
                                                              1, &number, &ground->error));
    }
    bson_destroy(filter);
}

static void trim_elements(ground_t *ground)
{
    int64_t below;
    if (ground->bucket) {
        NOTE("bucket trim", spill_bucket_trim_keep(ground->array, &ground->ada, 6, &ground->error));
        NOTE("bucket trim by time",
             spill_bucket_trim_older(ground->array, &ground->ada, INT64_C(1703000000000),
                                     &ground->error));
        NOTE("bucket drop", spill_bucket_drop_before(ground->array, &ground->ada, "2023-12", &below,
                                                     &ground->error));
        return;
    }
    NOTE("trim", spill_array_trim(ground->array, &ground->owner, 4, &ground->error));
    NOTE("trim by time", spill_array_trim_older(ground->array, &ground->owner,
                                                INT64_C(1710000000000), &below, &ground->error));
    NOTE("trim all but some",
         spill_array_trim_keep(ground->array, &ground->owner, 2, &below, &ground->error));
}

static void run_changes(ground_t *ground)
{
    spill_code_t code;
    if (ground->array == NULL)
        return;
    append_one(ground, 11, "append with an operation that is known");
    append_one(ground, 12, "append with an operation");
    append_without_op(ground, 13);
    if (!ground->bucket) {
        update_fields(ground->array, &code, &ground->error);
        NOTE("update", code);
    }
    edit_elements(ground);
    remove_elements(ground);
    trim_elements(ground);
    for (int number = 14; number < 18; number++)
        append_without_op(ground, number);
    verify_all(ground);
}

static void run_repair(ground_t *ground)
{
    if (ground->array == NULL)
        return;
    ground->result->left = repair_all(ground);
    ground->result->unfixed = verify_all(ground);
    append_without_op(ground, 12);
    remove_elements(ground);
    repair_all(ground);
}

static void run_drop(ground_t *ground)
{
    spill_definition_t *definitions = NULL;
    size_t count;
    if (ground->array != NULL) {
        NOTE("drop an owner",
             spill_array_drop_owner(ground->array, &ground->owner, &ground->error));
        append_without_op(ground, 12);
        spill_array_close(ground->array);
        ground->array = NULL;
    }
    NOTE("drop", spill_store_drop(ground->store, "feed", &ground->error));
    NOTE("forget imports", spill_import_checkpoints_drop(ground->store, "feed", &ground->error));
    spill_definition_t definition = definition_of(0);
    NOTE("define", spill_store_define(ground->store, &definition, &ground->error));
    strcpy(definition.name, "another");
    strcpy(definition.collection, "elsewhere");
    strcpy(definition.page_collection, "elsewherePages");
    NOTE("define another", spill_store_define(ground->store, &definition, &ground->error));
    NOTE("definitions",
         spill_store_definitions(ground->store, &definitions, &count, &ground->error));
    bson_free(definitions);
}

static void run_undo(ground_t *ground)
{
    const spill_migrate_options_t options = {0};
    spill_migrate_result_t result = {0};
    const spill_definition_t *definition =
        ground->array ? spill_array_get_definition(ground->array) : NULL;
    if (!definition || definition->layout != SPILL_LAYOUT_OUTLIER ||
        !spill_schema_of(definition)->appends_to_head)
        return;
    NOTE("sweep", spill_migrate(ground->array, &options, &result, &ground->error));
    NOTE("measure an undo",
         spill_migrate_measure_undo(ground->array, &options, &result, &ground->error));
    NOTE("undo", spill_migrate_undo(ground->array, &options, &result, &ground->error));
}

static void run_group(ground_t *ground, exercise_group_t group)
{
    switch (group) {
    case EXERCISE_READ:
        run_reads(ground);
        break;
    case EXERCISE_CHANGE:
        run_changes(ground);
        break;
    case EXERCISE_REPAIR:
        run_repair(ground);
        break;
    case EXERCISE_UNDO:
        run_undo(ground);
        break;
    case EXERCISE_DROP:
    case EXERCISE_GROUPS:
        run_drop(ground);
        break;
    }
}

static void run_open(ground_t *ground, const exercise_opener_t *opener, bool read_only,
                     exercise_group_t group)
{
    ground->store = opener->open(opener->context, read_only, &ground->error);
    if (ground->store == NULL) {
        NOTE("open", ground->error.code);
        return;
    }
    if (NOTE("open the array",
             spill_array_open(ground->store, "feed", &ground->array, &ground->error)) == SPILL_OK) {
        ground->result->opened = true;
        ground->bucket = spill_schema_of(spill_array_get_definition(ground->array))->has_windows;
    }
    ground->ada = spill_value_from_utf8(&ground->storage[0], "ada");
    ground->id = spill_value_from_int64(&ground->storage[1], 7);
    ground->owner = ground->bucket ? spill_bucket_name(&ground->storage[2], &ground->ada, "2023-12")
                                   : ground->ada;
    run_group(ground, group);
    spill_counters_t counters;
    spill_store_counters(ground->store, &counters);
    ground->result->calls += counters.calls;
    spill_array_close(ground->array);
    NOTE("close", spill_store_close(ground->store, &ground->error));
}

void exercise_run_on(const exercise_opener_t *opener, exercise_group_t group,
                     exercise_result_t *result)
{
    *result = (exercise_result_t){.elements = -1, .left = -1, .unfixed = -1, .verified = true};
    store_place = opener->place;
    for (int read_only = group == EXERCISE_READ; read_only >= 0; read_only--) {
        ground_t ground = {.result = result};
        for (size_t i = 0; i < 3; i++)
            bson_init(&ground.storage[i]);
        run_open(&ground, opener, read_only, group);
        for (size_t i = 0; i < 3; i++)
            bson_destroy(&ground.storage[i]);
    }
}

void exercise_run(disk_t *disk, exercise_group_t group, exercise_result_t *result)
{
    const exercise_opener_t opener = {open_store, disk, "memory:"};
    exercise_run_on(&opener, group, result);
}
