/*
 * Small stores, one for each layout. A caller changes what is stored, and then runs every operation
 * of the library on the store. An embedded store is a list of records; a store on a server is
 * opened by the caller. Tests and fuzzers share this, so it needs no test framework: a broken rule
 * ends the program with a message.
 */
#ifndef TESTS_SUPPORT_EXERCISE_H
#define TESTS_SUPPORT_EXERCISE_H

#include "support/disk.h"

#include <spillway/spillway.h>

/* One record. The bytes belong to the list. */
typedef struct exercise_record {
    uint8_t *key;
    size_t key_bytes;
    uint8_t *value;
    size_t value_bytes;
} exercise_record_t;

/* The records of a closed store, in the order of their keys. */
typedef struct exercise_store {
    const char *layout; /* for messages */
    exercise_record_t *records;
    size_t count;
} exercise_store_t;

/* How many layouts exercise_store_make knows: pass 0 to EXERCISE_LAYOUTS - 1. */
#define EXERCISE_LAYOUTS 7

/*
 * Fill an open, empty store as that layout: definition "feed", as below. The time of the store must
 * be exercise_clock.
 */
void exercise_store_fill(spill_store_t *store, int layout);
const char *exercise_layout_name(int layout);

/* A clock that moves on with each question. Pauses take no time. */
spill_clock_t exercise_clock(void);

/*
 * Write an embedded store of that layout: definition "feed", owners "ada" and "bob", elements with
 * ids in heads and pages, operations, a removal, other fields, and the checkpoints of an import, a
 * conversion and a migration. Release it with exercise_store_release.
 */
void exercise_store_make(exercise_store_t *store, int layout);
void exercise_store_release(exercise_store_t *store);

/*
 * The kind of a record: the kind byte of an owner's record, or another number for each kind of
 * system record and for other fields.
 */
int exercise_kind_of(const exercise_record_t *record);

/* Is it the first record of its kind? One element, page or operation stands for all of them. */
bool exercise_is_new_kind(const exercise_store_t *store, size_t index);

/* A disk with these records. Free it with disk_free. */
disk_t *exercise_disk(const exercise_store_t *store);

/* Write or delete one record behind the back of any store on the disk. */
void exercise_put(disk_t *disk, const uint8_t *key, size_t key_bytes, const uint8_t *value,
                  size_t value_bytes);
void exercise_delete(disk_t *disk, const uint8_t *key, size_t key_bytes);

/* The operations, in groups that each begin with the store as it was damaged. */
typedef enum exercise_group {
    EXERCISE_READ,   /* reads and verify, also read-only; changes nothing */
    EXERCISE_CHANGE, /* append, edit, remove, update, trim, then verify */
    EXERCISE_REPAIR, /* repair, verify, append, remove */
    EXERCISE_DROP,   /* drop the owner, drop the definition, define it again */
    EXERCISE_UNDO,   /* sweep, measure an undo, undo */
    EXERCISE_GROUPS
} exercise_group_t;

/* What a group of operations met. */
typedef struct exercise_result {
    int64_t operations;
    int64_t failed;    /* operations that returned an error */
    int64_t corrupt;   /* operations that returned SPILL_CORRUPT */
    int64_t unnoticed; /* EXERCISE_READ: reads with SPILL_CORRUPT though verify finds nothing */
    int64_t conflicts; /* operations that lost a race, although no other client writes */
    int64_t findings;  /* of verify */
    int64_t elements;  /* EXERCISE_READ: that the export has; -1: it failed */
    int64_t left;      /* EXERCISE_REPAIR: findings that the first repair leaves; -1: it failed */
    int64_t unfixed;   /* EXERCISE_REPAIR: findings of verify after that; -1: it failed */
    bool opened;       /* the array could be opened */
    bool verified;     /* each verify could read the array to its end */
    int64_t calls;     /* store operations */
} exercise_result_t;

/* Opens the store that was damaged. NULL with an error: it does not open. */
typedef struct exercise_opener {
    spill_store_t *(*open)(void *context, bool read_only, spill_error_t *error);
    void *context;
    const char *place; /* that a message about damage may name */
} exercise_opener_t;

/*
 * Open a store and run one group. Ends the program if an operation returns an error without a
 * message, SPILL_CORRUPT without a place, or a malformed element.
 */
void exercise_run_on(const exercise_opener_t *opener, exercise_group_t group,
                     exercise_result_t *result);

/*
 * Open a store on the disk and run one group. Ends the program if an operation returns an error
 * without a message, SPILL_CORRUPT without a place, or a malformed element.
 */
void exercise_run(disk_t *disk, exercise_group_t group, exercise_result_t *result);

#endif
