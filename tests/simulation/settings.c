#include "world.h"

/* How likely each action is, in several profiles. */
static const int temperaments[][SIM_ACTION_KINDS] = {
    /*                 append batch read count edit remove trim drop update define export verify */
    /* everything */ {40, 10, 20, 8, 10, 8, 3, 2, 2, 1, 2, 2},
    /* appends */ {70, 10, 10, 4, 2, 2, 1, 0, 1, 1, 0, 0},
    /* edits */ {40, 5, 10, 2, 40, 3, 1, 0, 0, 1, 1, 1},
    /* removals */ {40, 5, 10, 10, 5, 30, 5, 0, 0, 1, 1, 1},
    /* retention */ {50, 5, 10, 8, 4, 6, 20, 2, 0, 1, 1, 2},
    /* owners */ {50, 10, 10, 5, 3, 4, 3, 15, 3, 0, 1, 1},
    /* endings */ {45, 5, 5, 4, 4, 25, 6, 12, 1, 0, 1, 1},
};

enum { TEMPERAMENTS = sizeof temperaments / sizeof temperaments[0] };

/*
 * No definition may have byte bounds as small as these (definition/schema.h). Simulated clients set
 * them after that check, so that a test moves few bytes.
 */
enum {
    BYTES_LOW = 700,
    BYTES_HIGH = 1300,
    OP_BYTES = 192,
    BUCKET_BYTES = 500,
    BYTES_PLENTY = 16 * 1024
};

static spill_bounds_t choose_bounds(sim_random_t *random, bool padded, int op_window)
{
    spill_bounds_t bounds = {
        .threshold = sim_random_between(random, 1, 3),
        .page_capacity = sim_random_between(random, 1, 3),
        .head_bytes_max = BYTES_PLENTY,
        .page_bytes_max = BYTES_PLENTY,
    };
    if (padded) {
        bounds.threshold = sim_random_between(random, 1, 4);
        bounds.page_capacity = sim_random_between(random, 1, 4);
        int window = op_window * OP_BYTES;
        bounds.head_bytes_max = window + sim_random_between(random, BYTES_LOW, BYTES_HIGH);
        bounds.page_bytes_max = window + sim_random_between(random, BYTES_LOW, BYTES_HIGH);
    }
    return bounds;
}

void sim_settings_choose(sim_settings_t *settings, sim_engine_t engine, sim_random_t *random)
{
    static const int stickiness[] = {0, 300, 600, 850};
    static const int fault_rates[] = {0, 15, 40, 80};
    *settings = (sim_settings_t){
        .keep = sim_random_below(random, 2) ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST,
        .clients = sim_random_between(random, 2, SIM_CLIENTS_MAX),
        .owners = sim_random_chance(random, 800) ? 1 : 2,
        .op_window = sim_random_between(random, 1, 6),
        .padded = sim_random_chance(random, 150),
        .sticky = stickiness[sim_random_below(random, 4)],
        .faults = fault_rates[sim_random_below(random, 4)],
        .late = sim_random_chance(random, 500) ? 20 : 120,
        .crashes = sim_random_between(random, 0, 2),
    };
    if (sim_random_chance(random, 250))
        settings->skew_us = sim_random_between(random, -300, 300);
    if (engine == SIM_EMBEDDED)
        settings->machine_crashes = sim_random_between(random, 0, 2);
    settings->actions_each = sim_random_between(random, 3, settings->clients == 2 ? 9 : 6);
    settings->bounds[0] = choose_bounds(random, settings->padded, settings->op_window);
    settings->bounds[1] = settings->bounds[0];
    if (sim_random_chance(random, 250))
        settings->bounds[1] = choose_bounds(random, settings->padded, settings->op_window);
    if (sim_random_chance(random, 250))
        settings->keep_elements = sim_random_between(random, 1, 6);
    /* Chosen from a separate source, so that the other choices of existing seeds stay the same. */
    sim_random_t referenced = {random->state ^ 0x6275636b6574u};
    settings->bucket = settings->keep == SPILL_KEEP_OLDEST && sim_random_chance(&referenced, 350);
    if (settings->bucket)
        settings->keep_elements = 0;
    sim_random_t aged = {random->state ^ 0x616765u};
    if (sim_random_chance(&aged, 200))
        settings->keep_seconds = sim_random_between(&aged, 1, 8);
    for (int i = 0; i < 2 && settings->bucket && settings->padded; i++) {
        settings->bounds[i].head_bytes_max += BUCKET_BYTES;
        settings->bounds[i].page_bytes_max += BUCKET_BYTES;
    }
    const int *temperament = temperaments[sim_random_below(random, TEMPERAMENTS)];
    for (int i = 0; i < SIM_ACTION_KINDS; i++)
        settings->weights[i] = temperament[i];
    sim_random_t windows = {random->state ^ 0x77696e646f7773u};
    settings->windows = settings->bucket && settings->owners == 2 && settings->keep_seconds == 0 &&
                        sim_random_chance(&windows, 600);
    if (settings->bucket)
        settings->weights[SIM_ACTION_TRIM] = settings->weights[SIM_ACTION_UPDATE] = 0;
}

