/* Learn the outlines of paths; make templates from documents, and compare documents with them. */
#include "tools/scan/outline.h"

#include "util/text.h"

#include <stddef.h>

/* ---- outlines -------------------------------------------------------------------------------- */

/* Fields that are not learned after an outline was full of fields that seldom matched. */
#define PAUSE_FIELDS 1024U
#define MATCHES_MIN (4U * SPILL_OUTLINE_FIELDS)

void spill_outline_release(spill_outline_t *outline)
{
    bson_free(outline->fields);
    bson_free(outline->template);
    *outline = (spill_outline_t){0};
}

static spill_outline_value_t value_of(uint8_t type, bool stop)
{
    if (stop || (SIZES[type] == MEASURED && type != BSON_TYPE_UTF8))
        return SPILL_OUTLINE_OTHER;
    return type == BSON_TYPE_UTF8 ? SPILL_OUTLINE_TEXT : SPILL_OUTLINE_FIXED;
}

static void set_head(spill_outline_field_t *field, const uint8_t *at, size_t size)
{
    field->head_size = (uint8_t)size;
    field->compared = size < 8 ? 8 : (uint8_t)size;
    memset(&field->mask, 0xFF, size < 8 ? size : 8);
    memcpy(&field->words[0], at, size < 8 ? size : 8);
    if (size > 8)
        memcpy(&field->words[1], at + size - 8, 8);
    if (size > 16)
        memcpy(&field->words[2], at + 8, 8);
    if (size > 24)
        memcpy(&field->words[3], at + 16, 8);
}

static void make_room(spill_outline_t *outline)
{
    if (outline->count < outline->capacity)
        return;
    outline->capacity = outline->capacity == 0 ? 6 : 2 * outline->capacity;
    outline->fields = bson_realloc(outline->fields, outline->capacity * sizeof *outline->fields);
}

uint32_t spill_outline_learn(spill_outline_t *outline, uint32_t index, const uint8_t *at,
                             size_t head_size, bool stop, struct spill_path *path)
{
    if (head_size > SPILL_OUTLINE_HEAD_MAX)
        return index;
    if (outline->pause > 0) {
        outline->pause--;
        return 0;
    }
    if (outline->count == SPILL_OUTLINE_FIELDS) {
        outline->pause = outline->matched < MATCHES_MIN ? PAUSE_FIELDS : 0;
        outline->count = 0;
        outline->matched = 0;
        return 0;
    }
    spill_outline_field_t field = {.type = *at,
                                   .path = path,
                                   .size_bytes = (uint8_t)(SIZES[*at] - 1U),
                                   .value = value_of(*at, stop)};
    set_head(&field, at, head_size);
    make_room(outline);
    memmove(&outline->fields[index + 1], &outline->fields[index],
            (outline->count - index) * sizeof field);
    outline->fields[index] = field;
    outline->count++;
    return index + 1;
}

/* Documents in succession that a template does not recognize before a new one is made. */
#define STRANGE_MAX 3U

void spill_outline_note_strange(spill_outline_t *outline, const uint8_t *data, uint32_t size)
{
    if (outline->template && outline->strange++ < STRANGE_MAX)
        return;
    if (!outline->template)
        outline->template = bson_malloc(sizeof *outline->template);
    spill_template_make(outline->template, data, size);
    outline->strange = 0;
}

/* Fields of an outline that a document may leave out in one place, and one. */
#define SKIP_MAX 4

const spill_outline_field_t *spill_outline_search(const spill_outline_field_t *expected,
                                                  const spill_outline_field_t *end,
                                                  const uint8_t *at, const uint8_t *limit)
{
    for (int i = 1; i < SKIP_MAX && i < end - expected; i++)
        if (spill_outline_matches(expected + i, at, limit))
            return expected + i;
    return NULL;
}

bool spill_outline_is_named(const spill_outline_field_t *field, const char *name)
{
    uint8_t head[SPILL_OUTLINE_HEAD_MAX] = {field->type};
    size_t size = strlen(name) + 2;
    if (size != field->head_size)
        return false;
    memcpy(head + 1, name, size - 1);
    return spill_outline_matches(field, head, head + sizeof head);
}

enum { BLOCK = sizeof(byte_pair_t) };

/* ---- making a template ----------------------------------------------------------------------- */

/* A template while it is made. */
typedef struct maker {
    spill_template_t *template;
    uint32_t block_count; /* of the stretches before */
    uint32_t size;        /* of the stretch so far */
} maker_t;

/* Append bytes to the stretch; bits that are 0 in the mask may be any. False: there is no room. */
static bool append(maker_t *maker, const uint8_t *data, size_t size, uint8_t mask)
{
    for (size_t i = 0; i < size; i++, maker->size++) {
        uint32_t at = BLOCK * maker->block_count + maker->size;
        if (at == sizeof maker->template->bytes)
            return false;
        ((uint8_t *)maker->template->bytes)[at] = data[i] & mask;
        ((uint8_t *)maker->template->masks)[at] = mask;
    }
    return true;
}

