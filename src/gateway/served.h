/*
 * The collections that the gateway serves: which namespace has a definition, and the open array of
 * it; which collections hold pages or bookkeeping and are hidden. The table is replaced as a whole
 * when definitions change; readers keep the one that they began with.
 */
#ifndef SPILL_GATEWAY_SERVED_H
#define SPILL_GATEWAY_SERVED_H

#include "core/array.h"

typedef struct spill_served spill_served_t;

/* What a probe of a client's connection has shown, for 60 s; dropped after any authentication. */
typedef struct spill_rights spill_rights_t;

typedef struct spill_served_collection {
    const char *database;
    const char *collection;
    spill_array_t
        *array; /* NULL: a layout that is not served (reads relayed, writes of F refused) */
    const spill_definition_t *definition;
} spill_served_collection_t;

/*
 * Open the store of the URI's database and read its definitions. The caller frees *served with
 * spill_served_free. `uri` is the gateway's own, with its own user.
 */
spill_code_t spill_served_open(const char *uri, spill_served_t **served, spill_error_t *error);
void spill_served_free(spill_served_t *served); /* NULL is allowed */

/* Read the definitions again. On an error the old table stays. Blocks. */
spill_code_t spill_served_reload(spill_served_t *served, spill_error_t *error);

/* Find a served collection; NULL: none. Any thread; the result is valid until spill_served_leave.
 */
const spill_served_collection_t *spill_served_find(const spill_served_t *served,
                                                   const char *database, const char *collection);

/* The collections that have definitions, ended by NULL. Any thread. */
const spill_served_collection_t *const *spill_served_all(const spill_served_t *served);

/* Is it a collection of pages or of bookkeeping, which clients must not see? */
bool spill_served_hidden(const spill_served_t *served, const char *database,
                         const char *collection);

spill_rights_t *spill_rights_new(void);
void spill_rights_free(spill_rights_t *rights); /* NULL is allowed */

#endif
