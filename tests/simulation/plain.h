/*
 * The plain array that an owner's documents stand for, with its whole history: each change makes a
 * new version, and the array as it was at any version can be asked for. A change that a plain array
 * could not make (a number given twice, an edit of an element that is not there) is a failure.
 */
#ifndef SIM_PLAIN_H
#define SIM_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_ALIVE INT32_MAX
#define SIM_NO_VALUE (-1) /* of a number that was skipped: its element was never there */

typedef struct sim_plain_element {
    int64_t seq;
    int32_t incarnation;
    int64_t epoch; /* of that incarnation */
    int32_t born;
    int32_t died;      /* the version that it is no longer in; SIM_ALIVE */
    int32_t last_edit; /* into edits, or -1 */
    int64_t value;     /* as appended */
    bool pending;      /* its removal is counted, not yet carried out */
    bool claimed;      /* a client was told that it removed it */
} sim_plain_element_t;

typedef struct sim_plain_edit {
    int32_t version;
    int32_t previous; /* the element's edit before, or -1 */
    int64_t value;
} sim_plain_edit_t;

typedef enum sim_change {
    SIM_CHANGE_NONE,
    SIM_CHANGE_APPEND,
    SIM_CHANGE_EDIT,
    SIM_CHANGE_INTEND,
    SIM_CHANGE_DELETE,
    SIM_CHANGE_TRIM,
    SIM_CHANGE_CREATE,
    SIM_CHANGE_DROP
} sim_change_t;

/* What held from a version on, until the next. */
typedef struct sim_plain_moment {
    sim_change_t change; /* that made this version */
    bool exists;
    int32_t incarnation;
    int32_t live;
    int32_t pending;
    int64_t next;
    int64_t low;
} sim_plain_moment_t;

typedef struct sim_plain {
    int64_t epoch; /* of the incarnation that exists */
    sim_plain_element_t *elements;
    size_t element_count, element_capacity;
    size_t incarnation_start; /* first element of the present incarnation */
    sim_plain_edit_t *edits;
    size_t edit_count, edit_capacity;
    sim_plain_moment_t *moments; /* by version */
    size_t moment_count, moment_capacity;
} sim_plain_t;

/* Empty, for the next schedule; keeps memory. A zeroed one is fit for it. */
void sim_plain_clear(sim_plain_t *plain);
void sim_plain_release(sim_plain_t *plain);

int32_t sim_plain_version(const sim_plain_t *plain);
const sim_plain_moment_t *sim_plain_now(const sim_plain_t *plain);

/* Each returns NULL, or what is wrong (a static text); nothing is changed then. */
void sim_plain_create(sim_plain_t *plain, int64_t epoch);
const char *sim_plain_append(sim_plain_t *plain, int64_t seq, int64_t skip, const int64_t *values,
                             size_t count);
const char *sim_plain_edit(sim_plain_t *plain, int64_t seq, int64_t value);
/*
 * An edit that reached a page after its element was trimmed, or after its owner (the incarnation
 * `epoch`) was dropped. The caller read the head before, so the edit counts as made right before
 * the trim or the drop. No version shows it; its version is the one in which the element died.
 */
void sim_plain_edit_late(sim_plain_t *plain, int64_t epoch, int64_t seq, int64_t value);
const char *sim_plain_intend(sim_plain_t *plain, int64_t seq);
const char *sim_plain_delete(sim_plain_t *plain, int64_t seq);
const char *sim_plain_trim(sim_plain_t *plain, int64_t low);
const char *sim_plain_drop(sim_plain_t *plain);
/*
 * Capped: in the version that the last append made, elements below `first` fell off, to be at most
 * `cap`. `exactly`: no bound in bytes can have asked for more.
 */
const char *sim_plain_fall(sim_plain_t *plain, int64_t first, int64_t cap, bool exactly);
/* Capped, keeping the best: ... the element fell off. */
const char *sim_plain_fall_one(sim_plain_t *plain, int64_t seq);
/* Capped: what is not there any more at the beginning is below `low`. */
void sim_plain_lift(sim_plain_t *plain);

/* The element of that number in the present incarnation, or in the one of a version; or NULL. */
sim_plain_element_t *sim_plain_find(const sim_plain_t *plain, int64_t seq);
const sim_plain_element_t *sim_plain_find_at(const sim_plain_t *plain, int32_t version,
                                             int64_t seq);

/* Its value at a version, or -1 when it was not there. */
int64_t sim_plain_value(const sim_plain_t *plain, const sim_plain_element_t *element,
                        int32_t version);

/* Was there such an edit of the element after `from`, up to `to`? */
bool sim_plain_edited(const sim_plain_t *plain, const sim_plain_element_t *element, int64_t value,
                      int32_t from, int32_t to);

#endif
