/* What a client sees of a reply, as a text to compare. */
#ifndef SPILL_TESTS_REPLY_TEXT_H
#define SPILL_TESTS_REPLY_TEXT_H

#include <bson/bson.h>

/* A field that only one of two stores has: a definition's count. It is left out at any depth. */
#define REPLY_COUNT_FIELD "cnt"

/*
 * Counts, codes, write errors with index and code, lastErrorObject, documents with their fields
 * sorted, and the sorted values of distinct. nModified and texts are left out. `places` has the
 * place of each statement in another command, -1 if it is not in it; NULL: the same. Free the
 * result with bson_free. The code of an error of an update of many in `command` (or NULL) is left
 * out.
 */
char *reply_text(const bson_t *reply, const bson_t *command, const int *places);

/* Is that statement of the command (NULL: none) an update of many? Its error is that of any. */
bool reply_is_of_many(const bson_t *command, int index);

/* The document or array at the iterator, with its fields sorted. Free it with bson_free. */
char *reply_document_text(const bson_iter_t *iter);

#endif
