#include "store/embedded/embedded.h"

#include "store/embedded/folder.h"
#include "store/embedded/kv_rocksdb.h"
#include "util/error.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY "copy"

/* The temporary folder of the copy, next to its target: "<folder>.partial-<pid>". */
static char *partial_path(const char *folder)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    return bson_strdup_printf("%.*s.partial-%ld", (int)length, folder, (long)getpid());
}

static spill_code_t refuse_existing(const char *folder, spill_error_t *error)
{
    struct stat about;
    if (lstat(folder, &about) == 0)
        return spill_fail(error, SPILL_REFUSED, "%s: exists already; name a folder that does not",
                          folder);
    if (errno == ENOENT)
        return SPILL_OK;
    return spill_fail_errno(error, errno, "%s: cannot be examined", folder);
}

/* Rename without replacing an existing file, if the file system supports that. */
static spill_code_t rename_to_new(const char *from, const char *to, spill_error_t *error)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return SPILL_OK;
    if (errno == EEXIST)
        return spill_fail(error, SPILL_REFUSED, "%s: exists already; name a folder that does not",
                          to);
    if ((errno == EINVAL || errno == ENOSYS) && rename(from, to) == 0)
        return SPILL_OK;
    return spill_fail_errno(error, errno, "%s: cannot put the copy there", to);
}

/* The error names the temporary folder: put the target's name before it. */
static spill_code_t name_target(const char *folder, spill_code_t code, spill_error_t *error)
{
    return spill_fail_prefix(error, code, "%s: no copy was made", folder);
}

/* Check that the engine can open the copy, undamaged unless a partial copy was requested. */
static spill_code_t check_copy(spill_embedded_t *store, const char *partial, spill_error_t *error)
{
    spill_rocksdb_options_t options = {.read_only = true,
                                       .partial = store->base.options.partial,
                                       .cache_bytes = store->base.options.cache_bytes};
    spill_kv_t *copy;
    spill_code_t code = spill_kv_rocksdb_open(partial, &options, &copy, error);
    return code == SPILL_OK ? copy->ops->close(copy, error) : code;
}

/* The engine writes the copy in a folder that no other user can open: "COPY.tmp", then "COPY". */
static void remove_partial(const char *partial)
{
    static const char *const names[] = {COPY, COPY ".tmp"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *inside = bson_strdup_printf("%s/%s", partial, names[i]);
        spill_folder_remove(inside);
        bson_free(inside);
    }
    spill_folder_remove(partial);
}

static spill_code_t make_copy(spill_embedded_t *store, const char *partial, const char *folder,
                              spill_error_t *error)
{
    bool made;
    unsigned mode = store->base.options.file_mode;
    char *copy = bson_strdup_printf("%s/" COPY, partial);
    spill_code_t code = spill_folder_make(partial, 0600, &made, error);
    if (code == SPILL_OK && !made)
        code = spill_fail(error, SPILL_REFUSED, "%s: exists already; remove it", partial);
    if (code == SPILL_OK)
        code = store->kv->ops->checkpoint(store->kv, copy, error);
    if (code == SPILL_OK && chmod(copy, mode | (mode & 0444U) >> 2U) != 0)
        code = spill_fail_errno(error, errno, "%s", copy);
    if (code == SPILL_OK)
        code = spill_folder_write_label(copy, mode, error);
    if (code == SPILL_OK)
        code = check_copy(store, copy, error);
    code = code == SPILL_OK ? rename_to_new(copy, folder, error) : name_target(folder, code, error);
    if (made)
        remove_partial(partial);
    bson_free(copy);
    return code == SPILL_OK ? spill_folder_sync_parent(folder, error) : code;
}

spill_code_t spill_embedded_backup(spill_store_t *base, const char *folder, spill_error_t *error)
{
    spill_embedded_t *store = (spill_embedded_t *)base;
    if (!store->kv->ops->checkpoint)
        return spill_fail(error, SPILL_INVALID,
                          "%s: a store in memory has no backup; export its arrays instead",
                          base->uri);
    spill_code_t code = spill_file_refuse_in_store(folder, error);
    if (code == SPILL_OK)
        code = refuse_existing(folder, error);
    if (code != SPILL_OK)
        return code;
    char *partial = partial_path(folder);
    remove_partial(partial); /* left by a killed process with the same number */
    code = make_copy(store, partial, folder, error);
    bson_free(partial);
    return code;
}
