/*
 * Requests to a store. One request is one atomic step on one document; every document database has
 * such steps. A store answers DONE, or REFUSED: the guard did not hold, and nothing changed.
 *
 * Guards and effects below name fields of spill_state_t. "Given" is the request's field of that
 * name, and "equal" means equal to it.
 *
 *   kind          document   guard                              effect
 *   READ          any        -                                  none; returns state and elements
 *   APPEND        head or    op not in the window; op_count <   push the elements; record op and
 *                 last page  base + op_window; not sealed;      raise op_count, if there is an op;
 *                            room; a page: incarnation equal;   a head: update its other fields
 *                            a head: present, or `create`
 *   ... capped    head       as APPEND, but room only for the   as well: drop the oldest slots
 *                            newest element                     until slots_max and bytes_max
 *                                                               hold; watermark = first
 *   ... top-N     head       as APPEND, but room only for the   as well: first pass over `skip`
 *                            largest element                    numbers; drop the lowest-ranked
 *                                                               elements instead, and add their
 *                                                               numbers to `deleted`. There may
 *                                                               be no element, only `skip`
 *   PUT_PAGE      page       absent, or (incarnation,           write the whole page; with a
 *                            source_rev) < given and no lease   given lease: source_rev =
 *                            runs; with a given lease: absent   incarnation
 *   CUT           head       incarnation, pages, rev equal;     drop `slots` slots; raise first
 *                            with a run: the slots hold it      and removed; pages + 1 +
 *                                                               more_pages; rev + 1
 *   SEAL          head or    incarnation equal; not sealed;     sealed; closed = `close`; rev + 1;
 *                 last page  a page: has slots, or `close`      a head: pages = 1, total = end
 *   ADVANCE       head       incarnation equal                  raise pages and total to given
 *   CREATE_PAGE   page       absent, or incarnation < given     write an empty page with first,
 *                                                               ops and op_count
 *   EDIT          any        rev equal; element present; room   replace the element; rev + 1
 *                            for its new size
 *   REMOVE        head       rev equal; element present         delete the element; add its number
 *                                                               to `deleted`; rev + 1
 *   PREPARE       head       rev equal; no intent               record the intent; a removal:
 *                                                               removed + 1; rev + 1
 *   DELETE        page       incarnation equal; element         delete the element; add its number
 *                            present                            to `deleted`; rev + 1
 *   COMPLETE      head       rev equal; the intent is this one  clear the intent; rev + 1
 *   TRIM          head       rev equal; no intent; watermark <  watermark and removed = given;
 *                            given; with `seq`: end = seq       drop the slots below watermark;
 *                                                               rev + 1
 *   RECOUNT       head       rev equal; no intent; referenced   replace sum and top by the given
 *                            elements: end = seq                ones; rewrite the counts; rev + 1
 *   ... `counts`  any        rev equal; no intent; `live`       recompute sizes and statistics
 *                            elements; a head that keeps the    from the elements; a head: set
 *                            oldest: pages equal                removed, pages and, if it keeps
 *                                                               the oldest, total; rev + 1
 *   ... `place`   any        as `counts`, but as many elements  as well: its numbers become
 *                            as numbers from `first` to `first  [first, first + slots); forget
 *                            + slots` are not deleted; end =    deleted numbers outside
 *                            seq; a store that keeps elements
 *                            by number: each is present
 *   ... `indexes` head       rev equal                          only rebuild the store's indexes
 *                                                               of the owner's elements and
 *                                                               pages; rev + 1
 *   EMPTY_PAGE    page       incarnation equal; no lease runs;  keep newest: delete the document;
 *                            keep oldest: sealed (the caller    keep oldest: drop all slots,
 *                            knows it is below the watermark)   first = end; rev + 1
 *   UPDATE_FIELDS head       present, or `create`; the          update the other fields
 *                            document stays within
 *                            SPILL_DOCUMENT_BYTES_MAX
 *   DROP_HEAD     head       incarnation, pages equal           remove array, counts, bookkeeping;
 *                                                               delete a document that has only
 *                                                               _id, unless `document_stays`
 *   DROP_PAGE     page       incarnation <= given; no lease     keep newest: delete the document;
 *                            runs                               keep oldest: make it a tombstone
 *                                                               (empty, sealed, closed)
 *   ADOPT         head       absent; an unmanaged array, not    manage the array as it is:
 *                            empty, is in its place. Without    first = 0
 *                            room for bookkeeping: error
 *                            SPILL_TOO_BIG, by the server's
 *                            limit or limits.bytes_max
 *   ADOPT_SPLIT   head       as ADOPT; the array begins with    manage the array without the run:
 *                            the run, and has more elements;    first = slots, pages = 1 +
 *                            the store's clock is before        more_pages, rev = incarnation + 1
 *                            `until`; no dropped head had a
 *                            rev >= incarnation
 *   UNMANAGE      head       incarnation, pages, rev equal; no  leave an unmanaged array: the run,
 *                            intent; the document stays within  then the head's elements; remove
 *                            SPILL_DOCUMENT_BYTES_MAX           counts and bookkeeping
 *
 * Referenced elements (layouts reference and subset): these arrays keep the newest. Each element
 * has a page of its own, whose number is the element's. So CUT and TRIM set `pages` to the head's
 * `first`. A leading run of deleted numbers stays in `deleted`. DELETE leaves a page without an
 * element. An edit in a page is a PREPARE (`edit`), a PUT_PAGE whose source_rev is the rev after
 * the PREPARE, and a COMPLETE. Each step that changes elements or records an intent also updates
 * the head's sum: it subtracts sum_removed and adds sum_added.
 *
 * Layout subset: the head's top also has the highest-ranked elements. APPEND adds its own elements
 * to the top. A step that removes an element from the top must carry the elements that rank next
 * among the element documents (`refill`); without them it is refused. The store adds the journal's
 * elements itself, at the moment of the step, because appends do not raise rev. An edit in a page
 * changes the top with its COMPLETE.
 *
 * RECOUNT of referenced elements replaces the sum (sum_added) and the top (`refill`; the elements
 * that can be shown are in refill_run). `seq` is the head's end: it shows that no append has come
 * since the caller counted.
 *
 * A page's lease runs until the time that it names, by the store's clock (now_us): on a server, the
 * server's clock. Pages have a lease if they are written before a head counts them: the ADOPT_SPLIT
 * that makes the head may arrive late.
 *
 * A store may refuse more, if no client that keeps to the protocols can notice. Examples are a
 * PUT_PAGE of a page that the head already counts, or of trimmed elements, and an EDIT or DELETE in
 * a page that the head does not count.
 *
 * src/store/transition.c has guards and effects for the stores that keep state themselves.
 */
