/*
 * What a store is asked to do: one request is one atomic step on one document, as every document
 * database offers it. A store answers DONE or REFUSED (the guard did not hold; nothing changed).
 *
 *   kind          document  guard                               effect
 *   READ          any       -                                   its state; a run of elements
 *   APPEND        head/tail op not seen, window, not sealed,    push; n + 1 and op remembered where
 *                           room (a head may be made; a page:   there is one; head: other fields
 *                           epoch equal)
 *   ... capped    head      the same, but that of room: the      as well: the oldest slots go for
 *                           newest element has to fit            good until there are at most
 *                                                               slots_max elements, within the
 *                                                               bytes; low = first. With a
 *                                                               sort_field those that rank lowest
 *                                                               go, and their numbers are gone;
 *                                                               before its elements, which may
 *                                                               be none, it may `skip` numbers
 *   PUT_PAGE      page      absent, or (epoch, src) < mine      the whole page
 *                           and no lease runs; with a lease
 *                           of its own: absent                  ... src = epoch
 *   CUT           head      epoch, pages and rev equal; with    `slots` slots go; first, removed;
 *                           a run: it is what is in the slots   pages + 1 + more_pages; rev + 1
 *   SEAL          head/tail epoch equal, not sealed; a page     sealed, closed = `close`; rev + 1;
 *                           has slots, or `close`               head: pages = 1, total = end
 *   ADVANCE       head      epoch equal                         pages = max(pages, mine),
 *                                                               total = max(total, mine)
 *   CREATE_PAGE   page      absent, or epoch < mine             an empty page: first, ops, n
 *   EDIT          any       rev equal, the element is there,    replace it; rev + 1
 *                           room for its new size
 *   REMOVE        head      rev equal, it is there              delete; gone; rev + 1
 *   INTEND        head      rev equal, no intent                intent; removed + 1; rev + 1
 *   PULL          page      epoch equal, it is there            delete; gone; rev + 1
 *   SETTLE        head      rev equal, intent is this one       no intent; rev + 1
 *   TRIM          head      rev equal, no intent, low < mine;   low, removed; slots below low go:
 *                           with `seq`: end equal to it         first >= min(low, end); rev + 1
 *   RECOUNT       head      rev equal, no intent; elements      sum and top as they were found to
 *                           apart: end equal                    be; counts anew; rev + 1
 *   ... `counts`  any       rev equal, no intent; as many       sizes and statistics as those of
 *                           elements as the state says; head,   the elements; head: removed, pages,
 *                           keep oldest: pages equal            keep oldest: total; rev + 1
 *   ... `place`   any       end equal to `seq`; as many         as well: its numbers are `first`
 *                           elements as `slots` leaves beside   and `slots` from there on; no
 *                           what is gone of the numbers; a      other is gone
 *                           store that keeps elements by
 *                           number: each of them is there
 *   ... `indexes` head      rev equal                           the store's indexes of the owner's
 *                                                               elements and pages, and no more;
 *                                                               rev + 1
 *   EMPTY_PAGE    page      epoch equal; keep oldest: sealed;   keep newest: delete the document;
 *                           no lease runs (the caller knows     keep oldest: empty it, first = end
 *                           it lies below low)
 *   UPDATE_FIELDS head      the document stays within           other fields
 *                           SPILL_DOCUMENT_BYTES_MAX (a head
 *                           may be made)
 *   DROP_HEAD     head      epoch equal, pages equal            array, counts and bookkeeping go;
 *                                                               a document of only _id goes too,
 *                                                               but with `document_stays`
 *   DROP_PAGE     page      epoch <= mine, no lease runs        keep newest: delete the document;
 *                                                               keep oldest: a tombstone, that is
 *                                                               empty it, sealed and closed
 *   TAKE          head      no array of ours, but in its        the array is ours, as it is:
 *                           place one of others, not empty      first = 0
 *                           (SPILL_TOO_BIG: no room beside
 *                           it; a server judges that, other
 *                           stores go by limits.bytes_max)
 *   TAKE_CUT      head      as TAKE, and the array begins with  the array is ours, but for the
 *                           the run, and has more; before       run: first = slots, pages = 1 +
 *                           `until` by the store's own clock;   more_pages, rev = epoch + 1
 *                           no head of a rev >= epoch was
 *                           dropped
 *   GIVE_BACK     head      epoch, pages and rev equal, no      the array is others': the run and
 *                           intent; the document stays within   the head's own elements; counts
 *                           SPILL_DOCUMENT_BYTES_MAX            and bookkeeping go
 *
 * Elements apart (layout reference): with keep newest, and each element a page of its own, whose
 * number is the element's. So CUT of m slots, and TRIM, raise `pages` to the head's `first`, and no
 * run of gone numbers is folded away. DELETE leaves a page without an element. An edit in a page is
 * a PREPARE (`edit`), a PUT_PAGE whose src is the rev that it left, and a COMPLETE. All steps that
 * change elements or make intents keep the head's sum: `taken` goes out of it, `given` comes in.
 *
 * Layout subset: as well, the head's top has the elements that rank highest. APPEND puts its own
 * in. A step that takes an element out of it brings those that rank highest among the documents
 * (`refill`), and is refused without; what the journal has to offer, the store looks for itself, at
 * the moment of the step: appends do not raise rev. An edit that goes by an intent changes the top
 * with its COMPLETE.
 *
 * Elements apart: RECOUNT makes the sum (`given`) and the top (`refill`, with the elements that can
 * be shown in `refill_run`) anew; `seq` is the head's end, by which no append came since.
 *
 * A page's lease runs until the moment that it names, by the clock of the store (`now_us`), which
 * on a server is the server's own. Pages are put with one before there is a head that counts them:
 * the ADOPT_SPLIT that makes it may be long under way.
 *
 * A store may refuse more, where no client that keeps to the protocols can miss it: a PUT_PAGE of a
 * page that the head counts already, or of elements that it has trimmed; an EDIT or DELETE in a
 * page that the head does not count.
 *
 * src/store/transition.c holds guards and effects, once, for the stores that keep state themselves.
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
 * (first, page) whose first <= seq. Pages from `pages` on are not committed: nobody looks at them.
 */
