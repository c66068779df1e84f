/* Spillway: layout outlier, keep newest, on an embedded store and on a server. */
#include "../measure.h"
#include "peer.h"

#include <spillway/spillway.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Operation ids kept for an owner: more than other threads append between a thread's read of the
 * base and its append. On a server the head stores the ids, so the number is smaller there.
 */
enum { WINDOW_EMBEDDED = 10000, WINDOW_SERVER = 256, DOCUMENT_BYTES = 4 << 20 };

typedef struct ours {
    spill_store_t *store;
    spill_array_t *array;
} ours_t;

static void *open_at(const peer_place_t *place, const char *uri, int op_window)
{
    ours_t *ours = calloc(1, sizeof *ours);
    spill_store_options_t options;
    spill_definition_t definition;
    spill_error_t error;
    spill_store_options_init(&options);
    options.durability = place->durable ? SPILL_DURABILITY_FSYNC : SPILL_DURABILITY_LOG;
    measure_check(spill_store_open(uri, &options, &ours->store, &error), &error);
    if (place->fresh) {
        spill_definition_init(&definition, "ours");
        snprintf(definition.collection, SPILL_NAME_SIZE, "ours");
        snprintf(definition.page_collection, SPILL_NAME_SIZE, "oursPages");
        if (place->ids)
            snprintf(definition.id_field, SPILL_NAME_SIZE, "at");
        definition.op_window = op_window;
        definition.bounds.head_bytes_max = definition.bounds.page_bytes_max = DOCUMENT_BYTES;
        definition.bounds.threshold = definition.bounds.page_capacity = place->capacity;
        measure_check(spill_store_define(ours->store, &definition, &error), &error);
    }
    measure_check(spill_array_open(ours->store, "ours", &ours->array, &error), &error);
    return ours;
}

static void *open_embedded(const peer_place_t *place)
{
    return open_at(place, place->folder, WINDOW_EMBEDDED);
}

static void *open_mongodb(const peer_place_t *place)
{
    return open_at(place, place->mongodb, WINDOW_SERVER);
}

static void close_ours(void *peer)
{
    ours_t *ours = peer;
    spill_error_t error;
    spill_array_close(ours->array);
    measure_check(spill_store_close(ours->store, &error), &error);
    free(ours);
}

/* A store serves any number of threads. */
static void *join(void *peer)
{
    return peer;
}

static void leave(void *connection)
{
    (void)connection;
}

static int64_t append(void *connection, const char *owner, const uint8_t *element,
                      const peer_op_t *op)
{
    ours_t *ours = connection;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    spill_value_t value = {
        .data = element, .size_bytes = ELEMENT_BYTES, .type = BSON_TYPE_DOCUMENT};
    spill_op_t ours_op;
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    spill_append_options_init(&options);
    if (op) {
        ours_op = (spill_op_t){op->id, strlen(op->id), op->base};
        options.op = &ours_op;
    }
    measure_check(spill_array_append(ours->array, &name, &value, 1, &options, &result, &error),
                  &error);
    bson_destroy(&storage);
    return result.op_base;
}

/* Append in batches of the size of a document. */
static void fill(void *connection, const char *owner, int count)
{
    enum { BATCH = 100 };
    static _Thread_local uint8_t elements[BATCH][ELEMENT_BYTES];
    ours_t *ours = connection;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner), values[BATCH];
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    spill_append_options_init(&options);
    for (int from = 0; from < count; from += BATCH) {
        int batch = count - from < BATCH ? count - from : BATCH;
        for (int i = 0; i < batch; i++) {
            measure_element(elements[i], (uint64_t)(from + i));
            values[i] = (spill_value_t){
                .data = elements[i], .size_bytes = ELEMENT_BYTES, .type = BSON_TYPE_DOCUMENT};
        }
        measure_check(spill_array_append(ours->array, &name, values, (size_t)batch, &options,
                                         &result, &error),
                      &error);
    }
    bson_destroy(&storage);
}

static bool add(void *connection, const char *owner, int64_t id, const uint8_t *element)
{
    ours_t *ours = connection;
    bson_t storage = BSON_INITIALIZER, id_storage = BSON_INITIALIZER;
    bson_iter_t at;
    int64_t seq;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    BSON_APPEND_DATE_TIME(&id_storage, "", id);
    bson_iter_init_find(&at, &id_storage, "");
    spill_value_t value = spill_value_from_iter(&at);
    spill_code_t code = spill_array_find_id(ours->array, &name, &value, &seq, NULL);
    if (code != SPILL_OK && code != SPILL_NOT_FOUND)
        measure_stop("an id cannot be found: %s", spill_code_text(code));
    bson_destroy(&id_storage);
    bson_destroy(&storage);
    if (code == SPILL_NOT_FOUND)
        append(connection, owner, element, NULL);
    return code == SPILL_NOT_FOUND;
}

static int page(void *connection, const char *owner, int64_t skip, int limit)
{
    ours_t *ours = connection;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    spill_read_options_init(&options);
    options.limit = limit;
    options.skip = skip;
    measure_check(spill_array_read(ours->array, &name, &options, &slice, &error), &error);
    int count = (int)slice->count;
    spill_slice_free(slice);
    bson_destroy(&storage);
    return count;
}

typedef struct visitor {
    peer_visit_fn visit;
    void *context;
} visitor_t;

static bool visit_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    const visitor_t *visitor = context;
    (void)owner;
    visitor->visit(visitor->context, element->value.data, element->value.size_bytes);
    return true;
}

static void all(void *connection, const char *owner, peer_visit_fn visit, void *context)
{
    ours_t *ours = connection;
    visitor_t visitor = {visit, context};
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    spill_error_t error;
    measure_check(spill_array_export(ours->array, &name, visit_element, &visitor, &error), &error);
    bson_destroy(&storage);
}

#define OURS                                                                                       \
    .takes_ops = true, .close = close_ours, .join = join, .leave = leave, .fill = fill,            \
    .append = append, .add = add, .page = page, .all = all

const peer_t peer_ours_embedded = {.name = "ours, embedded",
                                   .id = "ours-embedded",
                                   .home = PEER_HERE,
                                   .open = open_embedded,
                                   OURS};
const peer_t peer_ours_mongodb = {.name = "ours, on a server",
                                  .id = "ours-server",
                                  .home = PEER_MONGODB,
                                  .open = open_mongodb,
                                  .bytes = peer_mongodb_bytes,
                                  OURS};