#ifndef SPILL_STORE_REQUEST_H
#define SPILL_STORE_REQUEST_H

#include "store/limits.h"
#include "store/ops.h"
#include "store/run.h"
#include "store/state.h"
#include "util/buffer.h"

#include <spillway/array.h>

/* X(name): every kind, once. */
#define SPILL_REQUEST_KINDS(X)                                                                     \
    X(READ)                                                                                        \
    X(APPEND)                                                                                      \
    X(PUT_PAGE)                                                                                    \
    X(CUT)                                                                                         \
    X(SEAL)                                                                                        \
    X(ADVANCE)                                                                                     \
    X(CREATE_PAGE)                                                                                 \
    X(EDIT)                                                                                        \
    X(REMOVE)                                                                                      \
    X(PREPARE)                                                                                     \
    X(DELETE)                                                                                      \
    X(COMPLETE)                                                                                    \
    X(TRIM)                                                                                        \
    X(RECOUNT)                                                                                     \
    X(EMPTY_PAGE)                                                                                  \
    X(UPDATE_FIELDS)                                                                               \
    X(DROP_HEAD)                                                                                   \
    X(DROP_PAGE)                                                                                   \
    X(ADOPT)                                                                                       \
    X(ADOPT_SPLIT)                                                                                 \
    X(UNMANAGE)

