/*
 * What a plan says of one group of collections (docs/reference/plan-file.md): which they are, what
 * each one's value of the discriminator is, and what the joint collection is to be.
 */
#ifndef SPILL_TOOLS_CONSOLIDATE_PLAN_H
#define SPILL_TOOLS_CONSOLIDATE_PLAN_H

#include "tools/consolidate/transform.h"

/* Old collections that are kept aside begin with this. */
#define SPILL_KEPT_PREFIX "spillway_kept_"

typedef struct spill_joined {
    char *collection;    /* the old one */
    char *kept;          /* its name once it is kept aside */
    spill_value_t value; /* of the discriminator; borrowed from the consolidation's document */
} spill_joined_t;

typedef struct spill_consolidation {
    bson_t *document; /* what of the plan has a say in what is done: a changed plan differs */
    char *pattern;    /* "messages_*", or "" */
    char *into;
    char *aside; /* the joint collection's name while it is taken apart again */
    char *field; /* the discriminator */
    bool keeps_ids;
    spill_joined_t *members;
    size_t count;
    bson_t *indexes;   /* beside those of the old collections */
    bson_t *leave_out; /* names of old indexes */
} spill_consolidation_t;

typedef struct spill_consolidations {
    spill_consolidation_t *items;
    size_t count;
} spill_consolidations_t;

/*
 * Read the groups of a plan's file that are to be consolidated. *plan is filled in every case, for
 * spill_consolidations_release. SPILL_IO; SPILL_PARSE: it is no JSON; SPILL_INVALID names what is
 * missing or cannot be.
 */
spill_code_t spill_consolidations_read(const char *file, spill_consolidations_t *plan,
                                       spill_error_t *error);
void spill_consolidations_release(spill_consolidations_t *plan);

/* One group from its document, as it stands in a plan. As above. */
spill_code_t spill_consolidation_read(const bson_t *document, spill_consolidation_t *group,
                                      spill_error_t *error);
void spill_consolidation_release(spill_consolidation_t *group);

/* The slice of a member. Borrows. */
spill_share_t spill_consolidation_share(const spill_consolidation_t *group, size_t member);

#endif
