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
#ifndef SPILL_TOOLS_SCAN_TEMPLATE_H
#define SPILL_TOOLS_SCAN_TEMPLATE_H

#include "tools/scan/field_bytes.h"

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

/*
 * Report whether it recognizes the document with the fields from `at` up to `end`, and whether all
 * texts are valid. No byte from `limit` on is read. A document that is recognized is valid, and has
 * as many fields as the template.
 */
bool spill_template_recognizes(const spill_template_t *template, const uint8_t *at,
                               const uint8_t *end, const uint8_t *limit);

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

#endif
