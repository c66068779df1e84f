/* Walks over the windows of one owner (layout bucket). */
#ifndef SPILL_CORE_WINDOWS_H
#define SPILL_CORE_WINDOWS_H

#include "core/array.h"
#include "definition/window.h"

/* Which windows, as in spill_list_query_t. */
typedef struct spill_window_range {
    const char *from; /* or NULL */
    const char *to;
    bool newest_first;
    const spill_value_t *id;
} spill_window_range_t;

/*
 * One window: `name` is it as an owner of array.h. `last`: no window is behind it. *stop ends the
 * walk.
 */
typedef spill_code_t (*spill_each_window_fn)(void *context, const spill_value_t *name,
                                             const char *window, bool last, bool *stop,
                                             spill_error_t *error);

/*
 * Check the layout, and call a function for each window; where from and to are the same, for that
 * one, though it may not be there. One store operation for the first 2 windows, the next 8, the
 * next 32, and each 100 from there on; none where from and to are the same.
 */
spill_code_t spill_each_window(spill_array_t *array, const spill_value_t *owner,
                               const spill_window_range_t *range, spill_each_window_fn call,
                               void *context, spill_error_t *error);

/*
 * Drop windows before `before` (NULL: any), the oldest first, up to `limit` of them; *dropped: how
 * many were; *more: the limit ended it.
 */
spill_code_t spill_windows_drop(spill_array_t *array, const spill_value_t *owner,
                                const char *before, int64_t limit, int64_t *dropped, bool *more,
                                spill_error_t *error);

/*
 * After an append that made a window, or a part of one: what the definition keeps of the owner.
 * What fails is put off, with a warning to the store's log. (bucket_change.c)
 */
void spill_windows_retain(spill_array_t *array, const spill_value_t *window);

#endif
