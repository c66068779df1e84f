/* Walk over the bytes of a document, and add its arrays and sub-documents to a table. */
#include "tools/scan/gathered.h"
#include "util/text.h"

#include <string.h>

struct spill_walker {
    bool plain; /* without outlines */
    spill_gathered_t gathered;
    spill_times_kept_t kept;
    spill_repeats_table_t repeats;
};

/* How far the fields of a document were read. */
typedef struct cursor {
    spill_outline_t *outline; /* of the document's path; NULL: there is none */
    uint32_t index;           /* of the field that is expected next */
    uint32_t length;          /* fields so far */
} cursor_t;

/* A document or array that is open. */
typedef struct frame {
    const uint8_t *data;
    const uint8_t *end; /* its last byte, the terminator */
    spill_path_t *path; /* NULL if there is no table */
    spill_path_t *hint; /* the path of the last field that has one */
    bool array;
    cursor_t cursor;
    uint32_t run_size; /* of the last elements */
    uint32_t run_times;
} frame_t;

typedef struct walk {
    spill_walker_t *walker; /* NULL: only check */
    spill_paths_t *paths;
    spill_walk_t *result;
    const uint8_t *data;
    const uint8_t *limit; /* behind the last byte */
    bool sound;           /* the document was checked, and part of it is in the table */
    uint32_t depth;
    frame_t frames[SPILL_NESTING_MAX];
} walk_t;

spill_walker_t *spill_walker_new(void)
{
    return bson_malloc0(sizeof(spill_walker_t));
}

void spill_walker_ignore_outlines(spill_walker_t *walker)
{
    walker->plain = true;
}

void spill_walker_free(spill_walker_t *walker)
{
    if (walker)
        spill_repeats_table_release(&walker->repeats);
    bson_free(walker);
}

static bool fail_walk(walk_t *walk, const uint8_t *at, const char *what)
{
    walk->result->damage = what;
    walk->result->damage_at = (size_t)(at - walk->data);
    return false;
}

static void note_flaw(walk_t *walk, const uint8_t *at, const char *what)
{
    if (walk->result->flaw)
        return;
    walk->result->flaw = what;
    walk->result->flaw_at = (size_t)(at - walk->data);
}

/* ---- what is found --------------------------------------------------------------------------- */

static bool walk_all(walk_t *walk);

/*
 * Add what was found so far to the table. If the document is not known to be valid, check the rest
 * of it first. False: it is damaged further on.
 */
static bool make_room(walk_t *walk)
{
    if (!walk->sound) {
        spill_walk_t found = {0};
        walk_t check = {.result = &found, .data = walk->data, .limit = walk->limit};
        if (!walk_all(&check)) {
            walk->result->damage = found.damage;
            walk->result->damage_at = found.damage_at;
            return false;
        }
        walk->sound = true;
    }
    spill_gathered_flush(&walk->walker->gathered, walk->paths, walk->data);
    return true;
}

/* Add elements of an array. */
static inline bool add_run(walk_t *walk, uint32_t path, uint32_t size_bytes, uint32_t times)
{
    spill_gathered_t *gathered = &walk->walker->gathered;
    return spill_gathered_add_run(gathered, path, size_bytes, times) ||
           (make_room(walk) && spill_gathered_add_run(gathered, path, size_bytes, times));
}

static inline bool end_run(walk_t *walk, frame_t *frame)
{
    uint32_t times = frame->run_times;
    frame->run_times = 0;
    return times == 0 || !walk->walker || add_run(walk, frame->path->index, frame->run_size, times);
}

static inline bool add_element(walk_t *walk, frame_t *frame, uint32_t size_bytes)
{
    if (size_bytes != frame->run_size && !end_run(walk, frame))
        return false;
    frame->run_size = size_bytes;
    frame->run_times++;
    return true;
}

static bool add_values(walk_t *walk, const spill_path_t *path, const spill_path_values_t *values)
{
    spill_gathered_t *gathered = &walk->walker->gathered;
    return spill_gathered_add(gathered, values, path->kind) ||
           (make_room(walk) && spill_gathered_add(gathered, values, path->kind));
}

/* Add an array or document of the path, at `data`. */
static bool add_value(walk_t *walk, const spill_path_t *path, uint32_t length, uint32_t size_bytes,
                      const uint8_t *data)
{
    spill_path_values_t values = {.path = path->index,
                                  .length = length,
                                  .count = 1,
                                  .size_max = size_bytes,
                                  .size_max_at = (uint32_t)(data - walk->data),
                                  .bytes = size_bytes};
    return add_values(walk, path, &values);
}

/* ---- documents and arrays -------------------------------------------------------------------- */

