/* plan-set: change the definition of one entry in a plan's file. */
#include "tools/scan/plan_edit.h"

#include "bson/field_path.h"
#include "bson/value.h"
#include "definition/schema.h"
#include "tools/migrate/planned.h"
#include "tools/scan/plan.h"
#include "util/error.h"
#include "util/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the entry ------------------------------------------------------------------------------- */

/* The name without the database's name and a dot in front, if the entry says its database. */
static const char *bare_name(const bson_t *entry)
{
    return spill_planned_without_database(spill_document_text(entry, "collection", ""),
                                          spill_document_text(entry, "database", ""));
}

static bool is_named(const bson_t *entry, const char *name)
{
    const char *path = spill_document_text(entry, "path", "");
    char *full = bson_strdup_printf("%s.%s", spill_document_text(entry, "collection", ""), path);
    char *bare = bson_strdup_printf("%s.%s", bare_name(entry), path);
    bool named = strcmp(full, name) == 0 || strcmp(bare, name) == 0;
    bson_free(full);
    bson_free(bare);
    return named;
}

static bool document_at(const bson_iter_t *iter, bson_t *document)
{
    const spill_value_t value = spill_value_from_iter(iter);
    return value.type == BSON_TYPE_DOCUMENT &&
           bson_init_static(document, value.data, value.size_bytes);
}

/* SPILL_NOT_FOUND with the names of all entries. */
static spill_code_t list_entries(const spill_plan_edit_t *edit, const char *name,
                                 bson_iter_t *entries, spill_error_t *error)
{
    bson_string_t *names = bson_string_new("");
    bson_t entry;
    while (bson_iter_next(entries))
        if (document_at(entries, &entry))
            bson_string_append_printf(names, "%s%s.%s", names->len > 0 ? ", " : "",
                                      spill_document_text(&entry, "collection", ""),
                                      spill_document_text(&entry, "path", ""));
    spill_fail(error, SPILL_NOT_FOUND, "%s: it has no entry '%s'; it has %s", edit->file, name,
               names->len > 0 ? names->str : "none");
    bson_string_free(names, true);
    return SPILL_NOT_FOUND;
}

static spill_code_t find_entry(spill_plan_edit_t *edit, const char *name, spill_error_t *error)
{
    bson_iter_t iter, entries;
    bson_t entry;
    if (!bson_iter_init_find(&iter, edit->plan, "arrays") || !BSON_ITER_HOLDS_ARRAY(&iter) ||
        !bson_iter_recurse(&iter, &entries))
        return spill_fail(error, SPILL_INVALID, "%s: it has no array \"arrays\"", edit->file);
    bson_iter_t all = entries;
    for (uint32_t index = 0; bson_iter_next(&entries); index++) {
        if (!document_at(&entries, &entry) || !is_named(&entry, name))
            continue;
        if (edit->entry)
            return spill_fail(error, SPILL_INVALID, "%s: two entries are named '%s'", edit->file,
                              name);
        edit->entry = bson_copy(&entry);
        edit->index = index;
    }
    return edit->entry ? SPILL_OK : list_entries(edit, name, &all, error);
}

static spill_code_t read_definition(spill_plan_edit_t *edit, spill_error_t *error)
{
    bson_iter_t iter;
    bson_t document;
    edit->defined =
        bson_iter_init_find(&iter, edit->entry, "definition") && document_at(&iter, &document);
    if (!edit->defined)
        return SPILL_OK;
    spill_error_t cause;
    if (spill_definition_from_bson(&edit->definition, &document, &cause) != SPILL_OK)
        return spill_fail(error, SPILL_INVALID, "%s: the definition for %s.%s: %s", edit->file,
                          edit->collection, edit->path, cause.message);
    return SPILL_OK;
}

