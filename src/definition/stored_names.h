/*
 * The names of the fields that Spillway stores in documents, besides those that a definition names.
 * They are part of the format: a change makes existing documents unreadable, so the names in the
 * code may be better than the stored ones. docs/reference/mongodb.md describes the fields for
 * users.
 *
 * Clients that append, change, spill or trim write them with the step that changes the value
 * (store/transition.c has the effects, store/render.c and store/mongo the documents). Other
 * programs only read them. tools/check_structure refuses these names as literals elsewhere in src/.
 */
#ifndef SPILL_DEFINITION_STORED_NAMES_H
#define SPILL_DEFINITION_STORED_NAMES_H

/*
 * The one field of a head or a page that has the bookkeeping. In a head it has a document for each
 * managed array, by the name of the array; in a page and in a bucket it has the fields themselves.
 */
#define SPILL_STORED_ROOT "spill"

/* ---- heads and pages --------------------------------------------------------------------------*/

/* When the head was created, in microseconds since 1970. Written once; pages have their head's. */
#define SPILL_STORED_INCARNATION "epoch"

/* Raised by each update that changes or moves existing elements; begins at the incarnation. */
#define SPILL_STORED_REV "rev"

/* The sequence number of the first slot. A cut raises it in a head; a page is put with it. */
#define SPILL_STORED_FIRST "first"

/* The deleted numbers among the slots, ascending. Written by removals, cuts and trims. */
#define SPILL_STORED_DELETED "gone"

/* The same as runs: a first number and a length each. Only in heads that keep the top N. */
#define SPILL_STORED_DELETED_RUNS "gaps"

/* How many appends with an operation id the document has had. Each of them raises it. */
#define SPILL_STORED_OP_COUNT "n"

/* The last operations, newest first. Each append adds an entry, or raises `after` of the first. */
#define SPILL_STORED_OPS "ops"
#define SPILL_STORED_OP_ID "id"          /* of an entry: the operation id; none without an id */
#define SPILL_STORED_OP_ELEMENTS "count" /* of an entry: how many elements it appended */
#define SPILL_STORED_OP_AFTER "after"    /* of an entry: how many came before the next entry */

/* Keep oldest, and a page that was given up: no more appends. Written when the tail is sealed. */
#define SPILL_STORED_SEALED "sealed"

/* A page of keep oldest while its owner is dropped; a leased copy that its writer gave up. */
#define SPILL_STORED_CLOSED "closed"

/* The size below which an append needs no closer check. Written by appends; see store/mongo. */
#define SPILL_STORED_OPEN "open"

/* Bucket: count, sum and extremes of one time window. Each change of the elements writes it. */
#define SPILL_STORED_WINDOW_STATS "tally"
#define SPILL_STORED_STATS_VALUES "values" /* of them: how many elements have a number */
#define SPILL_STORED_STATS_WHOLE                                                                   \
    "whole"                          /* of them: the exact sum; missing once a value is real       \
                                      */
#define SPILL_STORED_STATS_RUN "run" /* of them: the sum as a double */
#define SPILL_STORED_STATS_MIN "min" /* of them: the smallest value */
#define SPILL_STORED_STATS_MAX "max" /* of them: the largest value */

/* ---- heads ------------------------------------------------------------------------------------*/

/* The number of pages. The step that begins a page or cuts the head writes it. */
#define SPILL_STORED_PAGES "pages"

/* The trim watermark: the lowest number that was not trimmed. Trims raise it. */
#define SPILL_STORED_WATERMARK "low"

/* How many numbers from the watermark on are dead. Removals, cuts and trims write it. */
#define SPILL_STORED_REMOVED "removed"

/* Keep oldest: how many elements the sealed documents were given. Written when one is sealed. */
#define SPILL_STORED_TOTAL "total"

/* A removal in a page, or an edit of a referenced element, that is not complete yet. */
#define SPILL_STORED_INTENT "intent"
#define SPILL_STORED_INTENT_SEQ "seq"     /* of the intent: the number of the element */
#define SPILL_STORED_INTENT_PAGE "page"   /* of the intent: the number of the page */
#define SPILL_STORED_INTENT_VALUE "value" /* of the intent of an edit: the new share of the sum */

