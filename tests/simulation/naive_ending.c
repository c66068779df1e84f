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
        found->ended = found->incarnation > found->ended ? found->incarnation : found->ended;
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
        any.note.rev = SPILL_DROP_IS_CERTAIN - 1;
    sim_deliver(world, &any, found, done);
}

const sim_naive_t sim_naive_note_forgotten_by_all = {.name = "any client forgets a note",
                                                     .deliver = forgotten_by_all,
                                                     .adjust = adjust_ending,
                                                     .shows = "of a head that was ended",
                                                     .schedules = 50000};

/* Believed: "A client wanted to drop the collection, so all its pages may go." */
static void all_believed(sim_world_t *world, const sim_message_t *message, spill_drop_note_t *found,
                         bool *done)
{
    sim_deliver(world, message, found, done);
    const sim_drops_all_t *all = &world->drops_all;
    for (int i = 0; i < all->count && message->kind == SIM_MESSAGE_FIND && found; i++)
        if (all->attempts[i].announced && all->attempts[i].incarnation > found->ended)
            found->ended = all->attempts[i].incarnation;
}

const sim_naive_t sim_naive_all_believed = {.name = "what is announced of a collection is believed",
                                            .deliver = all_believed,
                                            .adjust = adjust_ending,
                                            .shows = "though nobody dropped it",
                                            .schedules = 50000};

/* Believed: "The drop was refused, so its note says nothing." */
static void all_stays(sim_world_t *world, const sim_message_t *message, spill_drop_note_t *found,
                      bool *done)
{
    *done = true;
    if (message->kind != SIM_MESSAGE_REFUSED_ALL)
        sim_deliver(world, message, found, done);
}

const sim_naive_t sim_naive_all_stays = {.name = "a refused drop of a collection keeps its note",
                                         .deliver = all_stays,
                                         .adjust = adjust_ending,
                                         .shows = "though nobody dropped it",
                                         .schedules = 50000};

/* Believed: "One note is enough: the latest drop of the collection replaces it." */
static void all_replaced(sim_world_t *world, const sim_message_t *message, spill_drop_note_t *found,
                         bool *done)
{
    sim_drops_all_t *all = &world->drops_all;
    for (int i = 0; i < all->count && message->kind == SIM_MESSAGE_ANNOUNCE_ALL; i++)
        all->attempts[i].announced = false;
    if (message->kind == SIM_MESSAGE_ANNOUNCE_ALL)
        all->ended = 0;
    sim_deliver(world, message, found, done);
}

const sim_naive_t sim_naive_all_replaced = {.name = "a collection has one note of a drop",
                                            .deliver = all_replaced,
                                            .adjust = adjust_ending,
                                            .shows = "of a collection's drop",
                                            .schedules = 50000};

/* Believed: "The note is about the latest drop, so the latest one replaces it." */
static void replaced(sim_world_t *world, const sim_message_t *message, spill_drop_note_t *found,
                     bool *done)
{
    spill_drop_note_t *note = &world->ends[message->owner].note;
    if (message->kind == SIM_MESSAGE_ANNOUNCE)
        note->ended = 0;
    sim_deliver(world, message, found, done);
}

const sim_naive_t sim_naive_note_replaced = {.name = "a note replaces what was certain",
                                             .deliver = replaced,
                                             .adjust = adjust_ending,
                                             .shows = "of a head that surely ended",
                                             .schedules = 50000};

/* Believed: "The pages are deleted, so nobody needs the note." */
static void forgotten_at_once(sim_world_t *world, const sim_message_t *message,
                              spill_drop_note_t *found, bool *done)
{
    sim_ends_t *ends = &world->ends[message->owner];
    bool old = ends->old;
    ends->old = true;
    sim_deliver(world, message, found, done);
    ends->old = old;
}

static void adjust_forgets(sim_world_t *world)
{
    adjust_ending(world);
    world->settings.forgets = true;
}

const sim_naive_t sim_naive_note_ends_with_pages = {.name = "a note ends with the pages",
                                                    .deliver = forgotten_at_once,
                                                    .adjust = adjust_forgets,
                                                    .shows = "of a head that surely ended",
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