spill_code_t spill_plan_edit_open(spill_plan_edit_t *edit, const char *file, const char *name,
                                  spill_error_t *error)
{
    edit->file = file;
    edit->plan = bson_malloc(sizeof *edit->plan);
    SPILL_TRY(spill_plan_file_read(file, edit->plan, error));
    SPILL_TRY(find_entry(edit, name, error));
    const char *collection = bare_name(edit->entry);
    const char *path = spill_document_text(edit->entry, "path", "");
    if (strlen(collection) >= sizeof edit->collection || strlen(path) >= sizeof edit->path)
        return spill_fail(error, SPILL_INVALID, "%s: the name '%.60s...' is longer than %d bytes",
                          file, name, SPILL_NAME_SIZE - 1);
    strcpy(edit->collection, collection);
    strcpy(edit->path, path);
    return read_definition(edit, error);
}

static void release_changes(spill_plan_edit_t *edit)
{
    for (size_t i = 0; i < edit->change_count; i++) {
        bson_free(edit->changes[i].field);
        bson_free(edit->changes[i].before);
        bson_free(edit->changes[i].after);
    }
    bson_free(edit->changes);
    edit->changes = NULL;
    edit->change_count = 0;
}

void spill_plan_edit_release(spill_plan_edit_t *edit)
{
    release_changes(edit);
    if (edit->plan)
        bson_destroy(edit->plan);
    bson_free(edit->plan);
    if (edit->entry)
        bson_destroy(edit->entry);
    *edit = (spill_plan_edit_t){0};
}

/* ---- a definition of another layout ---------------------------------------------------------- */

/*
 * Heads of these layouts are documents of their own. With a cap, what is kept would depend on the
 * array that is still in the application's document; and a window is a document.
 */
static bool leaves_documents(const spill_schema_t *schema)
{
    return schema->is_capped || schema->has_windows;
}

/* Which value to count or rank is unknown: leave only the number of elements, and the newest. */
static void clear_values(spill_definition_t *definition)
{
    definition->value_field[0] = '\0';
    definition->stats_average[0] = '\0';
    definition->stats_sum[0] = '\0';
    definition->stats_min[0] = '\0';
    definition->stats_max[0] = '\0';
    definition->sort_field[0] = '\0';
}

/* Are elements stored in arrays of heads, so that bounds of one layout suit the other? */
static bool has_whole_arrays(const spill_schema_t *schema)
{
    return !schema->has_referenced_elements && !schema->has_windows;
}

static spill_code_t take_over(const spill_definition_t *from, spill_definition_t *definition,
                              spill_error_t *error)
{
    const spill_schema_t *schema = spill_schema_of(definition);
    strcpy(definition->name, from->name);
    strcpy(definition->id_field, from->id_field);
    strcpy(definition->time_field, from->time_field);
    definition->op_window = from->op_window;
    if (!schema->is_capped && !schema->has_windows)
        definition->keep_elements = from->keep_elements;
    definition->keep_seconds = from->keep_seconds;
    if (!schema->has_referenced_elements)
        definition->order = from->order;
    /* The plan's bounds come from the measured sizes of elements. */
    if (has_whole_arrays(schema) && has_whole_arrays(spill_schema_of(from))) {
        definition->bounds.threshold = from->bounds.threshold;
        definition->bounds.head_bytes_max = from->bounds.head_bytes_max;
    }
    return spill_definition_carry_unique(
        from, "To give that up, remove \"unique\" from the definition in the plan's file first",
        definition, error);
}

/* False: the name does not fit. */
static bool derive(char *name, const char *path, const char *suffix)
{
    return snprintf(name, SPILL_NAME_SIZE, "%s%s", path, suffix) < SPILL_NAME_SIZE;
}

static spill_code_t names_too_long(const spill_plan_edit_t *edit, spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID,
                      "the names of '%s.%s' are too long to derive other names from them",
                      edit->collection, edit->path);
}

