/*
 * Count what the schedules reached: each request, done or refused and why; each kind of fault; and
 * the important events of the protocols. A run that never reached an event proves little about it,
 * so the runner then fails.
 */
#ifndef SIM_COVERAGE_H
#define SIM_COVERAGE_H

#include "store/transition.h"

#include <stdint.h>
#include <stdio.h>

/* X(name, text): requests that were carried out, or why they were refused. */
#define SIM_REQUEST_EVENTS(X)                                                                      \
    X(READ_DONE, "READ done")                                                                      \
    X(READ_ABSENT, "READ of an absent document")                                                   \
    X(APPEND_DONE_HEAD, "APPEND done in a head")                                                   \
    X(APPEND_DONE_PAGE, "APPEND done in a page")                                                   \
    X(APPEND_CREATED, "APPEND created the head")                                                   \
    X(APPEND_REPEATED, "APPEND refused: operation seen")                                           \
    X(APPEND_STALE, "APPEND refused: older than the operation window")                             \
    X(APPEND_TOO_OLD, "APPEND refused: the session has made a later transaction")                  \
    X(APPEND_NO_MATCH, "APPEND refused: the head does not match")                                  \
    X(APPEND_SESSIONS, "APPEND refused: too many sessions")                                        \
    X(APPEND_SEARCH, "APPEND refused: search the ids again")                                       \
    X(APPEND_SEALED, "APPEND refused: sealed")                                                     \
    X(APPEND_FULL, "APPEND refused: full")                                                         \
    X(APPEND_ABSENT, "APPEND refused: absent, or another epoch")                                   \
    X(PUT_PAGE_DONE, "PUT_PAGE done: absent")                                                      \
    X(PUT_PAGE_REPLACED, "PUT_PAGE done: over an older copy")                                      \
    X(PUT_PAGE_INCARNATION, "PUT_PAGE done: over a page of an earlier owner")                      \
    X(PUT_PAGE_SAME, "PUT_PAGE refused: a copy of the same rev")                                   \
    X(PUT_PAGE_NEWER, "PUT_PAGE refused: a newer copy")                                            \
    X(CUT_DONE, "CUT done")                                                                        \
    X(CUT_PAGES, "CUT refused: pages")                                                             \
    X(CUT_REV, "CUT refused: rev")                                                                 \
    X(CUT_INCARNATION, "CUT refused: epoch, or absent")                                            \
    X(SEAL_DONE_HEAD, "SEAL done on a head")                                                       \
    X(SEAL_DONE_PAGE, "SEAL done on a page")                                                       \
    X(SEAL_CLOSED, "SEAL done: closed")                                                            \
    X(SEAL_SEALED, "SEAL refused: sealed")                                                         \
    X(SEAL_INCARNATION, "SEAL refused: epoch, or absent")                                          \
    X(ADVANCE_DONE, "ADVANCE done")                                                                \
    X(ADVANCE_BEHIND, "ADVANCE done without effect")                                               \
    X(ADVANCE_INCARNATION, "ADVANCE refused: epoch, or absent")                                    \
    X(CREATE_PAGE_DONE, "CREATE_PAGE done: absent")                                                \
    X(CREATE_PAGE_INCARNATION, "CREATE_PAGE done: over a page of an earlier owner")                \
    X(CREATE_PAGE_PRESENT, "CREATE_PAGE refused: present")                                         \
    X(EDIT_DONE_HEAD, "EDIT done in a head")                                                       \
    X(EDIT_DONE_PAGE, "EDIT done in a page")                                                       \
    X(EDIT_REV, "EDIT refused: rev, or absent")                                                    \
    X(EDIT_FULL, "EDIT refused: no room")                                                          \
    X(REMOVE_DONE, "REMOVE done")                                                                  \
    X(REMOVE_REV, "REMOVE refused: rev, or absent")                                                \
    X(PREPARE_DONE, "PREPARE done")                                                                \
    X(PREPARE_REV, "PREPARE refused: rev, or absent")                                              \
    X(DELETE_DONE, "DELETE done")                                                                  \
    X(DELETE_GONE, "DELETE refused: already deleted")                                              \
    X(DELETE_INCARNATION, "DELETE refused: epoch, or absent")                                      \
    X(COMPLETE_DONE, "COMPLETE done")                                                              \
    X(COMPLETE_REV, "COMPLETE refused: rev, or absent")                                            \
    X(TRIM_DONE, "TRIM done")                                                                      \
    X(TRIM_REV, "TRIM refused: rev, or absent")                                                    \
    X(RECOUNT_DONE, "RECOUNT done")                                                                \
    X(RECOUNT_REV, "RECOUNT refused: rev, end, or absent")                                         \
    X(EMPTY_PAGE_DONE, "EMPTY_PAGE done")                                                          \
    X(EMPTY_PAGE_REFUSED, "EMPTY_PAGE refused")                                                    \
    X(REWRITE_DONE, "REWRITE done")                                                                \
    X(REWRITE_SESSION, "REWRITE refused: its session")                                             \
    X(REWRITE_END, "REWRITE refused: an append came between")                                      \
    X(REWRITE_REV, "REWRITE refused: rev")                                                         \
    X(FORGET_DONE, "FORGET done")                                                                  \
    X(FORGET_ABSENT, "FORGET refused: absent")                                                     \
    X(UPDATE_FIELDS_REFUSED, "UPDATE_FIELDS refused")                                              \
    X(UPDATE_FIELDS_DONE, "UPDATE_FIELDS done")                                                    \
    X(UPDATE_FIELDS_CREATED, "UPDATE_FIELDS created the head")                                     \
    X(DROP_HEAD_DONE, "DROP_HEAD done")                                                            \
    X(DROP_HEAD_PAGES, "DROP_HEAD refused: pages")                                                 \
    X(DROP_HEAD_INCARNATION, "DROP_HEAD refused: epoch, or absent")                                \
    X(DROP_PAGE_DONE, "DROP_PAGE done")                                                            \
    X(DROP_PAGE_REFUSED, "DROP_PAGE refused: absent, or a later owner's")

