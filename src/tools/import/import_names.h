/*
 * The names in exported documents: each head's line of `export --documents` has them, beside the
 * document, as the field "definition". An import into a definition with other names is refused,
 * because the documents alone do not show every difference: an element may have a field of any
 * name.
 */
#ifndef SPILL_TOOLS_IMPORT_IMPORT_NAMES_H
#define SPILL_TOOLS_IMPORT_IMPORT_NAMES_H

#include "bson/value.h"

#include <spillway/definition.h>
#include <spillway/error.h>

/*
 * Append what decides how the definition's documents are read: its layout, keep and order, and the
 * names of collections and fields. A name that is empty is left out. O(names).
 */
void spill_import_names_append(const spill_definition_t *definition, bson_t *names);

/*
 * Does `names`, a document as above, fit the definition? SPILL_PARSE names the first part that
 * differs, and the option for it. `keep` is compared only if `with_keep`. O(names).
 */
spill_code_t spill_import_names_check(const spill_definition_t *definition,
                                      const spill_value_t *names, bool with_keep,
                                      spill_error_t *error);

#endif
