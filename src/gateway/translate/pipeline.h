/* What an aggregation does with the array of a served collection, and with other collections. */
#ifndef SPILL_GATEWAY_TRANSLATE_PIPELINE_H
#define SPILL_GATEWAY_TRANSLATE_PIPELINE_H

#include "gateway/translate/translation.h"

typedef struct spill_pipeline {
    /* The results are the collection's documents, with F as it is in the head. */
    bool has_array;
    bool uses_array;                         /* some stage needs F, or the document as a whole */
    bool names_spill;                        /* some stage names Spillway's bookkeeping */
    bool watches;                            /* $changeStream */
    bool reports;                            /* it begins with $collStats or a relative */
    bool writes;                             /* $out or $merge */
    const char *hidden_target;               /* $out or $merge into a hidden collection */
    const spill_served_collection_t *target; /* ... into a served one */
    int filters;                             /* number of $match stages at the front */
    bson_t first_filter;                     /* static: of the first one */
} spill_pipeline_t;

/* `array` is F; NULL: the pipeline's own collection is not served. Cost: O(size). */
void spill_pipeline_read(const spill_served_t *served, const bson_t *body, const char *array,
                         spill_pipeline_t *pipeline);

#endif
