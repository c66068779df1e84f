#include "store/embedded/engine_error.h"

#include "util/error.h"

#include <string.h>

typedef struct meaning {
    const char *text;
    spill_code_t code;
    const char *advice;
} meaning_t;

/* The first line with a text that is in the message applies. */
static const meaning_t meanings[] = {
    {"No space left on device", SPILL_NO_SPACE, "make room, then open the store again"},
    {"Disk quota exceeded", SPILL_NO_SPACE, "raise the quota, then open the store again"},
    {"File too large", SPILL_NO_SPACE, "raise the file size limit, then open the store again"},
    {"Permission denied", SPILL_DENIED, "check who owns the folder and its files"},
    {"Operation not permitted", SPILL_DENIED, "check who owns the folder and its files"},
    {"Read-only file system", SPILL_DENIED, "open it read-only"},
    {"Resource temporarily unavailable", SPILL_BUSY, "another process has it open"},
    {"lock hold by current process", SPILL_BUSY, "this process has it open already"},
    {"No such file or directory", SPILL_CORRUPT,
     "a file is missing: restore a backup, or open read-only to read what is left"},
    {"Corruption", SPILL_CORRUPT, "restore a backup, or open read-only to read what is undamaged"},
    {"does not exist (create_if_missing is false)", SPILL_NOT_FOUND, "check the path"},
};

static const meaning_t *meaning_of(const char *message)
{
    static const meaning_t other = {"", SPILL_IO, "see the file LOG in the store's folder"};
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strstr(message, meanings[i].text))
            return &meanings[i];
    return &other;
}

spill_code_t spill_engine_code(const char *message)
{
    return meaning_of(message)->code;
}

bool spill_engine_sync_failed(const char *message)
{
    return strstr(message, "While fdatasync") != NULL || strstr(message, "While fsync") != NULL ||
           strstr(message, "While sync_file_range") != NULL;
}

/* RocksDB reports a missing table file by the name that it would have in LevelDB. */
static void correct_name(char *text)
{
    for (char *at = text; (at = strstr(at, ".ldb:")) != NULL;)
        memcpy(at, ".sst", 4);
}

spill_code_t spill_engine_fail(spill_error_t *error, const char *place, const char *message)
{
    const meaning_t *meaning = meaning_of(message);
    spill_fail(error, meaning->code, "%s: %s (%s)", place, message, meaning->advice);
    if (error) {
        correct_name(error->message);
        error->retryable = meaning->code == SPILL_BUSY;
    }
    return meaning->code;
}
