/*
 * What the walk remembers of the documents that it has read, to recognize the next ones: the
 * outline of a path recognizes field by field, and its template whole documents.
 */
#ifndef SPILL_TOOLS_SCAN_OUTLINE_H
#define SPILL_TOOLS_SCAN_OUTLINE_H

#include "tools/scan/field_bytes.h"

#include <stdbool.h>

/* ---- templates ------------------------------------------------------------------------------- */

/*
 * A template: a document as bytes to compare. It recognizes documents with the same fields in the
 * same order and of the same types, if these are texts and values of fixed sizes. A few wide
 * comparisons check all names between two texts.
 *
 *      {"kind": "like", "actor": <oid>, "weight": 7, "text": "...", "seen": true}
 *       |-----|        |-------------------------------|       |---------------|
 *       stretch 0      stretch 1                               stretch 2
 *
 * A stretch has the fields' types, names and values of fixed sizes up to the length of the next
 * text, or up to the document's end. A mask leaves out the values.
 */

enum { SPILL_TEMPLATE_STRETCHES = 16, SPILL_TEMPLATE_BLOCKS = 40 };

typedef struct spill_template_stretch {
    uint16_t size_bytes;
    uint16_t block_count;
} spill_template_stretch_t;

/* No pointers: free it as a whole. 1.4 KB. */
typedef struct spill_template {
    uint32_t field_count;
    uint32_t stretch_count; /* one more than texts; 0: it recognizes nothing */
    uint32_t reach;         /* bytes behind a document's end that a comparison may read */
    spill_template_stretch_t stretches[SPILL_TEMPLATE_STRETCHES];
    byte_pair_t bytes[SPILL_TEMPLATE_BLOCKS]; /* each stretch begins with a block */
    byte_pair_t masks[SPILL_TEMPLATE_BLOCKS];
} spill_template_t;

/*
 * Make the template of the document of `size` bytes at `data`, which is valid. If it is too large,
 * or has other values than texts and values of fixed sizes, the template recognizes nothing.
 */
void spill_template_make(spill_template_t *template, const uint8_t *data, uint32_t size);

/* Where the stretches of a document begin. */
typedef struct spill_template_starts {
    const uint8_t *at[SPILL_TEMPLATE_STRETCHES];
} spill_template_starts_t;

/*
 * Report whether it recognizes the document with the fields from `at` up to `end`, and whether all
 * texts are valid. No byte from `limit` on is read. A document that is recognized is valid, and has
 * as many fields as the template; *starts is set.
 */
bool spill_template_recognizes(const spill_template_t *template, const uint8_t *at,
                               const uint8_t *end, const uint8_t *limit,
                               spill_template_starts_t *starts);

/* The place of a field's value. */
typedef struct spill_template_place {
    uint32_t stretch;
    uint32_t offset;      /* in the stretch */
    uint32_t block_count; /* of the stretch, up to the value */
    uint8_t type;         /* 0: there is no such field */
} spill_template_place_t;

/* Find the first field of that name. */
spill_template_place_t spill_template_find(const spill_template_t *template, const char *name);

/*
 * Return the value at that place of a valid document with the fields from `at` up to `end`. NULL:
 * its fields up to the value are not the template's. No byte from `limit` on is read.
 */
const uint8_t *spill_template_value(const spill_template_t *template,
                                    const spill_template_place_t *place, const uint8_t *at,
                                    const uint8_t *end, const uint8_t *limit);

/* ---- outlines -------------------------------------------------------------------------------- */

/*
 * The outline of a path: the fields that its documents had so far, in their order. The documents of
 * a collection, and the elements of an array, mostly have the same fields in the same order. So the
 * walk compares the bytes of the next name with the outline, instead of searching the name's end
 * and the path of its value.
 *
 * An outline is a guess and decides nothing: what does not match is read without it, and a value
 * behind a name that matches has the same checks. The result is the same without outlines.
 *
 * Bounded: SPILL_OUTLINE_FIELDS fields of 56 bytes and a template for each path.
 */

struct spill_path;