/* End the stretch. False: there is no room. */
static bool end_stretch(maker_t *maker)
{
    spill_template_t *template = maker->template;
    if (template->stretch_count == SPILL_TEMPLATE_STRETCHES)
        return false;
    uint32_t count = (maker->size + BLOCK - 1) / BLOCK;
    template->stretches[template->stretch_count++] =
        (spill_template_stretch_t){(uint16_t)maker->size, (uint16_t)count};
    maker->block_count += count;
    if (BLOCK * count > template->reach)
        template->reach = BLOCK *count;
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
    /* a Boolean is 0 or 1: spill_fields_next finds no field behind another one */
    const uint8_t mask = type == BSON_TYPE_BOOL ? 0xFE : 0;
    bool fits = fixed != MEASURED && append(maker, data, fixed - 1U, mask);
    return fits ? data + fixed - 1 : NULL;
}

void spill_template_make(spill_template_t *template, const uint8_t *data, uint32_t size)
{
    const uint8_t *at = data + 4, *const end = data + size - 1;
    maker_t maker = {.template = template};
    *template = (spill_template_t){.reach = BLOCK}; /* a short text is read as a block */
    while (at && at < end)
        at = append_field(&maker, at, end);
    if (!at || !end_stretch(&maker))
        template->stretch_count = 0;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* What differs between a stretch and the bytes at `at`: all bits are 0 if nothing does. */
static inline byte_pair_t compare(const spill_template_t *template, uint32_t block, uint32_t count,
                                  const uint8_t *at)
{
    byte_pair_t difference = {0, 0};
    for (const uint32_t end = block + count; block < end; block++, at += BLOCK)
        difference |= (read_pair(at) ^ template->bytes[block]) & template->masks[block];
    return difference;
}

static inline bool is_zero(byte_pair_t pair)
{
    return (pair[0] | pair[1]) == 0;
}

/* Report whether a text, with its length, ends before `end`. */
static inline bool ends_before(const uint8_t *at, const uint8_t *end, uint32_t *length)
{
    ptrdiff_t available = end - at;
    if (available < 5)
        return false;
    *length = read_u32(at);
    return *length - 1 < (size_t)available - 4 && at[3 + *length] == 0; /* false for 0, too */
}

/* Report whether all texts are UTF-8; the stretches were compared. */
static bool are_texts_valid(const spill_template_t *template, const uint8_t *at)
{
    for (uint32_t i = 0; i + 1 < template->stretch_count; i++) {
        at += template->stretches[i].size_bytes;
        uint32_t length = read_u32(at);
        if (!spill_utf8_valid(at + 4, length - 1))
            return false;
        at += 4 + length;
    }
    return true;
}

bool spill_template_recognizes(const spill_template_t *template, const uint8_t *at,
                               const uint8_t *end, const uint8_t *limit,
                               spill_template_starts_t *starts)
{
    const uint8_t *const begin = at, **start = starts->at;
    const spill_template_stretch_t *stretch = template->stretches;
    const spill_template_stretch_t *const last = stretch + template->stretch_count - 1;
    byte_pair_t difference = {0, 0}, high = {0, 0};
    uint32_t length, block = 0;
    if (limit - end < template->reach || template->stretch_count == 0)
        return false;
    for (; stretch < last; stretch++) {
        *start++ = at;
        difference |= compare(template, block, stretch->block_count, at);
        block += stretch->block_count;
        at += stretch->size_bytes;
        if (!ends_before(at, end, &length))
            return false;
        high |= high_bits_of(at + 4, length - 1);
        at += 4 + length;
    }
    *start = at;
    difference |= compare(template, block, last->block_count, at);
    if (at + last->size_bytes != end || !is_zero(difference))
        return false;
    return is_zero(high & HIGH_PAIR) || are_texts_valid(template, begin);
}

/* ---- finding a value ------------------------------------------------------------------------- */

spill_template_place_t spill_template_find(const spill_template_t *template, const char *name)
{
    const uint8_t *block = (const uint8_t *)template->bytes;
    for (uint32_t i = 0; i < template->stretch_count; i++) {
        const spill_template_stretch_t *stretch = &template->stretches[i];
        for (uint32_t at = 0; at < stretch->size_bytes;) {
            const uint8_t type = block[at];
            const char *own = (const char *)block + at + 1;
            at += (uint32_t)strlen(own) + 2;
            if (strcmp(own, name) == 0)
                return (spill_template_place_t){i, at, (at + BLOCK - 1) / BLOCK, type};
            at += type == BSON_TYPE_UTF8 ? 0 : SIZES[type] - 1U;
        }
        block += (size_t)BLOCK * stretch->block_count;
    }
    return (spill_template_place_t){0};
}

const uint8_t *spill_template_value(const spill_template_t *template,
                                    const spill_template_place_t *place, const uint8_t *at,
                                    const uint8_t *end, const uint8_t *limit)
{
    const spill_template_stretch_t *stretch = template->stretches;
    const spill_template_stretch_t *const last = stretch + place->stretch;
    byte_pair_t difference = {0, 0};
    uint32_t length, block = 0;
    if (limit - end < template->reach)
        return NULL;
    for (; stretch < last; stretch++) {
        difference |= compare(template, block, stretch->block_count, at);
        block += stretch->block_count;
        at += stretch->size_bytes;
        if (!ends_before(at, end, &length))
            return NULL;
        at += 4 + length;
    }
    difference |= compare(template, block, place->block_count, at);
    return is_zero(difference) ? at + place->offset : NULL;
}
