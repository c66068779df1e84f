/*
 * Collections with a collation of their own, which what is laid out cannot be in: by it the server
 * compares _ids, so that two owners may be one to it, and elements, so that an edit which changes
 * nothing but the case of letters would not be seen by the first cut.
 */
#ifndef SPILL_TOOLS_COLLATION_H
#define SPILL_TOOLS_COLLATION_H

#include "store/foreign.h"

/* SPILL_REFUSED: it has one. Nothing where there is no such collection. One command. */
spill_code_t spill_collation_check(spill_foreign_t *foreign, const char *collection,
                                   spill_error_t *error);

/* The same of a server's database by its URI. */
spill_code_t spill_collation_check_at(const char *uri, const char *collection,
                                      spill_error_t *error);

#endif
