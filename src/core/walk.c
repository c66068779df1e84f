/* Walks over whole arrays: owners, elements, documents. A bounded run is in memory at a time. */
#include "core/array.h"
#include "definition/schema.h"
#include "layout/locate.h"
#include "layout/referenced.h"
#include "store/render.h"
#include "util/error.h"

enum { ELEMENTS_AT_A_TIME = 1000 };

/* ---- elements -------------------------------------------------------------------------------- */

typedef struct walk {
    spill_array_t *array;
    bool whole; /* over all owners, which are listed */
    spill_element_fn visit;
    void *context;
} walk_t;

static const spill_run_t no_elements;

/* End the stretch after the run: at the document's end, or at the most that is read at once. */
static void end_stretch(spill_stretch_t *stretch, const spill_run_t *run,
                        const spill_state_t *state)
{
    stretch->run = run;
    stretch->next = run->count < ELEMENTS_AT_A_TIME ? spill_state_end(state)
                                                    : run->entries[run->count - 1].seq + 1;
}

/* Was the owner dropped after the walk began? An append may have created it again since. */
static bool was_dropped(const spill_stretch_t *stretch)
{
    const spill_state_t *head = &stretch->head.state;
    return !head->present ||
           (stretch->incarnation != 0 && stretch->incarnation != head->incarnation);
}

static spill_code_t read_from_head(const spill_owner_t *owner, int64_t seq,
                                   spill_stretch_t *stretch, spill_error_t *error)
{
    const spill_state_t *head = &stretch->head.state;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.seq = seq;
    read.read.limit = ELEMENTS_AT_A_TIME;
    SPILL_TRY(spill_owner_call(owner, &read, &stretch->head, error));
    bool newest = spill_schema_of(&owner->array->definition)->appends_to_head;
    stretch->last = was_dropped(stretch);
    if (stretch->last)
        return SPILL_OK;
    if (newest && seq < head->first && head->watermark < head->first)
        return SPILL_OK; /* a spill moved it to a page meanwhile */
    end_stretch(stretch, &stretch->head.run, head);
    stretch->last = stretch->next == spill_state_end(head) && (newest || head->pages == 0);
    return SPILL_OK;
}

/* A page that the head counts is absent: it was trimmed, its owner was dropped, or it is lost. */
static spill_code_t look_again(const spill_owner_t *owner, int64_t page, spill_stretch_t *stretch,
                               spill_error_t *error)
{
    const spill_state_t *head = &stretch->head.state;
    int64_t incarnation = head->incarnation;
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &stretch->head, error));
    if (head->present && head->incarnation == incarnation && head->watermark <= stretch->next)
        return spill_owner_missing_page(owner, page, error);
    return SPILL_OK;
}

/* No document holds `seq`: continue at the start of document `after`, if that exists. */
static spill_code_t skip_to(const spill_owner_t *owner, int64_t after, spill_stretch_t *stretch,
                            spill_error_t *error)
{
    const spill_state_t *state = &stretch->head.state;
    if (after >= 0) {
        SPILL_TRY(spill_owner_read_state(owner, after, &stretch->page, error));
        state = &stretch->page.state;
        if (state->incarnation != stretch->head.state.incarnation)
            stretch->page.state.present = false; /* an earlier owner's */
        if (!state->present && spill_schema_of(&owner->array->definition)->appends_to_head)
            return look_again(owner, after, stretch, error);
        /* A page that begins before the walk's place was found neither: a late write restored it.
         */
        bool still = true;
        if (state->present && state->first <= stretch->next)
            SPILL_TRY(spill_owner_still_has(owner, &stretch->head.state, stretch->next,
                                            &stretch->now, &still, error));
        if (!still)
            return SPILL_OK;
    }
    stretch->last = after == SPILL_NO_DOCUMENT || !state->present || state->first <= stretch->next;
    stretch->next = state->first;
    return SPILL_OK;
}

/* Read referenced elements from stretch->next on. */
static spill_code_t read_referenced(const spill_owner_t *owner, spill_stretch_t *stretch,
                                    spill_error_t *error)
{
    const spill_state_t *head = &stretch->head.state;
    stretch->referenced.next = stretch->next;
    SPILL_TRY(spill_referenced_walk(owner, head, head->first, &stretch->referenced, &stretch->page,
                                    error));
    stretch->run = &stretch->page.run;
    stretch->next = stretch->referenced.next;
    return SPILL_OK;
}

/*
 * The run was read from a page. If the array no longer has its elements, the run is empty,
 * and the next call continues where this one began, at `from`.
 */
static spill_code_t check_run(const spill_owner_t *owner, int64_t from, spill_stretch_t *stretch,
                              spill_error_t *error)
{
    bool still;
    if (!spill_schema_of(&owner->array->definition)->appends_to_head || stretch->run->count == 0)
        return SPILL_OK;
    SPILL_TRY(
        spill_owner_still_has(owner, &stretch->head.state, from, &stretch->now, &still, error));
    if (!still) {
        stretch->run = &no_elements;
        stretch->next = from;
        stretch->last = false;
    }
    spill_response_t before = stretch->head;
    stretch->head = stretch->now;
    stretch->now = before;
    stretch->head_is_new = true;
    return SPILL_OK;
}

