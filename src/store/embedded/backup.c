#include "store/embedded/embedded.h"

#include "store/embedded/folder.h"
#include "store/embedded/kv_rocksdb.h"
#include "util/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where the copy is made, beside its place: "<folder>.partial-<pid>". */
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
    return spill_fail_errno(error, errno, "%s: cannot be looked at", folder);
}

/* A rename that never replaces what came there meanwhile, where the file system knows of such. */
static spill_code_t move(const char *from, const char *to, spill_error_t *error)
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

/* What failed names the place where the copy is made: say first which copy it is. */
static spill_code_t name_target(const char *folder, spill_code_t code, spill_error_t *error)
{
    return spill_fail_prefix(error, code, "%s: no copy was made", folder);
}

/* The engine can open the copy, with all its files undamaged. */
static spill_code_t check_copy(spill_embedded_t *store, const char *partial, spill_error_t *error)
{
    spill_rocksdb_options_t options = {.read_only = true,
                                       .cache_bytes = store->base.options.cache_bytes};
    spill_kv_t *copy;
    spill_code_t code = spill_kv_rocksdb_open(partial, &options, &copy, error);
    return code == SPILL_OK ? copy->ops->close(copy, error) : code;
}

static spill_code_t make_copy(spill_embedded_t *store, const char *partial, const char *folder,
                              spill_error_t *error)
{
    spill_code_t code = spill_folder_make(partial, error);
    if (code != SPILL_OK)
        return name_target(folder, code, error);
    rmdir(partial); /* it can be made; the engine wants to do that itself */
    code = store->kv->ops->checkpoint(store->kv, partial, error);
    if (code == SPILL_OK)
        code = spill_folder_mark(partial, error);
    if (code == SPILL_OK)
        code = check_copy(store, partial, error);
    code = code == SPILL_OK ? move(partial, folder, error) : name_target(folder, code, error);
    if (code == SPILL_OK)
        return spill_folder_sync_parent(folder, error);
    spill_folder_remove(partial);
    return code;
}

spill_code_t spill_embedded_backup(spill_store_t *base, const char *folder, spill_error_t *error)
{
    spill_embedded_t *store = (spill_embedded_t *)base;
    if (!store->kv->ops->checkpoint)
        return spill_fail(error, SPILL_INVALID,
                          "%s: a store in memory has no backup; export its arrays instead",
                          base->uri);
    spill_code_t code = refuse_existing(folder, error);
    if (code != SPILL_OK)
        return code;
    char *partial = partial_path(folder);
    spill_folder_remove(partial); /* left by a process of that number that died */
    code = make_copy(store, partial, folder, error);
    bson_free(partial);
    return code;
}
