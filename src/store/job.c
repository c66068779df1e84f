#include "store/job.h"

#include "bson/number.h"
#include "util/error.h"

#include <string.h>

static void *member(void *job, size_t offset)
{
    return (char *)job + offset;
}

static const void *constant_member(const void *job, size_t offset)
{
    return (const char *)job + offset;
}

static bson_t **stored_in(const spill_job_kind_t *kind, void *job)
{
    return member(job, kind->stored);
}

static void free_document(bson_t **document)
{
    bson_destroy(*document);
}

static void free_text(char **text)
{
    bson_free(*text);
}

/* The entry's name. Names of imports end with 16 hexadecimal digits, so they are different. */
static char *entry_name(const spill_job_kind_t *kind, const char *name)
{
    return bson_strdup_printf("%s%s", name, kind->suffix);
}

void spill_job_release(const spill_job_kind_t *kind, void *job)
{
    bson_destroy(*stored_in(kind, job));
    for (size_t i = 0; i < kind->count; i++) {
        const spill_job_field_t *field = &kind->fields[i];
        if (field->type == SPILL_JOB_DOCUMENT || field->type == SPILL_JOB_ARRAY)
            bson_destroy(*(bson_t **)member(job, field->offset));
    }
    memset(job, 0, kind->size);
}

/* ---- to and from a document ------------------------------------------------------------------ */

static bool decode_text(const spill_job_field_t *field, const bson_iter_t *iter, char *text)
{
    uint32_t length;
    if (!BSON_ITER_HOLDS_UTF8(iter))
        return false;
    const char *found = bson_iter_utf8(iter, &length);
    bool empty = length == 0 && field->type == SPILL_JOB_NAME;
    if (empty || length >= field->size || strlen(found) != length)
        return false;
    memcpy(text, found, length + 1);
    return true;
}

static bool decode_choice(const spill_job_field_t *field, const bson_iter_t *iter, int *choice)
{
    if (!BSON_ITER_HOLDS_UTF8(iter))
        return false;
    for (size_t i = 1; i < field->size; i++)
        if (strcmp(bson_iter_utf8(iter, NULL), field->names[i]) == 0) {
            *choice = (int)i;
            return true;
        }
    return false;
}

static bool decode_document(const bson_iter_t *iter, bson_t **document)
{
    bson_t inner;
    spill_value_t value = spill_value_from_iter(iter);
    if ((value.type != BSON_TYPE_DOCUMENT && value.type != BSON_TYPE_ARRAY) ||
        !bson_init_static(&inner, value.data, value.size_bytes))
        return false;
    *document = bson_copy(&inner);
    return true;
}

/* False: the field has another type. */
static bool decode_field(const spill_job_field_t *field, const bson_iter_t *iter, void *to)
{
    switch (field->type) {
    case SPILL_JOB_TEXT:
    case SPILL_JOB_NAME:
        return decode_text(field, iter, to);
    case SPILL_JOB_FLAG:
        *(bool *)to = bson_iter_as_bool(iter);
        return BSON_ITER_HOLDS_BOOL(iter);
    case SPILL_JOB_NUMBER:
        *(int64_t *)to = spill_iter_int64(iter);
        return BSON_ITER_HOLDS_NUMBER(iter);
    case SPILL_JOB_CHOICE:
        return decode_choice(field, iter, to);
    case SPILL_JOB_DOCUMENT:
    case SPILL_JOB_ARRAY:
        return decode_document(iter, to);
    case SPILL_JOB_ID:
        if (BSON_ITER_HOLDS_OID(iter))
            bson_oid_copy(bson_iter_oid(iter), to);
        return BSON_ITER_HOLDS_OID(iter);
    }
    return false;
}

bool spill_job_decode(const spill_job_kind_t *kind, const bson_t *document, void *job)
{
    memset(job, 0, kind->size);
    for (size_t i = 0; i < kind->count; i++) {
        const spill_job_field_t *field = &kind->fields[i];
        bson_iter_t iter;
        bool good = bson_iter_init_find(&iter, document, field->name) &&
                    decode_field(field, &iter, member(job, field->offset));
        if (field->required && !good)
            return false;
    }
    return true;
}

