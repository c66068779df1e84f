/*
 * The collections that the gateway serves: which namespace has a definition, and the open array of
 * it; which collections hold pages or bookkeeping and are hidden; which views read heads.
 *
 * The table is replaced as a whole if the definitions have changed. Old tables stay until the end,
 * because commands and cursors still use them; each has a few kilobytes.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_SERVED_H
#define SPILL_GATEWAY_TRANSLATE_SERVED_H

#include "core/array.h"
#include "gateway/translate/managed_owners.h"
#include "gateway/translate/views.h"

#include <stdatomic.h>

typedef struct spill_served spill_served_t;

/* What a probe of a client's connection has shown, for 60 s; dropped after any authentication. */
typedef struct spill_rights spill_rights_t;

typedef struct spill_served_collection {
    const char *database;
    const char *collection;
    /*
     * NULL: not served, because the layout is another one or several definitions share the
     * collection. Reads that can use an array of `parts`, and writes of the definitions' fields,
     * are refused.
     */
    spill_array_t *array;
    char *reason; /* NULL: served. Why it is not, and what to do, as a phrase */
    const spill_definition_t *definition;         /* the first one of the collection */
    const spill_definition_t *const *definitions; /* all of the collection, ended by NULL */
    /*
     * Not served: the arrays of which a head may have a part, ended by NULL. Heads of other layouts
     * have the whole array, a summary, or a window.
     */
    const char *const *parts;
    /*
     * The fields that a definition of the collection names: arrays, counts, and the others of a
     * head. Ended by NULL.
     */
    const char *const *fields;
} spill_served_collection_t;

/* The gateway's own cursors (cursors.h). */
struct spill_cursors;

/*
 * Open the store of the URI's database and read its definitions. The caller frees *served with
 * spill_served_free. `uri` is the gateway's own, with its own user. A database without definitions
 * is served without collections.
 */
spill_code_t spill_served_open(const char *uri, spill_served_t **served, spill_error_t *error);
void spill_served_free(spill_served_t *served); /* NULL is allowed */

/* One definition without a store and without an open array: for what reads commands alone. */
spill_served_t *spill_served_without_store(const char *database,
                                           const spill_definition_t *definition);

/* Read the definitions and the views again. On an error the old table stays. Blocks. One thread at
 * a time. */
spill_code_t spill_served_reload(spill_served_t *served, spill_error_t *error);

/* Find a collection that has a definition; NULL: none. Any thread. Valid until spill_served_free.
 */
const spill_served_collection_t *spill_served_find(const spill_served_t *served,
                                                   const char *database, const char *collection);

/* The collections that have definitions, ended by NULL. Any thread. */
const spill_served_collection_t *const *spill_served_all(const spill_served_t *served);

/* The names of the page collections, ended by NULL. Any thread. */
const char *const *spill_served_pages(const spill_served_t *served);

/* The store of the definitions; NULL only after spill_served_without_store. */
spill_store_t *spill_served_store(const spill_served_t *served);

/*
 * The views of the database that read a collection of which a head may have a part of an array. As
 * they were at the last spill_served_reload; a gateway's user without the right to list collections
 * sees none. Ended by an entry without a name. Any thread.
 */
const spill_served_view_t *spill_served_views(const spill_served_t *served);

/* The view of that name, or NULL. */
const spill_served_view_t *spill_served_find_view(const spill_served_t *served,
                                                  const char *database, const char *name);

/* The database that the URI names. */
const char *spill_served_database(const spill_served_t *served);
int64_t spill_served_spills(spill_served_t *served); /* since it was opened */
struct spill_cursors *spill_served_cursors(const spill_served_t *served);

/* Owners that were seen to be managed. */
spill_managed_owners_t *spill_served_managed(spill_served_t *served);

/* Does the server know `stmtIds`? True until it has refused them. */
atomic_bool *spill_served_numbers_statements(spill_served_t *served);

/* Is it a collection of pages or of bookkeeping, which clients must not see? */
bool spill_served_hidden(const spill_served_t *served, const char *database,
                         const char *collection);

spill_rights_t *spill_rights_new(void);
void spill_rights_free(spill_rights_t *rights); /* NULL is allowed */

#endif
