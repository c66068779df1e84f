/* Read a projection. */
#include "gateway/shape.h"

#include "gateway/mention.h"
#include "util/error.h"

#include <string.h>

void spill_shape_release(spill_shape_t *shape)
{
    bson_free(shape->operation);
    bson_destroy(shape->projection);
    bson_destroy(shape->filter);
    bson_destroy(shape->options);
    *shape = (spill_shape_t){0};
}

/* ---- $slice ---------------------------------------------------------------------------------- */

/* The operand of {$slice: ...}, which has no other operator. */
static bool find_slice(const bson_iter_t *value, bson_iter_t *slice)
{
    bson_iter_t next;
    if (!BSON_ITER_HOLDS_DOCUMENT(value) || !bson_iter_recurse(value, slice) ||
        !bson_iter_next(slice) || strcmp(bson_iter_key(slice), "$slice") != 0)
        return false;
    next = *slice;
    return !bson_iter_next(&next);
}

/* n, or [skip, limit]. Other operands are upstream's to refuse, or expressions. */
static bool read_slice(const bson_iter_t *slice, spill_shape_t *shape)
{
    bson_iter_t number;
    if (BSON_ITER_HOLDS_NUMBER(slice)) {
        shape->limit = bson_iter_as_int64(slice);
        return true;
    }
    if (!BSON_ITER_HOLDS_ARRAY(slice) || !bson_iter_recurse(slice, &number) ||
        !bson_iter_next(&number) || !BSON_ITER_HOLDS_NUMBER(&number))
        return false;
    shape->skip = bson_iter_as_int64(&number);
    shape->skips = true;
    if (!bson_iter_next(&number) || !BSON_ITER_HOLDS_NUMBER(&number))
        return false;
    shape->limit = bson_iter_as_int64(&number);
    return shape->limit > 0 && !bson_iter_next(&number);
}

/* ---- the projection -------------------------------------------------------------------------- */

typedef struct survey {
    bool includes; /* some field other than _id is 1, or computed */
    bool excludes; /* some field other than _id is 0 */
    bool hides_id;
    bool array_in;  /* F: 1 */
    bool array_out; /* F: 0 */
    bool sliced;
    const char *other; /* another mention of F: its operator or path */
} survey_t;

static bool is_flag(const bson_iter_t *value)
{
    return BSON_ITER_HOLDS_BOOL(value) || BSON_ITER_HOLDS_NUMBER(value);
}

/* The operator of {$elemMatch: ...}, or the path. */
static const char *name_of(const bson_iter_t *field)
{
    bson_iter_t child;
    return BSON_ITER_HOLDS_DOCUMENT(field) && bson_iter_recurse(field, &child) &&
                   bson_iter_next(&child)
               ? bson_iter_key(&child)
               : bson_iter_key(field);
}

/* A field that is F or in F. */
static void survey_array(const bson_iter_t *field, const char *array, survey_t *survey,
                         spill_shape_t *shape)
{
    bson_iter_t slice;
    bool itself = strcmp(bson_iter_key(field), array) == 0;
    if (itself && is_flag(field)) {
        survey->array_in = spill_iter_is_true(field);
        survey->array_out = !survey->array_in;
    } else if (itself && find_slice(field, &slice) && read_slice(&slice, shape)) {
        survey->sliced = true;
    } else {
        survey->other = name_of(field);
    }
}

/* One field of the projection. False: it names `spill`. */
static bool survey_field(const bson_iter_t *field, const char *array, survey_t *survey,
                         spill_shape_t *shape)
{
    const char *path = bson_iter_key(field);
    bson_iter_t slice;
    unsigned mentions = spill_mentions_in_path(path, array);
    if (mentions & SPILL_MENTIONS_SPILL)
        return false;
    if (strcmp(path, "_id") == 0 && is_flag(field)) {
        survey->hides_id = !spill_iter_is_true(field);
        return true;
    }
    if (mentions & SPILL_MENTIONS_ARRAY)
        survey_array(field, array, survey, shape);
    else if (!is_flag(field) && !find_slice(field, &slice)) {
        mentions = spill_mentions_in_value(field, array);
        if (mentions & SPILL_MENTIONS_SPILL)
            return false;
        if (mentions != 0)
            survey->other = path;
    }
    if (is_flag(field) && !spill_iter_is_true(field))
        survey->excludes = true;
    else if (!find_slice(field, &slice))
        survey->includes = true;
    return true;
}

static bool names_spill(const bson_t *projection, survey_t *survey, spill_shape_t *shape,
                         const char *array)
{
    bson_iter_t field;
    if (!bson_iter_init(&field, projection))
        return true;
    while (bson_iter_next(&field))
        if (!survey_field(&field, array, survey, shape))
            return true;
    return false;
}

static spill_shape_kind_t kind_of(const survey_t *survey)
{
    if (survey->other != NULL)
        return SPILL_SHAPE_REFUSE;
    if (survey->sliced)
        return SPILL_SHAPE_SLICE;
    if (survey->array_out)
        return SPILL_SHAPE_PASS;
    return survey->includes && !survey->array_in ? SPILL_SHAPE_PASS : SPILL_SHAPE_WHOLE;
}

bool spill_shape_read(const char *array, const bson_t *projection, spill_shape_t *shape)
{
    survey_t survey = {0};
    bson_iter_t field;
    *shape = (spill_shape_t){.kind = SPILL_SHAPE_WHOLE};
    if (projection == NULL)
        return true;
    if (names_spill(projection, &survey, shape, array))
        return false;
    shape->kind = kind_of(&survey);
    shape->operation = survey.other != NULL ? bson_strdup(survey.other) : NULL;
    shape->projection = bson_new();
    /* Without _id an array cannot be completed. */
    shape->hides_id = survey.hides_id && shape->kind > SPILL_SHAPE_STRIP;
    if (bson_iter_init(&field, projection))
        while (bson_iter_next(&field))
            if (!shape->hides_id || strcmp(bson_iter_key(&field), "_id") != 0)
                bson_append_iter(shape->projection, NULL, -1, &field);
    if (survey.array_out && shape->kind == SPILL_SHAPE_PASS)
        BSON_APPEND_INT32(shape->projection, "spill", 0);
    if (survey.includes && shape->kind > SPILL_SHAPE_STRIP)
        BSON_APPEND_INT32(shape->projection, "spill", 1);
    return true;
}
