/* What an aggregation does with the array of a served collection, and with other collections. */
#ifndef SPILL_GATEWAY_TRANSLATE_PIPELINE_H
#define SPILL_GATEWAY_TRANSLATE_PIPELINE_H

#include "gateway/translate/translation.h"

typedef struct spill_pipeline {
    /* The results are the collection's documents, with F as it is in the head. */
    bool has_array;
    bool uses_array;                         /* some stage needs F, or the document as a whole */
    bool names_spill;                        /* some stage names Spillway's bookkeeping */
    bool reports;                            /* it begins with $collStats or a relative */
    bool begins;                             /* ... with $geoNear, or another first stage */
    bool excluded;                           /* a stage left F out, and the documents stayed */
    bool hides;                              /* a later one uses the documents as a whole */
    int hide_at;                             /* the number of the stage that left F out */
    bool writes;                             /* $out or $merge */
    const char *hidden_target;               /* $out or $merge into a hidden collection */
    const spill_served_collection_t *target; /* ... into a served one */
    int filters;                             /* number of $match stages at the front */
    bson_t first_filter;                     /* static: of the first one */
} spill_pipeline_t;

/* `array` is F; NULL: the pipeline's own collection is not served. Cost: O(size). */
void spill_pipeline_read(const spill_served_t *served, const spill_client_command_t *command,
                         const char *array, spill_pipeline_t *pipeline);

/* Does a stage read a served collection, other than the pipeline's own? */
bool spill_pipeline_joins(const spill_served_t *served, const bson_t *body);

/*
 * Append the body's pipeline to *body with stages that hide `spill`: before stage `at` (-1: none),
 * and in what stages read of served collections. The server sees the collections' `spill` only in
 * the stages before. (pipeline_hide.c)
 */
void spill_pipeline_hide(const spill_served_t *served, const bson_t *from, int at, bson_t *body);

#endif
