/*
 * The owners that the passes of a job skip. A watch meets the same owners in each pass: a pass
 * reports an owner only if the pass before did not skip it, or skipped it for another reason.
 *
 * Threads: one at a time.
 */
#ifndef SPILL_CLI_SKIPPED_OWNERS_H
#define SPILL_CLI_SKIPPED_OWNERS_H

#include <spillway/value.h>

#include <bson/bson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Further owners are reported in each pass. An owner takes about 100 bytes. */
#define SPILL_CLI_SKIPPED_MAX 100000

typedef struct spill_cli_skipped_owner spill_cli_skipped_owner_t;

/* A zeroed one is ready for use. Release it in every case. */
typedef struct spill_cli_skipped_owners {
    spill_cli_skipped_owner_t *slots; /* a hash table with linear probing */
    size_t slot_count;                /* 0, or a power of two */
    size_t count;                     /* owners */
    int64_t pass;
} spill_cli_skipped_owners_t;

/*
 * The current pass skips an owner of definition `name`. True: report it. Numbers in the reason do
 * not count, because they may be times.
 */
bool spill_cli_skipped_note(spill_cli_skipped_owners_t *owners, const char *name,
                            const spill_value_t *owner, const char *reason);

/* Called for an owner that is no longer skipped. The arguments are borrowed. */
typedef void (*spill_cli_recovered_fn)(void *context, const char *name, const spill_value_t *owner);

/*
 * The current pass has visited every owner: forget, and report, the owners that it did not skip.
 * The next pass begins.
 */
void spill_cli_skipped_end_pass(spill_cli_skipped_owners_t *owners,
                                spill_cli_recovered_fn recovered, void *context);

void spill_cli_skipped_release(spill_cli_skipped_owners_t *owners);

#endif