spill_code_t spill_plan_edit_reshape(const spill_plan_edit_t *edit, spill_definition_t *definition,
                                     spill_error_t *error)
{
    static const spill_plan_t no_others = {0};
    const spill_schema_t *schema = spill_schema_of(definition);
    if (strpbrk(edit->path, "*[\""))
        return spill_fail(error, SPILL_INVALID,
                          "the array of a definition must be a field of the document or of a "
                          "sub-document, and '%s' is not: see \"why\" in the entry",
                          edit->path);
    clear_values(definition);
    definition->time_field[0] = '\0';
    if (!spill_plan_put_names(&no_others, definition, edit->collection, edit->path))
        return names_too_long(edit, error);
    if (leaves_documents(schema)) {
        strcpy(definition->collection, definition->page_collection);
        strcpy(definition->array, edit->path);
    }
    if ((schema->is_capped && !derive(definition->count_field, edit->path, "Count")) ||
        (schema->has_top && !derive(definition->top_field, spill_path_leaf(edit->path), "Top")))
        return names_too_long(edit, error);
    if (schema->has_windows)
        strcpy(definition->page_array, edit->path);
    else if (!schema->has_pages)
        spill_definition_set_layout(definition, definition->layout);
    if (edit->defined)
        SPILL_TRY(take_over(&edit->definition, definition, error));
    definition->largest = definition->bounds;
    return SPILL_OK;
}

/* ---- what changed ---------------------------------------------------------------------------- */

static char *json_of(const bson_iter_t *iter)
{
    const spill_value_t value = spill_value_from_iter(iter);
    return spill_value_to_json(&value, false);
}

static void add_change(spill_plan_edit_t *edit, const char *prefix, const bson_iter_t *before,
                       const bson_iter_t *after)
{
    edit->changes = bson_realloc(edit->changes, (edit->change_count + 1) * sizeof *edit->changes);
    edit->changes[edit->change_count++] = (spill_plan_change_t){
        .field = bson_strdup_printf("%s%s", prefix, bson_iter_key(before ? before : after)),
        .before = before ? json_of(before) : NULL,
        .after = after ? json_of(after) : NULL};
}

/* A file has no types of numbers, so the values compare as text. */
static bool have_same_json(const bson_iter_t *left, const bson_iter_t *right)
{
    char *one = json_of(left), *other = json_of(right);
    bool same = one && other && strcmp(one, other) == 0;
    bson_free(one);
    bson_free(other);
    return same;
}

/* List the fields of `now` that `was` does not have, or has with another value. */
static void compare_fields(spill_plan_edit_t *edit, const char *prefix, const bson_t *was,
                           const bson_t *now, int depth)
{
    bson_iter_t before, after;
    bson_t inner_was, inner_now;
    for (bool more = bson_iter_init(&after, now) && bson_iter_next(&after); more;
         more = bson_iter_next(&after)) {
        if (!bson_iter_init_find(&before, was, bson_iter_key(&after))) {
            add_change(edit, prefix, NULL, &after);
            continue;
        }
        if (have_same_json(&before, &after))
            continue;
        if (depth > 0 && document_at(&before, &inner_was) && document_at(&after, &inner_now)) {
            char *path = bson_strdup_printf("%s%s.", prefix, bson_iter_key(&after));
            if (strcmp(path, "definition.largest.") != 0) /* it repeats the bounds */
                compare_fields(edit, path, &inner_was, &inner_now, depth - 1);
            bson_free(path);
        } else
            add_change(edit, prefix, &before, &after);
    }
    for (bool more = bson_iter_init(&before, was) && bson_iter_next(&before); more;
         more = bson_iter_next(&before))
        if (!bson_has_field(now, bson_iter_key(&before)))
            add_change(edit, prefix, &before, NULL);
}

/* ---- putting it in --------------------------------------------------------------------------- */

/*
 * The definition's document, with its fields in the order of the earlier one. `order`: a person
 * chose it, so the document has it even if it is the default.
 */
