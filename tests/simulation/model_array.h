/*
 * The plain array that an owner's documents stand for, with its whole history: each change makes a
 * new version, and the array as it was at any version can be asked for. A change that a plain array
 * could not make (a number given twice, an edit of an element that is not there) is a failure.
 */
#ifndef SIM_MODEL_ARRAY_H
#define SIM_MODEL_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_ALIVE INT32_MAX
#define SIM_NO_VALUE (-1) /* of a number that was skipped: its element was never there */

typedef struct sim_model_element {
    int64_t seq;
    int32_t generation;
    int64_t incarnation; /* of that incarnation */
    int32_t born;
    int32_t died;      /* the version that it is no longer in; SIM_ALIVE */
    int32_t last_edit; /* into edits, or -1 */
    int64_t value;     /* as appended */
    bool pending;      /* its removal is counted, not yet carried out */
    bool claimed;      /* a client was told that it removed it */
} sim_model_element_t;

typedef struct sim_model_edit {
    int32_t version;
    int32_t previous; /* the element's edit before, or -1 */
    int64_t value;
} sim_model_edit_t;

typedef enum sim_change {
    SIM_CHANGE_NONE,
    SIM_CHANGE_APPEND,
    SIM_CHANGE_EDIT,
    SIM_CHANGE_PREPARE,
    SIM_CHANGE_DELETE,
    SIM_CHANGE_TRIM,
    SIM_CHANGE_CREATE,
    SIM_CHANGE_DROP
} sim_change_t;

/* What held from a version on, until the next. */
typedef struct sim_model_moment {
    sim_change_t change; /* that made this version */
    bool exists;
    int32_t generation;
    int32_t live;
    int32_t pending;
    int64_t next;
    int64_t watermark;
} sim_model_moment_t;

typedef struct sim_model {
    int64_t incarnation; /* of the incarnation that exists */
    sim_model_element_t *elements;
    size_t element_count, element_capacity;
    size_t generation_start; /* first element of the present incarnation */
    sim_model_edit_t *edits;
    size_t edit_count, edit_capacity;
    sim_model_moment_t *moments; /* by version */
    size_t moment_count, moment_capacity;
} sim_model_t;

/* Empty, for the next schedule; keeps memory. A zeroed one is fit for it. */
void sim_model_clear(sim_model_t *plain);
void sim_model_release(sim_model_t *plain);

int32_t sim_model_version(const sim_model_t *plain);
const sim_model_moment_t *sim_model_now(const sim_model_t *plain);

/* Each returns NULL, or what is wrong (a static text); nothing is changed then. */
void sim_model_create(sim_model_t *plain, int64_t incarnation);
const char *sim_model_append(sim_model_t *plain, int64_t seq, int64_t skip, const int64_t *values,
                             size_t count);
const char *sim_model_edit(sim_model_t *plain, int64_t seq, int64_t value);
/*
 * An edit that reached a page after its element was trimmed, or after its owner (the incarnation
 * `incarnation`) was dropped. The caller read the head before, so the edit counts as made right
 * before the trim or the drop. No version shows it; its version is the one in which the element
 * died.
 */
void sim_model_edit_late(sim_model_t *plain, int64_t incarnation, int64_t seq, int64_t value);
const char *sim_model_prepare(sim_model_t *plain, int64_t seq);
const char *sim_model_delete(sim_model_t *plain, int64_t seq);
const char *sim_model_trim(sim_model_t *plain, int64_t watermark);
const char *sim_model_drop(sim_model_t *plain);
/*
 * Capped: in the version that the last append made, elements below `first` fell off, to be at most
 * `cap`. `exactly`: no bound in bytes can have asked for more.
 */
const char *sim_model_fall(sim_model_t *plain, int64_t first, int64_t cap, bool exactly);
/* Capped, keeping the best: ... the element fell off. */
const char *sim_model_fall_one(sim_model_t *plain, int64_t seq);
/* Capped: what is not there any more at the beginning is below `low`. */
void sim_model_lift(sim_model_t *plain);

/* The element of that number in the present incarnation, or in the one of a version; or NULL. */
sim_model_element_t *sim_model_find(const sim_model_t *plain, int64_t seq);
const sim_model_element_t *sim_model_find_at(const sim_model_t *plain, int32_t version,
                                             int64_t seq);

/* Its value at a version, or -1 when it was not there. */
int64_t sim_model_value(const sim_model_t *plain, const sim_model_element_t *element,
                        int32_t version);

/* Was there such an edit of the element after `from`, up to `to`? */
bool sim_model_edited(const sim_model_t *plain, const sim_model_element_t *element, int64_t value,
                      int32_t from, int32_t to);

#endif