typedef enum spill_request_kind {
#define SPILL_REQUEST_ENUM(name) SPILL_REQUEST_##name,
    SPILL_REQUEST_KINDS(SPILL_REQUEST_ENUM)
#undef SPILL_REQUEST_ENUM
        SPILL_REQUEST_KIND_COUNT
} spill_request_kind_t;

/* `page` of a request: a page number from 0, or one of these. */
#define SPILL_HEAD (-1) /* the head */
/*
 * READ only: of the pages of `incarnation` with numbers below `pages`, the one with the greatest
 * (first, page) whose first <= seq. Pages from `pages` on are not committed: no one reads them.
 */
#define SPILL_PAGE_HOLDING (-2)
/*
 * READ only: of the pages whose incarnation is at most `incarnation`, one that a DROP_PAGE would
 * free. With keep newest that is any page, with keep oldest one that has elements. The caller knows
 * that these incarnations have ended.
 */
#define SPILL_PAGE_LEFT_OVER (-4)
/*
 * READ with SPILL_WANT_ID only: of the pages of `incarnation` with numbers below `pages`, the one
 * with the wanted element. If the definition has an id_field, the store has an index for it.
 */
#define SPILL_PAGE_WITH_ID (-5)

/*
 * READ of referenced elements only: the elements of `incarnation` with numbers in [watermark,
 * pages), from all their documents. Only response->run is filled; with SPILL_WANT_TOP_N also
 * response->top_n.
 */
#define SPILL_ELEMENTS (-6)

/* Which elements a READ returns. */
typedef enum spill_want {
    SPILL_WANT_NONE,
    SPILL_WANT_FORWARD,  /* `limit` elements with numbers >= seq, ascending */
    SPILL_WANT_BACKWARD, /* `limit` elements with numbers <= seq, descending */
    SPILL_WANT_ID,       /* of those with numbers >= seq whose id is `id`, the lowest one */
    /*
     * Layout subset, SPILL_ELEMENTS: the `limit` highest-ranked elements below `below`, without
     * number seq. The run has the first of them, as many as a head shows. The store uses an index:
     * the cost is that of reading `limit` elements.
     */
    SPILL_WANT_TOP_N
} spill_want_t;

/* One of several appends that a single request carries. */
typedef struct spill_member {
    const spill_op_t *op; /* or NULL */
    int64_t count;        /* its elements */
} spill_member_t;

