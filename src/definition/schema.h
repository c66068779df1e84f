/*
 * What the documents of a layout look like. The stores, and everything above the layouts, read
 * these facts and never ask which layout it is. What a layout does is in layout/layout.h.
 */
#ifndef SPILL_DEFINITION_SCHEMA_H
#define SPILL_DEFINITION_SCHEMA_H

#include <spillway/definition.h>

#include <stdbool.h>

typedef struct spill_schema {
    const char *name; /* of the layout, in definitions and options: "outlier" */
    /* Does the definition keep the layout's own rules? SPILL_INVALID says which one it breaks. */
    spill_code_t (*check)(const spill_definition_t *definition, spill_error_t *error);
    bool has_pages;               /* else the head is the only document of an owner */
    bool appends_to_head;         /* appends go to the head; else to the last document, the tail */
    bool has_windows;             /* an owner is a window of time, and has statistics */
    bool has_referenced_elements; /* each element is a page, and has the page's number */
    bool has_top;                 /* the head shows the highest-ranked elements */
    bool has_rank_index;          /* they rank by a value, and pages have an index on it */
    bool is_capped;               /* an append to a full head drops elements of the head */
    bool keeps_top_n;             /* these are the lowest-ranked; else the oldest */
} spill_schema_t;

/*
 * Return the facts of a definition, by its layout, keep and sort_field. A layout outside its enum
 * counts as the first one, a keep outside as the layout's usual keep. The result is static. O(1).
 * Any thread.
 */
const spill_schema_t *spill_schema_of(const spill_definition_t *definition);

/* The rules of each layout. (check.c) */
spill_code_t spill_check_outlier(const spill_definition_t *definition, spill_error_t *error);
spill_code_t spill_check_referenced(const spill_definition_t *definition, spill_error_t *error);
spill_code_t spill_check_bucket(const spill_definition_t *definition, spill_error_t *error);
spill_code_t spill_check_capped(const spill_definition_t *definition, spill_error_t *error);

/* The number of layouts that a process can have. */
#define SPILL_LAYOUTS_MAX 8

/*
 * Add a layout, whose facts depend on nothing else: see spill_layout_add, which calls this. The
 * schema stays the caller's. False: there is no room.
 */
bool spill_schema_add(const spill_schema_t *schema, spill_layout_t *layout);

/* "outlier"; NULL: there is no such layout. And the layout of a name; false for any other text. */
const char *spill_layout_name(spill_layout_t layout);
bool spill_layout_of_name(const char *name, spill_layout_t *layout);

/* The facts of a layout with its usual keep and no sort_field. NULL: there is no such layout. */
const spill_schema_t *spill_schema_of_layout(spill_layout_t layout);

#endif
