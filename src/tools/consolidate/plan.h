/*
 * What a plan says about one group of collections (docs/reference/plan-file.md): their names, the
 * discriminator's value for each, and the joint collection.
 */
#ifndef SPILL_TOOLS_CONSOLIDATE_PLAN_H
#define SPILL_TOOLS_CONSOLIDATE_PLAN_H

#include "tools/consolidate/transform.h"

/* The names of old collections that are put aside begin with this. */
#define SPILL_KEPT_PREFIX "spillway_kept_"

typedef struct spill_joined {
    char *collection;    /* the old name */
    char *kept;          /* its name while it is put aside */
    spill_value_t value; /* of the discriminator; borrowed from the consolidation's document */
} spill_joined_t;

typedef struct spill_consolidation {
    bson_t *document; /* the plan's fields that decide what is done, to detect a changed plan */
    char *pattern;    /* "messages_*", or "" */
    char *into;
    char *aside; /* the joint collection's name during an undo */
    char *field; /* the discriminator */
    bool keeps_ids;
    spill_joined_t *members;
    size_t count;
    bson_t *indexes;   /* in addition to the old collections' indexes */
    bson_t *leave_out; /* names of old indexes */
} spill_consolidation_t;

typedef struct spill_consolidations {
    spill_consolidation_t *items;
    size_t count;
} spill_consolidations_t;

/*
 * Read the groups of a plan's file that must be consolidated. *plan is filled in every case, for
 * spill_consolidations_release. SPILL_IO; SPILL_PARSE: it is no JSON; SPILL_INVALID: the message
 * names what is missing or wrong.
 */
spill_code_t spill_consolidations_read(const char *file, spill_consolidations_t *plan,
                                       spill_error_t *error);
void spill_consolidations_release(spill_consolidations_t *plan);

/* Read one group from its document in a plan. Errors as above. */
spill_code_t spill_consolidation_read(const bson_t *document, spill_consolidation_t *group,
                                      spill_error_t *error);
void spill_consolidation_release(spill_consolidation_t *group);

/* The slice of a member. It borrows from the group. */
spill_share_t spill_consolidation_share(const spill_consolidation_t *group, size_t member);

#endif
