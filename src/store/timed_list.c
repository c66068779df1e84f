/* Listings, and notes of drops, that are read under a deadline with copies of their arguments. */
#include "store/timed_step.h"

#include <string.h>

/* ---- listings -------------------------------------------------------------------------------- */

static void release_query(spill_timed_t *step)
{
    for (size_t i = 0; i < sizeof step->query_copies / sizeof *step->query_copies; i++)
        bson_free(step->query_copies[i]);
    spill_listing_release(&step->listing);
}

static void run_list(spill_timed_t *step)
{
    const spill_binding_t *binding = step->bound ? &step->binding : NULL;
    step->code = step->store->ops->list[step->query.list](
        step->store, &step->definition, binding, &step->query, &step->listing, &step->error);
}

static void *copy_bytes(const void *bytes, size_t size)
{
    return bytes ? memcpy(bson_malloc(size + 1), bytes, size) : NULL;
}

/* The i-th value of the query, with its own bytes. */
static const spill_value_t *copy_value(spill_timed_t *step, size_t i, const spill_value_t *value)
{
    if (!value)
        return NULL;
    step->query_values[i] = *value;
    step->query_copies[i] = copy_bytes(value->data, value->size_bytes);
    step->query_values[i].data = step->query_copies[i];
    return &step->query_values[i];
}

static void copy_query(spill_timed_t *step, const spill_list_query_t *query)
{
    spill_list_query_t *copy = &step->query;
    *copy = *query;
    /* With the byte behind it: the position in a list of windows is a text. */
    size_t after_bytes = query->after_bytes + (query->list == SPILL_LIST_WINDOWS);
    copy->after = step->query_copies[2] = copy_bytes(query->after, after_bytes);
    if (query->list == SPILL_LIST_ORPHANS)
        copy->orphans.owner = copy_value(step, 0, query->orphans.owner);
    if (query->list != SPILL_LIST_WINDOWS)
        return;
    copy->windows.owner = copy_value(step, 0, query->windows.owner);
    copy->windows.id = copy_value(step, 1, query->windows.id);
    copy->windows.from = step->query_copies[3] = bson_strdup(query->windows.from);
    copy->windows.to = step->query_copies[4] = bson_strdup(query->windows.to);
}

spill_code_t spill_timed_list(spill_store_t *store, const spill_definition_t *definition,
                              const spill_binding_t *binding, const spill_list_query_t *query,
                              spill_listing_t *listing, spill_error_t *error)
{
    bool done;
    spill_timed_t *step = spill_timed_step_new(store, run_list, release_query);
    step->definition = *definition;
    step->bound = binding != NULL;
    if (binding)
        step->binding = *binding;
    copy_query(step, query);
    spill_code_t code = spill_timed_carry_out(step, false, &done, error);
    if (!done)
        return code;
    spill_listing_t empty = *listing;
    *listing = step->listing;
    step->listing = empty;
    spill_timed_step_free(step);
    return code;
}

/* ---- notes of drops -------------------------------------------------------------------------- */

/* An owner, as in a query, and a note of its drop. */
static spill_timed_t *note_step_new(spill_store_t *store, spill_timed_fn run,
                                    const spill_definition_t *definition,
                                    const spill_value_t *owner)
{
    spill_timed_t *step = spill_timed_step_new(store, run, release_query);
    step->definition = *definition;
    copy_value(step, 0, owner);
    return step;
}

static void run_find_drop(spill_timed_t *step)
{
    step->code = step->store->ops->find_drop(step->store, &step->definition, &step->query_values[0],
                                             &step->note, &step->error);
}

spill_code_t spill_timed_find_drop(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_value_t *owner, spill_drop_note_t *note,
                                   spill_error_t *error)
{
    bool done;
    spill_timed_t *step = note_step_new(store, run_find_drop, definition, owner);
    spill_code_t code = spill_timed_carry_out(step, false, &done, error);
    if (!done)
        return code;
    *note = step->note;
    spill_timed_step_free(step);
    return code;
}

/* Carry out a step that writes or forgets the note, and frees itself. */
static spill_code_t carry_out_note(spill_timed_t *step, const spill_drop_note_t *note,
                                   spill_error_t *error)
{
    bool done;
    step->note = *note;
    spill_code_t code = spill_timed_carry_out(step, false, &done, error);
    if (done)
        spill_timed_step_free(step);
    return code;
}

static void run_note_drop(spill_timed_t *step)
{
    step->code = step->store->ops->note_drop(step->store, &step->definition, &step->query_values[0],
                                             &step->note, &step->error);
}

spill_code_t spill_timed_note_drop(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_value_t *owner, const spill_drop_note_t *note,
                                   spill_error_t *error)
{
    return carry_out_note(note_step_new(store, run_note_drop, definition, owner), note, error);
}

static void run_forget_drop(spill_timed_t *step)
{
    step->code = step->store->ops->forget_drop(step->store, &step->definition,
                                               &step->query_values[0], &step->note, &step->error);
}

spill_code_t spill_timed_forget_drop(spill_store_t *store, const spill_definition_t *definition,
                                     const spill_value_t *owner, const spill_drop_note_t *note,
                                     spill_error_t *error)
{
    return carry_out_note(note_step_new(store, run_forget_drop, definition, owner), note, error);
}

static void run_head_ends(spill_timed_t *step)
{
    step->code = step->store->ops->head_ends(step->store, step->note.rev, &step->error);
}

spill_code_t spill_timed_head_ends(spill_store_t *store, int64_t rev, spill_error_t *error)
{
    const spill_drop_note_t note = {.rev = rev};
    return carry_out_note(spill_timed_step_new(store, run_head_ends, release_query), &note, error);
}
