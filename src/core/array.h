/*
 * The array's internal functions: checks of arguments (array_checks.c), walks over owners
 * (owners.c), and definitions (define.c).
 */
#ifndef SPILL_CORE_ARRAY_H
#define SPILL_CORE_ARRAY_H

#include "layout/outlier.h"

/* Only known operators, and none of the fields that the array itself lives in. */
spill_code_t spill_array_check_update(const spill_array_t *array, const bson_t *update,
                                      spill_error_t *error);

/* Well-formed, and not beyond any document. `index` is its place in the batch, for the message. */
spill_code_t spill_array_check_element(const spill_value_t *element, size_t index,
                                       spill_error_t *error);

/*
 * Capped, keeping the best: does it rank by what is at the sort_field? SPILL_INVALID: by a
 * decimal128, which is not compared.
 */
spill_code_t spill_array_check_rank(const spill_definition_t *definition,
                                    const spill_value_t *element, spill_error_t *error);

/*
 * Capped, keeping the best: spill_array_check_rank, and SPILL_TOO_BIG for one that does not fit the
 * head's bytes: it would push all others out, and no newer one it. Others: nothing.
 */
spill_code_t spill_array_check_top_n(const spill_owner_t *owner, const spill_value_t *element,
                                     spill_error_t *error);

/* The definition has an id_field, and the value can be an id. SPILL_INVALID. */
spill_code_t spill_array_check_id(const spill_array_t *array, const spill_value_t *id,
                                  spill_error_t *error);

/* Layout bucket: does the element lie in the window that `owner` is? SPILL_INVALID. */
spill_code_t spill_array_check_window(const spill_owner_t *owner, const spill_value_t *element,
                                      spill_error_t *error);

/* SPILL_INVALID on layout bucket (`bucket` false), or on another. `what` begins a sentence. */
spill_code_t spill_array_check_layout(const spill_array_t *array, bool bucket, const char *what,
                                      spill_error_t *error);

/*
 * Call a function for every owner, until one call fails. With `pass_damaged`, log each owner that
 * is SPILL_CORRUPT and skip it; the walk then ends with SPILL_CORRUPT and the first message.
 * (owners.c)
 */
typedef spill_code_t (*spill_each_fn)(void *context, const spill_value_t *owner,
                                      spill_error_t *error);
spill_code_t spill_each_owner(spill_array_t *array, spill_each_fn call, void *context,
                              bool pass_damaged, spill_error_t *error);

/* The same on layout bucket, where spill_each_owner calls for each window. */
spill_code_t spill_each_bucket_owner(spill_array_t *array, spill_each_fn call, void *context,
                                     bool pass_damaged, spill_error_t *error);

/*
 * Call a function for every incarnation that has pages and no head, of all owners or of one, until
 * the function fails. (owners.c)
 */
typedef spill_code_t (*spill_orphan_fn)(void *context, const spill_orphan_t *orphan,
                                        spill_error_t *error);
spill_code_t spill_each_orphan(spill_array_t *array, const spill_value_t *owner,
                               spill_orphan_fn call, void *context, spill_error_t *error);

/*
 * Is what was found still so? While a drop is under way its pages become fewer. Cost: a search for
 * that owner. (verify.c)
 */
spill_code_t spill_orphan_stays(spill_array_t *array, const spill_orphan_t *orphan, bool *stays,
                                spill_error_t *error);

/*
 * Does the definition leave the documents of every other saved definition alone? SPILL_REFUSED
 * names the one that it clashes with. Cost: one command for each definition. (define.c)
 */
spill_code_t spill_store_check_others(spill_store_t *store, const spill_definition_t *definition,
                                      spill_error_t *error);

/* What a walk returns that its visitor stopped: SPILL_CANCELLED. */
spill_code_t spill_walk_stopped(spill_error_t *error);

/* Read the definition `name` from its entry; NULL: there is none, which is SPILL_NOT_FOUND. */
spill_code_t spill_store_read_definition(spill_store_t *store, const char *name,
                                         const bson_t *stored, spill_definition_t *definition,
                                         spill_error_t *error);

#endif
