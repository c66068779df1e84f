#include "store/mongo/guarded.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"

#include <stdio.h>

typedef struct rewrite {
    const spill_mongo_document_t *document;
    const spill_state_t *before;
    const spill_state_t *after;
    const spill_effect_t *effect;
    const spill_run_t *top;
} rewrite_t;

/* ---- the new bookkeeping --------------------------------------------------------------------- */

static bool changes_statistics(const rewrite_t *rewrite)
{
    return spill_mongo_is_bucket(rewrite->document) &&
           (rewrite->before->live != rewrite->after->live ||
            !spill_window_stats_equal(&rewrite->before->window_stats,
                                      &rewrite->after->window_stats));
}

static void set_changed(const rewrite_t *rewrite, bson_t *set)
{
    const spill_mongo_document_t *document = rewrite->document;
    const spill_state_t *before = rewrite->before, *after = rewrite->after;
    char path[SPILL_MONGO_PATH_SIZE];
    struct {
        const char *name;
        int64_t before;
        int64_t after;
    } numbers[] = {{SPILL_STORED_REV, before->rev, after->rev},
                   {SPILL_STORED_FIRST, before->first, after->first},
                   {SPILL_STORED_PAGES, before->pages, after->pages},
                   {SPILL_STORED_WATERMARK, before->watermark, after->watermark},
                   {SPILL_STORED_REMOVED, before->removed, after->removed},
                   {SPILL_STORED_TOTAL, before->total, after->total}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].before != numbers[i].after)
            bson_append_int64(set, spill_mongo_path(document, numbers[i].name, path), -1,
                              numbers[i].after);
    if (after->sealed && !before->sealed)
        bson_append_bool(set, spill_mongo_path(document, SPILL_STORED_SEALED, path), -1, true);
    if (after->closed && !before->closed)
        bson_append_bool(set, spill_mongo_path(document, SPILL_STORED_CLOSED, path), -1, true);
    if (after->deleted.count > 0 && !spill_seqs_equal(&before->deleted, &after->deleted))
        spill_mongo_set_deleted(document, after, set);
    if (changes_statistics(rewrite))
        spill_mongo_set_statistics(document, after, true, set);
    if (after->intent && !before->intent)
        spill_render_intent(set, spill_mongo_path(document, SPILL_STORED_INTENT, path), after);
}

/* Must the document be closed for quick appends? */
static bool closes(const spill_state_t *before, const spill_state_t *after)
{
    return (after->sealed || after->deleted.count > 0) && !before->sealed &&
           before->deleted.count == 0;
}

/* Remove fields from the bookkeeping. */
static void append_unset(const rewrite_t *rewrite, bson_t *unset)
{
    const spill_state_t *before = rewrite->before, *after = rewrite->after;
    const struct {
        const char *name;
        bool goes;
    } fields[] = {
        {spill_mongo_deleted_name(after), before->deleted.count > 0 && after->deleted.count == 0},
        {SPILL_STORED_INTENT, before->intent && !after->intent},
        {SPILL_STORED_WINDOW_STATS,
         before->window_stats.values > 0 && after->window_stats.values == 0},
        {SPILL_STORED_OPEN, closes(before, after)}};
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char path[SPILL_MONGO_PATH_SIZE], buffer[16];
        const char *key;
        if (!fields[i].goes)
            continue;
        bson_uint32_to_string(count++, &key, buffer, sizeof buffer);
        BSON_APPEND_UTF8(unset, key, spill_mongo_path(rewrite->document, fields[i].name, path));
    }
}

/* ---- the array ------------------------------------------------------------------------------- */

static void set_array(const rewrite_t *rewrite, bson_t *set)
{
    const spill_state_t *before = rewrite->before;
    const spill_effect_t *effect = rewrite->effect;
    if (effect->kind == SPILL_EFFECT_CUT || effect->kind == SPILL_EFFECT_ERASE) {
        int64_t dropped = before->live - rewrite->after->live;
        if (dropped > 0)
            spill_mongo_append_without(rewrite->document, 0, dropped, set);
    } else if (effect->kind == SPILL_EFFECT_DELETE) {
        spill_mongo_append_without(rewrite->document, spill_state_rank(before, effect->seq), 1,
                                   set);
    }
}

/* ---- count fields ---------------------------------------------------------------------------- */

