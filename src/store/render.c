#include "store/render.h"

#include "bson/field_path.h"
#include "bson/value.h"
#include "definition/schema.h"
#include "definition/stored_names.h"

#include <stdint.h>
#include <string.h>

/* ---- sizes ----------------------------------------------------------------------------------- */

enum {
    FRAME_BYTES = 5, /* the length and the final NUL of a document or an array */
    TYPE_BYTES = 2,  /* the type before a field's name, and the NUL after it */
    /*
     * All of `spill`, with names and frames, except the contents of `gone` and `ops`. While
     * `sealed`, `closed` and `gone` are absent, a store may use their bytes for a field of its own
     * (`open` in store/mongo).
     */
    BOOKKEEPING_BYTES = 195,
    /* The `tally` of a bucket. */
    WINDOW_STATS_BYTES = 7 + 5 + (8 + 8) + (7 + 8) + 3 * (5 + 8),
};

/*
 * Bytes of a field with that name and a value of value_bytes; 0 if the name is empty. For a path,
 * count also the documents around the field, in whose place the name has a '.'.
 */
static int64_t field_bytes(const char *name, int64_t value_bytes)
{
    int64_t around = 0;
    for (const char *dot = strchr(name, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
        around += TYPE_BYTES + FRAME_BYTES - 1;
    return name[0] == '\0' ? 0 : TYPE_BYTES + (int64_t)strlen(name) + around + value_bytes;
}

/* Bytes of an array without its values. */
static int64_t array_bytes(int64_t count)
{
    return FRAME_BYTES + spill_array_framing(count);
}

static int64_t bookkeeping_bytes(const spill_definition_t *definition, const spill_state_t *state,
                                 int64_t live)
{
    /* The runs lie between live elements and have two numbers each, whichever elements stay. */
    bool gaps = spill_schema_of(definition)->keeps_top_n;
    int64_t deleted = gaps ? 2 * (live + 1) : (int64_t)state->deleted.count;
    int64_t ops = state->op_count < definition->op_window ? state->op_count : definition->op_window;
    if (ops == 0)
        ops = 1; /* there is always an entry */
    return BOOKKEEPING_BYTES + array_bytes(deleted) + deleted * SPILL_NUMBER_BYTES +
           array_bytes(ops) + ops * SPILL_OP_BYTES +
           (state->lease > 0 ? field_bytes(SPILL_STORED_LEASE, SPILL_NUMBER_BYTES) : 0);
}

/* Referenced elements: the summary and its bookkeeping, which has the sum at most twice. */
static int64_t summary_bytes(const spill_definition_t *definition)
{
    return field_bytes(definition->array,
                       FRAME_BYTES + field_bytes(definition->stats_count, SPILL_NUMBER_BYTES) +
                           field_bytes(definition->stats_average, SPILL_NUMBER_BYTES)) +
           field_bytes(SPILL_STORED_SUM, SPILL_SUM_BYTES) +
           field_bytes(SPILL_STORED_INTENT_VALUE, SPILL_SUM_BYTES) +
           field_bytes(SPILL_STORED_SOURCE_REV, SPILL_NUMBER_BYTES);
}

/*
 * Layout subset: reserve the bytes of the most elements that the top may have, so that a step that
 * changes the top is never refused for want of room.
 */
static int64_t top_bytes(const spill_definition_t *definition, const spill_top_t *top)
{
    int64_t noted = definition->top_count;
    int64_t shown = spill_array_framing((int64_t)top->shown) + top->shown_bytes;
    int64_t room = spill_top_room(definition);
    if (!spill_schema_of(definition)->has_top)
        return 0;
    return field_bytes(definition->top_field, FRAME_BYTES + (shown > room ? shown : room)) +
           field_bytes(SPILL_STORED_SHOWN, SPILL_NUMBER_BYTES) +
           field_bytes(SPILL_STORED_TOP, array_bytes(noted) + noted * SPILL_TOP_ENTRY_BYTES);
}

/* Layout bucket: bytes of a head or a page without the elements. */
static int64_t bucket_bytes(const spill_definition_t *definition, const spill_value_t *window,
                            bool head, const spill_state_t *state)
{
    const char *const statistics[] = {definition->stats_count, definition->stats_average,
                                      definition->stats_sum, definition->stats_min,
                                      definition->stats_max};
    int64_t id = window->size_bytes + field_bytes(SPILL_STORED_ID_PART, SPILL_NUMBER_BYTES);
    int64_t made = FRAME_BYTES + field_bytes("_id", id);
    int64_t fields =
        head ? state->fields_bytes + field_bytes(SPILL_STORED_ID_PART, SPILL_NUMBER_BYTES) : 0;
    int64_t stats = FRAME_BYTES;
    for (size_t i = 0; i < sizeof statistics / sizeof *statistics; i++)
        stats += field_bytes(statistics[i], SPILL_NUMBER_BYTES);
    /* Owner and window text are parts of `window`, so together they are not longer than it. */
    return WINDOW_STATS_BYTES + (fields > made ? fields : made) +
           field_bytes(definition->page_owner, window->size_bytes) +
           field_bytes(definition->window_field, 0) +
           field_bytes(definition->page_number, SPILL_NUMBER_BYTES) +
           field_bytes(definition->stats_field, stats);
}

static int64_t head_bytes(const spill_definition_t *definition, const spill_value_t *owner,
                          const spill_state_t *state)
{
    int64_t made = FRAME_BYTES + field_bytes("_id", owner->size_bytes);
    return (state->fields_bytes > 0 ? state->fields_bytes : made) +
           field_bytes(definition->count_field, SPILL_NUMBER_BYTES) +
           field_bytes(definition->overflow_field, 1) +
           field_bytes(definition->pages_field, SPILL_NUMBER_BYTES) +
           field_bytes(definition->array, FRAME_BYTES); /* under `spill` */
}

static int64_t page_bytes(const spill_definition_t *definition, const spill_value_t *owner)
{
    int64_t id = FRAME_BYTES + field_bytes(SPILL_STORED_ID_OWNER, owner->size_bytes) +
                 field_bytes(SPILL_STORED_ID_PAGE, SPILL_NUMBER_BYTES);
    return FRAME_BYTES + field_bytes("_id", id) +
           field_bytes(definition->page_owner, owner->size_bytes) +
           spill_stored_element_growth(definition) +
           field_bytes(definition->page_number, SPILL_NUMBER_BYTES) +
           field_bytes(definition->page_count, SPILL_NUMBER_BYTES);
}

int64_t spill_state_document_bytes(const spill_definition_t *definition, const spill_value_t *owner,
                                   bool head, const spill_state_t *state, int64_t live,
                                   int64_t live_bytes)
{
    int64_t elements = array_bytes(live) + live_bytes;
    int64_t bytes = bookkeeping_bytes(definition, state, live);
    if (spill_schema_of(definition)->has_referenced_elements)
        return bytes + (head ? head_bytes(definition, owner, state) + summary_bytes(definition) +
                                   top_bytes(definition, &state->top) +
                                   field_bytes(SPILL_STORED_JOURNAL, elements)
                             : page_bytes(definition, owner) + live_bytes);
    if (spill_schema_of(definition)->has_windows)
        return bytes + bucket_bytes(definition, owner, head, state) +
               field_bytes(definition->array, elements);
    if (head)
        return bytes + head_bytes(definition, owner, state) +
               field_bytes(definition->array, elements);
    return bytes + page_bytes(definition, owner) + field_bytes(definition->page_array, elements);
}

int64_t spill_document_base_bytes(const spill_definition_t *definition, const spill_value_t *owner,
                                  bool head)
{
    spill_state_t empty = {.fields_bytes = 1};
    int64_t bytes = spill_state_document_bytes(definition, owner, head, &empty, 0, 0);
    return bytes - (head ? 1 : 0) - (array_bytes(1) - FRAME_BYTES) - SPILL_OP_BYTES;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Append them in the order of the run. With `by_order`: the run is ascending, the array in the
 * definition's order. */
static void append_elements(bson_t *document, const spill_definition_t *by_order, const char *name,
                            const spill_run_t *run)
{
    bson_t array;
    bson_append_array_begin(document, name, -1, &array);
    for (size_t i = 0; i < run->count; i++) {
        int64_t rank =
            by_order ? spill_array_index(by_order, (int64_t)run->count, (int64_t)i) : (int64_t)i;
        spill_element_t element = spill_run_element(run, (size_t)rank);
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        spill_value_append(&element.value, &array, key);
    }
    bson_append_array_end(document, &array);
}

static void append_number(bson_t *array, uint32_t index, int64_t number)
{
    char buffer[16];
    const char *key;
    bson_uint32_to_string(index, &key, buffer, sizeof buffer);
    bson_append_int64(array, key, -1, number);
}

void spill_render_deleted(bson_t *document, const char *name, const spill_seqs_t *deleted,
                          bool gaps)
{
    if (deleted->count == 0)
        return;
    bson_t array;
    bson_append_array_begin(document, name, -1, &array);
    uint32_t index = 0;
    for (size_t i = 0; i < deleted->run_count; i++) {
        const spill_seq_run_t *run = &deleted->runs[i];
        if (gaps) {
            append_number(&array, index++, run->first);
            append_number(&array, index++, run->end - run->first);
        }
        for (int64_t seq = run->first; !gaps && seq < run->end; seq++)
            append_number(&array, index++, seq);
    }
    bson_append_array_end(document, &array);
}

/*
 * `after` counts the elements between this operation and the next, or the document's end. So an
 * append can record itself without knowing a number; all numbers follow from the end.
 */
static void append_op(bson_t *array, uint32_t index, const spill_op_entry_t *entry, int64_t end)
{
    char buffer[16];
    const char *key;
    bson_uint32_to_string(index, &key, buffer, sizeof buffer);
    bson_t op;
    bson_append_document_begin(array, key, -1, &op);
    if (entry->id_bytes > 0)
        BSON_APPEND_BINARY(&op, SPILL_STORED_OP_ID, BSON_SUBTYPE_BINARY, entry->id,
                           entry->id_bytes);
    BSON_APPEND_INT64(&op, SPILL_STORED_OP_ELEMENTS, entry->count);
    BSON_APPEND_INT64(&op, SPILL_STORED_OP_AFTER, end - entry->seq - entry->count);
    bson_append_document_end(array, &op);
}

/*
 * The newest first. If a change of the definition has made the window shorter, drop the operations
 * outside. There is always an entry, because an append without an operation updates its `after`.
 */
static void append_ops(bson_t *document, const spill_definition_t *definition,
                       const spill_ops_t *ops, int64_t end)
{
    static const spill_op_entry_t none = {0};
    size_t count = ops ? ops->count : 0;
    size_t window = (size_t)definition->op_window;
    bson_t array;
    BSON_APPEND_ARRAY_BEGIN(document, SPILL_STORED_OPS, &array);
    if (count == 0)
        append_op(&array, 0, &none, end);
    for (size_t i = 0; i < count && i < window; i++) {
        int64_t next = i == 0 ? end : ops->entries[count - i].seq;
        append_op(&array, (uint32_t)i, &ops->entries[count - 1 - i], next);
    }
    bson_append_array_end(document, &array);
}

/* Bookkeeping that heads and pages have in common. */
static void append_bookkeeping(bson_t *spill, const spill_state_t *state)
{
    BSON_APPEND_INT64(spill, SPILL_STORED_INCARNATION, state->incarnation);
    BSON_APPEND_INT64(spill, SPILL_STORED_REV, state->rev);
    BSON_APPEND_INT64(spill, SPILL_STORED_FIRST, state->first);
    BSON_APPEND_INT64(spill, SPILL_STORED_OP_COUNT, state->op_count);
    if (state->sealed)
        BSON_APPEND_BOOL(spill, SPILL_STORED_SEALED, true);
    if (state->closed)
        BSON_APPEND_BOOL(spill, SPILL_STORED_CLOSED, true);
    spill_render_deleted(spill, state->gaps ? SPILL_STORED_DELETED_RUNS : SPILL_STORED_DELETED,
                         &state->deleted, state->gaps);
}

/* ---- heads ----------------------------------------------------------------------------------- */

int64_t spill_state_count(const spill_definition_t *definition, const spill_state_t *state)
{
    if (spill_schema_of(definition)->appends_to_head)
        return state->first - state->watermark - state->removed + state->live;
    int64_t end = state->pages == 0 ? spill_state_end(state) : state->total;
    int64_t count = end - state->watermark - state->removed;
    return count > 0 ? count : 0; /* `removed` also has elements of the open page */
}

void spill_render_summary(const spill_definition_t *definition, const spill_state_t *state,
                          const spill_run_t *top, bson_t *document)
{
    bson_t summary;
    bson_append_document_begin(document, definition->array, -1, &summary);
    if (spill_schema_of(definition)->has_top)
        append_elements(&summary, NULL, definition->top_field, top);
    spill_append_count(&summary, definition->stats_count, spill_state_count(definition, state));
    if (definition->stats_average[0] != '\0' && state->sum.values > 0)
        bson_append_double(&summary, definition->stats_average, -1, spill_sum_average(&state->sum));
    bson_append_document_end(document, &summary);
}

void spill_render_intent(bson_t *document, const char *name, const spill_state_t *state)
{
    bson_t intent;
    bson_append_document_begin(document, name, -1, &intent);
    BSON_APPEND_INT64(&intent, SPILL_STORED_INTENT_SEQ, state->intent_seq);
    BSON_APPEND_INT64(&intent, SPILL_STORED_INTENT_PAGE, state->intent_page);
    if (state->intent_edit) {
        BSON_APPEND_INT64(&intent, SPILL_STORED_SOURCE_REV, state->intent_source_rev);
        spill_sum_append(&state->intent_value, SPILL_STORED_INTENT_VALUE, &intent);
    }
    bson_append_document_end(document, &intent);
}

/* Bookkeeping that only heads have; `spill` is the array's own document. */
static void append_head_numbers(bson_t *spill, const spill_definition_t *definition,
                                const spill_state_t *state, const spill_ops_t *ops)
{
    append_ops(spill, definition, ops, spill_state_end(state));
    BSON_APPEND_INT64(spill, SPILL_STORED_PAGES, state->pages);
    BSON_APPEND_INT64(spill, SPILL_STORED_WATERMARK, state->watermark);
    BSON_APPEND_INT64(spill, SPILL_STORED_REMOVED, state->removed);
    if (!spill_schema_of(definition)->appends_to_head)
        BSON_APPEND_INT64(spill, SPILL_STORED_TOTAL, state->total);
    if (state->intent)
        spill_render_intent(spill, SPILL_STORED_INTENT, state);
}

static void append_head_bookkeeping(bson_t *document, const spill_definition_t *definition,
                                    const spill_state_t *state, const spill_ops_t *ops,
                                    const spill_run_t *run)
{
    char name[SPILL_NAME_SIZE];
    bson_t arrays, spill;
    spill_bookkeeping_name(definition->array, name);
    BSON_APPEND_DOCUMENT_BEGIN(document, SPILL_STORED_ROOT, &arrays);
    bson_append_document_begin(&arrays, name, -1, &spill);
    append_bookkeeping(&spill, state);
    append_head_numbers(&spill, definition, state, ops);
    if (spill_schema_of(definition)->has_referenced_elements) {
        spill_sum_append(&state->sum, SPILL_STORED_SUM, &spill);
        append_elements(&spill, definition, SPILL_STORED_JOURNAL, run);
    }
    if (spill_schema_of(definition)->has_top) {
        BSON_APPEND_INT64(&spill, SPILL_STORED_SHOWN, (int64_t)state->top.shown);
        spill_top_append(&state->top, SPILL_STORED_TOP, &spill);
    }
    bson_append_document_end(&arrays, &spill);
    bson_append_document_end(document, &arrays);
}

/* ---- buckets --------------------------------------------------------------------------------- */

void spill_render_part_id(bson_t *document, const char *key, const spill_value_t *window,
                          int64_t page)
{
    bson_t id, name;
    bson_append_document_begin(document, key, -1, &id);
    if (bson_init_static(&name, window->data, window->size_bytes))
        bson_concat(&id, &name);
    spill_append_count(&id, SPILL_STORED_ID_PART, page + 1);
    bson_append_document_end(document, &id);
}

/* Other fields: `fields` (NULL: none) without its _id. An array at a path joins them. */
static void render_bucket_fields(const spill_definition_t *definition, const bson_t *fields,
                                 const spill_run_t *run, bson_t *document)
{
    bson_t others = BSON_INITIALIZER, array = BSON_INITIALIZER;
    if (fields)
        bson_copy_to_excluding_noinit(fields, &others, "_id", NULL);
    if (strchr(definition->array, '.') != NULL)
        append_elements(&array, definition, definition->array, run);
    spill_document_merge(&others, &array, document);
    bson_destroy(&others);
    bson_destroy(&array);
}

static void render_bucket(const spill_definition_t *definition, const spill_value_t *window,
                          bool head, const spill_state_t *state, const bson_t *fields,
                          const spill_run_t *run, const spill_ops_t *ops, bool without_bookkeeping,
                          bson_t *document)
{
    spill_value_t owner;
    const char *text = "";
    int64_t page = head ? SPILL_HEAD : state->page;
    bson_init(document);
    if (!without_bookkeeping)
        spill_render_part_id(document, "_id", window, page);
    render_bucket_fields(definition, fields, run, document);
    if (spill_window_split(window, &owner, &text))
        spill_value_append(&owner, document, definition->page_owner);
    bson_append_utf8(document, definition->window_field, -1, text, -1);
    spill_append_count(document, definition->page_number, page + 1);
    if (strchr(definition->array, '.') == NULL)
        append_elements(document, definition, definition->array, run);
    spill_window_stats_render(&state->window_stats, state->live, definition, document);
    if (without_bookkeeping)
        return;
    bson_t spill;
    BSON_APPEND_DOCUMENT_BEGIN(document, SPILL_STORED_ROOT, &spill);
    append_bookkeeping(&spill, state);
    spill_window_stats_append(&state->window_stats, SPILL_STORED_WINDOW_STATS, &spill);
    if (head)
        append_head_numbers(&spill, definition, state, ops);
    else
        append_ops(&spill, definition, ops, spill_state_end(state));
    bson_append_document_end(document, &spill);
}

/* ---- heads and pages ------------------------------------------------------------------------- */

/* Append the array's own fields, with their paths as names. */
static void append_own(const spill_definition_t *definition, const spill_state_t *state,
                       const spill_run_t *run, const spill_run_t *top, bson_t *document)
{
    if (spill_schema_of(definition)->has_referenced_elements) {
        spill_render_summary(definition, state, top, document);
        return;
    }
    append_elements(document, definition, definition->array, run);
    spill_append_count(document, definition->count_field, spill_state_count(definition, state));
    bool overflows = state->pages > 0 || state->sealed;
    if (overflows && definition->overflow_field[0] != '\0')
        bson_append_bool(document, definition->overflow_field, -1, true);
    if (state->pages > 0)
        spill_append_count(document, definition->pages_field, state->pages);
}

static bool has_path(const spill_definition_t *definition)
{
    const char *own[SPILL_OWN_FIELDS_MAX];
    bool found = false;
    for (size_t i = spill_own_fields(definition, own); i > 0 && !found; i--)
        found = strchr(own[i - 1], '.') != NULL;
    return found;
}

void spill_render_head(const spill_definition_t *definition, const spill_state_t *state,
                       const bson_t *fields, const spill_run_t *run, const spill_run_t *top,
                       const spill_ops_t *ops, bool without_bookkeeping, bson_t *document)
{
    bson_iter_t id;
    if (spill_schema_of(definition)->has_windows && bson_iter_init_find(&id, fields, "_id")) {
        spill_value_t window = spill_value_from_iter(&id);
        render_bucket(definition, &window, true, state, fields, run, ops, without_bookkeeping,
                      document);
        return;
    }
    bson_init(document);
    if (has_path(definition)) {
        bson_t own = BSON_INITIALIZER;
        append_own(definition, state, run, top, &own);
        spill_document_merge(fields, &own, document);
        bson_destroy(&own);
    } else {
        bson_concat(document, fields);
        append_own(definition, state, run, top, document);
    }
    if (!without_bookkeeping)
        append_head_bookkeeping(document, definition, state, ops, run);
}

static void append_page_id(bson_t *document, const spill_value_t *owner, int64_t page)
{
    bson_t id;
    BSON_APPEND_DOCUMENT_BEGIN(document, "_id", &id);
    spill_value_append(owner, &id, SPILL_STORED_ID_OWNER);
    spill_append_count(&id, SPILL_STORED_ID_PAGE, page);
    bson_append_document_end(document, &id);
}

/* A removed element leaves no field, so that other readers of the collection do not find it. */
static void append_element_fields(bson_t *document, const spill_definition_t *definition,
                                  const spill_value_t *owner, const spill_run_t *run)
{
    if (run->count == 0)
        return;
    spill_element_t element = spill_run_element(run, 0);
    spill_value_append(owner, document, definition->page_owner);
    spill_stored_element_append(definition, &element.value, document);
}

void spill_render_page(const spill_definition_t *definition, const spill_value_t *owner,
                       const spill_state_t *state, const spill_run_t *run, const spill_ops_t *ops,
                       bool without_bookkeeping, bson_t *document)
{
    if (spill_schema_of(definition)->has_windows) {
        render_bucket(definition, owner, false, state, NULL, run, ops, without_bookkeeping,
                      document);
        return;
    }
    bson_init(document);
    if (!without_bookkeeping)
        append_page_id(document, owner, state->page);
    if (spill_schema_of(definition)->has_referenced_elements) {
        append_element_fields(document, definition, owner, run);
    } else {
        spill_value_append(owner, document, definition->page_owner);
        spill_append_count(document, definition->page_number, state->page);
        append_elements(document, definition, definition->page_array, run);
        spill_append_count(document, definition->page_count, state->live);
    }
    if (without_bookkeeping)
        return;
    bson_t spill;
    BSON_APPEND_DOCUMENT_BEGIN(document, SPILL_STORED_ROOT, &spill);
    append_bookkeeping(&spill, state);
    if (spill_schema_of(definition)->appends_to_head)
        BSON_APPEND_INT64(&spill, SPILL_STORED_SOURCE_REV, state->source_rev);
    if (state->lease > 0)
        BSON_APPEND_INT64(&spill, SPILL_STORED_LEASE, state->lease);
    if (!spill_schema_of(definition)->appends_to_head)
        append_ops(&spill, definition, ops, spill_state_end(state));
    bson_append_document_end(document, &spill);
}