static void arrange(const spill_definition_t *definition, const bson_t *earlier, const char *order,
                    bson_t *document)
{
    SPILL_SCOPED(bson_destroy) bson_t fresh = BSON_INITIALIZER;
    bson_iter_t iter, value;
    spill_definition_to_bson(definition, &fresh);
    if (!bson_has_field(&fresh, "order") && (order || bson_has_field(earlier, "order")))
        BSON_APPEND_UTF8(&fresh, "order", spill_array_order_name(definition->order));
    for (bool more = bson_iter_init(&iter, earlier) && bson_iter_next(&iter); more;
         more = bson_iter_next(&iter))
        if (bson_iter_init_find(&value, &fresh, bson_iter_key(&iter)))
            bson_append_iter(document, NULL, -1, &value);
    for (bool more = bson_iter_init(&iter, &fresh) && bson_iter_next(&iter); more;
         more = bson_iter_next(&iter))
        if (!bson_has_field(earlier, bson_iter_key(&iter)))
            bson_append_iter(document, NULL, -1, &iter);
}

/* The document of that name in the entry, or an empty one. */
static void document_named(const bson_t *entry, const char *name, bson_t *document)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, entry, name) || !document_at(&iter, document))
        bson_init(document);
}

/* The stages to the definition. An "original" in the entry replaces the default one. */
static spill_code_t plan_stages(const spill_plan_edit_t *edit, const spill_definition_t *definition,
                                spill_planned_t *planned, spill_error_t *error)
{
    bson_t original;
    spill_error_t cause;
    spill_planned_init(planned, definition, edit->collection, edit->path);
    document_named(edit->entry, "original", &original);
    if (planned->staged && !bson_empty(&original) &&
        spill_definition_from_bson(&planned->original, &original, &cause) != SPILL_OK)
        return spill_fail(error, SPILL_INVALID, "%s: the original for %s.%s: %s", edit->file,
                          edit->collection, edit->path, cause.message);
    return SPILL_OK;
}

static bool set_order(const char *order, spill_definition_t *definition)
{
    return !order || spill_array_order_of_name(order, &definition->order);
}

/* ---- the sentences about the layout ---------------------------------------------------------- */

static const char *layout_words(const spill_definition_t *definition)
{
    bool oldest =
        definition->layout == SPILL_LAYOUT_OUTLIER && !spill_schema_of(definition)->appends_to_head;
    return oldest ? "outlier, keep oldest" : spill_layout_name(definition->layout);
}

/* Did the layout or its size change, so that what `plan' has written about them is out of date? */
static bool is_other_layout(const spill_definition_t *was, const spill_definition_t *now)
{
    return strcmp(layout_words(was), layout_words(now)) != 0 ||
           was->bounds.threshold != now->bounds.threshold ||
           was->bounds.page_capacity != now->bounds.page_capacity ||
           was->bounds.head_bytes_max != now->bounds.head_bytes_max;
}

static void append_why(const spill_definition_t *was, const spill_definition_t *now, bson_t *entry)
{
    bson_t list;
    char *text = bson_strdup_printf(
        "`spillway plan-set' chose layout %s, threshold %" PRId64
        ". The reasons of `plan' were for layout %s, threshold %" PRId64 ", and are removed.",
        layout_words(now), now->bounds.threshold, layout_words(was), was->bounds.threshold);
    BSON_APPEND_ARRAY_BEGIN(entry, "why", &list);
    BSON_APPEND_UTF8(&list, "0", text);
    bson_append_array_end(entry, &list);
    bson_free(text);
}

