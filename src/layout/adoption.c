#include "layout/adoption.h"

#include "definition/schema.h"
#include "store/job.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ":adopter"

/*
 * The definition is read again after this time, so that an undo need not wait long. A refusal is
 * remembered for so long.
 */
#define CHECK_US ((int64_t)1000000)

enum { OID_DIGITS = 24, ENTRY_SIZE = SPILL_NAME_SIZE + OID_DIGITS + sizeof SUFFIX };

struct spill_adoption {
    pthread_mutex_t lock; /* held over everything below, and while the entry is written */
    int users;
    bool unknown;
    spill_adopter_t entry;        /* `stored` NULL: none */
    char name[ENTRY_SIZE];        /* of the entry, without the suffix */
    int64_t until_us;             /* by the store's clock */
    int64_t run_us;               /* the entry allows an ADOPT to take this long */
    int64_t since_us, checked_us; /* by the client's clock */
    int64_t refused_us;           /* the same; 0: not refused */
    spill_error_t refusal;
};

int64_t spill_adopt_run_us(const spill_store_t *store, bool large)
{
    return store->adopter_us * (large ? 6 : 1);
}

/* An undo waits this much longer: clocks may change with the primary. */
static int64_t margin_us(const spill_store_t *store)
{
    return store->adopter_us;
}

/* ---- the entry ------------------------------------------------------------------------------- */

#define FIELD(type, member, name) SPILL_FIELD(type, spill_adopter_t, member, name)
static const spill_field_t fields[] = {FIELD(TEXT, host, "host"), FIELD(INT64, pid, "pid"),
                                       FIELD(DATE, ends_ms, "ends")};
static const spill_record_t record = SPILL_RECORD("adopter", spill_adopter_t, fields);
static const spill_job_kind_t kind = {.suffix = SUFFIX,
                                      .activity = "an adoption of",
                                      .record = &record,
                                      .stored = offsetof(spill_adopter_t, stored)};

static void release_adopter(spill_adopter_t *adopter)
{
    spill_job_release(&kind, adopter);
}

bool spill_adopter_split(const char *entry, char name[SPILL_NAME_SIZE])
{
    size_t length = strlen(entry), end = 1 + OID_DIGITS + sizeof SUFFIX - 1;
    if (length <= end || length - end >= SPILL_NAME_SIZE || entry[length - end] != ':' ||
        strcmp(entry + length - (sizeof SUFFIX - 1), SUFFIX) != 0)
        return false;
    memcpy(name, entry, length - end);
    name[length - end] = '\0';
    return true;
}

static spill_job_catalog_t catalog_of(spill_store_t *store)
{
    return (spill_job_catalog_t){.store = store};
}

/* Name a new entry. */
static void name_entry(spill_adoption_t *adoption, const char *definition)
{
    bson_oid_t id;
    char digits[OID_DIGITS + 1];
    bson_oid_init(&id, NULL);
    bson_oid_to_string(&id, digits);
    snprintf(adoption->name, sizeof adoption->name, "%.*s:%s", SPILL_NAME_SIZE - 1, definition,
             digits);
}

/* Save the entry. If another program has deleted it because its time was over, begin a new one. */
static spill_code_t save_entry(spill_array_t *array, spill_adopter_t *next, spill_error_t *error)
{
    spill_adoption_t *adoption = array->adoption;
    const spill_job_catalog_t catalog = catalog_of(array->store);
    spill_code_t code = SPILL_CONFLICT;
    for (int tries = 0; code == SPILL_CONFLICT && tries < 2; tries++) {
        bson_t *stored = adoption->entry.stored;
        if (!stored)
            name_entry(adoption, array->definition.name);
        adoption->entry = *next;
        adoption->entry.stored = stored;
        code = spill_job_save(&catalog, &kind, adoption->name, &adoption->entry, error);
        if (code != SPILL_OK) /* perhaps it was written: then it ends by itself */
            release_adopter(&adoption->entry);
    }
    return code;
}