/* The terms of a head's count; see spill_state_count in render.c. */
static void add_head_count(const rewrite_t *rewrite, const char *array, bson_t *terms)
{
    const spill_mongo_document_t *document = rewrite->document;
    bool newest = spill_schema_of(document->request->definition)->appends_to_head;
    char path[SPILL_MONGO_PATH_SIZE], other[SPILL_MONGO_PATH_SIZE];
    BCON_APPEND(terms, "0", "{", "$multiply", "[", BCON_INT32(-1), "{", "$add", "[",
                BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_WATERMARK, path)),
                BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_REMOVED, other)), "]", "}", "]",
                "}");
    if (!newest && rewrite->after->pages > 0) {
        BSON_APPEND_UTF8(terms, "1", spill_mongo_ref(document, SPILL_STORED_TOTAL, path));
        return;
    }
    BSON_APPEND_UTF8(terms, "1", spill_mongo_ref(document, SPILL_STORED_FIRST, path));
    spill_mongo_append_length(array, "2", terms);
    if (!newest)
        spill_mongo_append_length(spill_mongo_ref(document, SPILL_STORED_DELETED, path), "3",
                                  terms);
}

/* Set the count field from the document at the time of the update, including later pushes. */
static void set_count(const rewrite_t *rewrite, bson_t *set)
{
    char array[SPILL_MONGO_PATH_SIZE + 1];
    snprintf(array, sizeof array, "$%s", rewrite->document->array);
    bson_t sum = BSON_INITIALIZER, terms;
    BSON_APPEND_ARRAY_BEGIN(&sum, "$add", &terms);
    if (rewrite->document->head)
        add_head_count(rewrite, array, &terms);
    else
        spill_mongo_append_length(array, "0", &terms);
    bson_append_array_end(&sum, &terms);
    BCON_APPEND(set, rewrite->document->count, "{", "$let", "{", "vars", "{", "n", "{", "$max", "[",
                BCON_INT32(0), BCON_DOCUMENT(&sum), "]", "}", "}", "in", "{", "$cond", "[", "{",
                "$lte", "[", "$$n", BCON_INT64(INT32_MAX), "]", "}", "{", "$toInt", "$$n", "}",
                "$$n", "]", "}", "}", "}");
    bson_destroy(&sum);
}

static void set_derived(const rewrite_t *rewrite, bson_t *set)
{
    const spill_definition_t *definition = rewrite->document->request->definition;
    const spill_state_t *after = rewrite->after;
    if (rewrite->document->referenced) {
        if (spill_mongo_summary_changes(rewrite->document, rewrite->before, after))
            spill_mongo_set_summary(rewrite->document, after, rewrite->top, true, set);
        return;
    }
    if (rewrite->document->count[0] != '\0')
        set_count(rewrite, set);
    if (!rewrite->document->head)
        return;
    if ((after->pages > 0 || after->sealed) && definition->overflow_field[0] != '\0')
        bson_append_bool(set, definition->overflow_field, -1, true);
    if (after->pages > 0)
        spill_append_count(set, definition->pages_field, after->pages);
}

/* ---- the pipeline ---------------------------------------------------------------------------- */

/*
 * Append {operator: operand} as the pipeline's next stage, unless the operand is empty. The keys
 * must be an array's, or the driver would treat the pipeline as a replacement.
 */
static void append_stage(const char *operator, bson_type_t type, const bson_t *operand,
                         bson_t *pipeline)
{
    bson_t stage;
    char buffer[16];
    const char *key;
    if (bson_empty(operand))
        return;
    bson_uint32_to_string(bson_count_keys(pipeline), &key, buffer, sizeof buffer);
    bson_append_document_begin(pipeline, key, -1, &stage);
    if (type == BSON_TYPE_ARRAY)
        BSON_APPEND_ARRAY(&stage, operator, operand);
    else
        BSON_APPEND_DOCUMENT(&stage, operator, operand);
    bson_append_document_end(pipeline, &stage);
}

bool spill_mongo_rewrite(const spill_mongo_document_t *document, const spill_state_t *before,
                         const spill_state_t *after, const spill_effect_t *effect,
                         const spill_run_t *top, bson_t *pipeline)
{
    const rewrite_t rewrite = {document, before, after, effect, top};
    bson_t set = BSON_INITIALIZER, unset = BSON_INITIALIZER, derived = BSON_INITIALIZER;
    bson_init(pipeline);
    set_changed(&rewrite, &set);
    append_unset(&rewrite, &unset);
    bool differs = !bson_empty(&set) || !bson_empty(&unset);
    set_array(&rewrite, &set);
    set_derived(&rewrite, &derived);
    append_stage("$set", BSON_TYPE_DOCUMENT, &set, pipeline);
    append_stage("$unset", BSON_TYPE_ARRAY, &unset, pipeline);
    append_stage("$set", BSON_TYPE_DOCUMENT, &derived, pipeline); /* from what is left */
    bson_destroy(&set);
    bson_destroy(&unset);
    bson_destroy(&derived);
    return differs;
}
