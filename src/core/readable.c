/*
 * The elements that can be read, of an owner in a store that was opened with `partial`.
 *
 * Elements are read by their numbers, not document by document, so that a lost page or a lost
 * element does not hide the elements behind it. A number without an element is a hole if a document
 * counts the number, or if the owner counts more elements than can be read.
 */
#include "core/array.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "layout/locate.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

enum { ELEMENTS_AT_A_TIME = SPILL_REFERENCED_RUN, HOLES_MAX = 100 };

typedef struct hole {
    int64_t first, last;
} hole_t;

typedef struct readable {
    spill_owner_t *owner;
    spill_element_fn visit; /* or NULL */
    void *context;
    spill_response_t head; /* what is known of it */
    spill_response_t page; /* the document of a missing number */
    spill_response_t part;
    bool headless;    /* the head cannot be read */
    bool counted;     /* `count` is known */
    bool guessed;     /* `end` may be too high */
    int64_t count;    /* how many elements the owner counts */
    int64_t end;      /* no element has this number or a higher one */
    int64_t next;     /* the next number to read */
    int64_t elements; /* that were read */
    int64_t proven;   /* missing numbers that a document counts */
    int64_t missing;  /* missing numbers that may be those of removed elements, and `proven` */
    hole_t holes[HOLES_MAX];
    size_t hole_count;
    int64_t last;      /* the highest missing number */
    spill_error_t why; /* the first error */
} readable_t;

static void release(readable_t *readable)
{
    spill_response_release(&readable->head);
    spill_response_release(&readable->page);
    spill_response_release(&readable->part);
}