static void encode_field(const spill_job_field_t *field, const void *from, bson_t *document)
{
    const bson_t *inner = NULL;
    bson_t none = BSON_INITIALIZER;
    if (field->type == SPILL_JOB_DOCUMENT || field->type == SPILL_JOB_ARRAY)
        inner = *(bson_t *const *)from;
    switch (field->type) {
    case SPILL_JOB_TEXT:
    case SPILL_JOB_NAME:
        BSON_APPEND_UTF8(document, field->name, from);
        break;
    case SPILL_JOB_FLAG:
        BSON_APPEND_BOOL(document, field->name, *(const bool *)from);
        break;
    case SPILL_JOB_NUMBER:
        BSON_APPEND_INT64(document, field->name, *(const int64_t *)from);
        break;
    case SPILL_JOB_CHOICE:
        BSON_APPEND_UTF8(document, field->name, field->names[*(const int *)from]);
        break;
    case SPILL_JOB_DOCUMENT:
        BSON_APPEND_DOCUMENT(document, field->name, inner ? inner : &none);
        break;
    case SPILL_JOB_ARRAY:
        BSON_APPEND_ARRAY(document, field->name, inner ? inner : &none);
        break;
    case SPILL_JOB_ID:
        BSON_APPEND_OID(document, field->name, from);
        break;
    }
}

static bson_t *encode(const spill_job_kind_t *kind, const char *name, const void *job)
{
    bson_t *document = bson_new();
    if (kind->named)
        BSON_APPEND_UTF8(document, "definition", name);
    for (size_t i = 0; i < kind->count; i++)
        encode_field(&kind->fields[i], constant_member(job, kind->fields[i].offset), document);
    return document;
}

/* ---- the catalog ----------------------------------------------------------------------------- */

static spill_code_t get_entry(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                              const char *name, bson_t **document, spill_error_t *error)
{
    SPILL_SCOPED(free_text) char *entry = entry_name(kind, name);
    *document = NULL;
    if (catalog->admin)
        return catalog->admin->ops->checkpoint_get(catalog->admin, entry, document, error);
    return catalog->store->ops->catalog_get(catalog->store, SPILL_CATALOG_IMPORT, entry, document,
                                            error);
}

static spill_code_t put_entry(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                              const char *name, const bson_t *expected, const bson_t *document,
                              bool *done, spill_error_t *error)
{
    SPILL_SCOPED(free_text) char *entry = entry_name(kind, name);
    *done = false;
    if (catalog->admin)
        return catalog->admin->ops->checkpoint_put(catalog->admin, entry, expected, document, done,
                                                   error);
    return catalog->store->ops->catalog_put(catalog->store, SPILL_CATALOG_IMPORT, entry, expected,
                                            document, done, error);
}

spill_code_t spill_job_delete(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                              const char *name, spill_error_t *error)
{
    SPILL_SCOPED(free_text) char *entry = entry_name(kind, name);
    if (catalog->admin)
        return catalog->admin->ops->checkpoint_delete(catalog->admin, entry, error);
    return catalog->store->ops->catalog_delete(catalog->store, SPILL_CATALOG_IMPORT, entry, error);
}

static spill_code_t fail_conflict(const spill_job_kind_t *kind, const char *name,
                                  spill_error_t *error)
{
    return spill_fail(error, SPILL_CONFLICT,
                      "another run has continued %s '%s' meanwhile: check what it does, and start "
                      "again",
                      kind->activity, name);
}

spill_code_t spill_job_load(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                            const char *name, void *job, spill_error_t *error)
{
    bson_t *document;
    memset(job, 0, kind->size);
    SPILL_TRY(get_entry(catalog, kind, name, &document, error));
    return spill_job_load_entry(catalog, kind, name, document, job, error);
}

spill_code_t spill_job_load_entry(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                                  const char *name, bson_t *document, void *job,
                                  spill_error_t *error)
{
    memset(job, 0, kind->size);
    bool good = !document || spill_job_decode(kind, document, job);
    *stored_in(kind, job) = document;
    if (good)
        return SPILL_OK;
    return spill_fail(
        error, SPILL_CORRUPT, "%s: the checkpoint of %s '%s' cannot be read; restore a backup",
        catalog->admin ? catalog->admin->place : catalog->store->uri, kind->activity, name);
}

spill_code_t spill_job_save(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                            const char *name, void *job, spill_error_t *error)
{
    bson_t **stored = stored_in(kind, job);
    SPILL_SCOPED(free_document) bson_t *document = encode(kind, name, job);
    bool done;
    SPILL_TRY(put_entry(catalog, kind, name, *stored, document, &done, error));
    if (!done)
        return fail_conflict(kind, name, error);
    bson_destroy(*stored);
    *stored = document;
    document = NULL;
    return SPILL_OK;
}

spill_code_t spill_job_check(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                             const char *name, const void *job, spill_error_t *error)
{
    const bson_t *expected = *(bson_t *const *)constant_member(job, kind->stored);
    SPILL_SCOPED(free_document) bson_t *found = NULL;
    SPILL_TRY(get_entry(catalog, kind, name, &found, error));
    bool same = found && expected && bson_equal(found, expected);
    return same ? SPILL_OK : fail_conflict(kind, name, error);
}
