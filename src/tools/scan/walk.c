/* Walk over the bytes of a document, and add its arrays and sub-documents to a table. */
#include "tools/scan/paths.h"

#include "tools/scan/field_bytes.h"
#include "util/text.h"

#include <string.h>

/*
 * What is found in the current document is buffered until the document is known to be valid. If the
 * buffers are too small, the rest of the document is checked first. Then the buffers are added to
 * the table in between.
 */
#define ENTRIES_MAX 16384U
#define RUNS_MAX 32768U

/* Elements of one array path and one size. */
typedef struct run {
    uint32_t path; /* an index: a map may absorb the path meanwhile */
    uint32_t size_bytes;
    uint32_t times;
} run_t;

/* The last entry and run of each key; see find_slot. */
enum { SLOTS = 1024 };

struct spill_walker {
    bool plain; /* without outlines */
    uint32_t entry_count;
    uint32_t run_count;
    uint16_t entry_slots[SLOTS];
    uint16_t run_slots[SLOTS];
    spill_path_values_t entries[ENTRIES_MAX];
    run_t runs[RUNS_MAX];
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
    spill_walker_t *walker =
        bson_malloc(sizeof *walker); /* not zeroed: entries are set before they are read */
    walker->plain = false;
    walker->entry_count = 0;
    walker->run_count = 0;
    memset(walker->entry_slots, 0, sizeof walker->entry_slots);
    memset(walker->run_slots, 0, sizeof walker->run_slots);
    return walker;
}

void spill_walker_ignore_outlines(spill_walker_t *walker)
{
    walker->plain = true;
}

void spill_walker_free(spill_walker_t *walker)
{
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

/* ---- entries for the table ------------------------------------------------------------------- */

static void flush_entries(walk_t *walk)
{
    spill_walker_t *walker = walk->walker;
    for (uint32_t i = 0; i < walker->run_count; i++) {
        const run_t *run = &walker->runs[i];
        spill_paths_add_elements(walk->paths, run->path, run->size_bytes, run->times);
    }
    for (uint32_t i = 0; i < walker->entry_count; i++)
        spill_paths_add(walk->paths, &walker->entries[i], walk->data);
    walker->run_count = 0;
    walker->entry_count = 0;
}

static bool walk_all(walk_t *walk);

/* Empty the buffers. False: the document is damaged further on. */
static bool make_entry_room(walk_t *walk)
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
    flush_entries(walk);
    return true;
}

/*
 * Where the index of the last entry or run with these two numbers is. Others may have the same
 * place, and the index may be of an earlier document: compare the numbers, too.
 */
static uint16_t *find_slot(uint16_t *slots, uint32_t path, uint32_t number)
{
    return &slots[(path * 67 + number) % SLOTS];
}

static bool end_run(walk_t *walk, frame_t *frame)
{
    spill_walker_t *walker = walk->walker;
    if (frame->run_times == 0 || !walker)
        return true;
    uint32_t path = frame->path->index, times = frame->run_times;
    uint16_t *slot = find_slot(walker->run_slots, path, frame->run_size);
    run_t *run = &walker->runs[*slot];
    frame->run_times = 0;
    if (*slot < walker->run_count && run->path == path && run->size_bytes == frame->run_size) {
        run->times += times;
        return true;
    }
    if (walker->run_count == RUNS_MAX && !make_entry_room(walk))
        return false;
    *slot = (uint16_t)walker->run_count;
    walker->runs[walker->run_count++] = (run_t){path, frame->run_size, times};
    return true;
}

/* Report whether a document of this kind and length is added to an entry of its like. */
static bool shares_entry(const spill_path_t *path, uint32_t length)
{
    return path->kind == SPILL_PATH_DOCUMENT && length < SPILL_MAP_KEYS_MIN;
}

static bool add_entry(walk_t *walk, const spill_path_t *path, uint32_t length, uint32_t size_bytes,
                      const uint8_t *data)
{
    spill_walker_t *walker = walk->walker;
    uint16_t *slot = find_slot(walker->entry_slots, path->index, length);
    spill_path_values_t *entry = &walker->entries[*slot];
    uint32_t at = (uint32_t)(data - walk->data);
    if (*slot < walker->entry_count && entry->path == path->index && entry->length == length &&
        shares_entry(path, length)) {
        entry->count++;
        entry->bytes += size_bytes;
        if (size_bytes > entry->size_max) {
            entry->size_max = size_bytes;
            entry->size_max_at = at;
        }
        return true;
    }
    if (walker->entry_count == ENTRIES_MAX && !make_entry_room(walk))
        return false;
    *slot = (uint16_t)walker->entry_count;
    walker->entries[walker->entry_count++] = (spill_path_values_t){.path = path->index,
                                                                   .length = length,
                                                                   .count = 1,
                                                                   .bytes = size_bytes,
                                                                   .size_max = size_bytes,
                                                                   .size_max_at = at};
    return true;
}

