/*
 * APPEND by a push. The filter lets the server decide if the document has room. Most pushes are
 * quick: no READ comes before. guarded.c computes the effects of all other appends.
 */
#include "store/mongo/guarded.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "util/buffer.h"
#include "util/error.h"

#include <pthread.h>
#include <string.h>

/* ---- hints ----------------------------------------------------------------------------------- */

/*
 * The lengths of arrays after this store's last append. An append with the length in its guard need
 * not ask for it in its answer, which saves the server an expression: about 50 us. If the hint is
 * wrong, the guard does not hold, and the document is read.
 */
enum {
    SLOTS = 1024,
    DOUBT = 16 /* appends without the hint after it was wrong, because other clients append */
};

typedef struct slot {
    uint64_t key; /* of the document; 0: none */
    int64_t length;
    int doubt;
    bool cut_due; /* another thread cuts the array soon, so the length will be wrong */
} slot_t;

struct spill_mongo_hints {
    pthread_mutex_t lock;
    slot_t slots[SLOTS];
};

spill_mongo_hints_t *spill_mongo_hints_new(void)
{
    spill_mongo_hints_t *hints = bson_malloc0(sizeof *hints);
    pthread_mutex_init(&hints->lock, NULL);
    return hints;
}

void spill_mongo_hints_free(spill_mongo_hints_t *hints)
{
    if (!hints)
        return;
    pthread_mutex_destroy(&hints->lock);
    bson_free(hints);
}

/* If two documents have the same key, the only cost is a refusal. */
static uint64_t key_of(const spill_mongo_document_t *document)
{
    const spill_request_t *request = document->request;
    const spill_value_t *owner = request->owner;
    uint64_t parts[] = {spill_hash(document->collection, strlen(document->collection)),
                        spill_hash(document->array, strlen(document->array)),
                        spill_hash(owner->data, owner->size_bytes), (uint64_t)owner->type,
                        (uint64_t)request->page};
    return spill_hash(parts, sizeof parts) | 1;
}

/* The document's slot, cleared if another document had it. The lock is held. */
static slot_t *slot_of(spill_mongo_hints_t *hints, const spill_mongo_document_t *document)
{
    uint64_t key = key_of(document);
    pthread_mutex_lock(&hints->lock);
    slot_t *slot = &hints->slots[key / 2 % SLOTS];
    if (slot->key != key)
        *slot = (slot_t){.key = key, .length = -1};
    return slot;
}

/*
 * A full capped head keeps its length, whichever client appends. So its hint is probably right even
 * if other clients append.
 */
bool spill_mongo_hint(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                      spill_mongo_hint_t *hint)
{
    slot_t *slot = slot_of(hints, document);
    const spill_request_t *append = document->request;
    bool rolls =
        spill_schema_of(append->definition)->is_capped && slot->length == append->limits.slots_max;
    bool known = slot->length >= 0 && !slot->cut_due && (slot->doubt == 0 || rolls);
    *hint = (spill_mongo_hint_t){.length = slot->length};
    pthread_mutex_unlock(&hints->lock);
    return known;
}

void spill_mongo_hint_learn(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                            const spill_state_t *state, bool defers)
{
    slot_t *slot = slot_of(hints, document);
    if (state->live < slot->length) /* it was cut */
        slot->cut_due = false;
    if (defers && spill_request_is_due(document->request, spill_state_slots(state)))
        slot->cut_due = true;
    slot->length = state->deleted.count == 0 ? state->live : -1;
    slot->doubt -= slot->doubt > 0;
    pthread_mutex_unlock(&hints->lock);
}

void spill_mongo_hint_shorten(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                              int64_t by)
{
    slot_t *slot = slot_of(hints, document);
    slot->length = slot->length >= by && !slot->cut_due ? slot->length - by : -1;
    slot->cut_due = false;
    pthread_mutex_unlock(&hints->lock);
}

void spill_mongo_hint_raise(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                            int64_t by)
{
    slot_t *slot = slot_of(hints, document);
    slot->length = slot->length >= 0 ? slot->length + by : -1;
    pthread_mutex_unlock(&hints->lock);
}

void spill_mongo_hint_doubt(spill_mongo_hints_t *hints, const spill_mongo_document_t *document)
{
    slot_t *slot = slot_of(hints, document);
    slot->length = -1;
    slot->doubt = DOUBT;
    pthread_mutex_unlock(&hints->lock);
}

/* ---- pushes ---------------------------------------------------------------------------------- */

bool spill_mongo_is_pushed(const spill_mongo_document_t *document)
{
    const spill_schema_t *schema = spill_schema_of(document->request->definition);
    return !document->referenced && !schema->has_windows && !schema->keeps_top_n;
}

/* ---- one push -------------------------------------------------------------------------------- */

/* What an append asks the server to return, the cheapest first. */
typedef enum answer {
    ANSWER_FIRST, /* `first` and `n`, enough if the guard has the length */
    ANSWER_END,   /* the end of the document's numbers */
    ANSWER_READ   /* the result of a READ: the head is due to be spilled */
} answer_t;

