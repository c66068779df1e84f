/* The check of a copy of a store's files. */
#ifndef SPILL_STORE_EMBEDDED_BACKUP_CHECK_H
#define SPILL_STORE_EMBEDDED_BACKUP_CHECK_H

#include <spillway/error.h>

/*
 * Compare the checksums of all table files and files of large values in `folder`, a copy of the
 * store in the folder `store`. SPILL_CORRUPT: the message names the first damaged file, as a file
 * of the store: on the same file system, it is the same file. Memory: one stored element, or 256
 * KiB. Cost: reads these files once.
 */
spill_code_t spill_backup_check(const char *folder, const char *store, spill_error_t *error);

#endif