/* Sessions of the gateway that wrote lately, by session and user. Their appends write it. */
#define SPILL_STORED_SESSIONS "sessions"
#define SPILL_STORED_SESSION_TXN "txn"   /* of a session: the number of its last command */
#define SPILL_STORED_SESSION_AT "at"     /* of a session: when it wrote last, by the server */
#define SPILL_STORED_SESSION_DONE "done" /* of a session: the runs of applied statements */

/* The count field was there before the array was adopted. Written once; --undo reads it. */
#define SPILL_STORED_COUNTED "counted"

/* ---- pages ------------------------------------------------------------------------------------*/

/* The head's `rev` when the page was copied from it; in an intent, that of the edited element. */
#define SPILL_STORED_SOURCE_REV "src"

/* Until this time, in microseconds by the server's clock, a copy of a full document stays. */
#define SPILL_STORED_LEASE "lease"

/* ---- layouts reference and subset: heads ------------------------------------------------------*/

/* Elements that wait for a document of their own, oldest first. Appends write it. */
#define SPILL_STORED_JOURNAL "journal"

/* The sum of the values of all elements, for the average. Each change of the elements writes it. */
#define SPILL_STORED_SUM "sum"
#define SPILL_STORED_SUM_VALUES "values" /* of a sum: how many elements have a number */
#define SPILL_STORED_SUM_WHOLE "whole"   /* of a sum: the sum of the integers */
#define SPILL_STORED_SUM_HIGH "high"     /* of a sum: the sum of the others, rounded */
#define SPILL_STORED_SUM_LOW "low"       /* of a sum: what the rounding left over */

/* Subset: number, size and rank of the elements of the summary, the highest rank first. */
#define SPILL_STORED_TOP "top"
#define SPILL_STORED_TOP_SEQ "seq"   /* of an entry: the number of the element */
#define SPILL_STORED_TOP_SIZE "size" /* of an entry: the bytes of the element */
#define SPILL_STORED_TOP_RANK                                                                      \
    "key" /* of an entry: the rank; missing if it is no number or date                             \
           */

/* Subset: how many of them the summary shows. Written with SPILL_STORED_TOP. */
#define SPILL_STORED_SHOWN "shown"

/* ---- _id of a page ----------------------------------------------------------------------------*/

/* {owner, page}; with layout bucket {owner, window, part}, where page n is part n + 1. */
#define SPILL_STORED_ID_OWNER "owner"
#define SPILL_STORED_ID_PAGE "page"
#define SPILL_STORED_ID_WINDOW "window"
#define SPILL_STORED_ID_PART "part"

/* ---- drop notes -------------------------------------------------------------------------------*/

/* The note of an owner has the _id {drop, owner}, that of a whole collection {dropAll}. */
#define SPILL_STORED_NOTE_DROP "drop"
#define SPILL_STORED_NOTE_DROP_ALL "dropAll"

/* When the note of an owner was last written, by the server's clock. */
#define SPILL_STORED_NOTE_AT "at"

/* Incarnations up to this one have ended. A note also has SPILL_STORED_INCARNATION and ..._REV. */
#define SPILL_STORED_NOTE_ENDED "ended"

/* Attempts to drop the whole collection, by name. An attempt also has SPILL_STORED_INCARNATION. */
#define SPILL_STORED_NOTE_ANNOUNCED "announced"
#define SPILL_STORED_NOTE_COLLECTION "collection" /* of an attempt: the collection's UUID */
#define SPILL_STORED_NOTE_REFUSED "refused"       /* of an attempt: the collection stays */

/* ---- paths in a page --------------------------------------------------------------------------*/

/* Filters, sort orders and indexes of pages name these fields by their paths. */
#define SPILL_STORED_PAGE_FIRST SPILL_STORED_ROOT "." SPILL_STORED_FIRST
#define SPILL_STORED_PAGE_INCARNATION SPILL_STORED_ROOT "." SPILL_STORED_INCARNATION
#define SPILL_STORED_PAGE_SOURCE_REV SPILL_STORED_ROOT "." SPILL_STORED_SOURCE_REV
#define SPILL_STORED_PAGE_LEASE SPILL_STORED_ROOT "." SPILL_STORED_LEASE
#define SPILL_STORED_PAGE_OWNER "_id." SPILL_STORED_ID_OWNER
#define SPILL_STORED_PAGE_NUMBER "_id." SPILL_STORED_ID_PAGE
#define SPILL_STORED_PAGE_WINDOW "_id." SPILL_STORED_ID_WINDOW
#define SPILL_STORED_PAGE_PART "_id." SPILL_STORED_ID_PART

#endif