/* X(name, text): protocol events, as seen from outside. */
#define SIM_TURN_EVENTS(X)                                                                         \
    X(SPILL_DEFERRED, "an append left its spill to another thread")                                \
    X(SPILL_LATE, "a spill was made by another thread than its append's")                          \
    X(SPILL_BY_ANOTHER, "a page was put by one client and cut by another")                         \
    X(PAGE_ADOPTED, "a put was refused, yet its client cut the page")                              \
    X(INTENT_BY_ANOTHER, "a removal was finished by another client")                               \
    X(EDIT_REFERENCED, "a referenced element was edited")                                          \
    X(EDIT_BY_ANOTHER, "... and another client completed the edit")                                \
    X(EDIT_FORESTALLED, "... too late: another client had completed it as not made")               \
    X(TOP_READ, "the elements of a summary were read")                                             \
    X(TOP_REFILLED, "an element that left a summary was replaced by the next in rank")             \
    X(TOP_BY_JOURNAL, "... from the journal")                                                      \
    X(TOP_EDITED, "an edit was completed with its element in a summary")                           \
    X(SUMMARY_FIXED, "a corrupted summary was rebuilt")                                            \
    X(COUNTS_FIXED, "a wrong count was corrected")                                                 \
    X(TOP_PARTLY_SHOWN, "a summary could not hold all of its elements")                            \
    X(REPEAT_RECOGNIZED, "a retry returned the numbers of its first try")                          \
    X(REPEAT_BY_SUCCESSOR, "... to the client that replaced a crashed one")                        \
    X(LEFT_OUT, "a set left out elements that it had")                                             \
    X(RETRIED_ELSEWHERE, "a statement of a session was sent again through another client")         \
    X(SESSION_TOO_OLD, "... after a later transaction of its session")                             \
    X(SESSION_REFUSED, "... or was refused because of too many sessions")                          \
    X(SESSION_FORGOTTEN, "the entries of old sessions were removed")                               \
    X(RETRY_STALE, "a retry came too late: unknown")                                               \
    X(EARLY_SEAL, "a document was sealed before it was full")                                      \
    X(BATCH_ONE_STEP, "a batch was appended in one step")                                          \
    X(BATCH_SPLIT, "a batch was split")                                                            \
    X(BATCH_FILLS, "a batch that fits a page was split to fill a document")                        \
    X(OVERSIZE_ALONE, "an element over the byte bound has its own document")                       \
    X(BYTES_FULL, "a document was full by bytes before it was full by slots")                      \
    X(OWNER_AGAIN, "an owner was created again after it was dropped")                              \
    X(DROP_FINISHED, "a drop finished a drop of a crashed client")                                 \
    X(HEAD_ENDED, "a head was ended by a statement of the gateway")                                \
    X(HEAD_ENDED_NOT, "... not: it had changed, or was absent")                                    \
    X(HEAD_DELETED, "another program deleted a head")                                              \
    X(EXPORT_WITHOUT_HEAD, "an export reported pages without a head")                              \
    X(ALL_DROPPED, "the collection was dropped by a command of the gateway")                       \
    X(ALL_REFUSED, "... not: the server refused it")                                               \
    X(ALL_DELETED, "another program dropped the collection")                                       \
    X(NOTE_LEFT, "a note was left of a head that a client has ended")                              \
    X(NOTE_FINISHED, "... and repair has finished")                                                \
    X(PAGES_STAY, "repair left the pages of a head that another program deleted")                  \
    X(REPAIRED, "repair finished operations of crashed clients")                                   \
    X(OTHER_BOUNDS, "a spill moved fewer or more elements than the bounds in force")               \
    X(UPDATE_WITH_APPEND, "an append updated other fields, too")                                   \
    X(READ_TWO_DOCUMENTS, "a read covered several documents")                                      \
    X(READ_AMID_CHANGE, "... while elements were edited or removed")                               \
    X(ID_FOUND, "an element was found by its id")                                                  \
    X(ID_IN_PAGE, "... after a search of two documents")                                           \
    X(ID_ABSENT, "no element with an id was found")                                                \
    X(REMOVED_WHERE, "elements were removed by a filter")                                          \
    X(TRIMMED_TO_COUNT, "an owner was trimmed to a number of elements")                            \
    X(TRIMMED_TO_TIME, "... to a time")                                                            \
    X(RETAINED, "... by an append, to what the definition keeps")                                  \
    X(RETAINED_YOUNG, "... to the age that the definition keeps")                                  \
    X(WINDOWS_REMOVED, "an element was removed by its id from one of two windows")                 \
    X(WINDOWS_REMOVED_LATER, "... in the second one")                                              \
    X(WINDOWS_TRIMMED, "an owner's windows were trimmed to a number of elements")                  \
    X(WINDOWS_TRIMMED_WITHIN, "... within one")                                                    \
    X(WINDOWS_DROPPED, "an owner's windows were dropped before a given one")                       \
    X(WINDOWS_DROPPED_BOTH, "... or all")                                                          \
    X(TRIMMED_PAGE_PUT, "a late put restored a trimmed page")                                      \
    X(CAPPED, "an append dropped the oldest elements of a capped head")                            \
    X(CAPPED_BY_BYTES, "... to fit it in bytes")                                                   \
    X(CAPPED_WITHIN_BATCH, "... and the first elements of its own batch, larger than the cap")     \
    X(CAPPED_GONE, "... past removed numbers")                                                     \
    X(TOP_N, "an append dropped the lowest element of a capped head")                              \
    X(TOP_N_BETWEEN, "... between others")                                                         \
    X(TOP_N_NOT_KEPT, "... which it had just appended")                                            \
    X(TOP_N_BY_BYTES, "... to fit it in bytes")                                                    \
    X(TOP_N_EDITED, "... which an edit had changed")                                               \
    X(SKIPPED, "an append skipped numbers before its elements")                                    \
    X(PAUSED, "a client paused between tries")                                                     \
    X(DEFINED_AGAIN, "bounds were changed while clients ran")

