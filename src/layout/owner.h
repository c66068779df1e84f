/*
 * One owner of one array, as the protocols see it: makes requests for its documents, carries them
 * out, and paces the tries that follow a lost race.
 */
#ifndef SPILL_LAYOUT_OWNER_H
#define SPILL_LAYOUT_OWNER_H

#include "store/store.h"

#include <spillway/array.h>

#include <pthread.h>

/*
 * The document that was the tail of a keep-oldest array when this client last saw it. It may be out
 * of date: each append that uses it checks the document.
 */
#define SPILL_TAIL_SLOTS 256

typedef struct spill_tail {
    bool known;
    uint64_t owner_hash;
    int64_t incarnation; /* of the page; 0 if the tail is the head */
    int64_t page;        /* a page number, or SPILL_HEAD */
} spill_tail_t;

struct spill_append_combiner;
typedef struct spill_others spill_others_t;     /* core/others.c */
typedef struct spill_adoption spill_adoption_t; /* layout/adoption.h */

struct spill_array {
    spill_store_t *store;
    struct spill_append_combiner *combiner; /* NULL: threads do not combine their appends */
    spill_others_t *others;                 /* NULL in arrays that no caller has opened */
    spill_adoption_t *adoption;             /* the same */
    spill_definition_t definition;
    bool retains; /* appends delete old elements; false while elements are copied to it */
    /*
     * The elements are another program's, which may have strings that are not UTF-8: they are kept
     * as they are. Otherwise appends and edits refuse such strings.
     */
    bool keeps_any_text;
    bool building;       /* changes are refused: see core/array.h */
    bool documents_stay; /* a drop leaves the heads' documents, which the application owns */
    spill_binding_t binding;
    pthread_mutex_t tails_lock;
    spill_tail_t tails[SPILL_TAIL_SLOTS];
};

/* One owner during one public call. It is on the caller's stack. */
typedef struct spill_owner {
    spill_array_t *array;
    const spill_value_t *value;
    spill_buffer_t key;
    bool walked; /* one of the owners that a walk lists: its documents may be read ahead */
    bool grew;   /* layout bucket: an append has created the window or a part of it */
    /* Set by an append: the elements that the definition does not keep may be deleted now. */
    bool retain_is_due;
} spill_owner_t;

/* Initialize *owner, and check its type. Release it also after an error. */
spill_code_t spill_owner_init(spill_owner_t *owner, spill_array_t *array,
                              const spill_value_t *value, spill_error_t *error);
void spill_owner_release(spill_owner_t *owner);

/* Make a request for one of the owner's documents. All other fields are zero. */
spill_request_t spill_owner_request(const spill_owner_t *owner, spill_request_kind_t kind,
                                    int64_t page);

/* Send the request to the store. The message of an error names the owner and the document. */
spill_code_t spill_owner_call(const spill_owner_t *owner, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error);

/* Send several requests for the owner's pages (spill_store_call_all). */
spill_code_t spill_owner_call_all(const spill_owner_t *owner, const spill_request_t *requests,
                                  size_t count, spill_response_t *responses, spill_error_t *error);

/*
 * Send the request to the store, and return only its outcome. *done (may be NULL): the guard held.
 * It is false after an error.
 */
spill_code_t spill_owner_step(const spill_owner_t *owner, const spill_request_t *request,
                              bool *done, spill_error_t *error);

/* READ only a document's state. If it is absent, response->state.present is false. */
spill_code_t spill_owner_read_state(const spill_owner_t *owner, int64_t page,
                                    spill_response_t *response, spill_error_t *error);

/*
 * Make a READ of a head, or of an unmanaged array with its first `limit` elements
 * (spill_read_t.unmanaged). If there is no head, response->state.present is false.
 */
spill_request_t spill_owner_unmanaged_request(const spill_owner_t *owner, int64_t limit);

/* READ a page with all its elements. If it is absent, response->state.present is false. */
spill_request_t spill_owner_whole_request(const spill_owner_t *owner, int64_t page);
spill_code_t spill_owner_read_whole(const spill_owner_t *owner, int64_t page,
                                    spill_response_t *response, spill_error_t *error);

/* Put "owner ... of 'NAME': " before the message of *error. Return `code`. */
spill_code_t spill_owner_name(const spill_owner_t *owner, spill_code_t code, spill_error_t *error);

/* SPILL_NOT_FOUND: there is no such owner. */
spill_code_t spill_owner_absent(const spill_owner_t *owner, spill_error_t *error);

/* SPILL_CORRUPT: a page that the head counts is missing. */
spill_code_t spill_owner_missing_page(const spill_owner_t *owner, int64_t page,
                                      spill_error_t *error);

/*
 * For a walk over pages in the order of their numbers. `missing` is the number of missing pages in
 * a row, of which `page` is the last. SPILL_CORRUPT if 100 are missing and the head still counts
 * them: a damaged count could make the walk endless. Cost: one read for each 100 missing pages.
 */
spill_code_t spill_owner_check_missing(const spill_owner_t *owner, const spill_state_t *head,
                                       int64_t page, int64_t missing, spill_error_t *error);

/* A page is missing: SPILL_CORRUPT if the head still counts it. Cost: one read. */
spill_code_t spill_owner_check_counted(const spill_owner_t *owner, const spill_state_t *head,
                                       int64_t page, spill_error_t *error);

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

/* SPILL_CONFLICT: the lease of a page (state.h) has not ended. `lease` is its end. */
spill_code_t spill_owner_leased(const spill_owner_t *owner, int64_t lease, spill_error_t *error);

/* The time in microseconds, which is the incarnation of a head that is created now. */
int64_t spill_owner_now(const spill_owner_t *owner);

/*
 * Call it between two tries; *tries begins at 0. It pauses, from not at all to 10 ms, longer each
 * time. SPILL_CONFLICT: there were SPILL_TRIES_MAX tries.
 */
#define SPILL_TRIES_MAX 2000
spill_code_t spill_owner_again(const spill_owner_t *owner, int *tries, spill_error_t *error);

/*
 * Get, set and forget the owner's tail (spill_tail_t). recall returns false if it is not known. Any
 * thread may call them.
 */
bool spill_tail_recall(const spill_owner_t *owner, spill_tail_t *tail);
void spill_tail_remember(const spill_owner_t *owner, int64_t incarnation, int64_t page);
void spill_tail_forget(const spill_owner_t *owner);

#endif
