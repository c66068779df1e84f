/* Embedded stores for tests: on the engine in memory, and in folders of their own. */
#ifndef TESTS_SUPPORT_EMBEDDED_H
#define TESTS_SUPPORT_EMBEDDED_H

#include "store/embedded/embedded.h"
#include "support/disk.h"

#include <spillway/spillway.h>

#include <stddef.h>

/* Stops the program where something fails. */
spill_store_t *embedded_on_disk(disk_t *disk, spill_durability_t durability);
spill_store_t *embedded_in_folder(const char *folder, const spill_store_options_t *options);
void embedded_close(spill_store_t *store);

/* A folder's path, below a new folder of this process that goes when it ends; nothing is there. */
const char *embedded_new_folder(void);
void embedded_remove_folder(const char *folder);

/* Does embedded_array put the head's fields into a sub-document, with paths for names? */
extern bool embedded_paths;

/* A definition of preset feed-recent with small bounds, saved and opened. */
spill_array_t *embedded_array(spill_store_t *store, const char *name, int64_t threshold,
                              int64_t page_capacity);

/* Append the numbers first, first + 1, ... to an owner, one at a time; the first error's code. */
spill_code_t embedded_append(spill_array_t *array, const char *owner, int64_t first, int64_t count,
                             spill_error_t *error);

/*
 * Does the owner hold the numbers first, first + 1, ... in order, `count` of them? Else what the
 * read returned, or SPILL_REFUSED where the elements are others.
 */
spill_code_t embedded_holds(spill_array_t *array, const char *owner, int64_t first, int64_t count,
                            spill_error_t *error);

/* Findings of the store's own check of one owner. */
int embedded_findings(spill_store_t *store, spill_array_t *array, const char *owner);

#endif