/* X(name, text): faults of the network and of clients. */
#define SIM_FAULT_EVENTS(X)                                                                        \
    X(CRASH_BEFORE, "client crashed before its request was carried out")                           \
    X(CRASH_AFTER, "client crashed after its request was carried out")                             \
    X(CRASH_IN_FLIGHT, "client crashed, its request was carried out later")                        \
    X(LOST_APPLIED, "answer lost, request carried out")                                            \
    X(LOST_REQUEST, "request lost")                                                                \
    X(LOST_LATER, "answer lost, request carried out later")                                        \
    X(DUPLICATE, "request carried out, and delivered again later")                                 \
    X(FAILED, "request failed for certain")                                                        \
    X(LATE_DONE, "late delivery took effect")                                                      \
    X(LATE_REFUSED, "late delivery was refused")                                                   \
    X(MACHINE_CRASH, "machine crashed: all clients, and what was not synced")

typedef enum sim_event {
#define SIM_EVENT_ENUM(name, text) SIM_##name,
    SIM_REQUEST_EVENTS(SIM_EVENT_ENUM) SIM_TURN_EVENTS(SIM_EVENT_ENUM)
        SIM_FAULT_EVENTS(SIM_EVENT_ENUM)
#undef SIM_EVENT_ENUM
            SIM_EVENT_COUNT
} sim_event_t;

typedef struct sim_coverage {
    int64_t schedules;
    int64_t calls;
    int64_t seen[SIM_EVENT_COUNT];
} sim_coverage_t;

const char *sim_event_text(sim_event_t event);

/*
 * Return the event for the answer to a request. `before` is the document's state just before the
 * request was carried out.
 */
sim_event_t sim_request_event(const spill_request_t *request, const spill_state_t *before,
                              const spill_seen_t *seen, bool done);

/* Print all counters. Return how many of the events selected by `expected` have the count zero. */
int sim_coverage_report(const sim_coverage_t *coverage, bool (*expected)(sim_event_t event),
                        FILE *file);

#endif
