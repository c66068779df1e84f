/* Weakened notes of drops (layout/head_end.h). */
#include "naive.h"

static void adjust_ending(sim_world_t *world)
{
    static const int weights[SIM_ACTION_KINDS] = {
        [SIM_ACTION_APPEND] = 60, [SIM_ACTION_DROP] = 30, [SIM_ACTION_VERIFY] = 10};
    sim_naive_weigh(&world->settings, weights);
    sim_naive_bound(&world->settings, 1, 1);
    world->settings.keep = SPILL_KEEP_NEWEST;
    world->settings.keep_elements = 0;
    world->settings.faults = 100;
    world->settings.actions_each = 8;
    world->settings.crashes = 2;
    world->settings.notes = true;
}

/* Believed: "A note says that a client wanted to delete the owner, so its pages may go." */
static void always_believed(sim_world_t *world, const sim_message_t *message,
                            spill_drop_note_t *found, bool *done)
{
    sim_deliver(world, message, found, done);
    if (message->kind == SIM_MESSAGE_FIND && found)
        found->rev = SPILL_DROP_IS_CERTAIN;
}

const sim_naive_t sim_naive_note_always_believed = {.name = "every note is believed",
                                                    .deliver = always_believed,
                                                    .adjust = adjust_ending,
                                                    .shows = "though nobody dropped it",
                                                    .schedules = 50000};

/* Believed: "A note is about something that happened, so write it afterwards." */
static void written_afterwards(sim_world_t *world, const sim_message_t *message,
                               spill_drop_note_t *found, bool *done)
{
    *done = true;
    if (message->kind != SIM_MESSAGE_ANNOUNCE)
        sim_deliver(world, message, found, done);
}

const sim_naive_t sim_naive_note_afterwards = {.name = "the note is written after the delete",
                                               .deliver = written_afterwards,
                                               .adjust = adjust_ending,
                                               .shows = "of a head that was ended",
                                               .schedules = 20000};

/* Believed: "The statement was not made, so the owner needs no note." */
static void forgotten_by_all(sim_world_t *world, const sim_message_t *message,
                             spill_drop_note_t *found, bool *done)
{
    sim_message_t any = *message;
    if (message->kind == SIM_MESSAGE_FORGET)
        any.note.rev = SPILL_DROP_IS_CERTAIN;
    sim_deliver(world, &any, found, done);
}

const sim_naive_t sim_naive_note_forgotten_by_all = {.name = "any client forgets a note",
                                                     .deliver = forgotten_by_all,
                                                     .adjust = adjust_ending,
                                                     .shows = "of a head that was ended",
                                                     .schedules = 50000};

/* Believed: "Clocks give later heads later incarnations." */
static void ended_without_mark(sim_world_t *world, const sim_message_t *message,
                               spill_drop_note_t *found, bool *done)
{
    *done = true;
    if (message->kind != SIM_MESSAGE_MARK)
        sim_deliver(world, message, found, done);
}

static void adjust_clocks(sim_world_t *world)
{
    adjust_ending(world);
    world->settings.skew_us = -300;
}

const sim_naive_t sim_naive_ended_without_mark = {.name = "heads end without the mark",
                                                  .deliver = ended_without_mark,
                                                  .adjust = adjust_clocks,
                                                  .shows = "owner 0",
                                                  .schedules = 20000};