void sim_settings_cap(sim_settings_t *settings, uint64_t seed)
{
    static const char *const fields[] = {SIM_ID_FIELD, SIM_ID_FIELD, SIM_VALUE_FIELD,
                                         SIM_TIME_FIELD};
    settings->top_n = seed / 12 % 2 == 1;
    settings->sort_field = fields[seed / 24 % 4];
    settings->layout = SPILL_LAYOUT_CAPPED;
    settings->keep = SPILL_KEEP_NEWEST;
    settings->keep_elements = 0;
    for (int i = 0; i < 2; i++) {
        settings->bounds[i].page_capacity = 0;
        settings->bounds[i].page_bytes_max = 0;
        if (settings->top_n) /* each element fits alone; larger ones are refused */
            settings->bounds[i].head_bytes_max += SIM_PADDING_MAX;
    }
}

void sim_settings_top(sim_settings_t *settings, uint64_t seed)
{
    static const char *const fields[] = {SIM_ID_FIELD, SIM_VALUE_FIELD, "", SIM_TIME_FIELD};
    settings->top = (int)(seed / 6 % 3) + 1;
    settings->sort_field = fields[seed / 18 % 4];
    for (int i = 0; i < 2; i++) /* half is reserved, and the top-N has its own bookkeeping */
        settings->bounds[i].head_bytes_max = 2 * settings->bounds[i].head_bytes_max + 600;
}

void sim_settings_print(const sim_settings_t *settings, FILE *file)
{
    if (settings->layout == SPILL_LAYOUT_CAPPED)
        fputs(settings->top_n ? "capped to the best, " : "capped, ", file);
    if (settings->unique)
        fputs("each id once, ", file);
    fprintf(file, "%skeep %s, %d clients with %d actions each, %d owner%s, window %d, ",
            settings->top > 0      ? "a summary of the top, "
            : settings->referenced ? "elements apart, "
            : settings->windows    ? "two windows, "
            : settings->bucket     ? "buckets, "
                                   : "",
            settings->keep == SPILL_KEEP_NEWEST ? "newest" : "oldest", settings->clients,
            settings->actions_each, settings->owners, settings->owners == 1 ? "" : "s",
            (int)settings->op_window);
    for (int i = 0; i < 2; i++) {
        const spill_bounds_t *bounds = &settings->bounds[i];
        fprintf(file, "%sthreshold %lld page %lld", i ? " or " : "bounds ",
                (long long)bounds->threshold, (long long)bounds->page_capacity);
        if (settings->padded)
            fprintf(file, " (%lld and %lld bytes)", (long long)bounds->head_bytes_max,
                    (long long)bounds->page_bytes_max);
    }
    if (settings->paths)
        fputs(", in a sub-document", file);
    if (settings->sessions > 0)
        fprintf(file, ", %d sessions", settings->sessions);
    if (settings->keep_elements > 0)
        fprintf(file, ", keeps %d", settings->keep_elements);
    if (settings->keep_seconds > 0)
        fprintf(file, ", keeps %d seconds", settings->keep_seconds);
    fprintf(file, ", faults in %d of 1000 requests, %d crashes\n", settings->faults,
            settings->crashes);
}
