/*
 * plan-set: change the definition of one entry in a plan's file. The rest of the file stays
 * unchanged, also keys that this version does not know.
 *
 *     SPILL_SCOPED(spill_plan_edit_release) spill_plan_edit_t edit = {0};
 *     SPILL_TRY(spill_plan_edit_open(&edit, file, "shop.users.events", error));
 *     spill_definition_t definition = edit.definition;
 *     ... change the definition ...
 *     SPILL_TRY(spill_plan_edit_set(&edit, &definition, &choices, error));
 *     SPILL_TRY(spill_plan_edit_write(&edit, error));
 */
#ifndef SPILL_TOOLS_SCAN_PLAN_EDIT_H
#define SPILL_TOOLS_SCAN_PLAN_EDIT_H

#include <spillway/definition.h>

#include <bson/bson.h>

/* A field that changed: its path in the entry, and its values as JSON; NULL: it was, or is, absent.
 */
typedef struct spill_plan_change {
    char *field;
    char *before, *after;
} spill_plan_change_t;

typedef struct spill_plan_edit {
    const char *file;                 /* borrowed */
    bson_t *plan;                     /* the document of the file */
    bson_t *entry;                    /* the entry, with the changes so far */
    uint32_t index;                   /* of the entry in "arrays" */
    char collection[SPILL_NAME_SIZE]; /* without its database */
    char path[SPILL_NAME_SIZE];
    bool defined; /* the entry has a definition */
    spill_definition_t definition;
    spill_plan_change_t *changes; /* set by spill_plan_edit_set */
    size_t change_count;
} spill_plan_edit_t;

/* What an edit sets besides the definition. */
typedef struct spill_plan_choices {
    const char *order;   /* the name of the order that the person chose; NULL: none */
    const bool *migrate; /* the value of "migrate"; NULL: leave it */
} spill_plan_choices_t;

/*
 * Read the plan and find the entry named COLLECTION.PATH, with or without the database's name in
 * front. Zero *edit before; release it in every case. `file` must outlive it. The file may have
 * many entries; all are kept in memory.
 *
 * SPILL_IO, SPILL_PARSE, SPILL_INVALID: the file is no plan. SPILL_NOT_FOUND: it has no such entry;
 * the message lists those it has. SPILL_INVALID: two entries have the name, or the entry's
 * definition is wrong.
 */
spill_code_t spill_plan_edit_open(spill_plan_edit_t *edit, const char *file, const char *name,
                                  spill_error_t *error);
void spill_plan_edit_release(spill_plan_edit_t *edit);

/*
 * Give a definition of another layout the names for this entry's collection and array, and what the
 * entry's own definition says about owners and elements: its name, the elements' ids and times,
 * retention, and operation window. `definition` has the layout, and the bounds of a preset.
 * SPILL_INVALID: a name would be too long, or a definition cannot name such an array.
 */
spill_code_t spill_plan_edit_reshape(const spill_plan_edit_t *edit, spill_definition_t *definition,
                                     spill_error_t *error);

/*
 * Put the definition into the entry and list what changed. A layout that is not reached in place
 * also gets an "original", if the entry has none; a layout in place loses it. With another layout
 * or other bounds, what the entry says about its layout ("why", "alternatives", "otherWriters",
 * "detect") is computed again, and "saves", which needs a scan, is removed. SPILL_INVALID,
 * SPILL_REFUSED: `spillway migrate' could not carry out the entry; it is then unchanged.
 */
spill_code_t spill_plan_edit_set(spill_plan_edit_t *edit, const spill_definition_t *definition,
                                 const spill_plan_choices_t *choices, spill_error_t *error);

/* Replace the file atomically. SPILL_IO and the like: it is unchanged. */
spill_code_t spill_plan_edit_write(const spill_plan_edit_t *edit, spill_error_t *error);

#endif