static inline bool add_element(walk_t *walk, frame_t *frame, uint32_t size_bytes)
{
    if (size_bytes != frame->run_size && !end_run(walk, frame))
        return false;
    frame->run_size = size_bytes;
    frame->run_times++;
    return true;
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
           add_entry(walk, frame->path, frame->cursor.length, size, frame->data);
}

/* ---- fields ---------------------------------------------------------------------------------- */

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

/* The bytes of a value without a fixed size; 0: it does not fit. Checks its texts. */
static uint32_t measure_value(walk_t *walk, uint8_t type, const uint8_t *data, const uint8_t *end)
{
    size_t available = (size_t)(end - data);
    uint32_t size = 0;
    if (type == BSON_TYPE_UTF8) { /* the most frequent type */
        uint32_t length = available >= 5 ? read_u32(data) : 0;
        if (length == 0 || length > available - 4 || data[3 + length] != 0)
            return 0;
        check_text(walk, data + 4, length - 1);
        return length + 4;
    }
    if (!spill_value_measure(type, data, available, &size))
        return 0;
    if (type == BSON_TYPE_CODE || type == BSON_TYPE_SYMBOL)
        check_text(walk, data + 4, read_u32(data) - 1);
    return size;
}

/* ---- fields that the outline expects --------------------------------------------------------- */

/* Pass a value that needs no closer look. NULL: it does need one. */
static inline const uint8_t *pass_expected_value(const spill_outline_field_t *field,
                                                 const uint8_t *data, const uint8_t *end)
{
    ptrdiff_t available = end - data;
    if (field->value == SPILL_OUTLINE_FIXED)
        return available >= field->size_bytes ? data + field->size_bytes : NULL;
    if (field->value != SPILL_OUTLINE_TEXT || available < 5)
        return NULL;
    uint32_t length = read_u32(data);
    if (length == 0 || length > available - 4 || data[3 + length] != 0 ||
        !is_text(data + 4, length - 1))
        return NULL;
    return data + 4 + length;
}

/*
 * Pass the fields that the outline expects, up to one that needs a closer look. *stop: the outline
 * has this one, too; NULL: it has not.
 */
static inline const uint8_t *pass_expected(cursor_t *cursor, const uint8_t *at, const uint8_t *end,
                                           const uint8_t *limit, const spill_outline_field_t **stop)
{
    const spill_outline_t *outline = cursor->outline;
    uint32_t index = cursor->index, passed = 0;
    *stop = NULL;
    while (at < end) {
        uint32_t found = spill_outline_find(outline, index, at, limit);
        if (found == outline->count)
            break;
        const spill_outline_field_t *field = &outline->fields[found];
        const uint8_t *next = pass_expected_value(field, at + field->head_size, end);
        if (!next) {
            *stop = field;
            index = found;
            break;
        }
        at = next;
        index = found + 1;
        passed++;
    }
    cursor->outline->matched += passed;
    cursor->index = index;
    cursor->length += passed;
    return at;
}

/* ---- heads of fields ------------------------------------------------------------------------- */

/* A field's type and name, and where its value begins. */
typedef struct head {
    const uint8_t *at;
    size_t name_size;
    const uint8_t *data;
    const spill_outline_field_t *known; /* the outline's; NULL: it has none */
    bool learn;                         /* the outline may learn it */
} head_t;

/* Read the type and the name at `at`. False: damage. */
static inline bool read_head(walk_t *walk, const frame_t *frame, const uint8_t *at, head_t *head)
{
    bool plain = true;
    const uint8_t *nul =
        head->known ? at + head->known->head_size - 1 : find_nul(at + 1, walk->limit, &plain);
    if (SIZES[*at] == BAD || nul >= frame->end)
        return fail_walk(walk, at, SIZES[*at] == BAD ? "unknown type" : "a name does not end");
    head->at = at;
    head->name_size = (size_t)(nul - at - 1);
    head->data = nul + 1;
    bool good = head->known || plain || frame->array || check_text(walk, at + 1, head->name_size);
    head->learn = good && !head->known && frame->cursor.outline;
    return true;
}

static bool is_id(const walk_t *walk, const head_t *head)
{
    return walk->depth == 1 && head->name_size == 3 && memcmp(head->at + 1, "_id", 3) == 0;
}

/* Add a field of the document to the outline of its path. `path`: of a document or array. */
static void learn_field(const walk_t *walk, frame_t *frame, const head_t *head, spill_path_t *path)
{
    const spill_path_t *overflow = walk->paths->overflow;
    if (!frame->path->map && frame->path != overflow && path != overflow)
        frame->cursor.index =
            spill_outline_learn(&frame->path->outline, frame->cursor.index, head->at,
                                head->name_size + 2, is_id(walk, head), path);
}

