/* The check of spill_collation_refuse (store/raw_reader.h), on a database of a server. */
#ifndef SPILL_TOOLS_COLLATION_H
#define SPILL_TOOLS_COLLATION_H

#include "store/raw_admin.h"

/* SPILL_REFUSED: it has a collation. SPILL_OK if the collection does not exist. One command. */
spill_code_t spill_collation_check(spill_raw_admin_t *admin, const char *collection,
                                   spill_error_t *error);

/* The same check for a server's database, by its URI. */
spill_code_t spill_collation_check_at(const char *uri, const char *collection,
                                      spill_error_t *error);

#endif
