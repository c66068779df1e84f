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
#define ENTRIES_MAX 32768U
#define RUNS_MAX 32768U

/* An array or a document that was read. */
typedef struct entry {
    uint32_t path; /* an index: a map may absorb the path meanwhile */
    uint32_t length;
    uint32_t size_bytes;
    uint32_t at;
} entry_t;

/* Consecutive elements of one size. */
typedef struct run {
    uint32_t path;
    uint32_t size_bytes;
    uint32_t times;
} run_t;

struct spill_walker {
    uint32_t entry_count;
    uint32_t run_count;
    entry_t entries[ENTRIES_MAX];
    run_t runs[RUNS_MAX];
};

/* A document or array that is open. */
typedef struct frame {
    const uint8_t *data;
    const uint8_t *end; /* its last byte, the terminator */
    spill_path_t *path; /* NULL if there is no table */
    spill_path_t *hint; /* the path of the last field that has one */
    bool array;
    uint32_t length;   /* fields so far */
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
    walker->entry_count = 0;
    walker->run_count = 0;
    return walker;
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
    for (uint32_t i = 0; i < walker->entry_count; i++) {
        const entry_t *entry = &walker->entries[i];
        spill_paths_add(walk->paths, entry->path, entry->length, entry->size_bytes, walk->data,
                        entry->at);
    }
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

static bool end_run(walk_t *walk, frame_t *frame)
{
    spill_walker_t *walker = walk->walker;
    if (frame->run_times == 0 || !walker)
        return true;
    if (walker->run_count == RUNS_MAX && !make_entry_room(walk))
        return false;
    walker->runs[walker->run_count++] =
        (run_t){frame->path->index, frame->run_size, frame->run_times};
    frame->run_times = 0;
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

static void open_frame(walk_t *walk, const uint8_t *data, uint32_t size, bool array,
                       spill_path_t *path)
{
    frame_t *frame = &walk->frames[walk->depth++];
    frame->data = data;
    frame->end = data + size - 1;
    frame->path = path;
    frame->hint = NULL;
    frame->array = array;
    frame->length = 0;
    frame->run_size = 0;
    frame->run_times = 0;
}

static bool close_frame(walk_t *walk)
{
    frame_t *frame = &walk->frames[--walk->depth];
    spill_walker_t *walker = walk->walker;
    if (!walker)
        return true;
    if (!end_run(walk, frame) || (walker->entry_count == ENTRIES_MAX && !make_entry_room(walk)))
        return false;
    walker->entries[walker->entry_count++] =
        (entry_t){frame->path->index, frame->length, (uint32_t)(frame->end + 1 - frame->data),
                  (uint32_t)(frame->data - walk->data)};
    return true;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* The first NUL from `at` on; there is one before `limit`. *plain: all bytes before it are ASCII.
 */
static inline const uint8_t *find_nul(const uint8_t *at, const uint8_t *limit, bool *plain)
{
    uint64_t high = 0;
    while (limit - at >= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        word = BSON_UINT64_FROM_LE(word);
        uint64_t nul = (word - ONES) & ~word & HIGH_BITS; /* its lowest bit is the first NUL's */
        if (nul != 0) {
            high |= word & ((nul & (~nul + 1)) - 1);
            *plain = (high & HIGH_BITS) == 0;
            return at + (__builtin_ctzll(nul) >> 3);
        }
        high |= word;
        at += 8;
    }
    while (*at != 0)
        high |= *at++;
    *plain = (high & HIGH_BITS) == 0;
    return at;
}

/* Most texts are short and ASCII: check these by words; the last word may overlap. */
static inline bool is_ascii(const uint8_t *text, size_t size)
{
    uint64_t high = 0, word;
    if (size < sizeof word) {
        for (size_t i = 0; i < size; i++)
            high |= (uint64_t)text[i] << 56;
        return (high & HIGH_BITS) == 0;
    }
    for (size_t i = 0; i + sizeof word < size; i += sizeof word) {
        memcpy(&word, text + i, sizeof word);
        high |= word;
    }
    memcpy(&word, text + size - sizeof word, sizeof word);
    return ((high | word) & HIGH_BITS) == 0;
}

static void check_text(walk_t *walk, const uint8_t *text, size_t size)
{
    if (!is_ascii(text, size) && !spill_utf8_valid(text, size))
        note_flaw(walk, text, "a text is not UTF-8");
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

/* Enter a field that is a document or an array. NULL: it is damaged. */
static const uint8_t *enter_field(walk_t *walk, frame_t *frame, uint8_t type, const uint8_t *name,
                                  size_t name_size, const uint8_t *data)
{
    uint32_t size = document_size(data, frame->end);
    bool array = type == BSON_TYPE_ARRAY;
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
    spill_path_t *path = NULL;
    if (walk->walker) {
        path = spill_path_child(walk->paths, frame->path, frame->hint,
                                array ? SPILL_PATH_ARRAY : SPILL_PATH_DOCUMENT, (const char *)name,
                                name_size);
        frame->hint = path;
    }
    open_frame(walk, data, size, array, path);
    return data + 4;
}

static void note_id(walk_t *walk, uint8_t type, const uint8_t *name, const uint8_t *data,
                    uint32_t size)
{
    if (!walk->result->id.data && memcmp(name, "_id", 4) == 0)
        walk->result->id = (spill_value_t){data, size, type};
}

/*
 * Read the fields of the innermost document from `at` on, up to its end or up to one that is
 * entered. NULL: damage.
 */
static const uint8_t *pass_fields(walk_t *walk, const uint8_t *at)
{
    frame_t *frame = &walk->frames[walk->depth - 1];
    const uint8_t *const end = frame->end, *const limit = walk->limit;
    const bool array = frame->array;
    const bool root = walk->depth == 1;
    while (at < end) {
        const uint8_t type = *at, fixed = SIZES[type];
        const uint8_t *name = at + 1;
        bool plain = true;
        const uint8_t *nul = find_nul(name, limit, &plain);
        const uint8_t *data = nul + 1;
        uint32_t size = fixed - 1U;
        if (fixed == BAD || nul >= end) {
            fail_walk(walk, at, fixed == BAD ? "unknown type" : "a name does not end");
            return NULL;
        }
        frame->length++;
        if (!plain && !array)
            check_text(walk, name, (size_t)(nul - name));
        if (type == BSON_TYPE_DOCUMENT || type == BSON_TYPE_ARRAY) {
            uint32_t depth = walk->depth;
            if (root && nul - name == 3)
                note_id(walk, type, name, data, document_size(data, end));
            at = enter_field(walk, frame, type, name, (size_t)(nul - name), data);
            if (!at || walk->depth > depth)
                return at;
            continue;
        }
        if (fixed == MEASURED)
            size = measure_value(walk, type, data, end);
        if ((fixed == MEASURED && size == 0) || (size_t)(end - data) < size) {
            fail_walk(walk, data, "a value does not fit");
            return NULL;
        }
        if (root && nul - name == 3)
            note_id(walk, type, name, data, size);
        if (array && !add_element(walk, frame, size))
            return NULL;
        at = data + size;
    }
    return at;
}

/* Walk the whole document from the root. */
static bool walk_all(walk_t *walk)
{
    uint32_t size = document_size(walk->data, walk->limit);
    if (size == 0 || walk->data + size != walk->limit)
        return fail_walk(walk, walk->data, "the length of the document is wrong");
    open_frame(walk, walk->data, size, false, walk->walker ? walk->paths->root : NULL);
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