#define SPILL_PAGE_HOLDING (-2)
/*
 * READ only: of the pages whose incarnation is at most `incarnation`, one that a DROP_PAGE would
 * free: any page with keep newest, one that holds elements with keep oldest. The caller knows that
 * the incarnations up to that incarnation are over.
 */
#define SPILL_PAGE_LEFT_OVER (-4)
/*
 * READ with SPILL_WANT_ID only: of the pages of `incarnation` with numbers below `pages`, the one
 * with the element that is wanted. The store has an index for it where the definition has an
 * id_field.
 */
#define SPILL_PAGE_WITH_ID (-5)

/*
 * READ only, elements apart: no document but a run of those of `incarnation`, of elements with
 * numbers in [low, pages). Only response->run is filled; with SPILL_WANT_TOP_N also response->best.
 */
#define SPILL_ELEMENTS (-6)

/* Which elements a READ brings along. */
typedef enum spill_want {
    SPILL_WANT_NONE,
    SPILL_WANT_FORWARD,  /* `limit` elements with numbers >= seq, ascending */
    SPILL_WANT_BACKWARD, /* `limit` elements with numbers <= seq, descending */
    SPILL_WANT_ID,       /* of those with numbers >= seq whose id is `id`, the lowest one */
    /*
     * Layout subset, of SPILL_ELEMENTS: the `limit` elements that rank highest of those that rank
     * below `below`, without number seq; in the run the first of them, as many as a head shows. By
     * an index: the cost is that of `limit` elements.
     */
    SPILL_WANT_TOP_N
} spill_want_t;

/* One of several appends that are asked for as one. */
typedef struct spill_member {
    const spill_op_t *op; /* or NULL */
    int64_t count;        /* its elements */
} spill_member_t;

/*
 * All pointers are borrowed for the length of the call. Fields that a kind does not use are zero.
 */