/* The size of the document at `data`, which ends before `end`; 0: there is none. */
static uint32_t document_size(const uint8_t *data, const uint8_t *end)
{
    size_t available = (size_t)(end - data);
    uint32_t size = available >= 5 ? read_u32(data) : 0;
    return size >= 5 && size <= available && data[size - 1] == 0 ? size : 0;
}

/* NULL: the fields of its documents are read one by one. */
static spill_outline_t *outline_of(const walk_t *walk, spill_path_t *path)
{
    return path && !walk->walker->plain ? &path->outline : NULL;
}

static void open_frame(walk_t *walk, const uint8_t *data, uint32_t size, bool array,
                       spill_path_t *path, const cursor_t *cursor)
{
    frame_t *frame = &walk->frames[walk->depth++];
    frame->data = data;
    frame->end = data + size - 1;
    frame->path = path;
    frame->hint = NULL;
    frame->array = array;
    frame->cursor = *cursor;
    frame->run_size = 0;
    frame->run_times = 0;
}

static bool close_frame(walk_t *walk)
{
    frame_t *frame = &walk->frames[--walk->depth];
    if (!walk->walker)
        return true;
    uint32_t size = (uint32_t)(frame->end + 1 - frame->data);
    return end_run(walk, frame) &&
           add_value(walk, frame->path, frame->cursor.length, size, frame->data);
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_text(const uint8_t *text, size_t size)
{
    return is_ascii(text, size) || spill_utf8_valid(text, size);
}

static bool check_text(walk_t *walk, const uint8_t *text, size_t size)
{
    bool good = is_text(text, size);
    if (!good)
        note_flaw(walk, text, "a text is not UTF-8");
    return good;
}

/* A size that no value has. */
#define DAMAGED UINT32_MAX

/* The bytes of a text or of another value without a fixed size; DAMAGED: it does not fit. */
static uint32_t measure_text(walk_t *walk, uint8_t type, const uint8_t *data, const uint8_t *end)
{
    size_t available = (size_t)(end - data);
    uint32_t size = 0;
    if (type == BSON_TYPE_UTF8) { /* the most frequent type */
        uint32_t length = available >= 5 ? read_u32(data) : 0;
        if (length == 0 || length > available - 4 || data[3 + length] != 0)
            return DAMAGED;
        check_text(walk, data + 4, length - 1);
        return length + 4;
    }
    if (!spill_value_measure(type, data, available, &size))
        return DAMAGED;
    if (type == BSON_TYPE_CODE || type == BSON_TYPE_SYMBOL)
        check_text(walk, data + 4, read_u32(data) - 1);
    return size;
}

/* The bytes of a value that is no document or array; DAMAGED: it does not fit. Checks its texts. */
static inline uint32_t measure_value(walk_t *walk, uint8_t type, const uint8_t *data,
                                     const uint8_t *end)
{
    const uint8_t fixed = SIZES[type];
    uint32_t size = fixed == MEASURED ? measure_text(walk, type, data, end) : fixed - 1U;
    if ((size_t)(end - data) >= size)
        return size;
    fail_walk(walk, data, "a value does not fit");
    return DAMAGED;
}

static bool is_inner(uint8_t type)
{
    return type == BSON_TYPE_DOCUMENT || type == BSON_TYPE_ARRAY;
}

/* ---- fields that the outline expects --------------------------------------------------------- */

/* Pass a text. NULL: it needs a closer look. */
static inline const uint8_t *pass_expected_text(const uint8_t *data, const uint8_t *end)
{
    ptrdiff_t available = end - data;
    if (available < 5)
        return NULL;
    uint32_t length = read_u32(data);
    if (length == 0 || length > available - 4 || data[3 + length] != 0 ||
        !is_text(data + 4, length - 1))
        return NULL;
    return data + 4 + length;
}

/* Pass a value that needs no closer look. NULL: it does need one. */
static inline const uint8_t *pass_expected_value(const spill_outline_field_t *field,
                                                 const uint8_t *data, const uint8_t *end)
{
    if (field->value == SPILL_OUTLINE_FIXED)
        return end - data >= field->size_bytes ? data + field->size_bytes : NULL;
    return field->value == SPILL_OUTLINE_TEXT ? pass_expected_text(data, end) : NULL;
}

/*
 * Pass the fields that the outline expects, up to one that needs a closer look. *stop: the outline
 * has this one, too; NULL: it has not.
 */
static inline const uint8_t *pass_expected(cursor_t *cursor, const uint8_t *at, const uint8_t *end,
                                           const uint8_t *limit, const spill_outline_field_t **stop)
{
    const spill_outline_t *outline = cursor->outline;
    *stop = NULL;
    if (cursor->index > outline->count || outline->count == 0)
        return at;
    const spill_outline_field_t *expected = outline->fields + cursor->index;
    const spill_outline_field_t *const last = outline->fields + outline->count;
    uint32_t passed = 0;
    while (at < end) {
        const spill_outline_field_t *field = spill_outline_find(expected, last, at, limit);
        if (!field)
            break;
        const uint8_t *next = pass_expected_value(field, at + field->head_size, end);
        if (!next) {
            *stop = expected = field;
            break;
        }
        at = next;
        expected = field + 1;
        passed++;
    }
    cursor->outline->matched += passed;
    cursor->index = (uint32_t)(expected - outline->fields);
    cursor->length += passed;
    return at;
}

/* ---- documents and arrays in others ---------------------------------------------------------- */

/* The size of the document or array at `data`; DAMAGED: it is wrong. */
static inline uint32_t measure_inner(walk_t *walk, const uint8_t *data, const uint8_t *end)
{
    uint32_t size = document_size(data, end);
    if (size == 0) {
        fail_walk(walk, data, "the length of a document or array is wrong");
        return DAMAGED;
    }
    if (walk->depth == SPILL_NESTING_MAX)
        note_flaw(walk, data, "nested more than 100 levels deep");
    return size;
}

/* Enter a document or array; pass it if its fields are as expected. NULL: damage. */
static inline const uint8_t *enter(walk_t *walk, const uint8_t *data, uint32_t size, bool array,
                                   spill_path_t *path)
{
    const uint8_t *at = data + 4, *const end = data + size - 1;
    cursor_t cursor = {.outline = array ? NULL : outline_of(walk, path)};
    if (cursor.outline && cursor.outline->count > 0) {
        spill_outline_t *outline = cursor.outline;
        const spill_outline_field_t *stop;
        spill_template_starts_t starts;
        if (outline->template &&
            spill_template_recognizes(outline->template, at, end, walk->limit, &starts)) {
            uint32_t length = outline->template->field_count;
            outline->matched += length;
            outline->strange = 0;
            return add_value(walk, path, length, size, data) ? end + 1 : NULL;
        }
        at = pass_expected(&cursor, at, end, walk->limit, &stop);
        if (at == end) {
            spill_outline_note_strange(outline, data, size);
            return add_value(walk, path, cursor.length, size, data) ? end + 1 : NULL;
        }
    }
    open_frame(walk, data, size, array, path, &cursor);
    return at;
}

/* Check the type and the name of a field whose value is at `data`. False: damage. */
static inline bool check_head(walk_t *walk, const uint8_t *at, const uint8_t *data,
                              const uint8_t *end)
{
    if (SIZES[*at] != BAD && data <= end)
        return true;
    return fail_walk(walk, at, SIZES[*at] == BAD ? "unknown type" : "a name does not end");
}

/* ---- elements -------------------------------------------------------------------------------- */

/* The path of the array's elements of that type, which are arrays or documents. */
static inline spill_path_t *path_of_elements(walk_t *walk, frame_t *frame, uint8_t type)
{
    spill_path_kind_t kind = type == BSON_TYPE_ARRAY ? SPILL_PATH_ARRAY : SPILL_PATH_DOCUMENT;
    if (!walk->walker)
        return NULL;
    if (!frame->hint || frame->hint->kind != kind || frame->hint == walk->paths->overflow)
        frame->hint = spill_path_child(walk->paths, frame->path, NULL, kind, "", 0);
    return frame->hint;
}

/* The times of an array's elements while they are kept. */
typedef struct keeper {
    spill_times_kept_t *kept;
    spill_times_series_t *series; /* NULL: none is kept */
    spill_template_place_t place; /* of the time */
} keeper_t;

/* Begin a series with the element at `at`, if the template has the array's time. */
static void begin_series(keeper_t *keeper, const spill_times_rule_t *rule,
                         const spill_template_t *template, const uint8_t *at)
{
    spill_times_kept_t *kept = keeper->kept;
    if (rule->type == 0 || rule->depth != 1 || rule->type == BSON_TYPE_UTF8 ||
        kept->series_count == SPILL_TIMES_SERIES || kept->count == SPILL_TIMES_KEPT)
        return;
    keeper->place = spill_template_find(template, rule->names);
    if (keeper->place.type != rule->type)
        return;
    keeper->series = &kept->series[kept->series_count];
    *keeper->series = (spill_times_series_t){.from = at, .first = kept->count, .rule = *rule};
}

/* End the series before `at`. A short one is of no use. */
static void end_series(keeper_t *keeper, const uint8_t *at)
{
    spill_times_series_t *series = keeper->series;
    keeper->series = NULL;
    if (!series || series->count < SPILL_GROWTH_LENGTH_MIN / 2)
        return;
    series->to = at;
    keeper->kept->series_count++;
    keeper->kept->count += series->count;
}

/* Keep the time of the element that ends before `next`. */
static inline void keep_time(keeper_t *keeper, const spill_template_starts_t *starts,
                             const uint8_t *next)
{
    const spill_template_place_t *place = &keeper->place;
    spill_times_series_t *series = keeper->series;
    uint32_t at = series->first + series->count++;
    keeper->kept->times_ms[at] =
        spill_times_decode(place->type, starts->at[place->stretch] + place->offset);
    if (at + 1 == SPILL_TIMES_KEPT)
        end_series(keeper, next);
}

/*
 * Pass elements in succession that the template of their path recognizes, and keep their times.
 * This is what pass_elements does with them, in a short loop. NULL: damage.
 */
static const uint8_t *pass_recognized(walk_t *walk, frame_t *frame, const uint8_t *at)
{
    spill_path_t *path = frame->hint;
    const spill_template_t *template = path->outline.template;
    const uint8_t *const end = frame->end, *const limit = walk->limit;
    const uint32_t array = frame->path->index;
    spill_path_values_t values = {.path = path->index, .length = template->field_count};
    keeper_t keeper = {.kept = &walk->walker->kept};
    while (at < end && *at == BSON_TYPE_DOCUMENT) {
        bool plain;
        spill_template_starts_t starts;
        const uint8_t *data = find_nul(at + 1, limit, &plain) + 1;
        uint32_t size = data < end ? document_size(data, end) : 0;
        if (size == 0 ||
            !spill_template_recognizes(template, data + 4, data + size - 1, limit, &starts))
            break;
        if (!add_run(walk, array, size, 1))
            return NULL;
        if (values.count == 1) /* a second one: there may be many */
            begin_series(&keeper, &frame->path->times, template, at);
        at = data + size;
        if (keeper.series)
            keep_time(&keeper, &starts, at);
        values.count++;
        values.bytes += size;
        if (size > values.size_max) {
            values.size_max = size;
            values.size_max_at = (uint32_t)(data - walk->data);
        }
    }
    end_series(&keeper, at);
    frame->cursor.length += values.count;
    path->outline.matched += values.count;
    return values.count == 0 || add_values(walk, path, &values) ? at : NULL;
}

/* Report whether the elements from here on may be as their template. */
static bool may_be_recognized(const walk_t *walk, const frame_t *frame)
{
    const spill_path_t *path = frame->hint;
    return path && path->outline.template && !walk->walker->plain &&
           walk->depth < SPILL_NESTING_MAX;
}

/*
 * Read the elements of the innermost array from `at` on, up to its end or up to one that is
 * entered. NULL: damage.
 */
static const uint8_t *pass_elements(walk_t *walk, const uint8_t *at)
{
    frame_t *frame = &walk->frames[walk->depth - 1];
    const uint8_t *const end = frame->end, *const limit = walk->limit;
    const uint32_t depth = walk->depth;
    while (at < end) {
        const uint8_t type = *at;
        bool plain, inner = is_inner(type);
        const uint8_t *data = find_nul(at + 1, limit, &plain) + 1;
        if (!check_head(walk, at, data, end))
            return NULL;
        frame->cursor.length++;
        uint32_t size =
            inner ? measure_inner(walk, data, end) : measure_value(walk, type, data, end);
        if (size == DAMAGED || !add_element(walk, frame, size))
            return NULL;
        at = data + size;
        if (!inner || depth == SPILL_NESTING_MAX)
            continue;
        at = enter(walk, data, size, type == BSON_TYPE_ARRAY, path_of_elements(walk, frame, type));
        if (!at || walk->depth > depth)
            return at;
        if (may_be_recognized(walk, frame)) {
            at = pass_recognized(walk, frame, at);
            if (!at)
                return NULL;
        }
    }
    return at;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Add the field at `at` to the outline. `path`: of its document or array, or NULL. */
static void learn_field(const walk_t *walk, frame_t *frame, const uint8_t *at, size_t name_size,
                        bool id, spill_path_t *path)
{
    const spill_path_t *overflow = walk->paths->overflow;
    if (!frame->path->map && frame->path != overflow && path != overflow)
        frame->cursor.index = spill_outline_learn(frame->cursor.outline, frame->cursor.index, at,
                                                  name_size + 2, id, path);
}

static spill_path_t *path_of_field(walk_t *walk, frame_t *frame, uint8_t type, const uint8_t *name,
                                   size_t name_size)
{
    spill_path_kind_t kind = type == BSON_TYPE_ARRAY ? SPILL_PATH_ARRAY : SPILL_PATH_DOCUMENT;
    frame->hint = spill_path_child(walk->paths, frame->path, frame->hint, kind, (const char *)name,
                                   name_size);
    return frame->hint;
}

/*
 * Read the field at `at`, up to its end or up to its value if it is entered. `known`: it is this
 * field of the outline; or NULL. NULL: damage.
 */
static const uint8_t *pass_field(walk_t *walk, frame_t *frame, const uint8_t *at,
                                 const spill_outline_field_t *known)
{
    const uint8_t type = *at, *const name = at + 1, *const end = frame->end;
    bool plain = true, inner = is_inner(type), root = walk->depth == 1;
    const uint8_t *nul = known ? at + known->head_size - 1 : find_nul(name, walk->limit, &plain);
    const uint8_t *data = nul + 1;
    size_t name_size = (size_t)(nul - name);
    if (!check_head(walk, at, data, end))
        return NULL;
    bool learn = (plain || check_text(walk, name, name_size)) && !known && frame->cursor.outline;
    bool id = root && name_size == 3 && memcmp(name, "_id", 3) == 0;
    spill_path_t *path = NULL;
    uint32_t size = inner ? measure_inner(walk, data, end) : measure_value(walk, type, data, end);
    if (size == DAMAGED)
        return NULL;
    if (id && !walk->result->id.data)
        walk->result->id = (spill_value_t){data, size, type};
    inner = inner && walk->depth < SPILL_NESTING_MAX;
    if (inner && walk->walker)
        path = known ? known->path : path_of_field(walk, frame, type, name, name_size);
    if (learn)
        learn_field(walk, frame, at, name_size, id, path);
    return inner ? enter(walk, data, size, type == BSON_TYPE_ARRAY, path) : data + size;
}

/* Read the fields of the innermost document, as pass_elements reads an array. */
static const uint8_t *pass_fields(walk_t *walk, const uint8_t *at)
{
    frame_t *frame = &walk->frames[walk->depth - 1];
    cursor_t *cursor = &frame->cursor;
    const uint32_t depth = walk->depth;
    while (at < frame->end) {
        const spill_outline_field_t *known = NULL;
        if (cursor->outline) {
            at = pass_expected(cursor, at, frame->end, walk->limit, &known);
            if (at == frame->end)
                break;
        }
        cursor->length++;
        cursor->index += known != NULL;
        at = pass_field(walk, frame, at, known);
        if (!at || walk->depth > depth)
            return at;
    }
    return at;
}

/* Walk the whole document from the root. */
static bool walk_all(walk_t *walk)
{
    uint32_t size = document_size(walk->data, walk->limit);
    if (size == 0 || walk->data + size != walk->limit)
        return fail_walk(walk, walk->data, "the length of the document is wrong");
    spill_path_t *root = walk->walker ? walk->paths->root : NULL;
    cursor_t cursor = {.outline = outline_of(walk, root)};
    open_frame(walk, walk->data, size, false, root, &cursor);
    const uint8_t *at = walk->data + 4;
    while (walk->depth > 0) {
        at = walk->frames[walk->depth - 1].array ? pass_elements(walk, at) : pass_fields(walk, at);
        if (!at)
            return false;
        if (at == walk->frames[walk->depth - 1].end) {
            if (!close_frame(walk))
                return false;
            at++;
        }
    }
    return true;
}

void spill_walk(spill_walker_t *walker, spill_paths_t *paths, const uint8_t *data, size_t size,
                int64_t place, spill_walk_t *result)
{
    *result = (spill_walk_t){0};
    walk_t walk;
    walk.walker = walker;
    walk.paths = paths;
    walk.result = result;
    walk.data = data;
    walk.limit = data + size;
    walk.sound = false;
    walk.depth = 0; /* frames are set when they are opened */
    walker->gathered.value_count = 0;
    walker->gathered.run_count = 0;
    walker->kept.series_count = 0;
    walker->kept.count = 0;
    paths->kept = &walker->kept;
    paths->repeats = &walker->repeats;
    if (!walk_all(&walk))
        return;
    spill_gathered_flush(&walker->gathered, paths, data);
    spill_paths_end_document(paths, data, (uint32_t)size, &result->id, place);
}

bool spill_walk_check(const uint8_t *data, size_t size)
{
    spill_walk_t found = {0};
    walk_t walk = {.result = &found, .data = data, .limit = data + size};
    return walk_all(&walk);
}
