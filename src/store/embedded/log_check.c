/* Check whether the engine's logs can be read to their end. */
#include "store/embedded/logs.h"

#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"

#include <bson/bson.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Beside a writer, a check is repeated while the list of files changes. */
enum { TRIES = 10, PAUSE_US = 10000 };

/* ---- files of the engine --------------------------------------------------------------------- */

/* The number of a file "NUMBER.EXTENSION"; 0 if it has another name. */
static uint64_t numbered(const char *name, const char *extension)
{
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || strcmp(name + digits, extension) != 0)
        return 0;
    return strtoull(name, NULL, 10);
}

static int compare_numbers(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* Add the number of a log to those of the logs from `oldest` on. */
static uint64_t *add_log(uint64_t *numbers, const char *name, uint64_t oldest, size_t *count)
{
    uint64_t number = numbered(name, ".log");
    if (number == 0 || number < oldest)
        return numbers;
    numbers = bson_realloc(numbers, (*count + 1) * sizeof *numbers);
    numbers[(*count)++] = number;
    return numbers;
}

static uint64_t *pinned_logs(const spill_pinned_t *pinned, uint64_t oldest, size_t *count)
{
    uint64_t *numbers = NULL;
    *count = 0;
    for (size_t i = 0; i < pinned->count; i++)
        numbers = add_log(numbers, pinned->files[i].name, oldest, count);
    if (*count > 0)
        qsort(numbers, *count, sizeof *numbers, compare_numbers);
    return numbers;
}

spill_code_t spill_log_numbers(const char *folder, uint64_t oldest, uint64_t **numbers,
                               size_t *count, spill_error_t *error)
{
    DIR *entries = opendir(folder);
    *numbers = NULL;
    *count = 0;
    if (!entries)
        return spill_fail_errno(error, errno, "%s: cannot list the folder", folder);
    int problem;
    for (const struct dirent *entry; (entry = spill_file_next_entry(entries, &problem)) != NULL;)
        *numbers = add_log(*numbers, entry->d_name, oldest, count);
    closedir(entries);
    if (problem != 0)
        return spill_fail_errno(error, problem, "%s: cannot list the folder", folder);
    if (*count > 0)
        qsort(*numbers, *count, sizeof **numbers, compare_numbers);
    return SPILL_OK;
}

char *spill_log_path(const char *folder, uint64_t log)
{
    return bson_strdup_printf("%s/%06" PRIu64 ".log", folder, log);
}

/* Has the engine begun a table or value file after the list's last record? */
static spill_code_t find_later_table(const char *folder, const spill_manifest_t *manifest,
                                     bool *found, spill_error_t *error)
{
    DIR *entries = opendir(folder);
    *found = false;
    if (!entries)
        return spill_fail_errno(error, errno, "%s: cannot list the folder", folder);
    int problem = 0;
    for (const struct dirent *entry;
         !*found && (entry = spill_file_next_entry(entries, &problem)) != NULL;)
        *found = (numbered(entry->d_name, ".sst") >= manifest->next_file ||
                  numbered(entry->d_name, ".blob") >= manifest->next_file) &&
                 manifest->next_file > 0;
    closedir(entries);
    return problem == 0 ? SPILL_OK
                        : spill_fail_errno(error, problem, "%s: cannot list the folder", folder);
}

/* ---- the logs -------------------------------------------------------------------------------- */

typedef struct walk {
    const char *folder;
    const spill_pinned_t *pinned; /* NULL: the files that the folder has now */
    spill_logs_state_t *state;
    spill_log_reader_t *reader;
    uint64_t log;
    uint64_t next; /* the number of the change that comes next */
    bool any;      /* a record was read */
    bool stopped;  /* the state is final */
} walk_t;

static void set_state(walk_t *walk, spill_logs_health_t health, int64_t offset, const char *what)
{
    spill_logs_state_t *state = walk->state;
    state->health = health;
    state->torn = state->torn || health == SPILL_LOGS_TORN;
    state->log = walk->log;
    state->offset = offset;
    snprintf(state->file, sizeof state->file, "%06" PRIu64 ".log", walk->log);
    snprintf(state->what, sizeof state->what, "%s", what);
    walk->stopped = health != SPILL_LOGS_TORN;
}

/* The record begins behind the next change: the changes between are missing. */
static void stop_at_gap(walk_t *walk, uint64_t sequence)
{
    spill_logs_state_t *state = walk->state;
    if (state->health == SPILL_LOGS_TORN) {
        state->health = SPILL_LOGS_HOLE;
        walk->stopped = true;
        return;
    }
    char what[sizeof state->what];
    snprintf(what, sizeof what,
             "its record begins with change %" PRIu64 ", but changes from %" PRIu64
             " on are in no file before it",
             sequence, walk->next);
    set_state(walk, walk->any ? SPILL_LOGS_DAMAGED : SPILL_LOGS_LOST, walk->reader->offset, what);
}

static void classify_record(walk_t *walk)
{
    spill_log_batch_t batch;
    if (!spill_log_batch_open(&batch, walk->reader->record, walk->reader->record_bytes)) {
        set_state(walk, SPILL_LOGS_DAMAGED, walk->reader->offset, "its record is too short");
        return;
    }
    if (batch.sequence > walk->next) {
        stop_at_gap(walk, batch.sequence);
        return;
    }
    if (batch.sequence + batch.count > walk->next)
        walk->next = batch.sequence + batch.count;
    walk->any = true;
    walk->state->health = SPILL_LOGS_WHOLE; /* so no change is missing at an earlier torn end */
}

/*
 * Classify a break. A write that was cut off has nothing readable behind it. If the search gave up
 * a block, something readable may be there, so report damage: a torn end would be dropped.
 */
static void classify_break(walk_t *walk)
{
    int64_t offset = walk->reader->offset;
    bool torn = walk->reader->torn;
    spill_log_step_t step = spill_log_reader_next(walk->reader);
    while (step == SPILL_LOG_BREAK && !walk->reader->more)
        step = spill_log_reader_next(walk->reader);
    if (walk->reader->more)
        set_state(walk, SPILL_LOGS_DAMAGED, offset, "its bytes were changed: good ones follow");
    else if (!torn)
        set_state(walk, SPILL_LOGS_DAMAGED, offset, "a checksum does not hold");
    else if (walk->reader->gave_up)
        set_state(walk, SPILL_LOGS_DAMAGED, offset, "bytes that may be records follow");
    else
        set_state(walk, SPILL_LOGS_TORN, offset, "it ends in the middle of a record");
}

static spill_code_t walk_file(walk_t *walk, FILE *file, spill_error_t *error)
{
    spill_log_reader_open(walk->reader, file);
    bool more = true;
    while (more && !walk->stopped) {
        spill_log_step_t step = spill_log_reader_next(walk->reader);
        more = step == SPILL_LOG_RECORD;
        if (step == SPILL_LOG_RECORD)
            classify_record(walk);
        else if (step == SPILL_LOG_BREAK)
            classify_break(walk);
    }
    int failed = walk->reader->failed;
    spill_log_reader_close(walk->reader);
    return failed == 0 ? SPILL_OK
                       : spill_fail_errno(error, failed, "%s/%06" PRIu64 ".log: cannot read",
                                          walk->folder, walk->log);
}

/* *deleted: the engine has deleted the log during the check. */
static spill_code_t walk_log(walk_t *walk, bool *deleted, spill_error_t *error)
{
    char name[32];
    snprintf(name, sizeof name, "%06" PRIu64 ".log", walk->log);
    FILE *file = spill_manifest_open_file(walk->folder, walk->pinned, name);
    int problem = errno;
    *deleted = !file && problem == ENOENT;
    if (*deleted)
        return SPILL_OK;
    if (!file)
        return spill_fail_errno(error, problem, "%s/%06" PRIu64 ".log: cannot read", walk->folder,
                                walk->log);
    spill_code_t code = walk_file(walk, file, error);
    fclose(file);
    return code;
}

static spill_code_t walk_logs(walk_t *walk, bool *moving, spill_error_t *error)
{
    size_t count;
    uint64_t *numbers;
    uint64_t oldest = walk->state->manifest.log;
    spill_code_t code = SPILL_OK;
    if (walk->pinned)
        numbers = pinned_logs(walk->pinned, oldest, &count);
    else
        code = spill_log_numbers(walk->folder, oldest, &numbers, &count, error);
    for (size_t i = 0; code == SPILL_OK && !*moving && !walk->stopped && i < count; i++) {
        walk->log = numbers[i];
        code = walk_log(walk, moving, error);
    }
    bson_free(numbers);
    return code;
}

/* ---- the check ------------------------------------------------------------------------------- */

/*
 * Does the first log that the list needs still exist? The engine deletes a log, and the tables that
 * a compaction read, only after it has synced the record of the new tables.
 */
static bool has_first_log(const walk_t *walk)
{
    char name[32];
    snprintf(name, sizeof name, "%06" PRIu64 ".log", walk->state->manifest.log);
    FILE *file = spill_manifest_open_file(walk->folder, walk->pinned, name);
    if (file)
        fclose(file);
    return file != NULL;
}

/*
 * Classify a list that ends in the middle of a record while later tables exist. If no log has what
 * is in these tables, and the engine has deleted the list's first log, acknowledged changes are
 * lost. If that log exists, the record was never synced, and the tables are unfinished work.
 */
static spill_code_t classify_list(const walk_t *walk, spill_error_t *error)
{
    const spill_manifest_t *manifest = &walk->state->manifest;
    bool found;
    if (!manifest->torn || walk->any || has_first_log(walk))
        return SPILL_OK;
    spill_code_t code = find_later_table(walk->folder, manifest, &found, error);
    if (code != SPILL_OK || !found)
        return code;
    return spill_fail(error, SPILL_CORRUPT,
                      "%s/%s: the list of files ends in the middle of a record, and there are "
                      "tables that are not in it: restore a backup",
                      walk->folder, manifest->name);
}

spill_code_t spill_log_check_pinned(const spill_pinned_t *pinned, spill_logs_state_t *state,
                                    spill_error_t *error)
{
    bool deleted = false;
    *state = (spill_logs_state_t){.health = SPILL_LOGS_WHOLE};
    if (!spill_pinned_find(pinned, "CURRENT"))
        return SPILL_OK;
    spill_code_t code = spill_manifest_read_pinned(pinned, &state->manifest, error);
    if (code != SPILL_OK)
        return code;
    walk_t walk = {.folder = pinned->folder,
                   .pinned = pinned,
                   .state = state,
                   .next = state->manifest.sequence + 1};
    walk.reader = bson_malloc(sizeof *walk.reader);
    code = walk_logs(&walk, &deleted, error);
    if (code == SPILL_OK)
        code = classify_list(&walk, error);
    bson_free(walk.reader);
    return code;
}

/* *moving: a writer changed the list of files during the check. */
static spill_code_t check_once(const char *folder, spill_logs_state_t *state, bool *moving,
                               spill_error_t *error)
{
    *moving = false;
    *state = (spill_logs_state_t){.health = SPILL_LOGS_WHOLE};
    spill_code_t code = spill_manifest_read(folder, &state->manifest, error);
    *moving = code != SPILL_OK; /* a writer may have begun another list */
    if (code != SPILL_OK)
        return code;
    walk_t walk = {.folder = folder, .state = state, .next = state->manifest.sequence + 1};
    walk.reader = bson_malloc(sizeof *walk.reader);
    code = walk_logs(&walk, moving, error);
    if (code == SPILL_OK && !*moving)
        code = classify_list(&walk, error);
    bson_free(walk.reader);
    spill_manifest_t after;
    *moving = *moving || spill_manifest_read(folder, &after, NULL) != SPILL_OK ||
              strcmp(after.name, state->manifest.name) != 0 || after.bytes != state->manifest.bytes;
    return code;
}

bool spill_log_stalls_engine(const spill_pinned_t *pinned)
{
    size_t count;
    uint64_t *numbers = pinned_logs(pinned, 0, &count);
    bool stalls = false;
    for (size_t i = 0; !stalls && i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%06" PRIu64 ".log", numbers[i]);
        FILE *file = spill_manifest_open_file(pinned->folder, pinned, name);
        stalls = file != NULL && spill_log_has_recycled_part(file);
        if (file)
            fclose(file);
    }
    bson_free(numbers);
    return stalls;
}

static bool has_current(const char *folder)
{
    char *path = bson_strdup_printf("%s/CURRENT", folder);
    bool has = access(path, F_OK) == 0;
    bson_free(path);
    return has;
}

spill_code_t spill_log_check(const char *folder, spill_logs_state_t *state, spill_error_t *error)
{
    *state = (spill_logs_state_t){.health = SPILL_LOGS_WHOLE};
    if (!has_current(folder))
        return SPILL_OK;
    bool moving = true;
    spill_code_t code = SPILL_OK;
    for (int tries = 0; tries < TRIES && moving; tries++) {
        if (tries > 0)
            spill_clock_sleep_us(NULL, PAUSE_US);
        code = check_once(folder, state, &moving, error);
        if (code == SPILL_OK && state->health <= SPILL_LOGS_TORN)
            break;
    }
    return code;
}

spill_code_t spill_log_fail(const char *folder, const spill_logs_state_t *state,
                            spill_error_t *error)
{
    if (state->health == SPILL_LOGS_LOST)
        return spill_fail(error, SPILL_CORRUPT,
                          "%s/%s: %s: the list of files (%s) or an older log lost its end; restore "
                          "a backup; `spillway export --partial' writes what can be read",
                          folder, state->file, state->what, state->manifest.name);
    spill_code_t code =
        spill_fail(error, SPILL_CORRUPT,
                   "%s/%s: the log cannot be read from byte %" PRId64
                   " on (%s); restore a backup, or let `spillway repair' show and cut what is "
                   "behind it; `spillway export --partial' writes what can be read",
                   folder, state->file, state->offset, state->what);
    if (state->health == SPILL_LOGS_HOLE)
        spill_fail_prefix(error, code,
                          "a log breaks off before the last record of the logs; if the machine "
                          "died while log durability was in use, open the store once with "
                          "--durability=log, which continues with the changes before the hole");
    return code;
}
