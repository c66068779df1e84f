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
 *                            a head: present, or `create`       and its session's entry
 *                            ... matches; its session allows
 *                            it (store/session_entry.h);
 *                            `searched` holds
 *   ... capped    head       as APPEND, but room only for the   as well: drop the oldest slots
 *                            newest element                     until slots_max and bytes_max
 *                                                               hold; watermark = first
 *   ... `seqs`    head       as APPEND, and the head is absent  as well: the elements get these
 *                                                               numbers, and `end` is the head's
 *                                                               end; watermark = first; the
 *                                                               other numbers from first on are
 *                                                               those of removed elements
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
 *                            given; with `end`: end equal       drop the slots below watermark;
 *                                                               rev + 1
 *   ... `begins`  head       as TRIM; end equal and <= given;   watermark = first = given;
 *                            no slots, no pages (referenced     removed = 0; rev + 1
 *                            elements: none above the
 *                            watermark); not sealed
 *   REWRITE       head       incarnation, rev, end equal; no    drop all slots; first and
 *                            pages; no intent; its session      watermark = end; removed = 0; the
 *                            allows it                          run's elements; no operations,
 *                                                               op_count + op_window; the
 *                                                               session's entry; rev + 1
 *   RECOUNT       head       rev equal; no intent; referenced   replace sum and top by the given
 *                            elements: end equal                ones; rewrite the counts; rev + 1
 *   ... `counts`  any        rev equal; no intent; `live`       recompute sizes and statistics
 *                            elements; a head that keeps the    from the elements; a head: set
 *                            oldest: pages equal                removed, pages and, if it keeps
 *                                                               the oldest, total; rev + 1
 *   ... `range`   any        as `counts`, but as many elements  as well: its numbers become
 *                            as numbers from `first` to `first  [first, first + slots); forget
 *                            + slots` are not deleted; end      deleted numbers outside
 *                            equal; a store that keeps elements
 *                            by number: each is present
 *   ... `indexes` head       rev equal                          only rebuild the store's indexes
 *                                                               of the owner's elements and
 *                                                               pages; rev + 1
 *   EMPTY_PAGE    page       incarnation equal; no lease runs;  keep newest: delete the document;
 *                            keep oldest: sealed (the caller    keep oldest: drop all slots,
 *                            knows it is below the watermark)   first = end; rev + 1
 *   UPDATE_FIELDS head       present, or `create`; matches;     update the other fields and its
 *                            its session allows it; the         session's entry
 *                            document stays within
 *                            SPILL_DOCUMENT_BYTES_MAX
 *   FORGET        head       present                            remove the sessions' entries that
 *                                                               are older than the horizon, by the
 *                                                               store's clock
 *   DROP_HEAD     head       incarnation, pages equal           remove array, counts, bookkeeping;
 *                                                               delete a document that has only
 *                                                               _id, unless `document_stays`
 *   DROP_PAGE     page       incarnation <= given; no lease     keep newest: delete the document;
 *                            runs                               keep oldest: make it a tombstone
 *                                                               (empty, sealed, closed)
 *   ADOPT         head       absent; an unmanaged array, not    manage the array as it is:
 *                            empty, is in its place; the        first = 0
 *                            store's clock is before `until`,
 *                            if that is not 0. Without
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
 * RECOUNT of referenced elements replaces the sum and the top (`refill`; the elements that can be
 * shown are in refill_run). `end` is the head's end: it shows that no append has come since the
 * caller counted.
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

#include "store/content.h"
#include "store/session_entry.h"
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
    X(REWRITE)                                                                                     \
    X(RECOUNT)                                                                                     \
    X(EMPTY_PAGE)                                                                                  \
    X(UPDATE_FIELDS)                                                                               \
    X(FORGET)                                                                                      \
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
 * READ only: one of the pages that a DROP_PAGE with `incarnation` would free. With keep newest that
 * is any page, with keep oldest one that has elements. The caller knows that these incarnations
 * have ended.
 */
#define SPILL_PAGE_LEFT_OVER (-4)
/*
 * READ with SPILL_WANT_ID only: of the pages of `incarnation` with numbers below `pages`, the one
 * with the wanted element. If the definition has an id_field, the store has an index for it.
 */
#define SPILL_PAGE_WITH_ID (-5)

/*
 * READ only: the elements of `incarnation` with numbers in [watermark, pages), from all their
 * documents. On a server, of referenced elements only. Only response->run is filled; with
 * SPILL_WANT_TOP_N also response->top_n. A store of documents also fills source_rev and page of
 * response->state: the highest source_rev of the documents, and the page that has it.
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
    const spill_op_t *op;              /* or NULL */
    const spill_session_op_t *session; /* or NULL */
    int64_t count;                     /* its elements */
} spill_member_t;