/* Keep the first error of damage, and continue. */
static spill_code_t pass_damage(readable_t *readable, spill_code_t code, const spill_error_t *found,
                                spill_error_t *error)
{
    if (code == SPILL_CORRUPT && readable->why.code == SPILL_OK)
        readable->why = *found;
    if (code != SPILL_OK && code != SPILL_CORRUPT && error != NULL)
        *error = *found;
    return code == SPILL_CORRUPT ? SPILL_OK : code;
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* Read elements with numbers in [from, end) into readable->part. */
static spill_code_t read_part(readable_t *readable, int64_t from, int64_t end, spill_want_t want,
                              int64_t limit, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(readable->owner, SPILL_REQUEST_READ, SPILL_ELEMENTS);
    read.incarnation = readable->head.state.incarnation;
    read.read.watermark = from;
    read.read.pages = end;
    read.read.seq = want == SPILL_WANT_FORWARD ? from : end - 1;
    read.read.want = want;
    read.read.limit = limit;
    read.read.bytes_most = SPILL_REFERENCED_RUN_BYTES;
    return spill_owner_call(readable->owner, &read, &readable->part, error);
}

/*
 * Raise `end` behind the element with the highest number. If the documents do not count that
 * number, their counts are from before the damage.
 */
static spill_code_t find_end(readable_t *readable, spill_error_t *error)
{
    spill_error_t found;
    spill_code_t code = read_part(readable, 0, INT64_MAX, SPILL_WANT_BACKWARD, 1, &found);
    const spill_run_t *run = &readable->part.run;
    if (code == SPILL_OK && run->count > 0 && run->entries[0].seq >= readable->end) {
        if (readable->counted)
            code =
                spill_fail(&found, SPILL_CORRUPT,
                           "elements from %" PRId64 " on are in no document that the head counts",
                           readable->end);
        readable->counted = false;
        readable->end = run->entries[0].seq + 1;
    }
    return pass_damage(readable, code, &found, error);
}

/*
 * The head cannot be read. Its pages show the incarnation, and up to which number there were
 * elements. *found: there is a page.
 */
static spill_code_t find_without_head(readable_t *readable, bool *found, spill_error_t *error)
{
    spill_error_t failure;
    spill_state_t *head = &readable->head.state;
    spill_request_t read =
        spill_owner_request(readable->owner, SPILL_REQUEST_READ, SPILL_PAGE_LEFT_OVER);
    read.incarnation = INT64_MAX;
    spill_code_t code = spill_owner_call(readable->owner, &read, &readable->page, &failure);
    const spill_state_t *page = &readable->page.state;
    *found = code == SPILL_OK && page->present;
    if (*found) {
        bool newest = spill_schema_of(&readable->owner->array->definition)->appends_to_head;
        readable->end = spill_state_end(page);
        spill_state_release(head);
        *head = (spill_state_t){.present = true,
                                .incarnation = page->incarnation,
                                .pages = INT64_MAX,
                                .first = newest ? readable->end : 0};
    }
    return pass_damage(readable, code, &failure, error);
}

/* Read the head and the counts. *there: there may be elements. */
static spill_code_t begin(readable_t *readable, bool *there, spill_error_t *error)
{
    spill_error_t found;
    spill_count_t count;
    spill_owner_t *owner = readable->owner;
    const spill_state_t *head = &readable->head.state;
    spill_code_t code = spill_owner_read_state(owner, SPILL_HEAD, &readable->head, &found);
    SPILL_TRY(pass_damage(readable, code, &found, error));
    readable->headless = code == SPILL_CORRUPT;
    if (readable->headless) {
        SPILL_TRY(find_without_head(readable, there, error));
        return *there ? find_end(readable, error) : SPILL_OK;
    }
    *there = head->present;
    if (!head->present)
        return SPILL_OK;
    code = spill_layout_count(owner, &count, &found);
    SPILL_TRY(pass_damage(readable, code, &found, error));
    readable->counted = code == SPILL_OK;
    readable->count = count.count;
    readable->next = head->watermark;
    readable->guessed = !readable->counted;
    readable->end = readable->counted ? count.next
                                      : head->total + owner->array->definition.bounds.page_capacity;
    bool newest = spill_schema_of(&owner->array->definition)->appends_to_head;
    return newest ? SPILL_OK : find_end(readable, error); /* a page of the newest may be lost */
}

/* ---- missing numbers ------------------------------------------------------------------------- */

static bool holds(const spill_state_t *state, int64_t seq)
{
    return state->present && state->first <= seq && seq < spill_state_end(state);
}

/* Was the element removed (*removed), or does a document count it (*proven)? Neither is unknown. */
static spill_code_t judge(readable_t *readable, int64_t seq, bool *removed, bool *proven,
                          spill_error_t *error)
{
    spill_error_t found;
    const spill_owner_t *owner = readable->owner;
    const spill_state_t *state = &readable->page.state;
    int64_t where = SPILL_NO_DOCUMENT;
    *removed = *proven = false;
    if (!holds(state, seq)) {
        spill_code_t code = spill_outlier_locate(owner, &readable->head.state, seq, SPILL_WANT_NONE,
                                                 0, &readable->page, &where, &found);
        if (code != SPILL_OK || where == SPILL_NO_DOCUMENT)
            readable->page.state.present = false;
        SPILL_TRY(pass_damage(readable, code, &found, error));
        if (where == SPILL_HEAD)
            state = &readable->head.state;
    }
    bool referenced = spill_schema_of(&owner->array->definition)->has_referenced_elements;
    bool empty = referenced && where >= 0 && state->live == 0;
    *removed = empty || (holds(state, seq) && spill_seqs_contains(&state->deleted, seq));
    *proven = holds(state, seq) && !*removed;
    return SPILL_OK;
}

static void add_hole(readable_t *readable, int64_t seq)
{
    readable->missing++;
    if (readable->hole_count > 0 && readable->last == seq - 1 &&
        readable->holes[readable->hole_count - 1].last == seq - 1)
        readable->holes[readable->hole_count - 1].last = seq;
    else if (readable->hole_count < HOLES_MAX)
        readable->holes[readable->hole_count++] = (hole_t){seq, seq};
    readable->last = seq;
}

/* The numbers from readable->next on, before `end`, have no element that can be read. */
static spill_code_t pass_missing(readable_t *readable, int64_t end, spill_error_t *error)
{
    for (; readable->next < end; readable->next++) {
        bool removed, proven;
        SPILL_TRY(judge(readable, readable->next, &removed, &proven, error));
        if (!removed)
            add_hole(readable, readable->next);
        readable->proven += proven ? 1 : 0;
    }
    return SPILL_OK;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Visit the elements of readable->part, which has those with numbers below `end`. */
static spill_code_t visit_part(readable_t *readable, int64_t end, spill_error_t *error)
{
    const spill_run_t *run = &readable->part.run;
    bool whole = !readable->part.stopped && run->count < ELEMENTS_AT_A_TIME;
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        /* Without a head, the trim watermark is unknown. */
        if (readable->elements == 0 && readable->headless)
            readable->next = element.seq;
        SPILL_TRY(pass_missing(readable, element.seq, error));
        readable->next = element.seq + 1;
        readable->elements++;
        if (readable->visit &&
            !readable->visit(readable->context, readable->owner->value, &element))
            return spill_walk_stopped(error);
    }
    return whole ? pass_missing(readable, end, error) : SPILL_OK;
}

/* Read all numbers. If a read fails, read half as many, down to a single one. */
static spill_code_t read_all(readable_t *readable, spill_error_t *error)
{
    int64_t most = INT64_MAX;
    while (readable->next < readable->end) {
        if (readable->visit && spill_store_stopped(readable->owner->array->store))
            return spill_walk_stopped(error);
        spill_error_t found;
        int64_t left = readable->end - readable->next;
        int64_t numbers = left < most ? left : most;
        int64_t end = readable->next + numbers;
        spill_code_t code = read_part(readable, readable->next, end, SPILL_WANT_FORWARD,
                                      ELEMENTS_AT_A_TIME, &found);
        SPILL_TRY(pass_damage(readable, code, &found, error));
        if (code == SPILL_OK) {
            SPILL_TRY(visit_part(readable, end, error));
            most = numbers < ELEMENTS_AT_A_TIME ? numbers * 2 : INT64_MAX;
        } else if (numbers == 1) {
            SPILL_TRY(pass_missing(readable, end, error));
        } else {
            most = numbers > ELEMENTS_AT_A_TIME ? ELEMENTS_AT_A_TIME : numbers / 2;
        }
    }
    return SPILL_OK;
}

/* ---- the report ------------------------------------------------------------------------------ */

static void log_holes(const readable_t *readable)
{
    spill_store_t *store = readable->owner->array->store;
    char *owner = spill_value_to_json(readable->owner->value, false);
    const char *name = readable->owner->array->definition.name;
    for (size_t i = 0; i < readable->hole_count; i++)
        spill_store_log(store, SPILL_LOG_WARNING,
                        "owner %.100s of '%s': elements %" PRId64 " to %" PRId64 " cannot be read",
                        owner ? owner : "?", name, readable->holes[i].first,
                        readable->holes[i].last);
    if (readable->hole_count == HOLES_MAX)
        spill_store_log(store, SPILL_LOG_WARNING,
                        "owner %.100s of '%s': more elements may be missing, up to %" PRId64,
                        owner ? owner : "?", name, readable->last);
    bson_free(owner);
}

/* Numbers from a guessed end down may never have had an element. */
static void drop_guessed(readable_t *readable)
{
    if (!readable->guessed || readable->hole_count == 0 || readable->last != readable->end - 1 ||
        readable->holes[readable->hole_count - 1].last != readable->last)
        return;
    const hole_t *hole = &readable->holes[--readable->hole_count];
    readable->missing -= hole->last - hole->first + 1;
    readable->last = hole->first - 1;
}

/* The first error, without the owner's name, which the message has already. */
static const char *reason(const readable_t *readable)
{
    spill_error_t name = {.message = ""};
    const char *why = readable->why.message;
    spill_owner_name(readable->owner, SPILL_CORRUPT, &name);
    size_t length = strlen(name.message);
    while (length > 0 && strchr(": ", name.message[length - 1]))
        length--;
    if (length == 0 || strncmp(why, name.message, length) != 0)
        return why;
    why += length;
    return why + strspn(why, ":, ");
}

/* Removed elements leave holes, too. If the number of elements is right, there is no other hole. */
static spill_code_t report(const readable_t *readable, spill_error_t *error)
{
    bool complete =
        readable->counted && readable->proven == 0 && readable->elements >= readable->count;
    if (complete)
        return SPILL_OK;
    if (readable->visit)
        log_holes(readable);
    const char *why = reason(readable);
    const char *colon = why[0] != '\0' ? ": " : "";
    if (readable->hole_count > 0)
        spill_fail(error, SPILL_CORRUPT,
                   "%" PRId64 " elements can be read, and %" PRId64 " from %" PRId64 " to %" PRId64
                   " cannot be read%s%.300s",
                   readable->elements, readable->missing, readable->holes[0].first, readable->last,
                   colon, why);
    else if (readable->counted)
        spill_fail(error, SPILL_CORRUPT,
                   "%" PRId64 " elements are counted, and %" PRId64 " can be read%s%.300s",
                   readable->count, readable->elements, colon, why);
    else
        spill_fail(error, SPILL_CORRUPT,
                   "%" PRId64 " elements can be read, and others may be missing that cannot be "
                   "read%s%.300s",
                   readable->elements, colon, why);
    return spill_owner_name(readable->owner, SPILL_CORRUPT, error);
}

spill_code_t spill_readable_walk(spill_owner_t *owner, spill_element_fn visit, void *context,
                                 int64_t *elements, spill_error_t *error)
{
    SPILL_SCOPED(release)
    readable_t readable = {.owner = owner, .visit = visit, .context = context};
    bool there;
    *elements = 0;
    SPILL_TRY(begin(&readable, &there, error));
    if (!there && readable.why.code == SPILL_OK)
        return SPILL_OK;
    if (there)
        SPILL_TRY(read_all(&readable, error));
    drop_guessed(&readable);
    *elements = readable.elements;
    return report(&readable, error);
}
