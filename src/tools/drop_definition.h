/* Dropping a definition with all that the catalog remembers of it. */
#ifndef SPILL_TOOLS_DROP_DEFINITION_H
#define SPILL_TOOLS_DROP_DEFINITION_H

#include <spillway/store.h>

/*
 * spill_store_drop, and the marks of its imports and of its conversion. Of a migration in two
 * stages (tools/staged.h): SPILL_REFUSED where it is the original, unless that was being dropped
 * already, and then the mark of that stays; and where it is the planned one, and the original is
 * being dropped or gone: it may be the only copy. After a crash the same call goes on.
 */
spill_code_t spill_drop_definition(spill_store_t *store, const char *name, spill_error_t *error);

#endif