typedef struct spill_request {
    spill_request_kind_t kind;

    /* The document. */
    const spill_definition_t *definition;
    uint32_t array_id;      /* the store's own number for the definition (spill_store_bind) */
    uint32_t collection_id; /* ... and for the heads' collection */
    const spill_value_t *owner;
    const uint8_t *key; /* owner key (bson/key.h) */
    size_t key_bytes;
    int64_t page; /* SPILL_HEAD, a number, or SPILL_PAGE_... */

    /* Guards. */
    int64_t incarnation;   /* where the table says so, SPILL_PAGE_...; of the head or page made */
    int64_t rev;           /* expected rev; SEAL: as it was seen, which spares a store the look */
    int64_t source_rev;    /* PUT_PAGE */
    spill_limits_t limits; /* APPEND, EDIT, ADOPT: room; CREATE_PAGE: of the appends to come */
    int32_t op_window;
    const spill_op_t *op; /* APPEND: guard and entry; READ: look it up (response->op) */

    /* Content. */
    const spill_value_t *elements; /* APPEND; EDIT (one) */
    size_t element_count;
    int64_t elements_bytes; /* sum of their sizes */
    int64_t skip; /* APPEND, capped, keeping the best: numbers of no element, before its own */
    /*
     * APPEND, for stores that combine (spill_store_ops): the elements are those of several appends,
     * one after the other; all of these have an operation or none has, and `op` is NULL. All are
     * carried out, or none.
     */
    const spill_member_t *members;
    size_t member_count;
    /*
     * APPEND to a head: with so many slots it is due to be spilled (0: never). A store to which a
     * READ is dear may answer the append that takes the head there, and an ADOPT that wants
     * elements, with what a READ of want, seq and limit would then have shown (response->looked).
     */
    int64_t due;
    /*
     * PUT_PAGE: the live elements, ascending. CUT, or NULL: those that the slots hold; for while
     * nothing was cut yet, programs that do not keep to the protocols may change them. ADOPT_SPLIT:
     * those that go. UNMANAGE: those of the pages.
     */
    const spill_run_t *run;
    const spill_seqs_t *deleted; /* PUT_PAGE */
    const spill_ops_t *ops;      /* CREATE_PAGE */
    const bson_t *update;        /* APPEND to a head, UPDATE_FIELDS: operators, or NULL */
    /*
     * APPEND, UPDATE_FIELDS: make the head, with `incarnation`; also ADOPT, always; PUT_PAGE with a
     * lease: `incarnation` is that of a head to be made. The request may have been long under way,
     * and clocks differ: the store takes a later one where a head was dropped here whose rev was
     * not lower, so that incarnations of a name follow each other.
     */
    bool create;
    int64_t first;      /* PUT_PAGE, CREATE_PAGE; CUT: of the head that was copied; RECOUNT */
    int64_t slots;      /* CUT, ADOPT_SPLIT: slots dropped; PUT_PAGE: slots in the page; RECOUNT */
    int64_t more_pages; /* CUT, ADOPT_SPLIT: how many pages they are in besides the first */
    int64_t lease;      /* PUT_PAGE: of an array of others: the page's lease; else 0 */
    int64_t until;      /* ADOPT_SPLIT: in microseconds since 1970, by the store's clock */
    int64_t bytes;      /* CUT: bytes of the live elements dropped */
    int64_t op_count;   /* CREATE_PAGE */
    int64_t total;      /* ADVANCE: elements appended so far */
    int64_t
        pages; /* ADVANCE; CUT, DROP_HEAD, UNMANAGE; READ of SPILL_PAGE_HOLDING, SPILL_ELEMENTS */
    bool document_stays; /* DROP_HEAD */
    bool close;          /* SEAL */
    int64_t watermark;   /* TRIM; READ of SPILL_ELEMENTS */
    int64_t removed;     /* TRIM: the new value of state.removed */
    int64_t seq;         /* the element; READ: bound of the run; TRIM: 0, or the expected end */
    int64_t intent_page; /* PREPARE, COMPLETE */
    /*
     * Elements apart, all of the elements as they are at `rev`. REMOVE, EDIT, PREPARE, TRIM: what
     * goes out of the sum. EDIT, PREPARE with `edit`: what comes in. COMPLETE of an edit: the value
     * of the element that turned out to be in the page.
     */
    spill_sum_t sum_removed;
    spill_sum_t sum_added;
    /*
     * Layout subset. REMOVE, EDIT, PREPARE (but of an edit), COMPLETE of an edit, TRIM: the top as
     * it is at `rev`, and where elements are missing to it once the step has taken its own, as many
     * as that of those that rank below it among the documents, without number seq or those below
     * `low`; and in refill_run the elements, as far as they may have to be shown. NULL where the
     * top has none that goes. COMPLETE of an edit also has the element that turned out to be in the
     * page, in `elements`.
     */
    const spill_top_t *refill;
    const spill_run_t *refill_run;
    bool counts;  /* RECOUNT: what the table says, and not the sum and the top */
    bool place;   /* ... with `counts`: that as well */
    bool indexes; /* ... or that */
    bool edit; /* PREPARE: not a removal; PUT_PAGE: of an edit, so the page is likely to be there */

    /* READ. */
    spill_want_t want;
    int64_t limit;
    /*
     * SPILL_ELEMENTS, 0: none. The run ends with the element that reaches it, or before it has
     * twice as many bytes and another element.
     */
    int64_t bytes_most;
    const spill_value_t *id;        /* SPILL_WANT_ID: it has a key (bson/element.h) */
    const spill_top_entry_t *below; /* SPILL_WANT_TOP_N; NULL: above all */
    /*
     * Of a page, with elements: the run will likely go on in the next page of its direction, which
     * a store may bring along (response->beyond), where that spares a round trip.
     */
    bool want_beyond;
    bool may_be_old; /* a store with copies may ask one that lags behind: see core/reading.h */
    /*
     * Of a head: seq may lie beyond its end (or begin), in pages, whose elements come first. A
     * store may leave out as many elements as there are numbers between (response->spared).
     */
    bool spare;
    /*
     * Of a head: where others keep an array in its place, live, live_bytes and run are of that (seq
     * is 0, want none or forward). Without it that is SPILL_REFUSED, in a store whose documents
     * other programs write to; in another it is as if there were none.
     */
    bool unmanaged;
    bool want_now;    /* response->now_us, where a document was found */
    bool want_ops;    /* response->ops: the whole window */
    bool want_top;    /* of a subset's head: response->top_run */
    bool want_fields; /* response->fields */
} spill_request_t;

