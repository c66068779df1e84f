/*
 * Layouts reference and subset: an element's document.
 *
 *      element    {                           _id: I,       rating: 5, ...}
 *      document   {_id: {...}, productId: P,  elementId: I, rating: 5, ..., spill: {...}}
 *
 * The document's own fields are `_id`, the definition's page_owner, and `spill`. The element's
 * `_id` is stored under the definition's element_id_field, at the same place among the element's
 * fields. So an element cannot have a field named as the owner's, `spill`, or element_id_field;
 * every other field is stored under its own name. Nothing else in the project knows these rules.
 */
#ifndef SPILL_DEFINITION_STORED_ELEMENT_H
#define SPILL_DEFINITION_STORED_ELEMENT_H

#include <spillway/definition.h>
#include <spillway/value.h>

#include <stdbool.h>

#define SPILL_STORED_PATH_SIZE (2 * SPILL_NAME_SIZE)

/*
 * Can the element be stored as a document? `except` (NULL: none) is a field that the caller removes
 * from the element. SPILL_INVALID names the field and says what to do. O(fields).
 */
spill_code_t spill_stored_element_check(const spill_definition_t *definition,
                                        const spill_value_t *element, const char *except,
                                        spill_error_t *error);

/* Do both definitions store the same elements? Both are of these layouts. */
bool spill_stored_element_same_rules(const spill_definition_t *left,
                                     const spill_definition_t *right);

/* Is the path within a field of the document itself, which no element has? */
bool spill_stored_element_reserves(const spill_definition_t *definition, const char *path);

/* The path in the document of the element's `path`. In other layouts it is the same path. */
void spill_stored_element_path(const spill_definition_t *definition, const char *path,
                               char stored[SPILL_STORED_PATH_SIZE]);

/* Append the element's fields, in their stored form, to `document`. */
void spill_stored_element_append(const spill_definition_t *definition, const spill_value_t *element,
                                 bson_t *document);

/*
 * Read the document's element into `element`, which the call initializes. Return false if the
 * document has no owner's field: then the element was removed, and `element` is empty.
 */
bool spill_stored_element_read(const spill_definition_t *definition, const bson_t *document,
                               bson_t *element);

/* Bytes by which the stored element may be larger than the element. */
int64_t spill_stored_element_growth(const spill_definition_t *definition);

#endif
