/* Learn the outline of a path. */
#include "tools/scan/outline.h"

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