/* All pointers are borrowed during the call. Fields that a kind does not use are zero. */
typedef struct spill_request {
    spill_request_kind_t kind;

    /* The document. */
    const spill_definition_t *definition;
    uint32_t array_id;      /* the store's number of the definition (spill_store_ops_t.bind) */
    uint32_t collection_id; /* ... and for the heads' collection */
    const spill_value_t *owner;
    const uint8_t *key; /* owner key (bson/key.h) */
    size_t key_bytes;
    int64_t page; /* SPILL_HEAD, a number, or SPILL_PAGE_... */

    /* Guards. */
    int64_t incarnation;   /* see the table and SPILL_PAGE_...; also of the head or page made */
    int64_t rev;           /* expected rev; SEAL: the rev that was read, which saves a read */
    int64_t source_rev;    /* PUT_PAGE */
    spill_limits_t limits; /* APPEND, EDIT, ADOPT: room; CREATE_PAGE: of the appends to come */
    int32_t op_window;
    const spill_op_t *op; /* APPEND: guard and new entry; READ: find its entry (response->op) */

    /* Content. */
    const spill_value_t *elements; /* APPEND; EDIT (one) */
    size_t element_count;
    int64_t elements_bytes; /* sum of their sizes */
    int64_t skip;           /* APPEND, top-N capped: numbers without an element, before its own */
    /*
     * APPEND, for stores that combine (spill_store_ops): the elements are those of several appends,
     * in order, and `op` is NULL. Either all of the appends have an operation or none has. The
     * store carries out all of them, or none.
     */
    const spill_member_t *members;
    size_t member_count;
    /*
     * APPEND to a head: the number of slots at which it is due to be spilled (0: never). If a READ
     * is expensive, a store may answer the append that reaches this number, and an ADOPT that wants
     * elements, with the result of a READ of want, seq and limit (response->shows_read).
     */
    int64_t due;
    /*
     * PUT_PAGE: the live elements, ascending. CUT: the elements that the slots must hold, or NULL;
     * until the first cut, programs that do not keep to the protocols may change them. ADOPT_SPLIT:
     * the elements that leave the array. UNMANAGE: the elements of the pages.
     */
    const spill_run_t *run;
    const spill_seqs_t *deleted; /* PUT_PAGE */
    const spill_ops_t *ops;      /* CREATE_PAGE */
    const bson_t *update;        /* APPEND to a head, UPDATE_FIELDS: operators, or NULL */
    /*
     * APPEND, UPDATE_FIELDS: make an absent head, with `incarnation`. ADOPT always sets it.
     * PUT_PAGE with a lease: `incarnation` is that of a head to be made. The request may arrive
     * late, and clocks differ. If a head with the same or a higher rev was dropped here, the store
     * uses a later incarnation, so that each incarnation of an owner is above the one before.
     */
    bool create;
    int64_t first;      /* PUT_PAGE, CREATE_PAGE, RECOUNT; CUT: of the head that was copied */
    int64_t slots;      /* CUT, ADOPT_SPLIT: slots dropped; PUT_PAGE: slots in the page; RECOUNT */
    int64_t more_pages; /* CUT, ADOPT_SPLIT: pages that have the elements, besides the first */
    int64_t lease;      /* PUT_PAGE of an unmanaged array's elements: the page's lease; else 0 */
    int64_t until;      /* ADOPT_SPLIT: in microseconds since 1970, by the store's clock */
    int64_t bytes;      /* CUT: bytes of the live elements dropped */
    int64_t op_count;   /* CREATE_PAGE */
    int64_t total;      /* ADVANCE: elements appended so far */
    int64_t pages;      /* ADVANCE, CUT, DROP_HEAD, UNMANAGE, RECOUNT; READ: the pages that count */
    bool document_stays; /* DROP_HEAD */
    bool close;          /* SEAL */
    int64_t watermark;   /* TRIM; READ of SPILL_ELEMENTS */
    int64_t removed;     /* TRIM: the new value of state.removed */
    int64_t seq;         /* the element; READ: bound of the run; TRIM, RECOUNT: the expected end */
    int64_t intent_page; /* PREPARE, COMPLETE */
    /*
     * Referenced elements, with values as of `rev`. REMOVE, EDIT, PREPARE, TRIM subtract
     * sum_removed. EDIT and PREPARE with `edit` add sum_added. COMPLETE of an edit replaces what
     * its PREPARE added by sum_added, the value of the element that the page really has.
     */
    spill_sum_t sum_removed;
    spill_sum_t sum_added;
    /*
     * Layout subset. REMOVE, EDIT, PREPARE of a removal, COMPLETE of an edit, TRIM: the top as of
     * `rev`. If the step leaves it short, refill also has as many of the elements that rank next
     * among the documents, without number seq and without numbers below `watermark`. refill_run has
     * those of them that a head may show. Both are NULL if the step removes nothing from the top.
     * COMPLETE of an edit also has, in `elements`, the element that the page really has.
     */
    const spill_top_t *refill;
    const spill_run_t *refill_run;
    bool counts;  /* RECOUNT: see the table; sum and top stay */
    bool place;   /* RECOUNT with `counts`: see the table */
    bool indexes; /* RECOUNT: see the table */
    bool edit;    /* PREPARE: of an edit, not a removal; PUT_PAGE: so the page probably exists */

    /* READ. */
    spill_want_t want;
    int64_t limit;
    /*
     * SPILL_ELEMENTS: a bound in bytes, or 0 for none. The run ends with the element that reaches
     * the bound. It has twice as many bytes only if it is a single element.
     */
    int64_t bytes_most;
    const spill_value_t *id;        /* SPILL_WANT_ID: it has a key (bson/element.h) */
    const spill_top_entry_t *below; /* SPILL_WANT_TOP_N; NULL: no upper bound */
    /*
     * Of a page, with elements: the caller will probably read the next page in this direction. A
     * store may return it too (response->beyond), if that saves a round trip.
     */
    bool want_beyond;
    bool may_be_old; /* a replicated store may read a copy that lags: see core/reading.h */
    /*
     * Of a head: seq may lie outside it, in pages, whose elements come first. A store may then omit
     * as many elements as there are numbers between seq and the head (response->spared).
     */
    bool spare;
    /*
     * Of a head: if there is an unmanaged array in its place, live, live_bytes and run are of that
     * array (seq is 0, want is none or forward). Without this flag the answer is SPILL_REFUSED in a
     * store to whose documents other programs write, and an absent head in any other store.
     */
    bool unmanaged;
    bool want_now;    /* response->now_us, if the document is found */
    bool want_ops;    /* response->ops: the whole window */
    bool want_top;    /* of a subset's head: response->top_run */
    bool want_fields; /* response->fields */
} spill_request_t;