/* Fields of an outline; bytes of a field's type, name and NUL. Longer ones are left out. */
enum { SPILL_OUTLINE_FIELDS = 48, SPILL_OUTLINE_HEAD_MAX = 32 };

/* What the value behind a matching name needs. */
typedef enum spill_outline_value {
    SPILL_OUTLINE_FIXED, /* nothing: its size is fixed */
    SPILL_OUTLINE_TEXT,  /* a check of its length and its bytes */
    SPILL_OUTLINE_OTHER  /* a closer look: a document, an array, a rare type, the document's _id */
} spill_outline_value_t;

typedef struct spill_outline_field {
    /* The head is the field's type, name and NUL. As words: its first 8 bytes, its last 8, and
     * those between them. The mask has the bytes of the first that belong to the head. */
    uint64_t words[SPILL_OUTLINE_HEAD_MAX / 8];
    uint64_t mask;
    struct spill_path *path; /* of a document or array */
    uint8_t head_size;
    uint8_t compared; /* bytes that a comparison reads */
    uint8_t type;
    uint8_t size_bytes; /* of a fixed value */
    spill_outline_value_t value;
} spill_outline_field_t;

/* Zero it to begin: no field is known. */
typedef struct spill_outline {
    spill_outline_field_t *fields;
    uint32_t count;
    uint32_t capacity;
    uint32_t matched;           /* fields since it was emptied */
    uint32_t pause;             /* fields to pass without learning, because they differ too often */
    uint32_t strange;           /* documents in succession that the template does not recognize */
    spill_template_t *template; /* of one of the documents; or NULL */
} spill_outline_t;

/* Forget all fields, and free the memory. */
void spill_outline_release(spill_outline_t *outline);

/*
 * Insert the field at `at` before the field of that index. Its name and type are valid. `stop`:
 * each such value needs a closer look. Return the index behind it.
 */
uint32_t spill_outline_learn(spill_outline_t *outline, uint32_t index, const uint8_t *at,
                             size_t head_size, bool stop, struct spill_path *path);

/*
 * Note a document of the path, of `size` bytes at `data`. Its fields were all as expected, but the
 * template does not recognize it. After a few such documents, make a new template.
 */
void spill_outline_note_strange(spill_outline_t *outline, const uint8_t *data, uint32_t size);

/* Report whether the field has this name. */
bool spill_outline_is_named(const spill_outline_field_t *field, const char *name);

static inline uint64_t spill_outline_word(const uint8_t *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return word;
}

/* Compare a head of more than 8 bytes behind its first 8, which match. */
static inline bool spill_outline_ends_alike(const spill_outline_field_t *field, const uint8_t *at)
{
    return spill_outline_word(at + field->head_size - 8) == field->words[1] &&
           (field->head_size <= 16 ||
            (spill_outline_word(at + 8) == field->words[2] &&
             (field->head_size <= 24 || spill_outline_word(at + 16) == field->words[3])));
}

/* Report whether this field's head is at `at`. Reads no byte from `limit` on. */
static inline bool spill_outline_matches(const spill_outline_field_t *field, const uint8_t *at,
                                         const uint8_t *limit)
{
    return limit - at >= field->compared &&
           ((spill_outline_word(at) ^ field->words[0]) & field->mask) == 0 &&
           (field->head_size <= 8 || spill_outline_ends_alike(field, at));
}

/* As spill_outline_find, without the first field. */
const spill_outline_field_t *spill_outline_search(const spill_outline_field_t *expected,
                                                  const spill_outline_field_t *end,
                                                  const uint8_t *at, const uint8_t *limit);

/*
 * Find the field that has its head at `at`: the expected one, or one soon behind it, but before
 * `end`. NULL: none matches. Reads no byte from `limit` on.
 */
static inline const spill_outline_field_t *spill_outline_find(const spill_outline_field_t *expected,
                                                              const spill_outline_field_t *end,
                                                              const uint8_t *at,
                                                              const uint8_t *limit)
{
    return expected < end && spill_outline_matches(expected, at, limit)
               ? expected
               : spill_outline_search(expected, end, at, limit);
}

#endif