typedef struct attempt {
    spill_mongo_t *store;
    const spill_mongo_document_t *document;
    spill_request_t shown;          /* ANSWER_READ: the READ */
    const spill_mongo_hint_t *hint; /* the filter has this length; or NULL */
    const spill_mongo_roll_t *roll; /* a capped head of known length; else NULL */
    answer_t answer;
    bson_t filter; /* the document's _id; the caller adds the guard */
    bson_t open;   /* what the append also sets in the bookkeeping; see guard.c */
} attempt_t;

static answer_t answer_to(const spill_request_t *request, const spill_mongo_hint_t *hint)
{
    if (!hint)
        return ANSWER_END;
    bool due = spill_request_is_due(request, hint->length + (int64_t)request->append.element_count);
    return due ? ANSWER_READ : ANSWER_FIRST;
}

static void prepare(attempt_t *attempt, spill_mongo_t *store,
                    const spill_mongo_document_t *document, const spill_mongo_hint_t *hint)
{
    *attempt = (attempt_t){.store = store,
                           .document = document,
                           .shown = spill_request_shown(document->request),
                           .hint = hint,
                           .answer = answer_to(document->request, hint)};
    spill_mongo_select(document, &attempt->filter);
    bson_init(&attempt->open);
}

static void release(attempt_t *attempt)
{
    bson_destroy(&attempt->filter);
    bson_destroy(&attempt->open);
}

static void append_answer_fields(const attempt_t *attempt, bson_t *fields)
{
    char path[SPILL_MONGO_PATH_SIZE];
    spill_mongo_document_t document = *attempt->document;
    bson_init(fields);
    switch (attempt->answer) {
    case ANSWER_FIRST:
        BSON_APPEND_INT32(fields, spill_mongo_path(attempt->document, SPILL_STORED_FIRST, path), 1);
        BSON_APPEND_INT32(fields, spill_mongo_path(attempt->document, SPILL_STORED_OP_COUNT, path),
                          1);
        break;
    case ANSWER_END:
        spill_mongo_project_end(attempt->document, fields);
        break;
    case ANSWER_READ:
        document.request = &attempt->shown;
        spill_mongo_project_read(&document, false, fields);
        break;
    }
}

static spill_code_t read_number(const attempt_t *attempt, const bson_t *after, const char *name,
                                int64_t *number, spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_iter_t iter, found;
    spill_mongo_path(attempt->document, name, path);
    if (!bson_iter_init(&iter, after) || !bson_iter_find_descendant(&iter, path, &found) ||
        !BSON_ITER_HOLDS_NUMBER(&found))
        return spill_fail(error, SPILL_CORRUPT, "%s: %s is not a number",
                          attempt->document->collection, path);
    *number = spill_iter_int64(&found);
    return SPILL_OK;
}

/* Read `first`. The filter has confirmed that the hint has the right length. */
static spill_code_t read_first(const attempt_t *attempt, const bson_t *after, spill_state_t *state,
                               spill_error_t *error)
{
    state->present = true;
    state->live = attempt->roll ? attempt->roll->live
                                : attempt->hint->length +
                                      (int64_t)attempt->document->request->append.element_count;
    SPILL_TRY(read_number(attempt, after, SPILL_STORED_FIRST, &state->first, error));
    return read_number(attempt, after, SPILL_STORED_OP_COUNT, &state->op_count, error);
}

static spill_code_t read_answer(const attempt_t *attempt, const bson_t *after,
                                spill_response_t *response, spill_error_t *error)
{
    spill_state_t *state = &response->state;
    spill_mongo_document_t document = *attempt->document;
    switch (attempt->answer) {
    case ANSWER_FIRST:
        return read_first(attempt, after, state, error);
    case ANSWER_READ:
        response->shows_read = true;
        document.request = &attempt->shown;
        return spill_mongo_decode_reply(&document, after, state, &response->run, NULL, error);
    default:
        return spill_mongo_state(attempt->document, after, false, state, NULL, error);
    }
}

/* Does the answer lack what was asked for? The append was made all the same. */
static bool is_silent(const attempt_t *attempt, const bson_t *after)
{
    return attempt->answer != ANSWER_FIRST && spill_mongo_is_unprojected(after);
}

/* Send the attempt. A refusal leaves the response unchanged. */
static spill_code_t push(attempt_t *attempt, spill_response_t *response, bool *done,
                         spill_error_t *error)
{
    const spill_mongo_document_t *document = attempt->document;
    const spill_request_t *request = document->request;
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t fields = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t after = BSON_INITIALIZER;
    spill_mongo_update_of_append(document, &attempt->open, NULL, attempt->roll, &update);
    append_answer_fields(attempt, &fields);
    spill_code_t code = spill_mongo_modify(attempt->store, document->collection, &attempt->filter,
                                           &update, &fields, &after, done, error);
    SPILL_TRY(spill_mongo_blocked(document, code, error));
    if (!*done)
        return SPILL_OK;
    if (is_silent(attempt, &after))
        return spill_fail(error, SPILL_UNKNOWN,
                          "%s: the driver has sent an append twice, and the answer does not have "
                          "its number",
                          document->collection);
    SPILL_TRY(read_answer(attempt, &after, response, error));
    response->outcome = SPILL_DONE;
    response->seq = spill_state_end(&response->state) - (int64_t)request->append.element_count;
    spill_mongo_hint_learn(attempt->store->hints, document, &response->state,
                           spill_store_defers(&attempt->store->base, request));
    return SPILL_OK;
}