typedef enum spill_outcome { SPILL_REFUSED_GUARD, SPILL_DONE } spill_outcome_t;

/*
 * The caller owns it. Zero it (SPILL_RESPONSE_INIT) before the first use, release it after the last
 * one. A call clears it first and reuses its memory.
 */
typedef struct spill_response {
    spill_outcome_t outcome; /* READ of an absent document: DONE with state.present == false */
    /*
     * READ: the document's state. APPEND when DONE: present, first, live, deleted and op_count
     * after the effect. Otherwise unspecified, unless refusal_explained. If a READ finds no array,
     * all of it is 0, except that fields_bytes is set if the document has other fields.
     */
    spill_state_t state;
    int64_t seq;            /* APPEND: the first number given */
    int64_t crowded_out;    /* APPEND, top-N capped: old elements dropped for want of bytes */
    bool refusal_explained; /* APPEND when REFUSED: the rest is a READ (with op) after it */
    bool shows_read;     /* APPEND with due, ADOPT, refusal_explained: state and run are a READ's */
    spill_run_t run;     /* READ */
    spill_top_t top_n;   /* READ with SPILL_WANT_TOP_N */
    spill_run_t top_run; /* READ with want_top: the elements that state.top shows, in its order */
    spill_state_t beyond; /* READ with want_beyond: the next page, if the store returned it */
    spill_run_t beyond_run;
    int64_t now_us;      /* READ with want_now: the store's clock, microseconds since 1970 */
    bool spared;         /* READ with spare: the store omitted elements, so more may follow */
    bool stopped;        /* READ with bytes_most: the bound ended the run, so more may follow */
    bool op_found;       /* READ with op */
    spill_op_entry_t op; /* if so, its entry */
    /* READ with want_ops. In a sealed document a store may show later ones of the owner too. */
    spill_ops_t ops;
    bson_t *fields; /* READ with want_fields: {_id, ...}; owned; NULL when absent */
} spill_response_t;

#define SPILL_RESPONSE_INIT                                                                        \
    {                                                                                              \
        0                                                                                          \
    }

void spill_response_clear(spill_response_t *response);   /* keeps memory for the next call */
void spill_response_release(spill_response_t *response); /* frees, zeroes */

const char *spill_request_kind_name(spill_request_kind_t kind);

/* How many operations an APPEND carries. */
int64_t spill_request_ops(const spill_request_t *request);

/* How many numbers an APPEND uses: for its elements, and those that it skips. */
int64_t spill_request_numbers(const spill_request_t *append);

/* Does it end the head's incarnation? The next head of the owner must have a later one. */
bool spill_ends_incarnation(const spill_request_t *request);

/* Is it the APPEND after which the head, with `slots` slots, is due to be spilled? */
bool spill_request_is_due(const spill_request_t *append, int64_t slots);

/*
 * The request as a store carries it out after it has dropped heads with revs up to `dropped_rev`:
 * the head that it may make (see `create`) has a later incarnation. Returns `request` or `dated`.
 */
const spill_request_t *spill_request_dated(const spill_request_t *request, int64_t dropped_rev,
                                           spill_request_t *dated);

/* A deep copy that owns all it points to, for stores that queue or repeat requests. */
spill_request_t *spill_request_clone(const spill_request_t *request);
void spill_request_free(spill_request_t *clone); /* NULL is allowed */

#endif
