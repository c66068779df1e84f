/*
 * Hints for the engine's memtable. A hint is the place of an earlier record. From it, the engine
 * finds the place of a record nearby with a few comparisons instead of a search.
 *
 * An append puts a new version of the owner's head before the last version, and an element before
 * the owner's newest element. Both places are those of the owner's last append. The engine keeps a
 * hint for each name that it gets for a key. insert_hints.c chooses the keys and their hints,
 * engine_hints.cpp passes them to the engine. A wrong hint costs time, and does no other harm.
 */
#ifndef SPILL_STORE_EMBEDDED_INSERT_HINTS_H
#define SPILL_STORE_EMBEDDED_INSERT_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The number of hints. Heads have one half, elements the other; owners share them by hash. A hint
 * takes about 300 bytes of each memtable.
 */
#define SPILL_INSERT_HINTS 128
#define SPILL_INSERT_HINT_NONE SPILL_INSERT_HINTS

/* For the thread that opens the engine, then for the only thread that writes. All zero: off. */
typedef struct spill_insert_hints {
    bool on;
    uint32_t owners[SPILL_INSERT_HINTS]; /* hash of the last owner; 0: none */
} spill_insert_hints_t;

/*
 * Switch hints on or off for the next batch. Switch them off for a sorted one: the engine finds
 * each place from the one before.
 */
void spill_insert_hints_set(spill_insert_hints_t *hints, bool on);

/*
 * The hint for a key that the engine inserts next, or SPILL_INSERT_HINT_NONE. A key gets its hint
 * only if the last record with this hint had the same owner: the hint of another owner costs more
 * than a search. O(size of the key).
 */
size_t spill_insert_hints_find(spill_insert_hints_t *hints, const uint8_t *key, size_t key_bytes);

#endif
