/* Read a projection. */
#include "gateway/translate/asked.h"

#include "definition/stored_names.h"
#include "gateway/translate/mention.h"
#include "util/error.h"

#include <string.h>

void spill_asked_release(spill_asked_t *asked)
{
    bson_free(asked->operation);
    bson_destroy(asked->projection);
    bson_destroy(asked->filter);
    bson_destroy(asked->options);
    *asked = (spill_asked_t){0};
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
static bool read_slice(const bson_iter_t *slice, spill_asked_t *asked)
{
    bson_iter_t number;
    if (BSON_ITER_HOLDS_NUMBER(slice)) {
        asked->limit = bson_iter_as_int64(slice);
        return true;
    }
    if (!BSON_ITER_HOLDS_ARRAY(slice) || !bson_iter_recurse(slice, &number) ||
        !bson_iter_next(&number) || !BSON_ITER_HOLDS_NUMBER(&number))
        return false;
    asked->skip = bson_iter_as_int64(&number);
    asked->skips = true;
    if (!bson_iter_next(&number) || !BSON_ITER_HOLDS_NUMBER(&number))
        return false;
    asked->limit = bson_iter_as_int64(&number);
    return asked->limit > 0 && !bson_iter_next(&number);
}

/* ---- the projection -------------------------------------------------------------------------- */

typedef struct survey {
    bool includes; /* some field other than _id is 1, or computed */
    bool excludes; /* some field other than _id is 0 */
    bool matches;  /* some field has $elemMatch */
    bool slices;   /* some field has $slice or $meta */
    bool shows_id; /* _id: 1 */
    bool hides_id;
    bool array_in;  /* F: 1 */
    bool array_out; /* F: 0 */
    bool sliced;
    bool whole;        /* an expression has the document as a whole */
    const char *other; /* another mention of F: its operator or path */
} survey_t;

/* The operator of {$elemMatch: ...}, or the path. */
static const char *name_of(const bson_iter_t *field)
{
    bson_iter_t child;
    return BSON_ITER_HOLDS_DOCUMENT(field) && bson_iter_recurse(field, &child) &&
                   bson_iter_next(&child)
               ? bson_iter_key(&child)
               : bson_iter_key(field);
}

/* A field that is F, in F, or around F. */
static void survey_array(const bson_iter_t *field, const char *array, survey_t *survey,
                         spill_asked_t *asked)
{
    bson_iter_t slice;
    bool itself = strcmp(bson_iter_key(field), array) == 0;
    if (spill_path_holds(bson_iter_key(field), array) && spill_iter_is_flag(field)) {
        survey->array_in = spill_iter_is_true(field);
        survey->array_out = !survey->array_in;
    } else if (itself && find_slice(field, &slice) && read_slice(&slice, asked)) {
        survey->sliced = true;
    } else {
        survey->other = name_of(field);
    }
}

static void note_kind(const bson_iter_t *field, survey_t *survey)
{
    switch (spill_projection_of(field)) {
    case SPILL_PROJECTION_INCLUDES:
        survey->includes = true;
        break;
    case SPILL_PROJECTION_EXCLUDES:
        survey->excludes = true;
        break;
    case SPILL_PROJECTION_MATCHES:
        survey->matches = true;
        break;
    case SPILL_PROJECTION_NEUTRAL:
        survey->slices = true;
        break;
    }
}

/* One field of the projection. False: it names `spill`. */
static bool survey_field(const bson_iter_t *field, const char *array, survey_t *survey,
                         spill_asked_t *asked)
{
    const char *path = bson_iter_key(field);
    unsigned mentions = spill_mentions_in_path(path, array);
    if (mentions & SPILL_MENTIONS_SPILL)
        return false;
    if (strcmp(path, "_id") == 0 && spill_iter_is_flag(field)) {
        survey->shows_id = spill_iter_is_true(field);
        survey->hides_id = !survey->shows_id;
        return true;
    }
    note_kind(field, survey);
    if (mentions & SPILL_MENTIONS_ARRAY) {
        survey_array(field, array, survey, asked);
    } else if (spill_projection_of(field) == SPILL_PROJECTION_INCLUDES) {
        mentions = spill_mentions_in_value(field, array);
        if (mentions & SPILL_MENTIONS_SPILL)
            return false;
        if (mentions != 0)
            survey->other = path;
        survey->whole |= (mentions & SPILL_MENTIONS_WHOLE) != 0;
    }
    return true;
}

static bool names_spill(const bson_t *projection, survey_t *survey, spill_asked_t *asked,
                        const char *array)
{
    bson_iter_t field;
    if (!bson_iter_init(&field, projection))
        return true;
    while (bson_iter_next(&field))
        if (!survey_field(&field, array, survey, asked))
            return true;
    return false;
}

static spill_asked_kind_t kind_of(const survey_t *survey)
{
    if (survey->other != NULL)
        return SPILL_ASKED_REFUSE;
    if (survey->sliced)
        return SPILL_ASKED_SLICE;
    if (survey->array_out)
        return SPILL_ASKED_PASS;
    return survey->includes && !survey->array_in ? SPILL_ASKED_PASS : SPILL_ASKED_WHOLE;
}

/*
 * Ask for `spill` too, or leave it out. Servers disagree on what {_id: 1, a: {$slice: 1}} is: a
 * $slice of `spill`, which is no array, fits a projection of either kind.
 */
static void append_spill(const survey_t *survey, spill_asked_t *asked)
{
    if (asked->kind == SPILL_ASKED_PASS && survey->array_out)
        BSON_APPEND_INT32(asked->projection, SPILL_STORED_ROOT, 0);
    if (asked->kind <= SPILL_ASKED_STRIP || survey->excludes)
        return;
    if (survey->includes)
        BSON_APPEND_INT32(asked->projection, SPILL_STORED_ROOT, 1);
    else if (survey->slices && (survey->shows_id || survey->matches))
        BCON_APPEND(asked->projection, SPILL_STORED_ROOT, "{", "$slice", BCON_INT32(1), "}");
}

bool spill_asked_read(const char *array, const bson_t *projection, spill_asked_t *asked)
{
    survey_t survey = {0};
    bson_iter_t field;
    *asked = (spill_asked_t){.kind = SPILL_ASKED_WHOLE};
    if (projection == NULL)
        return true;
    if (names_spill(projection, &survey, asked, array))
        return false;
    survey.includes = survey.includes || (survey.matches && !survey.slices && !survey.excludes);
    asked->kind = kind_of(&survey);
    asked->whole = survey.whole;
    asked->operation = survey.other != NULL ? bson_strdup(survey.other) : NULL;
    asked->projection = bson_new();
    /* Without _id an array cannot be completed. */
    asked->hides_id = survey.hides_id && asked->kind > SPILL_ASKED_STRIP;
    if (bson_iter_init(&field, projection))
        while (bson_iter_next(&field))
            if (!asked->hides_id || strcmp(bson_iter_key(&field), "_id") != 0)
                bson_append_iter(asked->projection, NULL, -1, &field);
    append_spill(&survey, asked);
    return true;
}
