/*
 * Owners of arrays that were managed when this process last saw them. A push to such an owner goes
 * to the library at once; a wrong guess costs a round trip and nothing else.
 *
 * The table is lossy: a newer owner replaces an older one in its slot.
 *
 * Threads: any.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_MANAGED_OWNERS_H
#define SPILL_GATEWAY_TRANSLATE_MANAGED_OWNERS_H

#include <spillway/value.h>

#include <stdatomic.h>
#include <stddef.h>

#define SPILL_MANAGED_OWNERS_MAX 16384

/* How long an owner has been managed before a numbered write may skip the unmanaged statement. */
#define SPILL_MANAGED_CERTAIN_SECONDS 120

/* Zeroed: no owner is known. */
typedef struct spill_managed_owners {
    atomic_uint_fast64_t slots[SPILL_MANAGED_OWNERS_MAX]; /* 40 bits of a hash, 24 of seconds */
    atomic_uint pushes[SPILL_MANAGED_OWNERS_MAX];         /* in progress, to owners of the slot */
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

#endif