/*
 * Write the entry: of the next `adopter_us` and run_us from now on. Other threads may have an ADOPT
 * on its way, under the entry as it was: so it never ends earlier than before.
 */
static spill_code_t write_entry(spill_array_t *array, int64_t run_us, spill_error_t *error)
{
    char host[256] = "";
    spill_adoption_t *adoption = array->adoption;
    int64_t now_us;
    adoption->until_us = 0;
    SPILL_TRY(spill_store_now(array->store, &now_us, error));
    gethostname(host, sizeof host - 1);
    int64_t until_us = now_us + array->store->adopter_us;
    int64_t ends_ms = (until_us + run_us) / 1000 + 1;
    spill_adopter_t next = {.host = host, .pid = getpid(), .ends_ms = ends_ms};
    if (adoption->entry.stored && adoption->entry.ends_ms > ends_ms)
        next.ends_ms = adoption->entry.ends_ms;
    SPILL_TRY(save_entry(array, &next, error));
    adoption->until_us = until_us;
    adoption->run_us = run_us;
    return SPILL_OK;
}

/* No thread has an ADOPT on its way. */
static void leave(spill_array_t *array)
{
    spill_adoption_t *adoption = array->adoption;
    const spill_job_catalog_t catalog = catalog_of(array->store);
    if (adoption->entry.stored && !adoption->unknown)
        spill_job_delete(&catalog, &kind, adoption->name, NULL);
    release_adopter(&adoption->entry);
    adoption->until_us = 0;
    adoption->unknown = false;
}

/* ---- the definition -------------------------------------------------------------------------- */

static spill_code_t refuse(const spill_array_t *array, const char *reason, spill_error_t *error)
{
    spill_fail(error, SPILL_REFUSED, "no array of '%s' is adopted: %s", array->definition.name,
               reason);
    return spill_fail_because(error, SPILL_REFUSED, SPILL_REASON_NOT_ADOPTED);
}

/* Read the definition. SPILL_REFUSED: no array may be adopted. */
static spill_code_t check_definition(spill_array_t *array, spill_error_t *error)
{
    const char *name = array->definition.name;
    spill_stored_definition_t now;
    SPILL_SCOPED(spill_free_document) bson_t *stored = NULL;
    SPILL_TRY(array->store->ops->catalog_get(array->store, SPILL_CATALOG_DEFINITION, name, &stored,
                                             error));
    if (!stored)
        return refuse(array, "its definition was deleted, by an undo or a drop", error);
    SPILL_TRY(spill_stored_definition_from_bson(&now, stored, error));
    if (now.undoing != 0)
        return refuse(array,
                      "its migration is being undone. `spillway migrate' with its name (or the "
                      "plan) and --undo --execute ends the undo; with --execute alone it migrates "
                      "again, unless the migration has two stages",
                      error);
    spill_definition_t own = array->definition;
    if (spill_definition_adds_id(&own, &now.definition)) /* after this program opened the array */
        strcpy(own.id_field, now.definition.id_field);
    if (spill_definition_compatible(&now.definition, &own, NULL) != SPILL_OK)
        return refuse(array, "its definition was replaced by another one of that name", error);
    return SPILL_OK;
}

static bool is_recent(int64_t at_us, int64_t now_us, int64_t age_us)
{
    return at_us != 0 && now_us >= at_us && now_us - at_us < age_us;
}

/*
 * The same, and remember the outcome. After a failure no thread begins an ADOPT before the entry is
 * written again. The entry stays, because other threads may have one on its way.
 */
static spill_code_t check(spill_array_t *array, int64_t now_us, spill_error_t *error)
{
    spill_adoption_t *adoption = array->adoption;
    spill_error_t failure;
    spill_code_t code = check_definition(array, &failure);
    adoption->refused_us = 0;
    if (code == SPILL_OK) {
        adoption->checked_us = now_us;
        return SPILL_OK;
    }
    adoption->checked_us = 0;
    adoption->until_us = 0;
    if (code == SPILL_REFUSED) {
        adoption->refused_us = now_us;
        adoption->refusal = failure;
    }
    if (error)
        *error = failure;
    return code;
}