/*
 * What a READ returns. The last fields, below "hints", are hints: they let a store do less, and a
 * store may ignore each of them. Everything before them changes the answer.
 */
typedef struct spill_read {
    spill_want_t want;
    int64_t seq; /* bound of the run */
    int64_t limit;
    /*
     * SPILL_ELEMENTS: a bound in bytes, or 0 for none. The run ends with the element that reaches
     * the bound. It has twice as many bytes only if it is a single element.
     */
    int64_t bytes_most;
    const spill_value_t *id;        /* SPILL_WANT_ID: it has a key (bson/element_fields.h) */
    const spill_top_entry_t *below; /* SPILL_WANT_TOP_N; NULL: no upper bound */
    const spill_op_t *op;           /* find its entry (response->op) */
    /* Of a head: judge the operation, of session_count numbers (response->session). */
    const spill_session_op_t *session;
    int64_t session_count;
    const bson_t *match; /* of a head: does it match (response->unmatched)? */
    int64_t watermark;   /* SPILL_ELEMENTS */
    int64_t pages;       /* SPILL_PAGE_..., SPILL_ELEMENTS: the pages that count */
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

    /* ---- hints ---- */

    /*
     * Of a page, with elements: the caller will probably read the next page in this direction. A
     * store may return it too (response->beyond), if that saves a round trip.
     */
    bool want_beyond;
    /* SPILL_PAGE_HOLDING: how many numbers a page has, if much less than it may have; or 0. */
    int64_t page_length;
    bool append_follows; /* if the owner is absent, a store may remember that for the append */
    bool may_be_old;     /* a replicated store may read a copy that lags: see core/reading.h */
    /*
     * Of a head: seq may lie outside it, in pages, whose elements come first. A store may then omit
     * as many elements as there are numbers between seq and the head (response->spared).
     */
    bool spare;
    /*
     * The caller does not use live_bytes and fields_bytes of the state. A store that would have to
     * measure them may return any value.
     */
    bool unsized;
    /*
     * A walk over owners that the calling thread has listed. The answer may show any moment since
     * then, but none before an earlier READ of the owner, or an own change of it.
     */
    bool ahead;
} spill_read_t;

/*
 * Of an append to an array that keeps each id once: what the caller has searched. The append is
 * refused if the head has an id of its elements, or if it is another head or has other pages.
 */
typedef struct spill_searched {
    bool by_store;       /* nothing was searched: the store refuses an id that any document has */
    int64_t incarnation; /* of the head; 0: there was none */
    int64_t pages;       /* no page below this number has one of the ids */
} spill_searched_t;

/* Enough for each part of a request. */
#define SPILL_REQUEST_PART_BYTES 144

