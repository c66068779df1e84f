/* Read what a plan says about groups of collections. */
#include "tools/consolidate/consolidate.h"

#include "bson/key.h"
#include "bson/value.h"
#include "tools/migrate/planned.h"
#include "util/error.h"

#include <string.h>

/* Longest name of a collection that all servers accept. */
#define NAME_BYTES_MAX 200

/* ---- fields of a document -------------------------------------------------------------------- */

/* The array, or an empty one if the field is missing; borrows. */
static void array_in(const bson_t *document, const char *field, bson_t *array)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, field) || !BSON_ITER_HOLDS_ARRAY(&iter) ||
        !spill_inner_document(&iter, array))
        bson_init(array);
}

/* The document at the iterator; borrows. False: it is none. */
static bool document_at(const bson_iter_t *iter, bson_t *document)
{
    return BSON_ITER_HOLDS_DOCUMENT(iter) && spill_inner_document(iter, document);
}

static bson_t *array_copy(const bson_t *document, const char *field)
{
    bson_t array;
    array_in(document, field, &array);
    return bson_copy(&array);
}

/* Append a field under its own name, if it exists. */
static void keep_field(const bson_t *from, const char *field, bson_t *to)
{
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, from, field))
        bson_append_iter(to, field, -1, &iter);
}

/* ---- checks of names ------------------------------------------------------------------------- */

static spill_code_t check_collection(const char *name, const char *what, spill_error_t *error)
{
    if (!name || name[0] == '\0')
        return spill_fail(error, SPILL_INVALID, "the plan names no %s", what);
    if (strlen(name) > NAME_BYTES_MAX)
        return spill_fail(error, SPILL_INVALID, "'%s' has more than %d bytes", name,
                          NAME_BYTES_MAX);
    if (strchr(name, '$') || strncmp(name, "system.", 7) == 0 ||
        strncmp(name, "spillway", strlen("spillway")) == 0)
        return spill_fail(error, SPILL_INVALID, "'%s' cannot be a collection of the application",
                          name);
    return SPILL_OK;
}

static spill_code_t check_field(const char *field, spill_error_t *error)
{
    if (!field || field[0] == '\0')
        return spill_fail(error, SPILL_INVALID, "the plan names no 'field' for the discriminator");
    if (strcmp(field, "_id") == 0 || strcmp(field, "id") == 0 || field[0] == '$' ||
        strchr(field, '.'))
        return spill_fail(error, SPILL_INVALID,
                          "'%s' cannot be the discriminator: that must be a field of the document "
                          "itself, and neither _id nor id",
                          field);
    return SPILL_OK;
}

/* Add an entry to a set of keys; refuse a second entry of a kind. */
static spill_code_t add_key(bson_t *seen, const char *kind, const spill_value_t *value,
                            const char *collection, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    char digits[2 * SPILL_OWNER_KEY_MAX + 16];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%s", kind);
    SPILL_TRY(spill_owner_key(value, &key, error));
    for (size_t i = 0; i < key.size && length + 3 < sizeof digits; i++)
        length += (size_t)snprintf(digits + length, sizeof digits - length, "%02x", key.data[i]);
    if (bson_has_field(seen, digits))
        return spill_fail(error, SPILL_INVALID,
                          "the plan has two collections '%s', or two collections with its value",
                          collection);
    BSON_APPEND_NULL(seen, digits);
    return SPILL_OK;
}

/* ---- members --------------------------------------------------------------------------------- */

static spill_code_t add_member(spill_consolidation_t *group, const bson_t *entry, bson_t *seen,
                               spill_error_t *error)
{
    bson_iter_t iter;
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    const char *name = spill_document_text(entry, "collection", NULL);
    SPILL_TRY(check_collection(name, "collection", error));
    if (strcmp(name, group->into) == 0)
        return spill_fail(error, SPILL_INVALID, "'%s' cannot be one of the old collections", name);
    if (!bson_iter_init_find(&iter, entry, "value"))
        return spill_fail(error, SPILL_INVALID, "the plan has no 'value' for '%s'", name);
    spill_joined_t *member = &group->members[group->count++];
    spill_value_t named = spill_value_from_utf8(&storage, name);
    member->collection = bson_strdup(name);
    member->kept = bson_strdup_printf("%s%s", SPILL_KEPT_PREFIX, name);
    member->value = spill_value_from_iter(&iter);
    SPILL_TRY(add_key(seen, "name", &named, name, error));
    return add_key(seen, "value", &member->value, name, error);
}