/* ---- a push to a document in any state ------------------------------------------------------- */

static void append_exact_guard(const spill_mongo_document_t *document, bson_t *filter)
{
    char path[SPILL_MONGO_PATH_SIZE];
    spill_mongo_path(document, SPILL_STORED_INCARNATION, path);
    if (document->head)
        BCON_APPEND(filter, path, "{", "$exists", BCON_BOOL(true), "}");
    else
        BSON_APPEND_INT64(filter, path, document->request->incarnation);
    BCON_APPEND(filter, spill_mongo_path(document, SPILL_STORED_SEALED, path), "{", "$ne",
                BCON_BOOL(true), "}");
    spill_mongo_append_room(document, filter);
    spill_mongo_append_search_guard(document, filter);
    if (spill_request_ops(document->request) > 0)
        spill_mongo_append_op_guard(document, filter);
    spill_mongo_append_seen_guard(document, true, filter);
}

spill_code_t spill_mongo_push_exactly(spill_mongo_t *store, const spill_mongo_document_t *document,
                                      spill_response_t *response, bool *done, spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE];
    SPILL_SCOPED(release) attempt_t attempt;
    prepare(&attempt, store, document, NULL);
    append_exact_guard(document, &attempt.filter);
    if (response->state.deleted.count == 0) {
        spill_mongo_append_open(document, response->state.incarnation,
                                spill_mongo_path(document, SPILL_STORED_OPEN, path), &attempt.open);
        BCON_APPEND(&attempt.filter, spill_mongo_path(document, SPILL_STORED_DELETED, path), "{",
                    "$exists", BCON_BOOL(false), "}");
    }
    return push(&attempt, response, done, error);
}

/* ---- the quick push -------------------------------------------------------------------------- */

/* A push of the length known by the hint (or NULL) and, to a capped head, the elements it drops. */
static spill_code_t push_known(spill_mongo_t *store, const spill_mongo_document_t *document,
                               const spill_mongo_hint_t *hint, spill_response_t *response,
                               bool *done, spill_error_t *error)
{
    const spill_request_t *request = document->request;
    spill_mongo_roll_t roll;
    SPILL_SCOPED(release) attempt_t attempt;
    prepare(&attempt, store, document, hint);
    if (hint && spill_schema_of(request->definition)->is_capped) {
        int64_t all = hint->length + (int64_t)request->append.element_count;
        int64_t live = all < request->limits.slots_max ? all : request->limits.slots_max;
        roll = (spill_mongo_roll_t){.moved = all - live, .live = live};
        attempt.roll = &roll;
    }
    spill_mongo_append_quick_guard(document, hint, &attempt.filter);
    return push(&attempt, response, done, error);
}

bool spill_mongo_is_full(const spill_request_t *append, const spill_mongo_hint_t *hint)
{
    return !spill_schema_of(append->definition)->is_capped &&
           hint->length + (int64_t)append->append.element_count > append->limits.slots_max;
}

spill_code_t spill_mongo_push_quickly(spill_mongo_t *store, const spill_mongo_document_t *document,
                                      spill_response_t *response, bool *done, spill_error_t *error)
{
    spill_mongo_hint_t hint;
    *done = false;
    if (!spill_mongo_is_pushed(document) || !spill_mongo_is_quick(document))
        return SPILL_OK;
    bool hinted = spill_mongo_hint(store->hints, document, &hint);
    if (hinted && spill_mongo_is_full(document->request, &hint))
        return SPILL_OK;
    return push_known(store, document, hinted ? &hint : NULL, response, done, error);
}

/* ---- the quick push as the caller's own update ----------------------------------------------- */

bool spill_mongo_make_push(spill_mongo_t *store, const spill_request_t *append, bson_t *filter,
                           bson_t *update)
{
    spill_mongo_hint_t hint;
    spill_mongo_document_t document;
    SPILL_SCOPED(bson_destroy) bson_t open = BSON_INITIALIZER;
    spill_mongo_document_init(&document, store, append);
    if (!spill_mongo_is_pushed(&document) || !spill_mongo_is_quick(&document) ||
        spill_schema_of(append->definition)->is_capped ||
        !spill_mongo_hint(store->hints, &document, &hint) || spill_mongo_is_full(append, &hint) ||
        answer_to(append, &hint) == ANSWER_READ)
        return false;
    spill_mongo_select(&document, filter);
    spill_mongo_append_quick_guard(&document, &hint, filter);
    spill_mongo_update_of_append(&document, &open, NULL, NULL, update);
    /* Before the server has made it: a wrong hint costs a refusal and nothing else. */
    spill_mongo_hint_raise(store->hints, &document, (int64_t)append->append.element_count);
    return true;
}
