/*
 * The other definitions with heads in an array's collection, and the check that an update leaves
 * their fields alone. An array keeps them decoded, and reads them again when the version of the
 * store's definitions differs.
 */
#include "core/array.h"

#include "bson/update.h"
#include "definition/stored_names.h"
#include "util/error.h"

#include <string.h>

struct spill_others {
    pthread_rwlock_t lock;
    int64_t version; /* of the definitions; SPILL_DEFINITIONS_CHANGE: read them before each use */
    spill_definition_t *definitions;
    size_t count;
    const char **reserved; /* the fields of all of them, then NULL */
};

void spill_array_reserved(const spill_definition_t *definition,
                          const char *reserved[SPILL_RESERVED_MAX])
{
    const char *names[] = {definition->array, SPILL_STORED_ROOT, definition->count_field,
                           definition->overflow_field, definition->pages_field};
    size_t kept = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i][0] != '\0')
            reserved[kept++] = names[i];
    reserved[kept] = NULL;
}

spill_others_t *spill_others_new(void)
{
    spill_others_t *others = bson_malloc0(sizeof *others);
    pthread_rwlock_init(&others->lock, NULL);
    others->version = SPILL_DEFINITIONS_CHANGE;
    return others;
}

static void clear(spill_others_t *others)
{
    bson_free(others->definitions);
    bson_free(others->reserved);
    others->definitions = NULL;
    others->reserved = NULL;
    others->count = 0;
    others->version = SPILL_DEFINITIONS_CHANGE;
}

void spill_others_free(spill_others_t *others)
{
    if (others == NULL)
        return;
    clear(others);
    pthread_rwlock_destroy(&others->lock);
    bson_free(others);
}

/* ---- reading them ---------------------------------------------------------------------------- */

/* Add the definition if it has heads in the array's collection, and its arrays can be opened. */
static spill_code_t add_definition(const spill_array_t *array, const char *name,
                                   spill_error_t *error)
{
    spill_others_t *others = array->others;
    spill_definition_t *other = &others->definitions[others->count];
    SPILL_SCOPED(spill_free_document) bson_t *stored = NULL;
    SPILL_TRY(array->store->ops->catalog_get(array->store, SPILL_CATALOG_DEFINITION, name, &stored,
                                             error));
    if (!stored)
        return SPILL_OK;
    spill_code_t code = spill_store_read_definition(array->store, name, stored, other, error);
    if (code == SPILL_CORRUPT || code == SPILL_FORMAT)
        return SPILL_OK;
    SPILL_TRY(code);
    if (strcmp(other->collection, array->definition.collection) == 0)
        others->count++;
    return SPILL_OK;
}

static spill_code_t read_definitions(const spill_array_t *array, spill_error_t *error)
{
    spill_others_t *others = array->others;
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    SPILL_TRY(spill_store_definitions_beside(array->store, &array->definition, &names, error));
    others->definitions = bson_malloc0((names.count + 1) * sizeof *others->definitions);
    for (size_t i = 0; i < names.count; i++) {
        const char *name = spill_listing_item(&names, i).text;
        if (strcmp(name, array->definition.name) != 0)
            SPILL_TRY(add_definition(array, name, error));
    }
    return SPILL_OK;
}

/* List the fields of all definitions, each name once. */
static void list_reserved(spill_others_t *others)
{
    size_t listed = 0;
    others->reserved =
        bson_malloc0((others->count * SPILL_RESERVED_MAX + 1) * sizeof *others->reserved);
    for (size_t i = 0; i < others->count; i++) {
        const char *names[SPILL_RESERVED_MAX];
        spill_array_reserved(&others->definitions[i], names);
        for (size_t j = 0; names[j] != NULL; j++) {
            size_t at = 0;
            while (at < listed && strcmp(others->reserved[at], names[j]) != 0)
                at++;
            others->reserved[at] = names[j];
            listed = at == listed ? listed + 1 : listed;
        }
    }
}

/* Are these the definitions of this version? */
static bool is_current(const spill_others_t *others, int64_t version)
{
    return version != SPILL_DEFINITIONS_CHANGE && others->version == version;
}

static spill_code_t read_all(const spill_array_t *array, int64_t version, spill_error_t *error)
{
    spill_others_t *others = array->others;
    clear(others);
    SPILL_TRY(read_definitions(array, error));
    list_reserved(others);
    others->version = version;
    return SPILL_OK;
}

/*
 * Lock the definitions, and read them if they may have changed. The version is read before them, so
 * a definition that was written before the call is among them. After an error the lock is free.
 */
static spill_code_t lock_definitions(const spill_array_t *array, spill_error_t *error)
{
    spill_store_t *store = array->store;
    spill_others_t *others = array->others;
    int64_t version = store->ops->definitions_version(store);
    pthread_rwlock_rdlock(&others->lock);
    if (is_current(others, version))
        return SPILL_OK;
    pthread_rwlock_unlock(&others->lock);
    pthread_rwlock_wrlock(&others->lock);
    version = store->ops->definitions_version(store);
    spill_code_t code = SPILL_OK;
    if (!is_current(others, version))
        code = read_all(array, version, error);
    if (code != SPILL_OK)
        pthread_rwlock_unlock(&others->lock);
    return code;
}

/* ---- the check ------------------------------------------------------------------------------- */

/* Does the owner have a head of this definition? */
static spill_code_t has_head(spill_store_t *store, const spill_definition_t *definition,
                             const spill_value_t *value, bool *there, spill_error_t *error)
{
    spill_array_t array = {.store = store, .definition = *definition};
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(store->ops->bind(store, definition, &array.binding, error));
    SPILL_TRY(spill_owner_init(&owner, &array, value, error));
    spill_request_t read = spill_owner_request(&owner, SPILL_REQUEST_READ, SPILL_HEAD);
    SPILL_TRY(spill_owner_call(&owner, &read, &head, error));
    *there = head.state.present;
    return SPILL_OK;
}

/* Refuse an update that would change a field of this definition's head, or a document around it. */
static spill_code_t check_beside(const spill_owner_t *owner, const spill_definition_t *other,
                                 const bson_t *update, spill_error_t *error)
{
    const char *reserved[SPILL_RESERVED_MAX];
    spill_error_t clash;
    bool there = false;
    spill_array_reserved(other, reserved);
    if (spill_update_check(update, reserved, &clash) == SPILL_OK)
        return SPILL_OK;
    SPILL_TRY(has_head(owner->array->store, other, owner->value, &there, error));
    if (!there)
        return SPILL_OK;
    if (error)
        *error = clash;
    return spill_fail_prefix(error, SPILL_REFUSED, "definition '%s'", other->name);
}

static spill_code_t check_all(const spill_owner_t *owner, const bson_t *update,
                              spill_error_t *error)
{
    const spill_others_t *others = owner->array->others;
    if (others->count == 0 || spill_update_check(update, others->reserved, NULL) == SPILL_OK)
        return SPILL_OK;
    for (size_t i = 0; i < others->count; i++)
        SPILL_TRY(check_beside(owner, &others->definitions[i], update, error));
    return SPILL_OK;
}

spill_code_t spill_array_check_others(const spill_owner_t *owner, const bson_t *update,
                                      spill_error_t *error)
{
    const spill_array_t *array = owner->array;
    if (!array->store->ops->definitions_version)
        return SPILL_OK;
    SPILL_TRY(lock_definitions(array, error));
    spill_code_t code = check_all(owner, update, error);
    pthread_rwlock_unlock(&array->others->lock);
    return code;
}