static spill_code_t add_members(spill_consolidation_t *group, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t seen = BSON_INITIALIZER;
    bson_t list, entry;
    bson_iter_t iter;
    array_in(group->document, "collections", &list);
    group->members = bson_malloc0((bson_count_keys(&list) + 1) * sizeof *group->members);
    bson_iter_init(&iter, &list);
    while (bson_iter_next(&iter)) {
        if (!document_at(&iter, &entry))
            return spill_fail(
                error, SPILL_INVALID,
                "'collections' of the plan must contain {\"collection\", \"value\"}s");
        SPILL_TRY(add_member(group, &entry, &seen, error));
    }
    if (group->count == 0)
        return spill_fail(error, SPILL_INVALID, "the plan names no 'collections'");
    return SPILL_OK;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void copy_fields(const bson_t *document, spill_consolidation_t *group)
{
    static const char *const fields[] = {"into",    "field",    "ids",
                                         "indexes", "leaveOut", "collections"};
    group->document = bson_new();
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        keep_field(document, fields[i], group->document);
}

spill_code_t spill_consolidation_read(const bson_t *document, spill_consolidation_t *group,
                                      spill_error_t *error)
{
    *group = (spill_consolidation_t){0};
    const char *into = spill_document_text(document, "into", NULL);
    const char *field = spill_document_text(document, "field", NULL);
    const char *ids = spill_document_text(document, "ids", NULL);
    const char *pattern = spill_document_text(document, "pattern", NULL);
    SPILL_TRY(check_collection(into, "joint collection, 'into'", error));
    SPILL_TRY(check_field(field, error));
    if (ids && strcmp(ids, "compound") != 0 && strcmp(ids, "keep") != 0)
        return spill_fail(error, SPILL_INVALID, "'ids' must be compound or keep, not '%s'", ids);
    copy_fields(document, group);
    group->pattern = bson_strdup(pattern ? pattern : "");
    group->into = bson_strdup(into);
    group->aside = bson_strdup_printf("%s%s", SPILL_KEPT_PREFIX, into);
    group->field = bson_strdup(field);
    group->keeps_ids = ids && strcmp(ids, "keep") == 0;
    group->indexes = array_copy(group->document, "indexes");
    group->leave_out = array_copy(group->document, "leaveOut");
    return add_members(group, error);
}

void spill_consolidation_release(spill_consolidation_t *group)
{
    for (size_t i = 0; i < group->count; i++) {
        bson_free(group->members[i].collection);
        bson_free(group->members[i].kept);
    }
    bson_free(group->members);
    bson_destroy(group->document);
    bson_destroy(group->indexes);
    bson_destroy(group->leave_out);
    bson_free(group->pattern);
    bson_free(group->into);
    bson_free(group->aside);
    bson_free(group->field);
    *group = (spill_consolidation_t){0};
}

spill_share_t spill_consolidation_share(const spill_consolidation_t *group, size_t member)
{
    return (spill_share_t){.field = group->field,
                           .value = group->members[member].value,
                           .keeps_ids = group->keeps_ids};
}

/* ---- the file -------------------------------------------------------------------------------- */

/* "consolidate": false: the entry may be incomplete. */
static bool is_left_alone(const bson_t *entry)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, entry, "consolidate") && !bson_iter_as_bool(&iter);
}

static spill_code_t read_groups(const char *file, const bson_t *document,
                                spill_consolidations_t *plan, spill_error_t *error)
{
    bson_t list, entry;
    bson_iter_t iter;
    array_in(document, "sprawl", &list);
    plan->items = bson_malloc0((bson_count_keys(&list) + 1) * sizeof *plan->items);
    bson_iter_init(&iter, &list);
    while (bson_iter_next(&iter)) {
        if (!document_at(&iter, &entry))
            return spill_fail(error, SPILL_INVALID, "%s: 'sprawl' must contain documents", file);
        if (is_left_alone(&entry))
            continue;
        spill_code_t code = spill_consolidation_read(&entry, &plan->items[plan->count++], error);
        if (code != SPILL_OK)
            return spill_fail_prefix(error, code, "%s", file);
    }
    if (plan->count == 0)
        return spill_fail(error, SPILL_INVALID,
                          "%s: nothing to consolidate: no entry of 'sprawl' has "
                          "\"consolidate\": true",
                          file);
    return SPILL_OK;
}

spill_code_t spill_consolidations_read(const char *file, spill_consolidations_t *plan,
                                       spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    *plan = (spill_consolidations_t){0};
    SPILL_TRY(spill_plan_file_read(file, &document, error));
    return read_groups(file, &document, plan, error);
}

void spill_consolidations_release(spill_consolidations_t *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        spill_consolidation_release(&plan->items[i]);
    bson_free(plan->items);
    *plan = (spill_consolidations_t){0};
}
