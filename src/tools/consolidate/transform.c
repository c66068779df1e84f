/*
 * The two forms of a document, old and transformed, and the views that show the old form of the
 * joint collection's documents.
 */
#include "bson/value.h"
#include "store/content.h"
#include "tools/consolidate/consolidate.h"
#include "tools/consolidate/consolidate_run.h"
#include "util/buffer.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- _ids ------------------------------------------------------------------------------------ */

void spill_transform_id(const spill_share_t *slice, const spill_value_t *id, bson_t *to,
                        const char *key)
{
    bson_t pair;
    if (slice->keeps_ids) {
        spill_value_append(id, to, key);
        return;
    }
    BSON_APPEND_DOCUMENT_BEGIN(to, key, &pair);
    spill_value_append(&slice->value, &pair, slice->field);
    spill_value_append(id, &pair, "id");
    bson_append_document_end(to, &pair);
}

/* Report whether it is {FIELD: VALUE, id: ...}; then *inner is the value of `id`. */
static bool is_pair(const spill_share_t *slice, const spill_value_t *id, spill_value_t *inner)
{
    const char *name;
    spill_value_t value;
    if (slice->keeps_ids || id->type != BSON_TYPE_DOCUMENT)
        return false;
    spill_fields_t fields = spill_fields_of(id->data);
    if (!spill_fields_next(&fields, &name, &value) || strcmp(name, slice->field) != 0 ||
        !spill_value_equal(&value, &slice->value))
        return false;
    if (!spill_fields_next(&fields, &name, inner) || strcmp(name, "id") != 0)
        return false;
    return !spill_fields_next(&fields, &name, &value);
}

void spill_transform_original_id(const spill_share_t *slice, const spill_value_t *id, bson_t *to,
                                 const char *key)
{
    spill_value_t inner;
    spill_value_append(is_pair(slice, id, &inner) ? &inner : id, to, key);
}

spill_code_t spill_transform_id_of(const bson_t *document, spill_value_t *id, spill_error_t *error)
{
    bson_iter_t iter;
    *id = (spill_value_t){.type = BSON_TYPE_NULL};
    if (!spill_answer_valid(document))
        return spill_fail(error, SPILL_CORRUPT, "a document is malformed");
    if (!bson_iter_init_find(&iter, document, "_id"))
        return spill_fail(error, SPILL_CORRUPT, "a document has no _id");
    *id = spill_value_from_iter(&iter);
    return SPILL_OK;
}

/* ---- documents ------------------------------------------------------------------------------- */

/* Append all fields except _id and the discriminator. False: `strict`, and it has that field. */
static bool append_others(const spill_share_t *slice, const bson_t *document, bool strict,
                          bson_t *to)
{
    const char *name;
    spill_value_t value;
    spill_fields_t fields = spill_fields_of(bson_get_data(document));
    while (spill_fields_next(&fields, &name, &value)) {
        bool left_out = strcmp(name, "_id") == 0 || strcmp(name, slice->field) == 0;
        if (strict && strcmp(name, slice->field) == 0)
            return false;
        if (!left_out)
            spill_value_append(&value, to, name);
    }
    return true;
}

spill_code_t spill_transform_make(const spill_share_t *slice, const bson_t *document,
                                  bson_t *transformed, spill_error_t *error)
{
    spill_value_t id;
    bson_init(transformed);
    spill_code_t code = spill_transform_id_of(document, &id, error);
    if (code != SPILL_OK)
        return code;
    spill_transform_id(slice, &id, transformed, "_id");
    spill_value_append(&slice->value, transformed, slice->field);
    if (!append_others(slice, document, true, transformed)) {
        char *text = spill_value_to_json(&id, false);
        code = spill_fail(error, SPILL_REFUSED,
                          "document %s has a field '%s' already: choose another discriminator",
                          text ? text : "?", slice->field);
        bson_free(text);
    } else if (transformed->len > SPILL_DOCUMENT_BYTES_MAX) {
        char *text = spill_value_to_json(&id, false);
        code = spill_fail(error, SPILL_REFUSED,
                          "document %s would have %" PRIu32 " bytes with the discriminator, at "
                          "most 16 MiB are possible: make it smaller",
                          text ? text : "?", transformed->len);
        bson_free(text);
    }
    return code;
}

spill_code_t spill_transform_reverse(const spill_share_t *slice, const bson_t *transformed,
                                     bson_t *document, spill_error_t *error)
{
    spill_value_t id;
    bson_init(document);
    spill_code_t code = spill_transform_id_of(transformed, &id, error);
    if (code != SPILL_OK)
        return code;
    spill_transform_original_id(slice, &id, document, "_id");
    append_others(slice, transformed, false, document);
    return SPILL_OK;
}

/* ---- digests --------------------------------------------------------------------------------- */

/* Spread a hash over all its bits, so that sums of many hashes differ (Stafford's mix 13). */
static uint64_t mix_hash(uint64_t hash)
{
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
    return hash ^ (hash >> 31);
}

/* A hash other than FNV-1a: of eight bytes at a time. */
static uint64_t second_hash(const uint8_t *data, size_t size)
{
    uint64_t hash = size, word;
    for (; size >= sizeof word; data += sizeof word, size -= sizeof word) {
        memcpy(&word, data, sizeof word);
        hash = mix_hash(hash + BSON_UINT64_FROM_LE(word));
    }
    word = 0;
    for (size_t i = 0; i < size; i++)
        word |= (uint64_t)data[i] << (8 * i);
    return mix_hash(hash + word);
}

void spill_digest_add(spill_digest_t *digest, const bson_t *document)
{
    const uint8_t *data = bson_get_data(document);
    digest->documents++;
    digest->bytes += document->len;
    digest->sums[0] += mix_hash(spill_hash(data, document->len));
    digest->sums[1] += second_hash(data, document->len);
}

