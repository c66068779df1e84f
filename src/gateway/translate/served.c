#include "gateway/translate/served.h"

#include "definition/schema.h"
#include "gateway/translate/cursors.h"
#include "store/raw_admin.h"
#include "store/raw_reader.h"
#include "util/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields that one definition can name in a head. */
enum { FIELDS_MAX = 4 };

/* The definitions at one moment. */
typedef struct table {
    struct table *older;
    spill_definition_t *definitions;
    size_t count;
    spill_served_collection_t *collections;
    const spill_served_collection_t **all; /* ended by NULL */
    const char **pages;                    /* ended by NULL */
    const char **fields;                   /* of all collections, one list after the other */
    const char **parts;                    /* the same */
    const spill_definition_t **sharing;    /* the same */
    spill_served_view_t *views;
} table_t;

struct spill_served {
    spill_store_t *store;
    spill_raw_admin_t *admin; /* lists the views */
    char *database;
    spill_cursors_t *cursors;
    atomic_bool numbers_statements;
    spill_managed_owners_t managed;
    _Atomic(table_t *) table;
};

/* ---- the table ------------------------------------------------------------------------------- */

static void free_table(table_t *table)
{
    for (size_t i = 0; table->all != NULL && table->all[i] != NULL; i++) {
        spill_array_close(table->collections[i].array);
        bson_free(table->collections[i].reason);
    }
    bson_free(table->definitions);
    bson_free(table->collections);
    bson_free(table->all);
    bson_free(table->pages);
    bson_free(table->fields);
    bson_free(table->parts);
    bson_free(table->sharing);
    spill_views_free(table->views);
    bson_free(table);
}

/* A relayed push to an unmanaged owner would not keep each id once. */
static bool is_served(const spill_definition_t *definition)
{
    const spill_schema_t *schema = spill_schema_of(definition);
    return definition->layout == SPILL_LAYOUT_OUTLIER && schema->has_pages &&
           definition->keep == SPILL_KEEP_NEWEST && !definition->unique;
}

/* Does this definition's page collection hold nothing but pages? A window's has its heads, too. */
static bool has_own_pages(const spill_definition_t *definition)
{
    return definition->page_collection[0] != '\0' &&
           strcmp(definition->page_collection, definition->collection) != 0;
}

static size_t add_fields(const spill_definition_t *definition, const char **fields)
{
    const char *names[FIELDS_MAX] = {definition->array, definition->count_field,
                                     definition->overflow_field, definition->pages_field};
    size_t count = 0;
    for (size_t i = 0; i < FIELDS_MAX; i++)
        if (names[i][0] != '\0')
            fields[count++] = names[i];
    return count;
}

/* May a head have a part of the array? */
static bool has_part(const spill_definition_t *definition)
{
    const spill_schema_t *schema = spill_schema_of(definition);
    return schema->has_pages && !schema->has_windows && !schema->has_referenced_elements;
}

/* Several definitions: name the first ones. */
static char *name_sharing(const spill_definition_t *const *definitions, size_t count)
{
    enum { NAMED_MAX = 3 };
    char names[NAMED_MAX * (SPILL_NAME_SIZE + 8) + 32];
    size_t named = count > NAMED_MAX ? NAMED_MAX : count, length = 0;
    for (size_t i = 0; i < named; i++) {
        const char *before = i == 0 ? "" : i + 1 == count ? " and " : ", ";
        length += (size_t)snprintf(names + length, sizeof names - length, "%s'%s'", before,
                                   definitions[i]->name);
    }
    if (count > named)
        snprintf(names + length, sizeof names - length, " and %zu more", count - named);
    return bson_strdup_printf("the definitions %s share the collection, and the gateway serves one "
                              "definition of a collection: use the library, or undo the others",
                              names);
}

static char *reason_of(const spill_definition_t *const *definitions, size_t count)
{
    const spill_definition_t *first = definitions[0];
    if (count > 1)
        return name_sharing(definitions, count);
    if (first->unique)
        return bson_strdup_printf("the definition '%s' is a set, and a relayed push would not keep "
                                  "each id once: use the library",
                                  first->name);
    if (first->layout == SPILL_LAYOUT_OUTLIER)
        return bson_strdup_printf(
            "the definition '%s' keeps the oldest elements in the head, which "
            "the gateway does not serve: use the library",
            first->name);
    return bson_strdup_printf("the definition '%s' has the layout %s, which the gateway does not "
                              "serve: use the library",
                              first->name, spill_layout_name(first->layout));
}

/* How far the lists of a table are filled. */
typedef struct filled {
    size_t collections, fields, parts, sharing;
} filled_t;

/* Make the entry of the collection that definition `first` names, unless an earlier one names it.
 */
