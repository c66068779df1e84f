/* The other fields of a document that carries an array, as an update of the owner's head. */
#ifndef SPILL_TOOLS_IMPORT_IMPORT_FIELDS_H
#define SPILL_TOOLS_IMPORT_IMPORT_FIELDS_H

#include "bson/value.h"

#include <spillway/definition.h>
#include <spillway/error.h>

/* Which fields of a document are not kept. Borrowed. */
typedef struct spill_left_out {
    const char *const *paths; /* of fields, as in definitions; `_id` is never kept */
    size_t count;
    bool whole; /* the paths are names of fields of the document itself, dots and all */
    /* The target, or NULL: documents around its own fields are passed, too. */
    const spill_definition_t *definition;
    /* All definitions of the target. Fields of others on the same heads are their arrays. */
    const spill_definition_t *stored;
    size_t stored_count;
    const char *collection; /* of the heads */
    const char *name;       /* of the definition itself */
} spill_left_out_t;

/*
 * Append to `set` the document's fields, each under its path. Sub-documents on the way to a field
 * that is left out are passed, so that an update does not replace them. SPILL_PARSE: a head cannot
 * have such a field, or it clashes with one of the definition's own; the message names it.
 * O(document).
 */
spill_code_t spill_import_other_fields(const spill_value_t *document, const spill_left_out_t *left,
                                       bson_t *set, spill_error_t *error);

#endif