/* The same, unless the outcome of less than a second ago is known. */
static spill_code_t check_recently(spill_array_t *array, int64_t now_us, spill_error_t *error)
{
    spill_adoption_t *adoption = array->adoption;
    if (is_recent(adoption->checked_us, now_us, CHECK_US))
        return SPILL_OK;
    if (!is_recent(adoption->refused_us, now_us, CHECK_US))
        return check(array, now_us, error);
    if (error)
        *error = adoption->refusal;
    return SPILL_REFUSED;
}

/* ---- the calls ------------------------------------------------------------------------------- */

spill_adoption_t *spill_adoption_new(void)
{
    spill_adoption_t *adoption = bson_malloc0(sizeof *adoption);
    pthread_mutex_init(&adoption->lock, NULL);
    return adoption;
}

void spill_adoption_free(spill_array_t *array)
{
    if (!array->adoption)
        return;
    leave(array);
    pthread_mutex_destroy(&array->adoption->lock);
    bson_free(array->adoption);
    array->adoption = NULL;
}

void spill_adoption_begin(spill_array_t *array)
{
    pthread_mutex_lock(&array->adoption->lock);
    array->adoption->users++;
    pthread_mutex_unlock(&array->adoption->lock);
}

void spill_adoption_end(spill_array_t *array)
{
    pthread_mutex_lock(&array->adoption->lock);
    if (--array->adoption->users == 0)
        leave(array);
    pthread_mutex_unlock(&array->adoption->lock);
}

/* The clock only saves requests: the guard has the time. */
static bool is_fresh(const spill_array_t *array, int64_t now_us, int64_t run_us, int64_t age_us)
{
    const spill_adoption_t *adoption = array->adoption;
    return adoption->until_us > 0 && run_us <= adoption->run_us &&
           is_recent(adoption->since_us, now_us, age_us);
}

/*
 * A check comes first, so that no entry is written while the migration is undone: the undo would
 * wait for it. After the entry is written, a check is needed whatever the first one has found.
 */
static spill_code_t renew(spill_array_t *array, int64_t now_us, int64_t run_us, int64_t age_us,
                          spill_error_t *error)
{
    SPILL_TRY(check_recently(array, now_us, error));
    if (is_fresh(array, now_us, run_us, age_us))
        return SPILL_OK;
    SPILL_TRY(write_entry(array, run_us, error));
    SPILL_TRY(check(array, now_us, error));
    array->adoption->since_us = now_us;
    return SPILL_OK;
}

spill_code_t spill_adoption_until(const spill_owner_t *owner, int64_t run_us, bool whole,
                                  int64_t *until, spill_error_t *error)
{
    spill_array_t *array = owner->array;
    *until = 0;
    if (!array->store->ops->others_write)
        return SPILL_OK;
    int64_t half_us = array->store->adopter_us / 2;
    int64_t age_us = whole && CHECK_US < half_us ? CHECK_US : half_us;
    pthread_mutex_lock(&array->adoption->lock);
    spill_code_t code = renew(array, spill_owner_now(owner), run_us, age_us, error);
    *until = array->adoption->until_us;
    pthread_mutex_unlock(&array->adoption->lock);
    return code;
}

spill_code_t spill_adoption_check(const spill_owner_t *owner, spill_error_t *error)
{
    spill_array_t *array = owner->array;
    if (!array->store->ops->others_write)
        return SPILL_OK;
    pthread_mutex_lock(&array->adoption->lock);
    spill_code_t code = check_recently(array, spill_owner_now(owner), error);
    pthread_mutex_unlock(&array->adoption->lock);
    return code;
}

