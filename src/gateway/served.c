#include "gateway/served.h"

#include "definition/schema.h"
#include "gateway/cursors.h"
#include "store/raw_reader.h"
#include "util/error.h"

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
} table_t;

struct spill_served {
    spill_store_t *store;
    char *database;
    spill_cursors_t *cursors;
    atomic_bool numbers_statements;
    spill_managed_owners_t managed;
    _Atomic(table_t *) table;
};

/* ---- the table ------------------------------------------------------------------------------- */

static void free_table(table_t *table)
{
    for (size_t i = 0; table->all != NULL && table->all[i] != NULL; i++)
        spill_array_close(table->collections[i].array);
    bson_free(table->definitions);
    bson_free(table->collections);
    bson_free(table->all);
    bson_free(table->pages);
    bson_free(table->fields);
    bson_free(table);
}

/* A relayed push to a plain owner would not keep each id once. */
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

/* Make the entry of the collection that definition `first` names, unless an earlier one names it.
 */
static spill_code_t add_collection(const spill_served_t *served, table_t *table, size_t first,
                                   size_t *collections, size_t *fields, spill_error_t *error)
{
    const spill_definition_t *definition = &table->definitions[first];
    spill_served_collection_t *at = &table->collections[*collections];
    size_t sharing = 0;
    for (size_t i = 0; i < first; i++)
        if (strcmp(table->definitions[i].collection, definition->collection) == 0)
            return SPILL_OK;
    *at = (spill_served_collection_t){.database = served->database,
                                      .collection = definition->collection,
                                      .definition = definition,
                                      .fields = &table->fields[*fields]};
    for (size_t i = first; i < table->count; i++) {
        if (strcmp(table->definitions[i].collection, definition->collection) != 0)
            continue;
        sharing++;
        *fields += add_fields(&table->definitions[i], &table->fields[*fields]);
    }
    table->fields[(*fields)++] = NULL;
    table->all[(*collections)++] = at;
    return sharing == 1 && is_served(definition) && served->store != NULL
               ? spill_array_open(served->store, definition->name, &at->array, error)
               : SPILL_OK;
}

/* Make the table of `count` definitions, which become its own. */
static spill_code_t make_table(const spill_served_t *served, spill_definition_t *definitions,
                               size_t count, table_t **made, spill_error_t *error)
{
    table_t *table = bson_malloc0(sizeof *table);
    size_t collections = 0, fields = 0, pages = 0;
    spill_code_t code = SPILL_OK;
    table->definitions = definitions;
    table->count = count;
    table->collections = bson_malloc0((table->count + 1) * sizeof *table->collections);
    table->all = bson_malloc0((table->count + 1) * sizeof(void *));
    table->pages = bson_malloc0((table->count + 1) * sizeof *table->pages);
    table->fields = bson_malloc0((table->count + 1) * (FIELDS_MAX + 1) * sizeof *table->fields);
    for (size_t i = 0; code == SPILL_OK && i < table->count; i++) {
        if (has_own_pages(&table->definitions[i]))
            table->pages[pages++] = table->definitions[i].page_collection;
        code = add_collection(served, table, i, &collections, &fields, error);
    }
    *made = code == SPILL_OK ? table : NULL;
    if (code != SPILL_OK)
        free_table(table);
    return code;
}

static spill_code_t read_table(const spill_served_t *served, table_t **read, spill_error_t *error)
{
    spill_definition_t *definitions;
    size_t count;
    SPILL_TRY(spill_store_definitions(served->store, &definitions, &count, error));
    return make_table(served, definitions, count, read, error);
}

static bool is_same(const table_t *left, const table_t *right)
{
    bool same = left != NULL && left->count == right->count;
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
