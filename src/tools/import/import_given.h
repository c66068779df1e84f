/* The options of an import that must not change between its runs, as its job checkpoint has them.
 */
#ifndef SPILL_TOOLS_IMPORT_IMPORT_GIVEN_H
#define SPILL_TOOLS_IMPORT_IMPORT_GIVEN_H

#include <bson/bson.h>
#include <stdbool.h>

/* Texts are borrowed; "" for none. */
typedef struct spill_import_given {
    const char *owner; /* "" for an export */
    const char *id;
    const char *elements, *entries_as, *inner, *collection;
    bool fields, new_numbers, strings;
} spill_import_given_t;

/* X(type, member, name): the fields of a job checkpoint that have them; SPARSE: if they are given.
 */
#define SPILL_IMPORT_GIVEN(X, SPARSE)                                                              \
    X(TEXT, owner, "owner")                                                                        \
    X(TEXT, id, "id")                                                                              \
    X(BOOL, strings, "strings")                                                                    \
    SPARSE(TEXT, elements, "elements")                                                             \
    SPARSE(TEXT, entries_as, "entriesAs")                                                          \
    SPARSE(TEXT, inner, "ownerInner")                                                              \
    SPARSE(TEXT, collection, "collection")                                                         \
    SPARSE(BOOL, fields, "fields")                                                                 \
    SPARSE(BOOL, new_numbers, "newNumbers")

/* All texts "". */
spill_import_given_t spill_import_given_none(void);

/*
 * Append each option with a space before it, its text as one word for the shell: in quotes
 * (`quotes`), or only if it needs them.
 */
void spill_import_given_append(const spill_import_given_t *given, bool quotes,
                               bson_string_t *command);

bool spill_import_given_equal(const spill_import_given_t *left, const spill_import_given_t *right);

#endif
