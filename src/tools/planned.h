/*
 * An array of a plan, and the way to what is planned for it. Arrays are laid out in place with
 * layout outlier, keep newest. Every other layout is reached from there: the array is laid out in
 * place under a definition of its own, the original, and brought from it into the planned one
 * (tools/staged.h).
 */
#ifndef SPILL_TOOLS_PLANNED_H
#define SPILL_TOOLS_PLANNED_H

#include <spillway/definition.h>

#include <stdbool.h>

typedef struct spill_planned {
    spill_definition_t definition; /* what is planned */
    bool staged;                   /* it is brought there from: */
    spill_definition_t original;
    bool order_missing; /* "growsAt": "unknown", and no definition of the entry has an "order" */
    bool may_be_empty;  /* "mayBeEmpty": the entry may match no array */
} spill_planned_t;

/* Is it laid out in place? */
bool spill_planned_in_place(const spill_definition_t *definition);

/*
 * The way to a definition for the array `path` of the documents of `collection`: sets staged and,
 * where it is, the original as it is by default: NAME.original, with the planned order, pages in
 * NAME.original, and of fields in the documents PATHPages alone.
 */
void spill_planned_init(spill_planned_t *planned, const spill_definition_t *definition,
                        const char *collection, const char *path);

/*
 * Can `spillway migrate' do it? SPILL_INVALID: the original cannot be so defined. SPILL_REFUSED:
 * the two clash; a cap would be in the original's documents; arrays cannot be brought to such a
 * definition at all.
 */
spill_code_t spill_planned_check(const spill_planned_t *planned, spill_error_t *error);

#endif
