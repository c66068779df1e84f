/*
 * One owner of one array, as the protocols see it: makes requests for its documents, carries them
 * out, and paces the tries that follow a lost race.
 */
#ifndef SPILL_LAYOUT_OWNER_H
#define SPILL_LAYOUT_OWNER_H

#include "store/store.h"

#include <spillway/array.h>

#include <pthread.h>

/* Where a keep-oldest array's tail was seen last: a hint, checked by every append that uses it. */
#define SPILL_TAIL_SLOTS 256

typedef struct spill_tail {
    bool known;
    uint64_t owner_hash;
    int64_t incarnation; /* of a page; 0: of a head it does not matter */
    int64_t page;        /* a page number, or SPILL_HEAD */
} spill_tail_t;

struct spill_combine; /* layout.c */

struct spill_array {
    spill_store_t *store;
    struct spill_combine *combine; /* NULL: appends go one by one */
    spill_definition_t definition;
    bool retains;        /* by what the definition keeps; false while elements are copied to it */
    bool building;       /* changes are refused: see core/array.h */
    bool documents_stay; /* of owners that are dropped: they are the application's */
    spill_binding_t binding;
    pthread_mutex_t tails_lock;
    spill_tail_t tails[SPILL_TAIL_SLOTS];
};

/* Lives on the caller's stack for the length of one public call. */
typedef struct spill_owner {
    spill_array_t *array;
    const spill_value_t *value;
    spill_buffer_t key;
    bool grew; /* layout bucket: an append has made the window or a part of it */
    /* Set by an append: the elements that the definition does not keep may be deleted now. */
    bool retain_is_due;
} spill_owner_t;

/* Checks the owner's type. Release in every case. */
spill_code_t spill_owner_init(spill_owner_t *owner, spill_array_t *array,
                              const spill_value_t *value, spill_error_t *error);
void spill_owner_release(spill_owner_t *owner);

/* A request for one of the owner's documents, everything else zero. */
spill_request_t spill_owner_request(const spill_owner_t *owner, spill_request_kind_t kind,
                                    int64_t page);

/* Carry it out. An error's message is made to name the owner and the document. */
spill_code_t spill_owner_call(const spill_owner_t *owner, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error);

/* The same of several requests for the owner's pages (spill_store_call_all). */
spill_code_t spill_owner_call_all(const spill_owner_t *owner, const spill_request_t *requests,
                                  size_t count, spill_response_t *responses, spill_error_t *error);

/*
 * The same where nothing but the outcome matters: *done (may be NULL) tells whether the guard held;
 * false after an error.
 */
spill_code_t spill_owner_step(const spill_owner_t *owner, const spill_request_t *request,
                              bool *done, spill_error_t *error);

/* READ of a document's state alone. Absent: SPILL_OK with response->state.present == false. */
spill_code_t spill_owner_read_state(const spill_owner_t *owner, int64_t page,
                                    spill_response_t *response, spill_error_t *error);

/*
 * READ of a head, or of the array of others in its place (spill_request_t.unmanaged) with its first
 * `limit` elements. Absent: as above, whatever others have there.
 */
spill_request_t spill_owner_unmanaged_request(const spill_owner_t *owner, int64_t limit);

/* READ of a page with all of its elements. Absent: as above. */
spill_request_t spill_owner_whole_request(const spill_owner_t *owner, int64_t page);
spill_code_t spill_owner_read_whole(const spill_owner_t *owner, int64_t page,
                                    spill_response_t *response, spill_error_t *error);

/* Put "owner ... of 'NAME': " before the message that is there. Returns `code`. */
spill_code_t spill_owner_name(const spill_owner_t *owner, spill_code_t code, spill_error_t *error);

/* SPILL_NOT_FOUND: there is no such owner. */
spill_code_t spill_owner_absent(const spill_owner_t *owner, spill_error_t *error);

/* SPILL_CORRUPT: a page that the head speaks of is not there. */
spill_code_t spill_owner_missing_page(const spill_owner_t *owner, int64_t page,
                                      spill_error_t *error);

/*
 * In a walk over pages by their numbers, from the one with the lowest number that counts: `missing`
 * says how many pages in a row were not there, up to `page`. SPILL_CORRUPT if there are 1000, and
 * the head still counts them: a damaged count could make the walk endless. Cost: one read for each
 * 1000 missing pages.
 */
spill_code_t spill_owner_check_missing(const spill_owner_t *owner, const spill_state_t *head,
                                       int64_t page, int64_t missing, spill_error_t *error);

/*
 * A trim or a drop deletes pages. A PUT_PAGE that another client began before the page's cut may
 * arrive afterwards, and restore an older copy of the page. So after a read of pages that `head`
 * counts, read the head again, into *now: *still says that the array has the elements from number
 * `from` on, as at `head`. With keep oldest pages are never deleted, and *now is not read. Cost:
 * one store operation.
 */
spill_code_t spill_owner_still_has(const spill_owner_t *owner, const spill_state_t *head,
                                   int64_t from, spill_response_t *now, bool *still,
                                   spill_error_t *error);

/* SPILL_CONFLICT: a page's lease (state.h) runs until then, and it is in the way. */
spill_code_t spill_owner_leased(const spill_owner_t *owner, int64_t lease, spill_error_t *error);

/* Now, in microseconds: the incarnation of a head made now. */
int64_t spill_owner_now(const spill_owner_t *owner);

/*
 * Between two tries: count, pause a little longer each time (nothing at first, 10 ms at most), and
 * give up with SPILL_CONFLICT after SPILL_TRIES_MAX. Start `tries` at 0.
 */
#define SPILL_TRIES_MAX 2000
spill_code_t spill_owner_again(const spill_owner_t *owner, int *tries, spill_error_t *error);

/* Tail hints. Thread-safe. forget only if the hint is still that page. */
bool spill_tail_recall(const spill_owner_t *owner, spill_tail_t *tail);
void spill_tail_remember(const spill_owner_t *owner, int64_t incarnation, int64_t page);
void spill_tail_forget(const spill_owner_t *owner);

#endif
