/*
 * Has a set each id once? The verifier passes all elements of an owner. Of each it remembers a
 * digest of the id, which is shorter than most ids, and compares the digests after the last one.
 */
#include "core/inspection.h"

#include "bson/element_fields.h"
#include "util/error.h"
#include "util/sha256.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The half of a SHA-256: no two ids with the same half are known. */
enum { DIGEST = 16, FIRST_CAPACITY = 64 };

struct spill_passed_id {
    uint8_t digest[DIGEST];
    int64_t seq;
    int64_t page;
};

static void add_id(spill_passed_ids_t *ids, int64_t page, int64_t seq, const spill_buffer_t *key)
{
    uint8_t digest[SPILL_SHA256_BYTES];
    if (ids->count == ids->capacity) {
        ids->capacity = ids->capacity > 0 ? 2 * ids->capacity : FIRST_CAPACITY;
        ids->at = bson_realloc(ids->at, ids->capacity * sizeof *ids->at);
    }
    spill_passed_id_t *id = &ids->at[ids->count++];
    spill_sha256(key->data, key->size, digest);
    memcpy(id->digest, digest, sizeof id->digest);
    id->seq = seq;
    id->page = page;
}

void spill_inspect_id(spill_inspection_t *inspection, int64_t page, const spill_element_t *element)
{
    const spill_definition_t *definition = &inspection->owner->array->definition;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    if (!definition->unique || element->seq < inspection->watermark)
        return;
    if (spill_element_key(&element->value, definition->id_field, true, &key))
        add_id(&inspection->ids, page, element->seq, &key);
    else
        spill_inspection_add(inspection, page, 9, "element %" PRId64 " has no id", element->seq);
}

static int compare_ids(const void *left, const void *right)
{
    const spill_passed_id_t *one = left, *other = right;
    int order = memcmp(one->digest, other->digest, sizeof one->digest);
    return order != 0 ? order : (one->seq > other->seq) - (one->seq < other->seq);
}

void spill_inspect_ids(spill_inspection_t *inspection)
{
    const spill_passed_ids_t *ids = &inspection->ids;
    if (ids->count == 0)
        return;
    qsort(ids->at, ids->count, sizeof *ids->at, compare_ids);
    for (size_t i = 1; i < ids->count; i++) {
        const spill_passed_id_t *first = &ids->at[i - 1], *second = &ids->at[i];
        if (first->seq != second->seq &&
            memcmp(first->digest, second->digest, sizeof first->digest) == 0)
            spill_inspection_add(inspection, second->page, 9,
                                 "element %" PRId64 " has the id of element %" PRId64
                                 ": compare the two, and remove one by its number",
                                 second->seq, first->seq);
    }
}

void spill_passed_ids_release(spill_passed_ids_t *ids)
{
    bson_free(ids->at);
    *ids = (spill_passed_ids_t){0};
}
