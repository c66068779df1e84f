#include "second_log.h"

#include <rocksdb/c.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static void require(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "second_log: %s\n", what);
    _exit(1);
}

_Noreturn void second_log_add(const char *folder)
{
    char *message = NULL;
    static const char key[] = {0, 0, 0, 0, 1}; /* the format's record */
    size_t size;
    rocksdb_options_t *usual = rocksdb_options_create();
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_get_options_from_string(usual, "avoid_flush_during_recovery=true", options, &message);
    rocksdb_t *db = rocksdb_open(options, folder, &message);
    require(db != NULL, "cannot make a second log");
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
    char *value = rocksdb_get(db, read, key, sizeof key, &size, &message);
    require(value != NULL, "the store has no format record");
    rocksdb_put(db, write, key, sizeof key, value, size, &message);
    raise(SIGKILL);
    _exit(1);
}