spill_code_t spill_adoption_is_late(const spill_owner_t *owner, int64_t until, bool *late,
                                    spill_error_t *error)
{
    int64_t now_us;
    spill_array_t *array = owner->array;
    *late = false;
    if (until == 0)
        return SPILL_OK;
    SPILL_TRY(spill_store_now(array->store, &now_us, error));
    *late = now_us >= until;
    pthread_mutex_lock(&array->adoption->lock);
    if (*late && array->adoption->until_us == until)
        array->adoption->until_us = 0;
    pthread_mutex_unlock(&array->adoption->lock);
    return SPILL_OK;
}

void spill_adoption_unknown(spill_array_t *array)
{
    pthread_mutex_lock(&array->adoption->lock);
    array->adoption->unknown = true;
    pthread_mutex_unlock(&array->adoption->lock);
}

/* ---- entries of adopters --------------------------------------------------------------------- */

/* The name of the entry, without the suffix, for job.h. */
static void job_name(const char *entry, char job[ENTRY_SIZE])
{
    snprintf(job, ENTRY_SIZE, "%.*s", (int)(strlen(entry) - (sizeof SUFFIX - 1)), entry);
}

/* Of the entries of one definition: delete what killed adopters left, and count the entries that
 * stay. */
typedef struct purge {
    spill_store_t *store;
    const char *name;
    int64_t now_us, left;
    char *text; /* about one that is left */
    size_t size;
} purge_t;

static spill_code_t purge_entry(purge_t *purging, const char *entry, spill_error_t *error)
{
    char definition[SPILL_NAME_SIZE], job[ENTRY_SIZE];
    const spill_job_catalog_t catalog = catalog_of(purging->store);
    SPILL_SCOPED(release_adopter) spill_adopter_t adopter = {0};
    if (!spill_adopter_split(entry, definition) || strcmp(definition, purging->name) != 0)
        return SPILL_OK;
    job_name(entry, job);
    SPILL_TRY(spill_job_load(&catalog, &kind, job, &adopter, error));
    if (!adopter.stored)
        return SPILL_OK;
    int64_t left_us = spill_adopter_left_us(purging->store, adopter.ends_ms, purging->now_us);
    if (left_us <= 0)
        return spill_job_delete(&catalog, &kind, job, error);
    purging->left++;
    if (purging->text)
        snprintf(purging->text, purging->size,
                 "process %" PRId64 " on %s may still adopt arrays, for at most %" PRId64 " s",
                 adopter.pid, adopter.host, left_us / 1000000 + 1);
    return SPILL_OK;
}

int64_t spill_adopter_left_us(const spill_store_t *store, int64_t ends_ms, int64_t now_us)
{
    return ends_ms * 1000 + margin_us(store) - now_us;
}

spill_code_t spill_adopters_list(spill_store_t *store, spill_listing_t *entries,
                                 spill_error_t *error)
{
    return store->ops->catalog_names(store, SPILL_CATALOG_JOB, entries, error);
}

spill_code_t spill_adopters_purge(spill_store_t *store, const char *name,
                                  const spill_listing_t *entries, int64_t *left, char *text,
                                  size_t size, spill_error_t *error)
{
    purge_t purging = {.store = store, .name = name, .text = text, .size = size};
    *left = 0;
    SPILL_TRY(spill_store_now(store, &purging.now_us, error));
    for (size_t i = 0; i < entries->count; i++)
        SPILL_TRY(purge_entry(&purging, spill_listing_item(entries, i).text, error));
    *left = purging.left;
    return SPILL_OK;
}

spill_code_t spill_adopters_sweep(spill_store_t *store, const char *name, spill_error_t *error)
{
    int64_t left;
    SPILL_SCOPED(spill_listing_release) spill_listing_t entries = SPILL_LISTING_INIT;
    if (!store->ops->others_write)
        return SPILL_OK;
    SPILL_TRY(spill_adopters_list(store, &entries, error));
    return spill_adopters_purge(store, name, &entries, &left, NULL, 0, error);
}