/* All pointers are borrowed during the call. Code reads no part but that of `kind`. */
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
    spill_limits_t limits; /* APPEND, EDIT, ADOPT: room; CREATE_PAGE: of the appends to come */
    /*
     * APPEND, UPDATE_FIELDS: make an absent head, with `incarnation`. ADOPT always sets it.
     * PUT_PAGE with a lease: `incarnation` is that of a head to be made. The request may arrive
     * late, and clocks differ. If a head with the same or a higher rev was dropped here, the store
     * uses a later incarnation, so that each incarnation of an owner is above the one before.
     */
    bool create;

    /* The rest belongs to `kind`. EMPTY_PAGE and DROP_PAGE have nothing else. */
    union {
        uint8_t bytes[SPILL_REQUEST_PART_BYTES]; /* first: an initializer zeroes all parts */

        spill_read_t read; /* READ */

        struct {                  /* APPEND; UPDATE_FIELDS: only `update`, `session` and `match` */
            const spill_op_t *op; /* guard and new entry; or NULL */
            const spill_session_op_t *session; /* the same, instead of `op`; a head; or NULL */
            const bson_t *match;               /* a head, not made: guard; or NULL */
            const spill_value_t *elements;
            size_t element_count;
            int64_t elements_bytes; /* sum of their sizes */
            int64_t skip;           /* top-N capped: numbers without an element, before its own */
            /*
             * To a head that does not exist: the numbers of the elements, ascending, and the head's
             * end, above the last of them. Its operation then counts all numbers from 0 on. NULL:
             * the elements have consecutive numbers.
             */
            const int64_t *seqs;
            int64_t end;
            const spill_searched_t *searched; /* an array that keeps each id once: guard; or NULL */
            /*
             * For stores that combine (spill_store_ops): the elements of several appends, in order;
             * `op` and `session` are NULL. Either all of the appends have an operation, or all have
             * one of a session, or none has any.
             * The store carries out all of them, or none.
             */
            const spill_member_t *members;
            size_t member_count;
            /*
             * To a head: the number of slots at which it is due to be spilled (0: never). If a READ
             * is expensive, a store may answer the append that reaches this number with a READ of
             * the head's first `due_limit` elements (response->shows_read).
             */
            int64_t due;
            int64_t due_limit;
            const bson_t *update; /* of a head: operators, or NULL */
        } append;

        struct {                         /* PUT_PAGE */
            const spill_run_t *run;      /* the live elements, ascending */
            const spill_seqs_t *deleted; /* or NULL */
            int64_t source_rev;
            int64_t first;
            int64_t slots;
            int64_t lease; /* of a page with an unmanaged array's elements; else 0 */
            bool replaces; /* for an edit: the page probably exists */
        } put_page;

        struct { /* CUT */
            /*
             * The elements that the slots must hold, or NULL. Until the first cut, programs that do
             * not keep to the protocols may change them.
             */
            const spill_run_t *run;
            int64_t pages;
            int64_t first;      /* of the head that was copied */
            int64_t slots;      /* dropped */
            int64_t bytes;      /* of the live elements dropped */
            int64_t more_pages; /* that have the elements, besides the first */
        } cut;

        struct {
            bool close;
        } seal;

        struct {
            int64_t pages;
            int64_t total; /* elements appended so far */
        } advance;

        struct { /* CREATE_PAGE */
            int64_t first;
            const spill_ops_t *ops; /* or NULL */
            int64_t op_count;
        } create_page;

        struct {         /* EDIT, REMOVE, PREPARE, DELETE, COMPLETE, TRIM */
            int64_t seq; /* the element; TRIM has none */
            /* EDIT: the new element. COMPLETE of an edit, layout subset: the page's element. */
            const spill_value_t *element;
            int64_t intent_page; /* PREPARE, COMPLETE */
            bool edit;           /* PREPARE: of an edit, not a removal */
            bool begins;         /* TRIM: of an array without elements, up to a later number */
            int64_t watermark;   /* TRIM */
            int64_t removed;     /* TRIM: the new value of state.removed */
            int64_t end;         /* TRIM: the expected end; without `begins`, 0: any */
            /*
             * Referenced elements, with values as of `rev`. REMOVE, EDIT, PREPARE, TRIM subtract
             * sum_removed. EDIT and PREPARE with `edit` add sum_added. COMPLETE of an edit replaces
             * what its PREPARE added by sum_added, the value of the element that the page has.
             */
            spill_sum_t sum_removed;
            spill_sum_t sum_added;
            /*
             * Layout subset. REMOVE, EDIT, PREPARE of a removal, COMPLETE of an edit, TRIM: the top
             * as of `rev`. If the step leaves it short, refill also has as many of the elements
             * that rank next among the documents, without number seq and without numbers below
             * `watermark`. refill_run has those of them that a head may show. Both are NULL if the
             * step removes nothing from the top.
             */
            const spill_top_t *refill;
            const spill_run_t *refill_run;
        } change;

        /*
         * REWRITE, layout outlier with keep newest: other elements for a head without pages. They
         * may exceed its bounds.
         */
        struct {
            const spill_run_t *run;            /* with numbers from `end` on */
            int64_t end;                       /* the expected end */
            const spill_session_op_t *session; /* or NULL */
            int64_t session_count;             /* its numbers */
        } rewrite;

        struct {         /* RECOUNT: see the table */
            bool counts; /* sum and top stay */
            bool range;  /* with `counts` */
            bool indexes;
            int64_t end; /* the expected end */
            int64_t first, slots;
            int64_t removed, pages, total;
            spill_sum_t sum;
            const spill_top_t *refill;
            const spill_run_t *refill_run; /* the elements of `refill` that can be shown */
        } recount;

        struct {
            int64_t horizon_us;
        } forget;

        struct {
            int64_t pages;
            bool document_stays;
        } drop_head;

        struct { /* ADOPT; ADOPT_SPLIT */
            /*
             * ADOPT: if a READ is expensive, a store may answer with a READ of the head's first
             * `shown` elements (response->shows_read). 0: it does not.
             */
            int64_t shown;
            const spill_run_t *run; /* ADOPT_SPLIT: the elements that leave the array */
            int64_t slots;          /* ADOPT_SPLIT: how many these are */
            int64_t more_pages;     /* ADOPT_SPLIT: pages that have them, besides the first */
            int64_t until;          /* in microseconds since 1970, by the store's clock */
            int64_t run_us;         /* how long the store may carry it out; 0: not limited */
        } adopt;

        struct {
            const spill_run_t *run; /* the elements of the pages */
            int64_t pages;
        } unmanage;
    };
} spill_request_t;

typedef enum spill_outcome { SPILL_REFUSED_GUARD, SPILL_DONE } spill_outcome_t;

/*
 * The caller owns it. Zero it (SPILL_RESPONSE_INIT) before the first use, release it after the last
 * one. A call clears it first and reuses its memory.
 */