/* ---- documents and arrays in fields ---------------------------------------------------------- */

static spill_path_t *path_of(walk_t *walk, frame_t *frame, const head_t *head)
{
    spill_path_kind_t kind = *head->at == BSON_TYPE_ARRAY ? SPILL_PATH_ARRAY : SPILL_PATH_DOCUMENT;
    spill_path_t *last = frame->hint;
    if (head->known)
        frame->hint = head->known->path;
    else if (!frame->array || !last || last->kind != kind || last == walk->paths->overflow)
        frame->hint = spill_path_child(walk->paths, frame->path, last, kind,
                                       (const char *)head->at + 1, head->name_size);
    return frame->hint;
}

/* Pass a field that is a document or an array, or enter it. NULL: it is damaged. */
static const uint8_t *enter_field(walk_t *walk, frame_t *frame, const head_t *head)
{
    const uint8_t *data = head->data;
    uint32_t size = document_size(data, frame->end);
    bool array = *head->at == BSON_TYPE_ARRAY;
    if (size == 0) {
        fail_walk(walk, data, "the length of a document or array is wrong");
        return NULL;
    }
    if (frame->array && !add_element(walk, frame, size))
        return NULL;
    if (walk->depth == SPILL_NESTING_MAX) {
        note_flaw(walk, data, "nested more than 100 levels deep");
        return data + size;
    }
    const uint8_t *at = data + 4, *const end = data + size - 1;
    spill_path_t *path = walk->walker ? path_of(walk, frame, head) : NULL;
    if (head->learn)
        learn_field(walk, frame, head, path);
    cursor_t cursor = {.outline = array ? NULL : outline_of(walk, path)};
    if (cursor.outline) {
        const spill_outline_field_t *stop;
        at = pass_expected(&cursor, at, end, walk->limit, &stop);
        if (at == end)
            return add_entry(walk, path, cursor.length, size, data) ? at + 1 : NULL;
    }
    open_frame(walk, data, size, array, path, &cursor);
    return at;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static void note_id(walk_t *walk, uint8_t type, const uint8_t *data, uint32_t size)
{
    if (!walk->result->id.data)
        walk->result->id = (spill_value_t){data, size, type};
}

/* Pass the value of a field, or enter it. NULL: it is damaged. */
static inline const uint8_t *pass_value(walk_t *walk, frame_t *frame, const head_t *head)
{
    const uint8_t type = *head->at, fixed = SIZES[type];
    const uint8_t *data = head->data;
    uint32_t size = fixed - 1U;
    if (type == BSON_TYPE_DOCUMENT || type == BSON_TYPE_ARRAY) {
        if (is_id(walk, head))
            note_id(walk, type, data, document_size(data, frame->end));
        return enter_field(walk, frame, head);
    }
    if (head->learn)
        learn_field(walk, frame, head, NULL);
    if (fixed == MEASURED)
        size = measure_value(walk, type, data, frame->end);
    if ((fixed == MEASURED && size == 0) || (size_t)(frame->end - data) < size) {
        fail_walk(walk, data, "a value does not fit");
        return NULL;
    }
    if (is_id(walk, head))
        note_id(walk, type, data, size);
    if (frame->array && !add_element(walk, frame, size))
        return NULL;
    return data + size;
}

/*
 * Read the fields of the innermost document from `at` on, up to its end or up to one that is
 * entered. NULL: damage.
 */
static const uint8_t *pass_fields(walk_t *walk, const uint8_t *at)
{
    frame_t *frame = &walk->frames[walk->depth - 1];
    cursor_t *cursor = &frame->cursor;
    const uint32_t depth = walk->depth;
    while (at < frame->end) {
        head_t head = {.known = NULL};
        if (cursor->outline) {
            at = pass_expected(cursor, at, frame->end, walk->limit, &head.known);
            if (at == frame->end)
                break;
        }
        if (!read_head(walk, frame, at, &head))
            return NULL;
        cursor->length++;
        cursor->index += head.known != NULL;
        at = pass_value(walk, frame, &head);
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
        at = pass_fields(walk, at);
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
    walker->entry_count = 0;
    walker->run_count = 0;
    if (!walk_all(&walk))
        return;
    flush_entries(&walk);
    spill_paths_end_document(paths, data, (uint32_t)size, &result->id, place);
}

bool spill_walk_check(const uint8_t *data, size_t size)
{
    spill_walk_t found = {0};
    walk_t walk = {.result = &found, .data = data, .limit = data + size};
    return walk_all(&walk);
}
