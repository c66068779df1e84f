#include "layout/adoption.h"

#include "definition/schema.h"
#include "store/job.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ":adopter"

/* The definition is read again after this time, so that an undo need not wait long. */
#define CHECK_US ((int64_t)1000000)

enum { OID_DIGITS = 24, ENTRY_SIZE = SPILL_NAME_SIZE + OID_DIGITS + sizeof SUFFIX };

struct spill_adoption {
    pthread_mutex_t lock; /* held over everything below, and while the entry is written */
    int users;
    bool refused, unknown;
    spill_adopter_t entry;        /* `stored` NULL: none */
    char name[ENTRY_SIZE];        /* of the entry, without the suffix */
    int64_t until_us;             /* by the store's clock */
    int64_t run_us;               /* the entry allows an ADOPT to take this long */
    int64_t since_us, checked_us; /* by the client's clock */
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

/* Write the entry: of the next `adopter_us` and run_us from now on. */
static spill_code_t write_entry(spill_array_t *array, int64_t run_us, spill_error_t *error)
{
    char host[256] = "";
    spill_adoption_t *adoption = array->adoption;
    const spill_job_catalog_t catalog = catalog_of(array->store);
    int64_t now_us;
    SPILL_TRY(spill_store_now(array->store, &now_us, error));
    gethostname(host, sizeof host - 1);
    bool first = adoption->entry.stored == NULL;
    if (first)
        name_entry(adoption, array->definition.name);
    int64_t until_us = now_us + array->store->adopter_us;
    adoption->entry.host = host;
    adoption->entry.pid = getpid();
    adoption->entry.ends_ms = (until_us + run_us) / 1000 + 1;
    spill_code_t code = spill_job_save(&catalog, &kind, adoption->name, &adoption->entry, error);
    if (code != SPILL_OK) { /* perhaps it was written: then it ends by itself */
        release_adopter(&adoption->entry);
        adoption->until_us = 0;
        return code;
    }
    adoption->until_us = until_us;
    adoption->run_us = run_us;
    return SPILL_OK;
}

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
    return spill_fail(error, SPILL_REFUSED, "no array of '%s' is adopted: %s",
                      array->definition.name, reason);
}