spill_code_t spill_stretch_read(const spill_owner_t *owner, spill_stretch_t *stretch,
                                spill_error_t *error)
{
    const spill_state_t *head = &stretch->head.state;
    int64_t where = SPILL_NO_DOCUMENT;
    stretch->run = &no_elements;
    if (!stretch->head_is_new)
        SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &stretch->head, error));
    stretch->head_is_new = false;
    stretch->last = was_dropped(stretch);
    if (stretch->last)
        return SPILL_OK;
    stretch->incarnation = head->incarnation;
    if (stretch->next < head->watermark)
        stretch->next = head->watermark;
    if (spill_schema_of(&owner->array->definition)->has_referenced_elements &&
        stretch->next < head->first) {
        int64_t from = stretch->next;
        SPILL_TRY(read_referenced(owner, stretch, error));
        return check_run(owner, from, stretch, error);
    }
    SPILL_TRY(spill_outlier_locate(owner, head, stretch->next, SPILL_WANT_FORWARD,
                                   ELEMENTS_AT_A_TIME, &stretch->page, &where, error));
    if (where == SPILL_HEAD)
        return read_from_head(owner, stretch->next, stretch, error);
    if (where == SPILL_NO_DOCUMENT)
        return skip_to(owner, head->pages > 0 ? 0 : SPILL_HEAD, stretch, error);
    if (spill_state_end(&stretch->page.state) <= stretch->next)
        return skip_to(
            owner,
            spill_document_after(spill_schema_of(&owner->array->definition), where, head->pages),
            stretch, error);
    int64_t from = stretch->next;
    end_stretch(stretch, &stretch->page.run, &stretch->page.state);
    return check_run(owner, from, stretch, error);
}

void spill_stretch_release(spill_stretch_t *stretch)
{
    spill_response_release(&stretch->head);
    spill_response_release(&stretch->now);
    spill_response_release(&stretch->page);
}

static spill_code_t export_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    const walk_t *walk = context;
    int64_t elements;
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_SCOPED(spill_stretch_release) spill_stretch_t stretch = {.last = false};
    SPILL_TRY(spill_owner_init(&own, walk->array, owner, error));
    own.walked = walk->whole;
    if (walk->array->store->options.partial)
        return spill_readable_walk(&own, walk->visit, walk->context, &elements, error);
    while (!stretch.last) {
        if (spill_store_stopped(walk->array->store))
            return spill_walk_stopped(error);
        SPILL_TRY(spill_stretch_read(&own, &stretch, error));
        for (size_t i = 0; i < stretch.run->count; i++) {
            spill_element_t element = spill_run_element(stretch.run, i);
            if (!walk->visit(walk->context, owner, &element))
                return spill_walk_stopped(error);
        }
    }
    return SPILL_OK;
}

spill_code_t spill_walk_owner(spill_array_t *array, const spill_value_t *owner,
                              spill_element_fn visit, void *context, spill_error_t *error)
{
    walk_t walk = {.array = array, .whole = true, .visit = visit, .context = context};
    return export_owner(&walk, owner, error);
}

/* ---- elements of arrays that may be unmanaged ------------------------------------------------ */

enum { TRIES_MAX = 20 };

/* *found is false if the array was adopted meanwhile. */
static spill_code_t walk_unmanaged(const walk_t *walk, const spill_value_t *value, bool *found,
                                   spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_init(&owner, walk->array, value, error));
    spill_request_t read = spill_owner_unmanaged_request(&owner, INT64_MAX);
    SPILL_TRY(spill_owner_call(&owner, &read, &head, error));
    *found = !head.state.present;
    for (size_t i = 0; *found && i < head.run.count; i++) {
        spill_element_t element = spill_run_element(&head.run, i);
        if (!walk->visit(walk->context, value, &element))
            return spill_walk_stopped(error);
    }
    return SPILL_OK;
}

/* Passes elements on, and counts them. */
typedef struct counted {
    const walk_t *walk;
    int64_t elements;
} counted_t;

static bool count_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    counted_t *counted = context;
    counted->elements++;
    return counted->walk->visit(counted->walk->context, owner, element);
}

/* A READ refuses an unmanaged array. An adoption or an undo between two READs begins a new try. */
spill_code_t spill_walk_any(spill_array_t *array, const spill_value_t *owner,
                            spill_element_fn visit, void *context, bool *managed,
                            spill_error_t *error)
{
    walk_t walk = {.array = array, .whole = true, .visit = visit, .context = context};
    counted_t counted = {.walk = &walk};
    walk_t counts = walk;
    counts.visit = count_element;
    counts.context = &counted;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        bool found = false;
        spill_code_t code = export_owner(&counts, owner, error);
        if (managed)
            *managed = code != SPILL_REFUSED;
        if (code != SPILL_REFUSED || counted.elements > 0 || !spill_array_has_unmanaged(array))
            return code;
        SPILL_TRY(walk_unmanaged(&walk, owner, &found, error));
        if (found)
            return SPILL_OK;
    }
    return spill_fail_retryable(error, SPILL_CONFLICT,
                                "other programs keep adopting an array of '%s' and undoing it",
                                array->definition.name);
}