static spill_code_t add_collection(const spill_served_t *served, table_t *table, size_t first,
                                   filled_t *filled, spill_error_t *error)
{
    const spill_definition_t *definition = &table->definitions[first];
    spill_served_collection_t *at = &table->collections[filled->collections];
    for (size_t i = 0; i < first; i++)
        if (strcmp(table->definitions[i].collection, definition->collection) == 0)
            return SPILL_OK;
    *at = (spill_served_collection_t){.database = served->database,
                                      .collection = definition->collection,
                                      .definition = definition,
                                      .definitions = &table->sharing[filled->sharing],
                                      .parts = &table->parts[filled->parts],
                                      .fields = &table->fields[filled->fields]};
    size_t count = 0;
    for (size_t i = first; i < table->count; i++) {
        const spill_definition_t *one = &table->definitions[i];
        if (strcmp(one->collection, definition->collection) != 0)
            continue;
        table->sharing[filled->sharing + count++] = one;
        if (has_part(one))
            table->parts[filled->parts++] = one->array;
        filled->fields += add_fields(one, &table->fields[filled->fields]);
    }
    filled->sharing += count + 1; /* each list ends with a NULL, which is there */
    filled->parts++;
    filled->fields++;
    table->all[filled->collections++] = at;
    if (count > 1 || !is_served(definition))
        at->reason = reason_of(at->definitions, count);
    if (at->reason != NULL || served->store == NULL)
        return SPILL_OK;
    SPILL_TRY(spill_array_open(served->store, definition->name, &at->array, error));
    at->array->keeps_any_text = true; /* as the server keeps them */
    return SPILL_OK;
}

/* Make the table of `count` definitions, which become its own. */
static spill_code_t make_table(const spill_served_t *served, spill_definition_t *definitions,
                               size_t count, table_t **made, spill_error_t *error)
{
    table_t *table = bson_malloc0(sizeof *table);
    size_t pages = 0;
    filled_t filled = {0};
    spill_code_t code = SPILL_OK;
    table->definitions = definitions;
    table->count = count;
    table->collections = bson_malloc0((table->count + 1) * sizeof *table->collections);
    table->all = bson_malloc0((table->count + 1) * sizeof(void *));
    table->pages = bson_malloc0((table->count + 1) * sizeof *table->pages);
    table->fields = bson_malloc0((table->count + 1) * (FIELDS_MAX + 1) * sizeof *table->fields);
    table->parts = bson_malloc0((table->count + 1) * 2 * sizeof *table->parts);
    table->sharing = bson_malloc0((table->count + 1) * 2 * sizeof(void *));
    table->views = bson_malloc0(sizeof *table->views);
    for (size_t i = 0; code == SPILL_OK && i < table->count; i++) {
        if (has_own_pages(&table->definitions[i]))
            table->pages[pages++] = table->definitions[i].page_collection;
        code = add_collection(served, table, i, &filled, error);
    }
    *made = code == SPILL_OK ? table : NULL;
    if (code != SPILL_OK)
        free_table(table);
    return code;
}

/* Find the views that would return a part of an array. */
static spill_code_t read_views(const spill_served_t *served, table_t *table, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t listing = BSON_INITIALIZER;
    const char **collections = bson_malloc0((table->count + 1) * sizeof *collections);
    size_t count = 0;
    for (size_t i = 0; table->all[i] != NULL; i++)
        if (table->all[i]->array != NULL || table->all[i]->parts[0] != NULL)
            collections[count++] = table->all[i]->collection;
    spill_code_t code =
        count == 0 ? SPILL_OK : served->admin->ops->list(served->admin, "view", &listing, error);
    if (code == SPILL_OK) {
        spill_views_free(table->views);
        table->views = spill_views_find(&listing, collections);
    }
    bson_free(collections);
    return code == SPILL_DENIED ? SPILL_OK : code;
}

static spill_code_t read_table(const spill_served_t *served, table_t **read, spill_error_t *error)
{
    spill_definition_t *definitions;
    size_t count;
    SPILL_TRY(spill_store_definitions(served->store, &definitions, &count, error));
    SPILL_TRY(make_table(served, definitions, count, read, error));
    spill_code_t code = read_views(served, *read, error);
    if (code == SPILL_OK)
        return SPILL_OK;
    free_table(*read);
    *read = NULL;
    return code;
}

static bool is_same(const table_t *left, const table_t *right)
{
    bool same =
        left != NULL && left->count == right->count && spill_views_equal(left->views, right->views);
    for (size_t i = 0; same && i < left->count; i++) {
        bson_t first, second;
        spill_definition_to_bson(&left->definitions[i], &first);
        spill_definition_to_bson(&right->definitions[i], &second);
        same = bson_equal(&first, &second);
        bson_destroy(&first);
        bson_destroy(&second);
    }
    return same;
}

/* ---- the store ------------------------------------------------------------------------------- */

