#include "store/job.h"

#include "util/clock.h"
#include "util/error.h"

#include <string.h>

static bson_t **stored_in(const spill_job_kind_t *kind, void *job)
{
    return (bson_t **)(void *)((char *)job + kind->stored);
}

/* The entry's name. Names of imports end with 16 hexadecimal digits, so they are different. */
static char *entry_name(const spill_job_kind_t *kind, const char *name)
{
    return bson_strdup_printf("%s%s", name, kind->suffix);
}

void spill_job_release(const spill_job_kind_t *kind, void *job)
{
    bson_destroy(*stored_in(kind, job));
    memset(job, 0, kind->record->size_bytes);
}

bool spill_job_decode(const spill_job_kind_t *kind, const bson_t *document, void *job)
{
    memset(job, 0, kind->record->size_bytes);
    return spill_record_read(kind->record, document, job, NULL) == SPILL_OK &&
           (!kind->is_good || kind->is_good(job));
}

static int64_t now_ms(const spill_job_catalog_t *catalog)
{
    if (!catalog->store)
        return spill_clock_now_us(NULL) / 1000;
    const spill_clock_t *clock = &catalog->store->options.clock;
    return clock->now_us(clock->context) / 1000;
}

/* The document also has the time, for people who ask how old the job is (tools/unfinished.h). */
static bson_t *encode(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                      const char *name, const void *job)
{
    bson_t *document = bson_new();
    if (kind->named)
        BSON_APPEND_UTF8(document, "definition", name);
    spill_record_write(kind->record, job, document);
    BSON_APPEND_DATE_TIME(document, SPILL_JOB_SAVED, now_ms(catalog));
    return document;
}

/* ---- the catalog ----------------------------------------------------------------------------- */

static spill_code_t get_entry(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                              const char *name, bson_t **document, spill_error_t *error)
{
    SPILL_SCOPED(spill_free_text) char *entry = entry_name(kind, name);
    *document = NULL;
    if (catalog->admin)
        return catalog->admin->ops->checkpoint_get(catalog->admin, entry, document, error);
    return catalog->store->ops->catalog_get(catalog->store, SPILL_CATALOG_JOB, entry, document,
                                            error);
}

static spill_code_t put_entry(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                              const char *name, const bson_t *expected, const bson_t *document,
                              bool *done, spill_error_t *error)
{
    SPILL_SCOPED(spill_free_text) char *entry = entry_name(kind, name);
    *done = false;
    if (catalog->admin)
        return catalog->admin->ops->checkpoint_put(catalog->admin, entry, expected, document, done,
                                                   error);
    return catalog->store->ops->catalog_put(catalog->store, SPILL_CATALOG_JOB, entry, expected,
                                            document, done, error);
}

spill_code_t spill_job_delete(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                              const char *name, spill_error_t *error)
{
    SPILL_SCOPED(spill_free_text) char *entry = entry_name(kind, name);
    if (catalog->admin)
        return catalog->admin->ops->checkpoint_delete(catalog->admin, entry, error);
    return catalog->store->ops->catalog_delete(catalog->store, SPILL_CATALOG_JOB, entry, error);
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
    memset(job, 0, kind->record->size_bytes);
    SPILL_TRY(get_entry(catalog, kind, name, &document, error));
    return spill_job_load_entry(catalog, kind, name, document, job, error);
}

spill_code_t spill_job_load_entry(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                                  const char *name, bson_t *document, void *job,
                                  spill_error_t *error)
{
    memset(job, 0, kind->record->size_bytes);
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
    SPILL_SCOPED(spill_free_document) bson_t *document = encode(catalog, kind, name, job);
    bool done;
    SPILL_TRY(put_entry(catalog, kind, name, *stored, document, &done, error));
    if (!done)
        return fail_conflict(kind, name, error);
    /* values that borrowed from the old document borrow from the new one */
    bson_t *old = *stored;
    spill_job_decode(kind, document, job);
    *stored = document;
    document = NULL;
    bson_destroy(old);
    return SPILL_OK;
}

static const bson_t *expected_of(const spill_job_kind_t *kind, const void *job)
{
    return *(bson_t *const *)(const void *)((const char *)job + kind->stored);
}

spill_code_t spill_job_check_both(spill_raw_admin_t *admin, const spill_job_kind_t *const kinds[2],
                                  const char *name, const void *const jobs[2], spill_error_t *error)
{
    SPILL_SCOPED(spill_free_text) char *first = entry_name(kinds[0], name);
    SPILL_SCOPED(spill_free_text) char *second = entry_name(kinds[1], name);
    const char *const names[2] = {first, second};
    bson_t *found[2];
    spill_code_t code = admin->ops->checkpoints_get(admin, names, found, error);
    for (size_t i = 0; i < 2; i++) {
        const bson_t *expected = expected_of(kinds[i], jobs[i]);
        if (code == SPILL_OK && (!found[i] || !expected || !bson_equal(found[i], expected)))
            code = fail_conflict(kinds[i], name, error);
    }
    bson_destroy(found[0]);
    bson_destroy(found[1]);
    return code;
}

spill_code_t spill_job_check(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                             const char *name, const void *job, spill_error_t *error)
{
    const bson_t *expected = expected_of(kind, job);
    SPILL_SCOPED(spill_free_document) bson_t *found = NULL;
    SPILL_TRY(get_entry(catalog, kind, name, &found, error));
    bool same = found && expected && bson_equal(found, expected);
    return same ? SPILL_OK : fail_conflict(kind, name, error);
}
