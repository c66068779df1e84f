/* Make a template from a document. */
#include "tools/scan/template.h"

/* A template while it is made. */
typedef struct maker {
    spill_template_t *template;
    uint32_t block_count; /* of the stretches before */
    uint32_t size;        /* of the stretch so far */
} maker_t;

static uint8_t *bytes_of(byte_pair_t *pair)
{
    return (uint8_t *)pair;
}

/* Append bytes to the stretch; bits that are 0 in the mask may be any. False: there is no room. */
static bool append(maker_t *maker, const uint8_t *data, size_t size, uint8_t mask)
{
    for (size_t i = 0; i < size; i++, maker->size++) {
        uint32_t at = maker->size % sizeof(byte_pair_t);
        uint32_t number = maker->block_count + maker->size / (uint32_t)sizeof(byte_pair_t);
        if (number == SPILL_TEMPLATE_BLOCKS)
            return false;
        spill_template_block_t *block = &maker->template->blocks[number];
        if (at == 0)
            *block = (spill_template_block_t){0};
        bytes_of(&block->bytes)[at] = data[i] & mask;
        bytes_of(&block->mask)[at] = mask;
    }
    return true;
}

/* End the stretch. False: there is no room. */
static bool end_stretch(maker_t *maker)
{
    spill_template_t *template = maker->template;
    const uint32_t block = sizeof(byte_pair_t);
    if (template->stretch_count == SPILL_TEMPLATE_STRETCHES)
        return false;
    uint32_t count = (maker->size + block - 1) / block;
    template->stretches[template->stretch_count++] =
        (spill_template_stretch_t){(uint16_t)maker->size, (uint16_t)count};
    maker->block_count += count;
    maker->size = 0;
    return true;
}

/* Append the field at `at`, and return where it ends. NULL: it does not belong into a template. */
static const uint8_t *append_field(maker_t *maker, const uint8_t *at, const uint8_t *end)
{
    bool plain;
    const uint8_t type = *at, fixed = SIZES[type];
    const uint8_t *data = find_nul(at + 1, end, &plain) + 1;
    if (!append(maker, at, (size_t)(data - at), 0xFF))
        return NULL;
    maker->template->field_count++;
    if (type == BSON_TYPE_UTF8)
        return end_stretch(maker) ? data + 4 + read_u32(data) : NULL;
    /* a Boolean is 0 or 1: times.c must not find a time behind another one */
    const uint8_t mask = type == BSON_TYPE_BOOL ? 0xFE : 0;
    bool fits = fixed != MEASURED && append(maker, data, fixed - 1U, mask);
    return fits ? data + fixed - 1 : NULL;
}

void spill_template_make(spill_template_t *template, const uint8_t *data, uint32_t size)
{
    const uint8_t *at = data + 4, *const end = data + size - 1;
    maker_t maker = {.template = template};
    template->field_count = 0;
    template->stretch_count = 0;
    while (at && at < end)
        at = append_field(&maker, at, end);
    if (!at || !end_stretch(&maker))
        template->stretch_count = 0;
}