bool spill_digest_equal(const spill_digest_t *left, const spill_digest_t *right)
{
    return left->documents == right->documents && left->bytes == right->bytes &&
           left->sums[0] == right->sums[0] && left->sums[1] == right->sums[1];
}

void spill_digest_text(const spill_digest_t *digest, char text[SPILL_DIGEST_TEXT])
{
    snprintf(text, SPILL_DIGEST_TEXT, "%016" PRIx64 "%016" PRIx64, digest->sums[0],
             digest->sums[1]);
}

/* ---- views under the old names, for programs that continue to read by these ------------------ */

/*
 * [{$match: {room: "a"}}, {$set: {_id: {$ifNull: ["$_id.id", "$_id"]}}}, {$unset: "room"}]. An _id
 * that the application has chosen in the joint collection stays.
 */
static void view_pipeline(const spill_consolidation_t *group, size_t member, bson_t *pipeline)
{
    bson_t match = BSON_INITIALIZER;
    spill_value_append(&group->members[member].value, &match, group->field);
    bson_init(pipeline);
    BCON_APPEND(pipeline, "0", "{", "$match", BCON_DOCUMENT(&match), "}");
    if (group->keeps_ids)
        BCON_APPEND(pipeline, "1", "{", "$unset", BCON_UTF8(group->field), "}");
    else
        BCON_APPEND(pipeline, "1", "{", "$set", "{", "_id", "{", "$ifNull", "[",
                    BCON_UTF8("$_id.id"), BCON_UTF8("$_id"), "]", "}", "}", "}", "2", "{", "$unset",
                    BCON_UTF8(group->field), "}");
    bson_destroy(&match);
}

/* Check in the listing that it is a view on the joint collection with this pipeline. */
static bool is_view(const spill_consolidate_run_t *run, const char *name, const bson_t *pipeline)
{
    bson_t options;
    bson_iter_t on, steps;
    if (spill_consolidate_kind_of(run, name, &options) != SPILL_CONSOLIDATE_VIEW)
        return false;
    if (!bson_iter_init_find(&on, &options, "viewOn") || !BSON_ITER_HOLDS_UTF8(&on) ||
        strcmp(bson_iter_utf8(&on, NULL), run->group->into) != 0)
        return false;
    if (!bson_iter_init_find(&steps, &options, "pipeline") || !BSON_ITER_HOLDS_ARRAY(&steps))
        return false;
    spill_value_t value = spill_value_from_iter(&steps);
    return value.size_bytes == pipeline->len &&
           memcmp(value.data, bson_get_data(pipeline), pipeline->len) == 0;
}

static void free_name(char **name)
{
    bson_free(*name);
}

spill_code_t spill_consolidate_try_views(spill_consolidate_run_t *run, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    SPILL_SCOPED(free_name) char *name = bson_strdup_printf("spillway_view_%s", run->group->into);
    view_pipeline(run->group, 0, &pipeline);
    SPILL_TRY(spill_consolidate_list(run, error));
    /* left by a killed run */
    if (spill_consolidate_kind_of(run, name, NULL) != SPILL_CONSOLIDATE_ABSENT)
        SPILL_TRY(spill_consolidate_drop(run, name, error));
    SPILL_TRY(spill_consolidate_create_view(run, name, &pipeline, error));
    SPILL_TRY(spill_consolidate_list(run, error));
    bool made = is_view(run, name, &pipeline);
    SPILL_TRY(spill_consolidate_drop(run, name, error));
    if (made)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "%s: the server creates no views, although it accepts the command; "
                      "nothing was changed: continue without --views",
                      run->admin->place);
}

/* Check in the listing that the member's view is there. */
static bool has_view(const spill_consolidate_run_t *run, size_t member)
{
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    view_pipeline(run->group, member, &pipeline);
    return is_view(run, run->group->members[member].collection, &pipeline);
}

spill_code_t spill_consolidate_make_view(spill_consolidate_run_t *run, size_t member,
                                         spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    if (has_view(run, member))
        return SPILL_OK;
    view_pipeline(run->group, member, &pipeline);
    return spill_consolidate_create_view(run, run->group->members[member].collection, &pipeline,
                                         error);
}

static spill_code_t check_view(const spill_consolidate_run_t *run, size_t member,
                               spill_error_t *error)
{
    return has_view(run, member)
               ? SPILL_OK
               : spill_fail(error, SPILL_REFUSED,
                            "'%s' is not the view on '%s' that it should be: something else was "
                            "created under its name",
                            run->group->members[member].collection, run->group->into);
}

spill_code_t spill_consolidate_make_views(spill_consolidate_run_t *run, spill_error_t *error)
{
    SPILL_TRY(spill_consolidate_list(run, error));
    for (size_t i = 0; i < run->group->count; i++)
        SPILL_TRY(spill_consolidate_make_view(run, i, error));
    SPILL_TRY(spill_consolidate_list(run, error));
    for (size_t i = 0; i < run->group->count; i++)
        SPILL_TRY(check_view(run, i, error));
    return SPILL_OK;
}

spill_code_t spill_consolidate_drop_view(spill_consolidate_run_t *run, size_t member,
                                         spill_error_t *error)
{
    return has_view(run, member)
               ? spill_consolidate_drop(run, run->group->members[member].collection, error)
               : SPILL_OK;
}

spill_code_t spill_consolidate_drop_views(spill_consolidate_run_t *run, spill_error_t *error)
{
    SPILL_TRY(spill_consolidate_list(run, error));
    for (size_t i = 0; i < run->group->count; i++)
        SPILL_TRY(spill_consolidate_drop_view(run, i, error));
    return SPILL_OK;
}