typedef enum spill_outcome { SPILL_REFUSED_GUARD, SPILL_DONE } spill_outcome_t;

/*
 * The caller's; zero it (SPILL_RESPONSE_INIT) before the first use, release it after the last. A
 * call clears it first, so one response serves many calls without new memory.
 */
typedef struct spill_response {
    spill_outcome_t outcome; /* READ of an absent document: DONE with state.present == false */
    /*
     * READ. APPEND when DONE: after the effect, but only present, first, live, gone and n.
     * Else unspecified, unless `judged`. Where a READ finds no array, all of it is 0 but perhaps
     * fields_bytes: a document may be there with other fields only.
     */
    spill_state_t state;
    int64_t seq;            /* APPEND: the first number given */
    int64_t crowded_out;    /* APPEND: capped, keeping the best: old elements that went for bytes */
    bool refusal_explained; /* APPEND when REFUSED: the rest is what a READ (with op) then showed */
    bool shows_read;   /* APPEND with due, ADOPT, or judged: state and run are what a READ shows */
    spill_run_t run;   /* READ */
    spill_top_t top_n; /* READ with SPILL_WANT_TOP_N */
    spill_run_t top_run;  /* READ with want_top: the elements that state.top shows, in its order */
    spill_state_t beyond; /* READ with want_beyond: the page after, if it was brought along */
    spill_run_t beyond_run;
    int64_t now_us;      /* READ with want_now: the store's clock, microseconds since 1970 */
    bool spared;         /* READ with spare: the run may go on */
    bool stopped;        /* READ with bytes_most: it ended the run, which may go on */
    bool op_found;       /* READ with op */
    spill_op_entry_t op; /* if so, its entry */
    /* READ with want_ops. A store may show later ones of the owner in a sealed document too. */
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

/* How many numbers an APPEND gives: to its elements, and those that it skips. */
int64_t spill_request_numbers(const spill_request_t *append);

/* Is the head's incarnation over, once it is carried out? Later ones have to have later
 * incarnations. */
bool spill_ends_incarnation(const spill_request_t *request);

/* Is it the APPEND that takes a head, which then has so many slots, to where it is spilled? */
bool spill_request_is_due(const spill_request_t *append, int64_t slots);

/*
 * The request as a store carries it out that has dropped heads up to `dropped_rev`: the head that
 * it may make (see `create`) is later than all of them. It is `request` itself, or *dated.
 */
const spill_request_t *spill_request_dated(const spill_request_t *request, int64_t dropped_rev,
                                           spill_request_t *dated);

/* A deep copy that owns everything it points to; for stores that queue or repeat requests. */
spill_request_t *spill_request_clone(const spill_request_t *request);
void spill_request_free(spill_request_t *clone); /* NULL is allowed */

#endif
