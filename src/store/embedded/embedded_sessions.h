/*
 * The sessions of an owner, as records: one for each session, and one with their number.
 * docs/internals/format.md has their form.
 */
#ifndef SPILL_STORE_EMBEDDED_EMBEDDED_SESSIONS_H
#define SPILL_STORE_EMBEDDED_EMBEDDED_SESSIONS_H

#include "store/embedded/embedded.h"
#include "store/transition.h"

/* The entries that a request puts, and the number of the owner's entries after it. */
typedef struct spill_session_puts {
    spill_sessions_t entries;
    int64_t number;
    bool grew;
} spill_session_puts_t;

/*
 * Judge the request's operations of sessions: set *verdict and, if all of them are NEW, collect the
 * entries to put. `key` is of the owner; its suffix changes.
 */
spill_code_t spill_embedded_see_sessions(spill_embedded_t *store, const spill_request_t *request,
                                         int64_t incarnation, spill_record_key_t *key,
                                         const spill_batch_t *batch, spill_session_puts_t *puts,
                                         spill_session_verdict_t *verdict, spill_error_t *error);

/* Write what see_sessions has collected. */
void spill_embedded_put_sessions(const spill_session_puts_t *puts, int64_t incarnation,
                                 spill_record_key_t *key, spill_batch_t *batch);

/* FORGET: delete the records that are older than the horizon. */
spill_code_t spill_embedded_forget_sessions(spill_embedded_t *store, const spill_request_t *request,
                                            int64_t incarnation, int64_t now_us,
                                            spill_record_key_t *key, spill_batch_t *batch,
                                            spill_error_t *error);

/* Delete all records of the incarnation's sessions. */
spill_code_t spill_embedded_drop_sessions(spill_embedded_t *store, const spill_request_t *request,
                                          int64_t incarnation, spill_record_key_t *key,
                                          spill_batch_t *batch, spill_error_t *error);

/* READ with a session: judge its operation. */
spill_code_t spill_embedded_read_session(spill_embedded_t *store, const spill_request_t *read,
                                         spill_record_key_t *key, spill_response_t *response,
                                         spill_error_t *error);

#endif