/* An owner without elements may have lost its head. */
static spill_code_t walk_found(const walk_t *walk, const spill_value_t *owner, spill_error_t *error)
{
    counted_t counted = {.walk = walk};
    walk_t counts = *walk;
    counts.visit = count_element;
    counts.context = &counted;
    SPILL_TRY(export_owner(&counts, owner, error));
    return counted.elements > 0 ? SPILL_OK : spill_check_unheaded(walk->array, owner, error);
}

spill_code_t spill_array_export(spill_array_t *array, const spill_value_t *owner,
                                spill_element_fn visit, void *context, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, array);
    SPILL_TRY(spill_store_check_process(array->store, error));
    SPILL_CHECK_ARGUMENT(error, visit != NULL, "the argument 'visit' is NULL");
    walk_t walk = {.array = array, .whole = !owner, .visit = visit, .context = context};
    if (owner != NULL)
        return walk_found(&walk, owner, error);
    return spill_end_walk(array, spill_each_owner(array, export_owner, &walk, true, error), error);
}

/* ---- documents ------------------------------------------------------------------------------- */

typedef struct documents {
    spill_array_t *array;
    bool plain;
    spill_document_fn visit;
    void *context;
} documents_t;

/* Read a whole document, render it and pass it to `visit`. Skip an absent one. */
static spill_code_t show_document(const documents_t *documents, const spill_owner_t *owner,
                                  int64_t page, spill_response_t *response, spill_error_t *error)
{
    const spill_definition_t *definition = &documents->array->definition;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, page);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    read.read.want_ops = true;
    read.read.want_fields = page == SPILL_HEAD;
    read.read.want_top = page == SPILL_HEAD;
    SPILL_TRY(spill_owner_call(owner, &read, response, error));
    bool removed = page != SPILL_HEAD && spill_schema_of(definition)->has_referenced_elements &&
                   documents->plain && response->state.live == 0;
    if (!response->state.present || removed)
        return SPILL_OK;
    bson_t document;
    const char *collection = definition->collection;
    if (page == SPILL_HEAD) {
        spill_render_head(definition, &response->state, response->fields, &response->run,
                          &response->top_run, &response->ops, documents->plain, &document);
    } else {
        spill_render_page(definition, owner->value, &response->state, &response->run,
                          &response->ops, documents->plain, &document);
        collection = definition->page_collection;
    }
    bool stop = !documents->visit(documents->context, collection, &document);
    bson_destroy(&document);
    return stop ? spill_walk_stopped(error) : SPILL_OK;
}

/* Find the first page that must exist. Trims may have deleted those before it. */
static spill_code_t first_counted(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t *page, spill_error_t *error)
{
    *page = 0;
    if (head->watermark == 0 || head->pages == 0)
        return SPILL_OK;
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_outlier_request_holding(owner, head, head->watermark);
    SPILL_TRY(spill_owner_call(owner, &read, &response, error));
    if (response.state.present)
        *page = response.state.page;
    return SPILL_OK;
}

static spill_code_t show_pages(const documents_t *documents, const spill_owner_t *owner,
                               const spill_state_t *head, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    const spill_schema_t *schema = spill_schema_of(&documents->array->definition);
    bool referenced = schema->has_referenced_elements, newest = schema->appends_to_head;
    int64_t missing = 0, counted;
    SPILL_TRY(first_counted(owner, head, &counted, error));
    for (int64_t page = referenced ? head->watermark : 0; page < head->pages; page++) {
        if (spill_store_stopped(documents->array->store))
            return spill_walk_stopped(error);
        SPILL_TRY(show_document(documents, owner, page, &response, error));
        missing = response.state.present || page < counted ? 0 : missing + 1;
        bool last = page == head->pages - 1; /* with keep oldest, it is counted before it is made */
        if (missing > 0 && (newest || !last))
            SPILL_TRY(spill_owner_check_counted(owner, head, page, error));
    }
    return SPILL_OK;
}

static spill_code_t show_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    const documents_t *documents = context;
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_init(&own, documents->array, owner, error));
    SPILL_TRY(show_document(documents, &own, SPILL_HEAD, &response, error));
    return response.state.present ? show_pages(documents, &own, &response.state, error) : SPILL_OK;
}

spill_code_t spill_array_documents(spill_array_t *array, const spill_value_t *owner, bool plain,
                                   spill_document_fn visit, void *context, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, array);
    SPILL_TRY(spill_store_check_process(array->store, error));
    SPILL_CHECK_ARGUMENT(error, visit != NULL, "the argument 'visit' is NULL");
    documents_t documents = {.array = array, .plain = plain, .visit = visit, .context = context};
    if (owner != NULL)
        return show_owner(&documents, owner, error);
    return spill_end_walk(array, spill_each_owner(array, show_owner, &documents, true, error),
                          error);
}
