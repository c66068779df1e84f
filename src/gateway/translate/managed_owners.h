/*
 * What this process has seen of owners.
 *
 * Managed owners: their arrays were managed when they were last seen. A push to such an owner goes
 * to the library at once; a wrong guess costs a round trip and nothing else.
 *
 * Short ones: their arrays were unmanaged, and below the threshold. A few further pushes need no
 * conditions: see first_step.h.
 *
 * The tables are lossy: a newer owner replaces an older one in its slot.
 *
 * Threads: any.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_MANAGED_OWNERS_H
#define SPILL_GATEWAY_TRANSLATE_MANAGED_OWNERS_H

#include <spillway/value.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define SPILL_MANAGED_OWNERS_MAX 16384

/* How long an owner has been managed before a numbered write may skip the unmanaged statement. */
#define SPILL_MANAGED_CERTAIN_SECONDS 120

/* Zeroed: no owner is known. */
typedef struct spill_managed_owners {
    atomic_uint_fast64_t slots[SPILL_MANAGED_OWNERS_MAX];  /* 40 bits of a hash, 24 of seconds */
    atomic_uint pushes[SPILL_MANAGED_OWNERS_MAX];          /* in progress, to owners of the slot */
    atomic_uint_fast64_t shorts[SPILL_MANAGED_OWNERS_MAX]; /* 48 bits of a hash, 16 of a count */
} spill_managed_owners_t;

/* The owner of the array that `scope` names was managed at `seconds` of the monotonic clock. */
void spill_managed_note(spill_managed_owners_t *owners, const char *scope,
                        const spill_value_t *owner, int64_t seconds);
void spill_managed_forget(spill_managed_owners_t *owners, const char *scope,
                          const spill_value_t *owner);

/*
 * A push to the owner begins. *alone: no other one is in progress. Pushes that are not alone should
 * go through the library, which sends them together. Returns the slot, which the push's end needs.
 */
size_t spill_managed_begin(spill_managed_owners_t *owners, const char *scope,
                           const spill_value_t *owner, bool *alone);
void spill_managed_end(spill_managed_owners_t *owners, size_t slot);

/* For how many seconds the owner is known to be managed; -1: it is not known. */
int64_t spill_managed_since(const spill_managed_owners_t *owners, const char *scope,
                            const spill_value_t *owner, int64_t seconds);

/* ---- owners of short unmanaged arrays -------------------------------------------------------- */

#define SPILL_SHORT_PUSHES_MAX 65535

/* The owner's key in the calls below; never 0. */
uint64_t spill_short_key(const char *scope, const spill_value_t *owner);

/* The owner's array was unmanaged and short: so many pushes may follow without conditions. */
void spill_short_note(spill_managed_owners_t *owners, uint64_t key, int64_t pushes);
void spill_short_forget(spill_managed_owners_t *owners, uint64_t key);

/* Take one of these pushes. False: none is left. */
bool spill_short_take(spill_managed_owners_t *owners, uint64_t key);

#endif