spill_code_t spill_served_reload(spill_served_t *served, spill_error_t *error)
{
    table_t *table;
    SPILL_TRY(read_table(served, &table, error));
    table_t *now = atomic_load(&served->table);
    if (is_same(now, table)) {
        free_table(table);
        return SPILL_OK;
    }
    table->older = now;
    atomic_store(&served->table, table);
    return SPILL_OK;
}

/* The name of the database, as the driver reads it from the URI. */
static spill_code_t read_database(const char *uri, char **database, spill_error_t *error)
{
    spill_raw_reader_t *reader = NULL;
    spill_code_t code = spill_raw_reader_open(uri, NULL, &reader, error);
    if (code == SPILL_OK)
        *database = bson_strdup(spill_raw_reader_database(reader));
    spill_raw_reader_close(reader);
    return code;
}

spill_code_t spill_served_open(const char *uri, spill_served_t **served, spill_error_t *error)
{
    spill_served_t *opened = bson_malloc0(sizeof *opened);
    *served = NULL;
    opened->cursors = spill_cursors_new();
    atomic_init(&opened->numbers_statements, true);
    spill_code_t code = read_database(uri, &opened->database, error);
    if (code == SPILL_OK)
        code = spill_store_open(uri, NULL, &opened->store, error);
    if (code == SPILL_OK)
        code = spill_raw_admin_open(uri, &opened->admin, error);
    if (code == SPILL_OK)
        code = spill_served_reload(opened, error);
    if (code == SPILL_OK)
        *served = opened;
    else
        spill_served_free(opened);
    return code;
}

spill_served_t *spill_served_without_store(const char *database,
                                           const spill_definition_t *definition)
{
    table_t *table;
    spill_served_t *served = bson_malloc0(sizeof *served);
    spill_definition_t *copy = bson_malloc(sizeof *copy);
    *copy = *definition;
    served->cursors = spill_cursors_new();
    served->database = bson_strdup(database);
    make_table(served, copy, 1, &table, NULL); /* without a store, nothing fails */
    atomic_store(&served->table, table);
    return served;
}

void spill_served_free(spill_served_t *served)
{
    if (served == NULL)
        return;
    spill_cursors_free(served->cursors);
    for (table_t *table = atomic_load(&served->table); table != NULL;) {
        table_t *older = table->older;
        free_table(table);
        table = older;
    }
    if (served->store != NULL)
        spill_store_close(served->store, NULL);
    spill_raw_admin_close(served->admin);
    bson_free(served->database);
    bson_free(served);
}

/* ---- questions ------------------------------------------------------------------------------- */

const spill_served_collection_t *spill_served_find(const spill_served_t *served,
                                                   const char *database, const char *collection)
{
    if (database == NULL || collection == NULL || strcmp(database, served->database) != 0)
        return NULL;
    const spill_served_collection_t *const *all = spill_served_all(served);
    for (size_t i = 0; all[i] != NULL; i++)
        if (strcmp(all[i]->collection, collection) == 0)
            return all[i];
    return NULL;
}

const spill_served_collection_t *const *spill_served_all(const spill_served_t *served)
{
    return atomic_load(&served->table)->all;
}

const char *const *spill_served_pages(const spill_served_t *served)
{
    return atomic_load(&served->table)->pages;
}

spill_store_t *spill_served_store(const spill_served_t *served)
{
    return served->store;
}

const spill_served_view_t *spill_served_views(const spill_served_t *served)
{
    return atomic_load(&served->table)->views;
}

const spill_served_view_t *spill_served_find_view(const spill_served_t *served,
                                                  const char *database, const char *name)
{
    if (database == NULL || name == NULL || strcmp(database, served->database) != 0)
        return NULL;
    return spill_views_named(spill_served_views(served), name);
}

const char *spill_served_database(const spill_served_t *served)
{
    return served->database;
}

int64_t spill_served_spills(spill_served_t *served)
{
    spill_counters_t counters;
    spill_store_counters(served->store, &counters);
    return counters.spills;
}

spill_cursors_t *spill_served_cursors(const spill_served_t *served)
{
    return served->cursors;
}

spill_managed_owners_t *spill_served_managed(spill_served_t *served)
{
    return &served->managed;
}

atomic_bool *spill_served_numbers_statements(spill_served_t *served)
{
    return &served->numbers_statements;
}

bool spill_served_hidden(const spill_served_t *served, const char *database, const char *collection)
{
    if (database == NULL || collection == NULL || strcmp(database, served->database) != 0)
        return false;
    if (strncmp(collection, "spillway.", strlen("spillway.")) == 0)
        return true;
    const char *const *pages = spill_served_pages(served);
    for (size_t i = 0; pages[i] != NULL; i++)
        if (strcmp(pages[i], collection) == 0)
            return true;
    return false;
}