/* Read the definition. SPILL_REFUSED: no array may be adopted. */
static spill_code_t check_definition(spill_array_t *array, spill_error_t *error)
{
    const char *name = array->definition.name;
    spill_stored_definition_t now;
    SPILL_SCOPED(spill_free_document) bson_t *stored = NULL;
    array->adoption->refused = false;
    SPILL_TRY(array->store->ops->catalog_get(array->store, SPILL_CATALOG_DEFINITION, name, &stored,
                                             error));
    array->adoption->refused = true;
    if (!stored)
        return refuse(array, "its definition was deleted, by an undo or a drop", error);
    SPILL_TRY(spill_stored_definition_from_bson(&now, stored, error));
    if (now.undoing != 0)
        return refuse(array,
                      "its migration is being undone. `spillway migrate' with the plan and --undo "
                      "--execute ends the undo; with --execute alone it migrates again",
                      error);
    spill_definition_t own = array->definition;
    if (spill_definition_adds_id(&own, &now.definition)) /* after this program opened the array */
        strcpy(own.id_field, now.definition.id_field);
    if (spill_definition_compatible(&now.definition, &own, NULL) != SPILL_OK)
        return refuse(array, "its definition was replaced by another one of that name", error);
    array->adoption->refused = false;
    return SPILL_OK;
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

/* Half of the time is left for an ADOPT. The clock only saves requests: the guard has the time. */
static bool is_fresh(const spill_array_t *array, int64_t now_us, int64_t run_us)
{
    const spill_adoption_t *adoption = array->adoption;
    int64_t age_us = now_us - adoption->since_us;
    return adoption->until_us > 0 && run_us <= adoption->run_us && age_us >= 0 &&
           age_us < array->store->adopter_us / 2;
}

static spill_code_t renew(spill_array_t *array, int64_t now_us, int64_t run_us,
                          spill_error_t *error)
{
    spill_adoption_t *adoption = array->adoption;
    bool fresh = is_fresh(array, now_us, run_us);
    int64_t age_us = now_us - adoption->checked_us;
    if (fresh && age_us >= 0 && age_us < CHECK_US)
        return SPILL_OK;
    if (!fresh)
        SPILL_TRY(write_entry(array, run_us, error));
    spill_code_t code = check_definition(array, error);
    if (code != SPILL_OK) {
        leave(array);
        return code;
    }
    adoption->checked_us = now_us;
    if (!fresh)
        adoption->since_us = now_us;
    return SPILL_OK;
}

spill_code_t spill_adoption_until(const spill_owner_t *owner, int64_t run_us, int64_t *until,
                                  spill_error_t *error)
{
    spill_array_t *array = owner->array;
    *until = 0;
    if (!array->store->ops->others_write)
        return SPILL_OK;
    pthread_mutex_lock(&array->adoption->lock);
    spill_code_t code = renew(array, spill_owner_now(owner), run_us, error);
    *until = array->adoption->until_us;
    pthread_mutex_unlock(&array->adoption->lock);
    return code;
}

bool spill_adoption_may_be_late(const spill_owner_t *owner)
{
    spill_array_t *array = owner->array;
    if (!array->store->ops->others_write)
        return false;
    pthread_mutex_lock(&array->adoption->lock);
    bool late = !is_fresh(array, spill_owner_now(owner), 0);
    pthread_mutex_unlock(&array->adoption->lock);
    return late;
}

void spill_adoption_unknown(spill_array_t *array)
{
    pthread_mutex_lock(&array->adoption->lock);
    array->adoption->unknown = true;
    pthread_mutex_unlock(&array->adoption->lock);
}

bool spill_adoption_is_refused(spill_array_t *array)
{
    if (!array->adoption)
        return false;
    pthread_mutex_lock(&array->adoption->lock);
    bool refused = array->adoption->refused;
    pthread_mutex_unlock(&array->adoption->lock);
    return refused;
}

/* ---- entries of adopters --------------------------------------------------------------------- */

/* The name of the entry, without the suffix, for job.h. */
static void job_name(const char *entry, char job[ENTRY_SIZE])
{
    snprintf(job, ENTRY_SIZE, "%.*s", (int)(strlen(entry) - (sizeof SUFFIX - 1)), entry);
}

spill_code_t spill_adopters_each(spill_store_t *store, const char *name, spill_adopter_fn visit,
                                 void *context, spill_error_t *error)
{
    const spill_job_catalog_t catalog = catalog_of(store);
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    SPILL_TRY(store->ops->catalog_names(store, SPILL_CATALOG_JOB, &names, error));
    spill_code_t code = SPILL_OK;
    bool more = true;
    for (size_t i = 0; more && i < names.count; i++) {
        const char *entry = spill_listing_item(&names, i).text;
        char definition[SPILL_NAME_SIZE], job[ENTRY_SIZE];
        SPILL_SCOPED(release_adopter) spill_adopter_t adopter = {0};
        if (!spill_adopter_split(entry, definition) || strcmp(definition, name) != 0)
            continue;
        job_name(entry, job);
        SPILL_TRY(spill_job_load(&catalog, &kind, job, &adopter, error));
        if (adopter.stored)
            more = visit(context, job, &adopter, &code, error);
    }
    return code;
}

typedef struct purge {
    spill_store_t *store;
    int64_t now_us, left;
    char *text; /* about one that is left */
    size_t size;
} purge_t;

static bool purge(void *context, const char *entry, const spill_adopter_t *adopter,
                  spill_code_t *code, spill_error_t *error)
{
    purge_t *purging = context;
    int64_t left_us = adopter->ends_ms * 1000 + margin_us(purging->store) - purging->now_us;
    if (left_us <= 0) {
        const spill_job_catalog_t catalog = catalog_of(purging->store);
        *code = spill_job_delete(&catalog, &kind, entry, error);
        return *code == SPILL_OK;
    }
    purging->left++;
    if (purging->text)
        snprintf(purging->text, purging->size,
                 "process %" PRId64 " on %s may still adopt arrays, for at most %" PRId64 " s",
                 adopter->pid, adopter->host, left_us / 1000000 + 1);
    return true;
}

spill_code_t spill_adopters_purge(spill_store_t *store, const char *name, int64_t *left, char *text,
                                  size_t size, spill_error_t *error)
{
    purge_t purging = {.store = store, .text = text, .size = size};
    *left = 0;
    SPILL_TRY(spill_store_now(store, &purging.now_us, error));
    spill_code_t code = spill_adopters_each(store, name, purge, &purging, error);
    *left = purging.left;
    return code;
}