/* The alternatives without the chosen layout, and with the one that it replaces. */
static void append_alternatives(const bson_iter_t *iter, const spill_definition_t *was,
                                const spill_definition_t *now, bson_t *entry)
{
    bson_t list;
    bson_iter_t texts;
    char key[16];
    uint32_t count = 0;
    const char *chosen = spill_layout_name(now->layout);
    BSON_APPEND_ARRAY_BEGIN(entry, "alternatives", &list);
    for (bool more = bson_iter_recurse(iter, &texts) && bson_iter_next(&texts); more;
         more = bson_iter_next(&texts)) {
        const char *text = BSON_ITER_HOLDS_UTF8(&texts) ? bson_iter_utf8(&texts, NULL) : "";
        if (strncmp(text, chosen, strlen(chosen)) == 0)
            continue;
        snprintf(key, sizeof key, "%" PRIu32, count++);
        bson_append_iter(&list, key, -1, &texts);
    }
    if (was->layout != now->layout) {
        char *text = bson_strdup_printf("%s, which the plan had before.", layout_words(was));
        snprintf(key, sizeof key, "%" PRIu32, count);
        BSON_APPEND_UTF8(&list, key, text);
        bson_free(text);
    }
    bson_append_array_end(entry, &list);
}

/* The aggregation for the shell, with the new threshold. An edited one stays. */
static void append_detection(const char *text, const spill_definition_t *now, bson_t *entry)
{
    static const char before[] = "{length: {$gt: ";
    const char *at = strstr(text, before);
    if (!at) {
        BSON_APPEND_UTF8(entry, "detect", text);
        return;
    }
    at += strlen(before);
    char *changed = bson_strdup_printf("%.*s%" PRId64 "%s", (int)(at - text), text,
                                       now->bounds.threshold, at + strspn(at, "0123456789"));
    BSON_APPEND_UTF8(entry, "detect", changed);
    bson_free(changed);
}

/*
 * Append what the entry says about its layout, if that has changed: recomputed, or left out if only
 * a scan can compute it. False: `iter` is another field, or nothing has changed.
 */
static bool append_text(const spill_plan_edit_t *edit, const spill_planned_t *planned,
                        const bson_iter_t *iter, bson_t *entry)
{
    const spill_definition_t *was = &edit->definition, *now = &planned->definition;
    const char *key = bson_iter_key(iter);
    bool is_text = BSON_ITER_HOLDS_UTF8(iter), is_list = BSON_ITER_HOLDS_ARRAY(iter);
    bool other = edit->defined && is_other_layout(was, now);
    bool renamed = edit->defined && strcmp(was->pages_field, now->pages_field) != 0;
    if (strcmp(key, "otherWriters") == 0 && is_text && (other || renamed)) {
        char *text = planned->staged ? spill_plan_other_writers(&planned->original, now)
                                     : spill_plan_other_writers(now, NULL);
        BSON_APPEND_UTF8(entry, key, text);
        bson_free(text);
        return true;
    }
    if (!other)
        return false;
    if (strcmp(key, "why") == 0 && is_list) {
        append_why(was, now, entry);
    } else if (strcmp(key, "alternatives") == 0 && is_list) {
        append_alternatives(iter, was, now, entry);
    } else if (strcmp(key, "detect") == 0 && is_text &&
               !spill_schema_of(now)->has_referenced_elements &&
               !spill_schema_of(now)->has_windows) {
        append_detection(bson_iter_utf8(iter, NULL), now, entry);
    } else
        return strcmp(key, "saves") == 0;
    return true;
}

