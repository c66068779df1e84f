/* Progress of a command that walks over all owners of definitions, and its message on Ctrl-C. */
#include "cli/walk.h"

#include "cli/cli.h"
#include "cli/process.h"
#include "definition/schema.h"
#include "store/store.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <string.h>

/* ---- the total ------------------------------------------------------------------------------- */

/* A longer count would be no help: the command itself does not wait for it otherwise. */
#define COUNT_S 10.0

typedef struct counting {
    spill_cli_progress_t *progress;
    const char *name;
    double until_s;
    int64_t owners;
} counting_t;

static bool count_owner(void *context, const spill_value_t *owner)
{
    counting_t *counting = context;
    (void)owner;
    counting->owners++;
    if (counting->owners % 256 != 0)
        return true;
    if (counting->progress->terminal)
        spill_cli_progress_print(counting->progress, "%" PRId64 " owners counted, '%s'",
                                 counting->owners, counting->name);
    return !spill_cli_interrupted() &&
           spill_cli_progress_seconds(counting->progress) < counting->until_s;
}

int64_t spill_cli_count_owners(spill_cli_progress_t *progress, spill_array_t *array)
{
    counting_t counting = {.progress = progress,
                           .name = spill_array_get_definition(array)->name,
                           .until_s = spill_cli_progress_seconds(progress) + COUNT_S};
    spill_error_t ignored;
    spill_code_t code = spill_array_owners(array, count_owner, &counting, &ignored);
    return code == SPILL_OK ? counting.owners : -1;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static void show_walk(spill_cli_walk_t *walk, spill_array_t *array)
{
    spill_cli_progress_t *progress = &walk->progress;
    const spill_definition_t *definition = spill_array_get_definition(array);
    const char *noun = spill_schema_of(definition)->has_windows ? "windows" : "owners";
    if (walk->all < 0) {
        int64_t all = spill_cli_count_owners(progress, array);
        walk->all = all > 0 ? all : 0;
        spill_cli_progress_restart(progress, walk->owners);
    }
    if (walk->all > 0 && walk->all < walk->owners)
        walk->all = walk->owners;
    if (walk->all > 0)
        spill_cli_progress_part(progress, walk->owners, walk->all,
                                "%" PRId64 " of %" PRId64 " %s %s, '%s'", walk->owners, walk->all,
                                noun, walk->done, definition->name);
    else
        spill_cli_progress_print(progress, "%s %s, '%s'",
                                 spill_schema_of(definition)->has_windows
                                     ? spill_counted_text(walk->owners, "window", "windows").text
                                     : spill_counted_text(walk->owners, "owner", "owners").text,
                                 walk->done, definition->name);
}

static void walk_owner(void *context, spill_array_t *array, int64_t owners)
{
    spill_cli_walk_t *walk = context;
    const char *name = spill_array_get_definition(array)->name;
    if (strcmp(walk->name, name) != 0) {
        walk->before += walk->owners;
        walk->all = -1;
        bson_strncpy(walk->name, name, sizeof walk->name);
        spill_cli_progress_restart(&walk->progress, 0);
    }
    walk->owners = owners;
    if (spill_cli_progress_due(&walk->progress))
        show_walk(walk, array);
}

void spill_cli_walk_start(spill_cli_walk_t *walk, const spill_invocation_t *invocation,
                          spill_store_t *store, const char *done)
{
    *walk = (spill_cli_walk_t){.command = invocation->command, .done = done, .lines = -1};
    if (!done)
        return;
    spill_cli_progress_start(&walk->progress, invocation->quiet);
    spill_cli_stop_on_interrupt(store);
    store->walked = walk_owner;
    store->walk_context = walk;
}

spill_code_t spill_cli_walk_end(spill_cli_walk_t *walk, spill_store_t *store, spill_code_t code,
                                spill_error_t *error)
{
    int64_t owners = walk->before + walk->owners;
    const char *next = walk->command->interrupted;
    spill_cli_reader_may_leave();
    if (!walk->done)
        return code;
    spill_cli_progress_break(&walk->progress);
    store->walked = NULL;
    if (code != SPILL_CANCELLED || !spill_cli_interrupted() || !next)
        return code;
    spill_counted_text_t whole = spill_counted_text(owners, "owner", "owners");
    if (walk->lines < 0)
        return spill_fail(error, code, "interrupted after %s: %s", whole.text, next);
    return spill_fail(error, code, "interrupted after %s, and %s in all: %s", whole.text,
                      spill_counted_text(walk->lines, "line", "lines").text, next);
}
