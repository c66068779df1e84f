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

#include <stddef.h>

enum { SPILL_TEMPLATE_STRETCHES = 16, SPILL_TEMPLATE_BLOCKS = 40 };

typedef struct spill_template_block {
    byte_pair_t bytes;
    byte_pair_t mask;
} spill_template_block_t;

typedef struct spill_template_stretch {
    uint16_t size_bytes;
    uint16_t block_count;
} spill_template_stretch_t;

/* No pointers: copy and free it as a whole. 1.4 KB. */
typedef struct spill_template {
    uint32_t field_count;
    uint32_t stretch_count; /* one more than texts; 0: it recognizes nothing */
    spill_template_stretch_t stretches[SPILL_TEMPLATE_STRETCHES];
    spill_template_block_t blocks[SPILL_TEMPLATE_BLOCKS];
} spill_template_t;

/*
 * Make the template of the document of `size` bytes at `data`, which is valid. If it is too large,
 * or has other values than texts and values of fixed sizes, the template recognizes nothing.
 */
void spill_template_make(spill_template_t *template, const uint8_t *data, uint32_t size);

/* Compare a stretch, the first block of which is `block`. Reads no byte from `limit` on. */
static inline bool spill_template_fits(const spill_template_stretch_t *stretch,
                                       const spill_template_block_t *block, const uint8_t *at,
                                       const uint8_t *limit)
{
    byte_pair_t difference = {0, 0};
    if (limit - at < (ptrdiff_t)sizeof(byte_pair_t) * stretch->block_count)
        return false;
    for (uint32_t i = 0; i < stretch->block_count; i++, at += sizeof(byte_pair_t))
        difference |= (read_pair(at) ^ block[i].bytes) & block[i].mask;
    return (difference[0] | difference[1]) == 0;
}

#endif