/* Build the entry with this definition, and this original if `planned` has stages. */
static void build_entry(const spill_plan_edit_t *edit, const spill_planned_t *planned,
                        const spill_plan_choices_t *choices, bson_t *entry)
{
    bson_t earlier_definition, earlier_original;
    SPILL_SCOPED(bson_destroy) bson_t definition = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t original = BSON_INITIALIZER;
    bson_iter_t iter;
    document_named(edit->entry, "definition", &earlier_definition);
    document_named(edit->entry, "original", &earlier_original);
    arrange(&planned->definition, &earlier_definition, planned->staged ? NULL : choices->order,
            &definition);
    if (planned->staged)
        arrange(&planned->original, &earlier_original, choices->order, &original);
    for (bool more = bson_iter_init(&iter, edit->entry) && bson_iter_next(&iter); more;
         more = bson_iter_next(&iter)) {
        const char *key = bson_iter_key(&iter);
        if (strcmp(key, "definition") == 0)
            BSON_APPEND_DOCUMENT(entry, key, &definition);
        else if (strcmp(key, "migrate") == 0 && choices->migrate)
            BSON_APPEND_BOOL(entry, key, *choices->migrate);
        else if (!append_text(edit, planned, &iter, entry) && strcmp(key, "original") != 0)
            bson_append_iter(entry, NULL, -1, &iter);
        if (strcmp(key, "definition") == 0 && planned->staged)
            BSON_APPEND_DOCUMENT(entry, "original", &original);
    }
    if (!bson_has_field(entry, "migrate") && choices->migrate)
        BSON_APPEND_BOOL(entry, "migrate", *choices->migrate);
    if (bson_has_field(entry, "definition"))
        return;
    BSON_APPEND_DOCUMENT(entry, "definition", &definition);
    if (planned->staged)
        BSON_APPEND_DOCUMENT(entry, "original", &original);
}

spill_code_t spill_plan_edit_set(spill_plan_edit_t *edit, const spill_definition_t *definition,
                                 const spill_plan_choices_t *choices, spill_error_t *error)
{
    spill_planned_t planned;
    SPILL_TRY(spill_definition_check(definition, error));
    SPILL_TRY(plan_stages(edit, definition, &planned, error));
    if (planned.staged && !set_order(choices->order, &planned.original))
        return spill_fail(error, SPILL_INVALID, "there is no order '%s'", choices->order);
    SPILL_TRY(spill_planned_check(&planned, error));
    bson_t *entry = bson_new();
    build_entry(edit, &planned, choices, entry);
    release_changes(edit);
    compare_fields(edit, "", edit->entry, entry, 2);
    bson_destroy(edit->entry);
    edit->entry = entry;
    edit->definition = *definition;
    edit->defined = true;
    return SPILL_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Copy "arrays" with the changed entry in its place. */
static void put_entry(const spill_plan_edit_t *edit, const bson_iter_t *arrays, bson_t *plan)
{
    bson_t list;
    bson_iter_t entries;
    uint32_t index = 0;
    BSON_APPEND_ARRAY_BEGIN(plan, "arrays", &list);
    for (bool more = bson_iter_recurse(arrays, &entries) && bson_iter_next(&entries); more;
         more = bson_iter_next(&entries), index++) {
        if (index == edit->index)
            BSON_APPEND_DOCUMENT(&list, bson_iter_key(&entries), edit->entry);
        else
            bson_append_iter(&list, NULL, -1, &entries);
    }
    bson_append_array_end(plan, &list);
}

spill_code_t spill_plan_edit_write(const spill_plan_edit_t *edit, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t plan = BSON_INITIALIZER;
    SPILL_SCOPED(spill_text_release) spill_text_t text = {0};
    bson_iter_t iter;
    for (bool more = bson_iter_init(&iter, edit->plan) && bson_iter_next(&iter); more;
         more = bson_iter_next(&iter)) {
        if (strcmp(bson_iter_key(&iter), "arrays") == 0)
            put_entry(edit, &iter, &plan);
        else
            bson_append_iter(&plan, NULL, -1, &iter);
    }
    const spill_value_t value = spill_value_from_document(&plan);
    char *json = spill_value_to_json(&value, false);
    if (!json)
        return spill_fail(error, SPILL_PARSE, "%s: it has a string that is not UTF-8", edit->file);
    spill_code_t code = spill_text_open(&text, error);
    if (code == SPILL_OK) {
        spill_plan_print_lines(json, text.to);
        code = spill_text_close(&text, error);
    }
    bson_free(json);
    return code == SPILL_OK ? spill_file_replace(edit->file, text.text, text.size_bytes, error)
                            : code;
}