typedef struct spill_response {
    spill_outcome_t outcome; /* READ of an absent document: DONE with state.present == false */
    int64_t seq;             /* APPEND: the first number given */
    int64_t crowded_out;     /* APPEND, top-N capped: old elements dropped for want of bytes */
    bool refusal_explained;  /* APPEND when REFUSED: the rest is a READ (with op) after it */
    bool shows_read;     /* APPEND with due, ADOPT, refusal_explained: state and run are a READ's */
    int64_t now_us;      /* READ with want_now: the store's clock, microseconds since 1970 */
    bool spared;         /* READ with spare: the store omitted elements, so more may follow */
    bool stopped;        /* READ with bytes_most: the bound ended the run, so more may follow */
    bool id_absent;      /* READ of a head with SPILL_WANT_ID: the store knows that no document of
                          * the array has the id. A store need not know */
    bool op_found;       /* READ with op */
    spill_op_entry_t op; /* if so, its entry */
    spill_session_verdict_t session; /* READ with session */
    int64_t session_applied;         /* ... see spill_session_judge */
    /* ... its entry, without the time; a store need not show it. run_count 0: none */
    spill_session_entry_t session_entry;
    bool unmatched; /* READ with match: the head does not match */

    /* What the response owns: the last members, because spill_response_clear keeps their memory. */

    /*
     * READ: the document's state. APPEND when DONE: present, first, live, deleted and op_count
     * after the effect. Otherwise unspecified, unless refusal_explained. If a READ finds no array,
     * all of it is 0, except that fields_bytes is set if the document has other fields.
     */
    spill_state_t state;
    spill_run_t run;      /* READ */
    spill_top_t top_n;    /* READ with SPILL_WANT_TOP_N */
    spill_run_t top_run;  /* READ with want_top: the elements that state.top shows, in its order */
    spill_state_t beyond; /* READ with want_beyond: the next page, if the store returned it */
    spill_run_t beyond_run;
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

/* Assert what every request of its kind has: the right document, and content that fits the kind. */
void spill_request_assert(const spill_request_t *request);

/*
 * A copy whose bytes that belong to other kinds are garbage: code that reads another kind's part
 * fails. Builds with the address sanitizer pass it to the store.
 */
const spill_request_t *spill_request_poisoned(const spill_request_t *request,
                                              spill_request_t *poisoned);

/* EDIT, REMOVE, PREPARE, DELETE, COMPLETE or TRIM: it has request->change. */
bool spill_request_is_change(const spill_request_t *request);

/* RECOUNT with `counts`. */
bool spill_request_recounts_elements(const spill_request_t *request);

/* What some kinds have: their elements, operation, update, refill. NULL: it has none. */
const spill_run_t *spill_request_run(const spill_request_t *request);
const spill_op_t *spill_request_op(const spill_request_t *request); /* of an APPEND */
/* Of an APPEND or UPDATE_FIELDS without members, or of a REWRITE. */
const spill_session_op_t *spill_request_session(const spill_request_t *request);
const bson_t *spill_request_match(const spill_request_t *request);
const bson_t *spill_request_update(const spill_request_t *request);
const spill_top_t *spill_request_refill(const spill_request_t *request);
const spill_run_t *spill_request_refill_run(const spill_request_t *request);

/* How many operations an APPEND carries; 0 for other kinds. */
int64_t spill_request_ops(const spill_request_t *request);

/*
 * The i-th operation of a session that the request carries, and its numbers; NULL: there is none.
 * An append of several members has one for each.
 */
const spill_session_op_t *spill_request_session_at(const spill_request_t *request, size_t i,
                                                   int64_t *count);

/* An APPEND with `searched`: has an element of a document the id of one of its elements? */
bool spill_request_has_id_of(const spill_request_t *append, const spill_value_t *element);

/* The number of an APPEND's element i, if the append begins at number `from`. */
int64_t spill_request_seq(const spill_request_t *append, int64_t from, size_t i);

/* How many numbers an APPEND uses, for its elements and those that it skips; 0 for other kinds. */
int64_t spill_request_numbers(const spill_request_t *append);

/* Does it end the head's incarnation? The next head of the owner must have a later one. */
bool spill_ends_incarnation(const spill_request_t *request);

/* Is it the APPEND after which the head, with `slots` slots, is due to be spilled? */
bool spill_request_is_due(const spill_request_t *append, int64_t slots);

/* A READ of the same document's state. Of an APPEND: with its operation. */
spill_request_t spill_request_reading(const spill_request_t *request);

/*
 * The READ with whose result a store may answer an APPEND that is due, and an ADOPT. If they ask
 * for none, its `want` is SPILL_WANT_NONE.
 */
spill_request_t spill_request_shown(const spill_request_t *request);

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
