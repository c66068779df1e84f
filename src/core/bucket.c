/* Appends over several windows: elements sorted by window, each window's as one batch. */
#include "core/windows.h"
#include "util/error.h"

#include <string.h>

/* A window and the elements that lie in it, in their order. */
typedef struct group {
    char window[SPILL_WINDOW_SIZE];
    spill_value_t *elements;
    size_t count;
    size_t capacity;
} group_t;

typedef struct groups {
    group_t *at;
    size_t count;
    size_t capacity;
    size_t last; /* the group of the last element: usually also that of the next */
} groups_t;

static group_t *find_group(groups_t *groups, const char *window)
{
    if (groups->count > 0 && strcmp(groups->at[groups->last].window, window) == 0)
        return &groups->at[groups->last];
    for (groups->last = 0; groups->last < groups->count; groups->last++)
        if (strcmp(groups->at[groups->last].window, window) == 0)
            return &groups->at[groups->last];
    if (groups->count == groups->capacity) {
        groups->capacity = groups->capacity ? 2 * groups->capacity : 4;
        groups->at = bson_realloc(groups->at, groups->capacity * sizeof *groups->at);
    }
    group_t *group = &groups->at[groups->count++];
    *group = (group_t){.count = 0};
    memcpy(group->window, window, strlen(window) + 1);
    return group;
}

static void add(groups_t *groups, const char *window, const spill_value_t *element)
{
    group_t *group = find_group(groups, window);
    if (group->count == group->capacity) {
        group->capacity = group->capacity ? 2 * group->capacity : 4;
        group->elements = bson_realloc(group->elements, group->capacity * sizeof *group->elements);
    }
    group->elements[group->count++] = *element;
}

static spill_code_t sort_elements(const spill_array_t *array, const spill_value_t *elements,
                                  size_t count, groups_t *groups, spill_error_t *error)
{
    SPILL_TRY(spill_array_check_layout(array, true, "there are no windows", error));
    if (count == 0)
        return spill_fail(error, SPILL_INVALID, "there is nothing to append");
    for (size_t i = 0; i < count; i++) {
        char window[SPILL_WINDOW_SIZE];
        SPILL_TRY(spill_array_check_element(&elements[i], i, error));
        SPILL_TRY(spill_window_of_element(&array->definition, &elements[i], window, error));
        add(groups, window, &elements[i]);
    }
    return SPILL_OK;
}

static void release_groups(groups_t *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        bson_free(groups->at[i].elements);
    bson_free(groups->at);
}

/* ---- append ---------------------------------------------------------------------------------- */

void spill_bucket_append_options_init(spill_bucket_append_options_t *options)
{
    if (options == NULL)
        return;
    *options = (spill_bucket_append_options_t){.version = SPILL_BUCKET_APPEND_OPTIONS_VERSION};
}

static const spill_bucket_base_t *find_base(const spill_bucket_append_options_t *options,
                                            const char *window)
{
    for (size_t i = 0; i < options->base_count; i++)
        if (strcmp(options->bases[i].window, window) == 0)
            return &options->bases[i];
    return NULL;
}

static spill_code_t check_options(const spill_bucket_append_options_t *options,
                                  const groups_t *groups, spill_error_t *error)
{
    if (options->version != SPILL_BUCKET_APPEND_OPTIONS_VERSION)
        return spill_fail(error, SPILL_INVALID, "bucket append options of version %d, not %d",
                          options->version, SPILL_BUCKET_APPEND_OPTIONS_VERSION);
    if (!options->bases && options->base_count > 0)
        return spill_fail(error, SPILL_INVALID, "bucket append options: 'bases' is NULL");
    for (size_t i = 0; i < options->base_count; i++)
        if (!memchr(options->bases[i].window, '\0', sizeof options->bases[i].window))
            return spill_fail(error, SPILL_INVALID,
                              "bucket append options: the window of base %zu does not end", i);
    for (size_t i = 0; options->op_id && i < groups->count; i++)
        if (!find_base(options, groups->at[i].window))
            return spill_fail(error, SPILL_INVALID,
                              "the operation has no base for window '%s' (spill_bucket_op_bases)",
                              groups->at[i].window);
    return SPILL_OK;
}

static spill_code_t append_group(spill_array_t *array, const spill_value_t *owner,
                                 const group_t *group, const spill_bucket_append_options_t *options,
                                 spill_append_result_t *result, spill_error_t *error)
{
    spill_append_options_t own;
    spill_append_options_init(&own);
    own.fill = options->fill;
    spill_op_t op = {.id = options->op_id, .id_bytes = options->op_id_bytes};
    const spill_bucket_base_t *base = options->op_id ? find_base(options, group->window) : NULL;
    if (base) {
        op.base = base->base;
        own.op = &op;
    }
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_bucket_name(&storage, owner, group->window);
    spill_code_t code =
        spill_array_append(array, &name, group->elements, group->count, &own, result, error);
    bson_destroy(&storage);
    return code;
}

spill_code_t spill_bucket_append(spill_array_t *array, const spill_value_t *owner,
                                 const spill_value_t *elements, size_t element_count,
                                 const spill_bucket_append_options_t *options,
                                 spill_bucket_appended_t **appended, size_t *count,
                                 spill_error_t *error)
{
    spill_bucket_append_options_t defaults;
    spill_bucket_append_options_init(&defaults);
    size_t ignored;
    options = options ? options : &defaults;
    if (appended)
        *appended = NULL;
    if (count)
        *count = 0;
    SPILL_CHECK_POINTERS(error, array, owner, elements);
    SPILL_CHECK_ARGUMENT(error, !appended || count, "'count' is NULL, but 'appended' is not");
    count = count ? count : &ignored;
    SPILL_SCOPED(release_groups) groups_t groups = {0};
    SPILL_TRY(sort_elements(array, elements, element_count, &groups, error));
    SPILL_TRY(check_options(options, &groups, error));
    spill_bucket_appended_t *all = bson_malloc0(groups.count * sizeof *all);
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; code == SPILL_OK && i < groups.count; i++) {
        const group_t *group = &groups.at[i];
        memcpy(all[i].window, group->window, sizeof group->window);
        all[i].elements = (int64_t)group->count;
        *count = i + 1;
        code = append_group(array, owner, group, options, &all[i].result, error);
    }
    if (appended) /* also after an error: the windows before it have their elements */
        *appended = all;
    else
        bson_free(all);
    return code;
}

spill_code_t spill_bucket_op_bases(spill_array_t *array, const spill_value_t *owner,
                                   const spill_value_t *elements, size_t element_count,
                                   spill_bucket_base_t **bases, size_t *count, spill_error_t *error)
{
    if (bases != NULL)
        *bases = NULL;
    if (count != NULL)
        *count = 0;
    SPILL_CHECK_POINTERS(error, array, owner, elements, bases, count);
    SPILL_SCOPED(release_groups) groups_t groups = {0};
    SPILL_TRY(sort_elements(array, elements, element_count, &groups, error));
    spill_bucket_base_t *all = bson_malloc0(groups.count * sizeof *all);
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; code == SPILL_OK && i < groups.count; i++) {
        bson_t storage = BSON_INITIALIZER;
        memcpy(all[i].window, groups.at[i].window, sizeof all[i].window);
        spill_value_t name = spill_bucket_name(&storage, owner, all[i].window);
        code = spill_array_op_base(array, &name, &all[i].base, error);
        bson_destroy(&storage);
    }
    if (code != SPILL_OK) {
        bson_free(all);
        return code;
    }
    *bases = all;
    *count = groups.count;
    return SPILL_OK;
}
