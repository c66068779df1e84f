/*
 * A planned array and how it gets its planned layout. Arrays are migrated in place to layout
 * outlier, keep newest. Every other layout is reached in stages: the array is migrated in place
 * under a definition of its own, the original, and copied from there into the planned definition
 * (tools/migrate/staged.h).
 */
#ifndef SPILL_TOOLS_MIGRATE_PLANNED_H
#define SPILL_TOOLS_MIGRATE_PLANNED_H

#include <spillway/definition.h>

#include <stdbool.h>

typedef struct spill_planned {
    spill_definition_t definition; /* the planned one */
    bool staged;                   /* the array is copied from `original` into it */
    spill_definition_t original;
    bool order_missing; /* "growsAt": "unknown", and no definition of the entry has an "order" */
    bool may_be_empty;  /* "mayBeEmpty": the entry may match no array */
} spill_planned_t;

/* Report whether arrays are migrated to this definition in place. */
bool spill_planned_in_place(const spill_definition_t *definition);

/*
 * Plan how the array `path` of the documents of `collection` gets this definition. Sets staged; if
 * staged, sets the default original: NAME.original, with the planned order, pages in NAME.original,
 * and PATHPages as its only field in the documents.
 */
void spill_planned_init(spill_planned_t *planned, const spill_definition_t *definition,
                        const char *collection, const char *path);

/*
 * Check that `spillway migrate' can do it. SPILL_INVALID: no such original can be defined.
 * SPILL_REFUSED: the two definitions clash, a cap would be in the original's documents, or arrays
 * cannot be copied to such a definition at all.
 */
spill_code_t spill_planned_check(const spill_planned_t *planned, spill_error_t *error);

/*
 * `name` without the database's name and a dot in front, if it begins with these. `database`: NULL
 * or "" is none. Borrows from `name`.
 */
const char *spill_planned_without_database(const char *name, const char *database);

/* ---- the file that `plan --output` writes and a person edits --------------------------------- */

/*
 * Read a plan into `document`, which is initialized in every case. SPILL_IO; SPILL_PARSE: it is no
 * JSON; SPILL_INVALID: it is no plan of this version. Messages name the file.
 */
spill_code_t spill_plan_file_read(const char *file, bson_t *document, spill_error_t *error);

/*
 * Read the arrays with "migrate": true into *arrays (bson_free). Their definitions are checked. An
 * entry's "original" replaces the default one.
 *
 * A plan of a server, of a folder or of an archive names a collection with its database in front:
 * "shop.users". The arrays have the name without that database. It is the first of these: the
 * entry's "database"; `database`, the one that is migrated (NULL on an embedded store); the part
 * in front of the collection's name in the definition.
 *
 * SPILL_INVALID: the message names the entry at fault.
 */
spill_code_t spill_plan_file_arrays(const char *file, const char *database,
                                    spill_planned_t **arrays, size_t *count, spill_error_t *error);

#endif
