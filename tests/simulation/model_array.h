/*
 * The plain array that an owner's documents represent, with its whole history. Each change makes a
 * new version, and the array can be queried at any version. A change that a plain array cannot make
 * (a number assigned twice, an edit of an absent element) is a failure.
 */
#ifndef SIM_MODEL_ARRAY_H
#define SIM_MODEL_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_ALIVE INT32_MAX
#define SIM_NO_VALUE (-1) /* the value of a skipped number, which no element has */

typedef struct sim_model_element {
    int64_t seq;
    int32_t generation;
    int64_t incarnation; /* the incarnation of its owner */
    int32_t born;
    int32_t died;      /* the first version without it; SIM_ALIVE */
    int32_t last_edit; /* into edits, or -1 */
    int64_t value;     /* as appended */
    bool pending;      /* its removal was counted and is pending */
    bool claimed;      /* a client's call reported that it removed the element */
} sim_model_element_t;

typedef struct sim_model_edit {
    int32_t version;
    int32_t previous; /* the element's previous edit, or -1 */
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

/* The state of the array from one version until the next. */
typedef struct sim_model_moment {
    sim_change_t change; /* the change that made this version */
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

/* Empty it for the next schedule, but keep its memory. A zeroed one can be used at once. */
void sim_model_clear(sim_model_t *plain);
void sim_model_release(sim_model_t *plain);

int32_t sim_model_version(const sim_model_t *plain);
const sim_model_moment_t *sim_model_now(const sim_model_t *plain);

/* The functions that return text return NULL, or what is wrong (static); then nothing changed. */
void sim_model_create(sim_model_t *plain, int64_t incarnation);
const char *sim_model_append(sim_model_t *plain, int64_t seq, int64_t skip, const int64_t *values,
                             size_t count);
/* In one step: these elements, and all earlier ones are trimmed. */
const char *sim_model_rewrite(sim_model_t *plain, int64_t seq, const int64_t *values, size_t count);
const char *sim_model_edit(sim_model_t *plain, int64_t seq, int64_t value);
/*
 * Record an edit that reached a page after its element was trimmed, or after its owner (of that
 * `incarnation`) was dropped. Its caller read the head before, so the edit counts as made just
 * before the trim or the drop. No version shows it; its version is the one in which the element
 * died.
 */
void sim_model_edit_late(sim_model_t *plain, int64_t incarnation, int64_t seq, int64_t value);
const char *sim_model_prepare(sim_model_t *plain, int64_t seq);
const char *sim_model_delete(sim_model_t *plain, int64_t seq);
const char *sim_model_trim(sim_model_t *plain, int64_t watermark);
const char *sim_model_drop(sim_model_t *plain);
/*
 * Capped: the last append dropped the elements below `first`, to keep at most `cap`. `exactly`: no
 * byte bound can have required more.
 */
const char *sim_model_fall(sim_model_t *plain, int64_t first, int64_t cap, bool exactly);
/* Capped, top-N: the last append dropped this element. */
const char *sim_model_fall_one(sim_model_t *plain, int64_t seq);
/* Capped: raise the trim watermark above the dropped elements at the beginning. */
void sim_model_lift(sim_model_t *plain);

/*
 * Return the element with that number in the present incarnation, or at a version; NULL if absent.
 */
sim_model_element_t *sim_model_find(const sim_model_t *plain, int64_t seq);
const sim_model_element_t *sim_model_find_at(const sim_model_t *plain, int32_t version,
                                             int64_t seq);

/* Return the element's value at a version, or -1 if it did not exist. */
int64_t sim_model_value(const sim_model_t *plain, const sim_model_element_t *element,
                        int32_t version);

/* Was the element edited to that value after `from`, up to `to`? */
bool sim_model_edited(const sim_model_t *plain, const sim_model_element_t *element, int64_t value,
                      int32_t from, int32_t to);

#endif
