#include "definition/schema.h"

#include <stddef.h>
#include <string.h>

/* Indexes of a layout's facts: with or without a sort_field, and by keep. */
enum { UNSORTED, SORTED, SORTINGS };
enum { KEEPS = SPILL_KEEP_NEWEST + 1 };

typedef struct layout_schemas {
    spill_keep_t usual;
    spill_schema_t by_keep[KEEPS][SORTINGS];
} layout_schemas_t;

/* Only appends_to_head depends on keep; no fact depends on sort_field. */
#define SAME(...)                                                                                  \
    {                                                                                              \
        [SPILL_KEEP_OLDEST] = {{__VA_ARGS__}, {__VA_ARGS__}}, [SPILL_KEEP_NEWEST] = {              \
            {__VA_ARGS__, .appends_to_head = true},                                                \
            {__VA_ARGS__, .appends_to_head = true},                                                \
        }                                                                                          \
    }

/* As SAME, and `fact` is true if the definition has a sort_field. */
#define IF_SORTED(fact, ...)                                                                       \
    {                                                                                              \
        [SPILL_KEEP_OLDEST] = {{__VA_ARGS__}, {__VA_ARGS__, .fact = true}}, [SPILL_KEEP_NEWEST] =  \
        { {__VA_ARGS__, .appends_to_head = true},                                                  \
          {__VA_ARGS__, .appends_to_head = true, .fact = true},                                    \
        }                                                                                          \
    }

static layout_schemas_t schemas[SPILL_LAYOUTS_MAX] = {
    [SPILL_LAYOUT_OUTLIER] = {.usual = SPILL_KEEP_NEWEST,
                              SAME(.name = "outlier", .check = spill_check_outlier,
                                   .has_pages = true)},
    [SPILL_LAYOUT_REFERENCE] = {.usual = SPILL_KEEP_NEWEST,
                                SAME(.name = "reference", .check = spill_check_referenced,
                                     .has_pages = true, .has_referenced_elements = true)},
    [SPILL_LAYOUT_BUCKET] = {.usual = SPILL_KEEP_OLDEST,
                             SAME(.name = "bucket", .check = spill_check_bucket, .has_pages = true,
                                  .has_windows = true)},
    [SPILL_LAYOUT_CAPPED] = {.usual = SPILL_KEEP_NEWEST,
                             IF_SORTED(keeps_top_n, .name = "capped", .check = spill_check_capped,
                                       .is_capped = true)},
    [SPILL_LAYOUT_SUBSET] = {.usual = SPILL_KEEP_NEWEST,
                             IF_SORTED(has_rank_index, .name = "subset",
                                       .check = spill_check_referenced, .has_pages = true,
                                       .has_referenced_elements = true, .has_top = true)},
};

static unsigned layouts = SPILL_LAYOUT_SUBSET + 1;

static const layout_schemas_t *find_layout(spill_layout_t layout)
{
    return (unsigned)layout < layouts ? &schemas[layout] : NULL;
}

const spill_schema_t *spill_schema_of(const spill_definition_t *definition)
{
    const layout_schemas_t *layout = find_layout(definition->layout);
    spill_keep_t keep = definition->keep;
    if (layout == NULL)
        layout = &schemas[0];
    if ((unsigned)keep >= KEEPS)
        keep = layout->usual;
    return &layout->by_keep[keep][definition->sort_field[0] != '\0' ? SORTED : UNSORTED];
}

const spill_schema_t *spill_schema_of_layout(spill_layout_t layout)
{
    const layout_schemas_t *found = find_layout(layout);
    return found ? &found->by_keep[found->usual][UNSORTED] : NULL;
}

const char *spill_layout_name(spill_layout_t layout)
{
    const spill_schema_t *schema = spill_schema_of_layout(layout);
    return schema ? schema->name : NULL;
}

bool spill_layout_of_name(const char *name, spill_layout_t *layout)
{
    const spill_schema_t *schema;
    for (unsigned i = 0; (schema = spill_schema_of_layout((spill_layout_t)i)) != NULL; i++) {
        *layout = (spill_layout_t)i;
        if (strcmp(schema->name, name) == 0)
            return true;
    }
    return false;
}

bool spill_schema_add(const spill_schema_t *schema, spill_layout_t *layout)
{
    if (layouts == SPILL_LAYOUTS_MAX)
        return false;
    *layout = (spill_layout_t)layouts;
    schemas[layouts].usual = schema->appends_to_head ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST;
    for (int keep = 0; keep < KEEPS; keep++)
        for (int sorting = 0; sorting < SORTINGS; sorting++)
            schemas[layouts].by_keep[keep][sorting] = *schema;
    layouts++;
    return true;
}
