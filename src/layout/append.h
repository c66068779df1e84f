/* What appends of all layouts share: a part, its request, and what follows a refusal. */
#ifndef SPILL_LAYOUT_APPEND_H
#define SPILL_LAYOUT_APPEND_H

#include "layout/owner.h"
#include "store/transition.h"

/* One atomic append: a whole batch, or one part of a batch that is larger than a page. */
typedef struct spill_part {
    const spill_value_t *elements;
    size_t count;
    int64_t bytes;       /* sum of the elements' sizes */
    int64_t skip;        /* top-N capped: spill_request.append.skip; count may then be 0 */
    const int64_t *seqs; /* spill_request.append.seqs, with `end`; or NULL */
    int64_t end;
    const spill_op_t *op; /* or NULL */
    const bson_t *update; /* or NULL */
    /* To a head that keeps the newest (spill_append_options_t); or NULL. */
    const spill_session_op_t *session;
    const bson_t *match;
    /* An array that keeps each id once: the guard, and a hash of each element's id; or NULL. */
    const spill_searched_t *searched;
    const uint64_t *ids;
    /*
     * Keep oldest: if the tail has room for the first elements only, append these. result->count is
     * their number, and the caller appends the rest.
     */
    bool fill;
    /* Several parts as one (spill_request.append.members). If that fails, the result's count is 0.
     */
    const spill_member_t *members;
    size_t member_count;
} spill_part_t;

/* The size of a document that holds only these elements and a full window of operations. */
int64_t spill_part_bytes_alone(const spill_owner_t *owner, bool head, int64_t count, int64_t bytes);

/*
 * May `count` elements be one part? Layouts without pages: always. With pages they must fit a page.
 * If appends go to the head, they must also fit half a head, because other fields need room.
 */
bool spill_part_fits(const spill_owner_t *owner, int64_t count, int64_t bytes);

/* Make the request that appends a part to a document within the definition's bounds. */
spill_request_t spill_append_request(const spill_owner_t *owner, int64_t page,
                                     const spill_part_t *part);

/*
 * After a store refused an append: read the document again into `response` and return the reason.
 * With REPEATED *result is filled. STALE, and REPEATED with another batch size, are errors.
 */
spill_code_t spill_append_classify_refusal(const spill_owner_t *owner,
                                           const spill_request_t *append,
                                           spill_response_t *response, spill_refusal_t *refusal,
                                           spill_append_result_t *result, spill_error_t *error);

/* Most bytes that the part adds to a head besides its elements. */
int64_t spill_part_growth(const spill_part_t *part);

/* The error of a refusal TOO_OLD, NO_MATCH or SESSIONS, with its reason. */
spill_code_t spill_refuse(const spill_owner_t *owner, spill_refusal_t refusal,
                          spill_error_t *error);

/*
 * Remove the sessions' entries that are older than the operation's horizon. If that fails, the next
 * call removes them.
 */
void spill_forget_sessions(const spill_owner_t *owner, const spill_session_op_t *session);

/* Fill the result of an append that was DONE. */
void spill_append_done(const spill_part_t *part, const spill_response_t *response,
                       spill_append_result_t *result);

/* What an append to the head does in a layout. */
typedef struct spill_head_append {
    spill_request_t (*request)(const spill_owner_t *owner, const spill_part_t *part);
    /* After an append was acknowledged; `head` is the store's answer. May be NULL. */
    void (*done)(spill_owner_t *owner, const spill_request_t *append, spill_response_t *head);
    /* `head` shows no room: make room, or return the error. */
    spill_code_t (*full)(spill_owner_t *owner, const spill_part_t *part, spill_response_t *head,
                         spill_error_t *error);
} spill_head_append_t;

/*
 * Append a part to the head. Repeat it until it succeeds, or an earlier try is known to have
 * succeeded, or an error is final.
 */
spill_code_t spill_append_to_head(spill_owner_t *owner, const spill_part_t *part,
                                  const spill_head_append_t *steps, spill_append_result_t *result,
                                  spill_error_t *error);

/* The size of a head with these elements and with one more operation. */
int64_t spill_append_head_bytes(const spill_owner_t *owner, const spill_state_t *head, int64_t live,
                                int64_t live_bytes);

/* SPILL_TOO_BIG if the head's other fields leave no room for the part, even in an empty array. */
spill_code_t spill_append_check_head(const spill_owner_t *owner, const spill_part_t *part,
                                     const spill_state_t *head, spill_error_t *error);

#endif
