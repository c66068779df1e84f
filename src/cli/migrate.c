/* migrate and sweep: arrays that other programs keep or push to are laid out, while they go on. */
#include "cli/interrupt.h"
#include "cli/operate.h"
#include "core/forming.h"
#include "store/browse.h"
#include "store/store.h"
#include "tools/parallel.h"
#include "tools/plan_file.h"
#include "tools/probe.h"
#include "tools/staged.h"
#include "util/clock.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Owners at a time: enough to keep a small server busy; where it is to stay quick, one. */
enum { THREADS = 4, THREADS_WITH_LATENCY = 1 };

typedef struct migrate_options {
    spill_cli_operate_given_t operate;
    int64_t threads; /* 0: not given */
    const char *only;
    bool finish;
    bool undo;
    bool yes;
} migrate_options_t;

static const migrate_options_t DEFAULTS = {0};

typedef struct sweep_options {
    spill_cli_operate_given_t operate;
    int64_t threads; /* 0: not given */
    bool watch;
    int64_t interval_s;
} sweep_options_t;

static const sweep_options_t SWEEP_DEFAULTS = {.operate.execute = true, .interval_s = 60};

/* A run of either. `operate` comes first: it is the throttle's context. */
typedef struct migrate_run {
    spill_cli_operate_t operate;
    const spill_invocation_t *invocation;
    spill_store_t *store;
    spill_throttle_t throttle;
    spill_probe_t probe;
    int threads;
    const spill_definition_t *definition; /* of the array that it is at */
    const spill_planned_t *planned;       /* ... which is brought to what is planned; or NULL */
    const char *name;                     /* of what is planned, or swept */
    char uri[SPILL_CLI_URI];              /* of a server, or "" */
    spill_migrate_result_t survey;        /* what there was to do */
    int64_t failed;
    bool refused;    /* a definition of the plan was passed over */
    bool unfinished; /* a definition has its original still: --finish is to come */
} migrate_run_t;

/* ---- while it runs --------------------------------------------------------------------------- */

/* The smallest read: an entry that nobody has. */
static bool read_little(void *context)
{
    const migrate_run_t *run = context;
    bson_t *nothing = NULL;
    spill_error_t error;
    spill_code_t code = run->store->ops->catalog_get(run->store, SPILL_CATALOG_DEFINITION,
                                                     "probe:latency", &nothing, &error);
    bson_destroy(nothing);
    return code == SPILL_OK;
}

static double latency_s(void *context)
{
    migrate_run_t *run = context;
    return spill_probe_latency(&run->probe);
}

static void show_progress(void *context, const spill_migrate_result_t *result)
{
    migrate_run_t *run = context;
    double seconds = spill_cli_progress_seconds(&run->operate.progress);
    char left[48] = "";
    if (result->owners > 0 && run->survey.elements > result->elements)
        snprintf(left, sizeof left, ", %.0f s left",
                 seconds * (double)(run->survey.elements - result->elements) /
                     (double)(result->elements > 0 ? result->elements : 1));
    spill_cli_progress_print(&run->operate.progress,
                             "%s: %" PRId64 " of %" PRId64 " owners, %" PRId64
                             " elements moved to %" PRId64 " pages, %.0f/s%s",
                             run->name, result->owners,
                             run->survey.owners > result->owners ? run->survey.owners
                                                                 : result->owners,
                             result->moved, result->pages, (double)result->moved / seconds, left);
}

static void show_brought(void *context, const spill_copy_result_t *result)
{
    migrate_run_t *run = context;
    spill_cli_progress_print(&run->operate.progress,
                             "%s: %" PRId64 " owners, %" PRId64 " elements brought, %" PRId64
                             " compared",
                             run->name, result->owners, result->elements, result->verified);
}

static void log_owner(migrate_run_t *run, const spill_migrated_t *migrated)
{
    bson_t line = BSON_INITIALIZER;
    char hash[20];
    BSON_APPEND_UTF8(&line, "name", run->name);
    spill_value_append(migrated->owner, &line, "owner");
    BSON_APPEND_INT64(&line, "elements", migrated->elements);
    if (migrated->failed) {
        BSON_APPEND_UTF8(&line, "failed", migrated->failed->message);
    } else if (migrated->given_back) {
        BSON_APPEND_BOOL(&line, "givenBack", true);
    } else if (migrated->gone) {
        BSON_APPEND_BOOL(&line, "gone", true);
    } else if (migrated->brought) {
        BSON_APPEND_BOOL(&line, "brought", true);
        BSON_APPEND_BOOL(&line, "anew", migrated->anew);
    } else {
        BSON_APPEND_BOOL(&line, "taken", migrated->taken);
        BSON_APPEND_INT64(&line, "moved", migrated->moved);
        BSON_APPEND_INT64(&line, "pages", migrated->pages);
    }
    if (migrated->pages > 0 || migrated->brought) {
        snprintf(hash, sizeof hash, "%016" PRIx64, migrated->hash);
        BSON_APPEND_UTF8(&line, "hash", hash);
    }
    spill_cli_operate_log(&run->operate, &line);
    bson_destroy(&line);
}

static void note_owner(void *context, const spill_migrated_t *migrated)
{
    migrate_run_t *run = context;
    log_owner(run, migrated);
    if (!migrated->failed)
        return;
    spill_cli_progress_break(&run->operate.progress);
    fprintf(stderr, "spillway: passed over: %s\n", migrated->failed->message);
}

/* ---- one array ------------------------------------------------------------------------------- */

static void print_survey(const migrate_run_t *run)
{
    const spill_migrate_result_t *survey = &run->survey;
    const char *name = run->name;
    if (run->invocation->json) {
        printf("{\"name\":");
        spill_cli_print_text(name);
        printf(",\"owners\":%" PRId64 ",\"plain\":%" PRId64 ",\"elements\":%" PRId64
               ",\"bytes\":%" PRId64 ",\"toMove\":%" PRId64 ",\"toPages\":%" PRId64 "}\n",
               survey->owners, survey->plain, survey->elements, survey->bytes, survey->moved,
               survey->pages);
        return;
    }
    printf("%s: %s.%s, %" PRId64 " %s to lay out, of which %" PRId64
           " are other programs' alone; %" PRId64 " of %" PRId64 " elements go to some %" PRId64
           " %s in %s\n",
           name, run->definition->collection, run->definition->array, survey->owners,
           spill_cli_plural(survey->owners, "array", "arrays"), survey->plain, survey->moved,
           survey->elements, survey->pages, spill_cli_plural(survey->pages, "page", "pages"),
           run->definition->page_collection);
}

/* Of an original: and then? */
static void print_planned(const migrate_run_t *run, int64_t dropped)
{
    const spill_definition_t *definition = &run->planned->definition;
    const char *documents = definition->page_collection[0] != '\0' ? definition->page_collection
                                                                   : definition->collection;
    if (run->invocation->json) {
        printf("{\"name\":");
        spill_cli_print_text(definition->name);
        printf(",\"original\":");
        spill_cli_print_text(run->planned->original.name);
        printf(",\"layout\":\"%s\",\"dropped\":%" PRId64 "}\n",
               spill_layout_name(definition->layout), dropped);
        return;
    }
    printf("%s: from there they are brought to layout %s%s, in %s", definition->name,
           spill_layout_name(definition->layout),
           definition->layout == SPILL_LAYOUT_OUTLIER ? ", keep oldest" : "", documents);
    if (dropped > 0)
        printf("; %" PRId64 " %s not kept there, and dropped by --finish", dropped,
               spill_cli_plural(dropped, "element is", "elements are"));
    printf("\n");
}

static void print_result(const migrate_run_t *run, const char *step,
                         const spill_migrate_result_t *result)
{
    printf("{\"name\":");
    spill_cli_print_text(run->name);
    printf(",\"step\":\"%s\",\"owners\":%" PRId64 ",\"taken\":%" PRId64 ",\"elements\":%" PRId64
           ",\"moved\":%" PRId64 ",\"pages\":%" PRId64 ",\"changed\":%" PRId64
           ",\"failed\":%" PRId64 "}\n",
           step, result->owners, result->plain, result->elements, result->moved, result->pages,
           result->changed, result->failed);
    fflush(stdout);
}

typedef spill_code_t (*pass_fn)(spill_array_t *array, const spill_migrate_options_t *options,
                                spill_migrate_result_t *result, spill_error_t *error);

static spill_migrate_options_t hooks_of(migrate_run_t *run)
{
    return (spill_migrate_options_t){.throttle = &run->throttle,
                                     .threads = run->threads,
                                     .migrated = note_owner,
                                     .progress = show_progress,
                                     .brought = show_brought,
                                     .context = run};
}

static spill_code_t pass_over(migrate_run_t *run, pass_fn pass, const char *step,
                              spill_error_t *error)
{
    spill_migrate_options_t options = hooks_of(run);
    spill_migrate_result_t result = {0};
    spill_array_t *array;
    spill_code_t code = spill_array_open(run->store, run->definition->name, &array, error);
    if (code != SPILL_OK)
        return code;
    code = pass(array, &options, &result, error);
    spill_array_close(array);
    spill_cli_progress_break(&run->operate.progress);
    run->failed += result.failed;
    if (code == SPILL_OK || code == SPILL_CANCELLED)
        print_result(run, step, &result);
    return code;
}

/* ---- two stages ------------------------------------------------------------------------------ */

static spill_staged_t staged_of(const migrate_run_t *run)
{
    return (spill_staged_t){
        .store = run->store, .uri = run->uri[0] != '\0' ? run->uri : NULL, .planned = run->planned};
}

static void print_brought(const migrate_run_t *run, const spill_bring_result_t *result)
{
    const spill_copy_result_t *copied = &result->copied;
    printf("{\"name\":");
    spill_cli_print_text(run->name);
    printf(",\"step\":\"brought\",\"owners\":%" PRId64 ",\"elements\":%" PRId64
           ",\"before\":%" PRId64 ",\"verified\":%" PRId64 ",\"dropped\":%" PRId64
           ",\"anew\":%" PRId64 ",\"gone\":%" PRId64 ",\"failed\":%" PRId64
           ",\"hash\":\"%016" PRIx64 "\"}\n",
           copied->owners, copied->elements, copied->before, copied->verified, copied->dropped,
           result->anew, result->gone, result->failed, result->hash);
    fflush(stdout);
}

static spill_code_t bring(migrate_run_t *run, const char *original, const char *name,
                          spill_error_t *error)
{
    spill_migrate_options_t options = hooks_of(run);
    spill_bring_result_t result = {0};
    spill_code_t code = spill_bring(run->store, original, name, &options, &result, error);
    spill_cli_progress_break(&run->operate.progress);
    run->failed += result.failed;
    if (code == SPILL_OK || code == SPILL_CANCELLED)
        print_brought(run, &result);
    return code;
}

/* Lay out in place, under the original's name, and bring from there. */
static spill_code_t lay_out_and_bring(migrate_run_t *run, spill_error_t *error)
{
    const spill_planned_t *planned = run->planned;
    spill_staged_t staged = staged_of(run);
    run->definition = &planned->original;
    spill_code_t code = spill_staged_begin(&staged, error);
    run->survey = (spill_migrate_result_t){0};
    if (code == SPILL_OK)
        code = spill_migrate_survey(run->store, run->definition, &run->survey, error);
    if (code == SPILL_OK)
        code = pass_over(run, spill_migrate, "laid out", error);
    return code == SPILL_OK ? bring(run, planned->original.name, planned->definition.name, error)
                            : code;
}

static spill_code_t look_at_staged(migrate_run_t *run, spill_error_t *error)
{
    spill_staged_t staged = staged_of(run);
    int64_t dropped = 0;
    run->definition = &run->planned->original;
    run->survey = (spill_migrate_result_t){0};
    spill_code_t code = spill_migrate_survey(run->store, run->definition, &run->survey, error);
    if (code == SPILL_OK)
        code = spill_staged_count_dropped(&staged, &dropped, error);
    if (code != SPILL_OK)
        return code;
    print_survey(run);
    print_planned(run, dropped);
    return SPILL_OK;
}

static spill_code_t refuse_finish(const migrate_run_t *run, int64_t failed, spill_error_t *error)
{
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' is kept: %" PRId64 " of its arrays could not be brought to '%s' (they "
                      "are named above); nothing was dropped",
                      run->planned->original.name, failed, run->name);
}

/* Writers that go on pushing make arrays anew in the documents. */
static spill_code_t look_for_late_ones(migrate_run_t *run, spill_error_t *error)
{
    spill_migrate_result_t late = {0};
    spill_code_t code = spill_migrate_survey(run->store, &run->planned->original, &late, error);
    if (code != SPILL_OK || late.owners == 0)
        return code;
    run->failed += late.owners;
    fprintf(stderr,
            "spillway: %" PRId64 " documents of '%s' have a field '%s' again: a program still "
            "pushes there. These elements are not in '%s'\n",
            late.owners, run->planned->original.collection, run->planned->original.array,
            run->name);
    return SPILL_OK;
}

static spill_code_t finish_staged(migrate_run_t *run, spill_error_t *error)
{
    spill_staged_t staged = staged_of(run);
    spill_migrate_options_t options = hooks_of(run);
    spill_copy_result_t result = {0};
    spill_stage_t stage;
    int64_t failed = run->failed;
    spill_code_t code = spill_staged_look(&staged, &stage, error);
    run->definition = &run->planned->original;
    if (code == SPILL_OK && stage == SPILL_STAGE_BRINGING)
        code = lay_out_and_bring(run, error);
    if (code == SPILL_OK && run->failed > failed)
        return refuse_finish(run, run->failed - failed, error);
    if (code == SPILL_OK)
        code = spill_staged_finish(&staged, &options, &result, error);
    spill_cli_progress_break(&run->operate.progress);
    if (code == SPILL_OK && stage != SPILL_STAGE_FINISHED)
        code = look_for_late_ones(run, error);
    if (code != SPILL_OK)
        return code;
    printf("{\"name\":");
    spill_cli_print_text(run->name);
    printf(",\"step\":\"finished\",\"owners\":%" PRId64 ",\"verified\":%" PRId64
           ",\"dropped\":%" PRId64 "}\n",
           result.owners, result.verified, result.dropped);
    return SPILL_OK;
}

typedef spill_code_t (*undo_fn)(const spill_staged_t *staged,
                                const spill_migrate_options_t *options,
                                spill_migrate_result_t *result, spill_error_t *error);

static spill_code_t undo_staged(migrate_run_t *run, undo_fn undo, const char *step,
                                spill_error_t *error)
{
    spill_staged_t staged = staged_of(run);
    spill_migrate_options_t options = hooks_of(run);
    spill_migrate_result_t result = {0};
    run->definition = &run->planned->original;
    spill_code_t code = undo(&staged, &options, &result, error);
    spill_cli_progress_break(&run->operate.progress);
    run->failed += result.failed;
    if (code == SPILL_OK || code == SPILL_CANCELLED)
        print_result(run, step, &result);
    return code;
}

/* Whether it can be done is looked at for all of a plan before any of it is. */
static spill_code_t check_staged(migrate_run_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    spill_staged_t staged = staged_of(run);
    spill_stage_t stage;
    spill_code_t code = spill_staged_look(&staged, &stage, error);
    if (code != SPILL_OK)
        return code;
    if (given->finish && stage == SPILL_STAGE_NONE)
        return spill_fail(error, SPILL_REFUSED,
                          "no migration to '%s' was begun: there is nothing to finish", run->name);
    bool going_on = stage == SPILL_STAGE_NONE || stage == SPILL_STAGE_BRINGING;
    run->unfinished = run->unfinished || (going_on && given->operate.execute && !given->finish);
    return SPILL_OK;
}

/* ---- migrate --------------------------------------------------------------------------------- */

/* A dry run refuses what the definition that is saved would refuse. */
static spill_code_t check_stored(const migrate_run_t *run, spill_error_t *error)
{
    spill_definition_t stored;
    spill_code_t code = spill_store_definition(run->store, run->definition->name, &stored, error);
    if (code == SPILL_OK)
        return spill_definition_compatible(&stored, run->definition, error);
    return code == SPILL_NOT_FOUND ? SPILL_OK : code;
}

static spill_code_t migrate_in_place(migrate_run_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    spill_code_t code = SPILL_OK;
    if (given->finish) /* head and pages are all there is */
        return SPILL_OK;
    if (given->undo)
        return pass_over(run, spill_migrate_undo, "undone", error);
    run->survey = (spill_migrate_result_t){0};
    if (given->operate.execute)
        code = spill_store_define(run->store, run->definition, error);
    else
        code = check_stored(run, error);
    if (code == SPILL_OK)
        code = spill_migrate_survey(run->store, run->definition, &run->survey, error);
    if (code != SPILL_OK || given->operate.execute)
        return code == SPILL_OK ? pass_over(run, spill_migrate, "laid out", error) : code;
    print_survey(run);
    return SPILL_OK;
}

static spill_code_t migrate_staged(migrate_run_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    if (given->undo)
        return undo_staged(run, spill_staged_undo, "undone", error);
    if (!given->operate.execute)
        return look_at_staged(run, error);
    return given->finish ? finish_staged(run, error) : lay_out_and_bring(run, error);
}

static bool is_chosen(const migrate_options_t *given, const spill_planned_t *planned)
{
    return !given->only || strcmp(given->only, planned->definition.name) == 0;
}

/* Those that cannot be are named before anything is begun, and left alone. */
static spill_code_t choose(migrate_run_t *run, const spill_planned_t *arrays, bool *chosen,
                           size_t count, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        spill_error_t refusal;
        chosen[i] = is_chosen(given, &arrays[i]);
        any = any || chosen[i];
        if (!chosen[i] || spill_planned_check(&arrays[i], &refusal) == SPILL_OK)
            continue;
        chosen[i] = false;
        run->refused = true;
        fprintf(stderr, "spillway: passed over: %s\n", refusal.message);
    }
    if (any)
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID, "the plan has no definition '%s' to migrate",
                      given->only);
}

typedef spill_code_t (*one_fn)(migrate_run_t *run, spill_error_t *error);

/* What can be known before anything is changed. */
static spill_code_t check_one(migrate_run_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    if (given->undo && run->planned)
        return undo_staged(run, spill_staged_check_undo, "can be undone", error);
    if (given->undo)
        return pass_over(run, spill_migrate_check_undo, "can be undone", error);
    return run->planned ? check_staged(run, error) : SPILL_OK;
}

static spill_code_t migrate_one(migrate_run_t *run, spill_error_t *error)
{
    return run->planned ? migrate_staged(run, error) : migrate_in_place(run, error);
}

static spill_code_t for_each(migrate_run_t *run, const spill_planned_t *arrays, const bool *chosen,
                             size_t count, one_fn one, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; code == SPILL_OK && i < count; i++) {
        run->definition = &arrays[i].definition;
        run->planned = arrays[i].staged ? &arrays[i] : NULL;
        run->name = arrays[i].definition.name;
        if (chosen[i])
            code = one(run, error);
    }
    run->definition = NULL;
    run->planned = NULL;
    return code;
}

static spill_code_t migrate_all(migrate_run_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    spill_planned_t *arrays;
    size_t count;
    spill_code_t code =
        spill_plan_file_arrays(run->invocation->arguments[1], &arrays, &count, error);
    bool *chosen = bson_malloc0((count + 1) * sizeof *chosen);
    if (code == SPILL_OK)
        code = choose(run, arrays, chosen, count, error);
    if (code == SPILL_OK)
        code = for_each(run, arrays, chosen, count, check_one, error);
    if (code == SPILL_OK && (!given->undo || given->operate.execute))
        code = for_each(run, arrays, chosen, count, migrate_one, error);
    bson_free(chosen);
    bson_free(arrays);
    return code;
}

/* ---- sweep ----------------------------------------------------------------------------------- */

/* A watch goes on through what passes: so long since the last pass that was good. */
#define GIVE_UP_S (15 * 60)

/* In small steps, so that Ctrl-C is heard. False: it was. */
static bool pause_between(int64_t interval_s)
{
    const struct timespec step = {.tv_nsec = 200 * 1000 * 1000};
    for (int64_t i = 0; i < interval_s * 5; i++) {
        if (spill_cli_interrupted())
            return false;
        nanosleep(&step, NULL);
    }
    return !spill_cli_interrupted();
}

/* May the same pass succeed later, the store being away or busy for now? */
static bool passes(spill_code_t code, const spill_error_t *error)
{
    return code == SPILL_UNKNOWN || ((code == SPILL_IO || code == SPILL_BUSY) && error->retryable);
}

/*
 * After a pass that ended with `code`: how long to wait for the next one; 0: there is none.
 * `failed` counts passes that failed since the last good one, at good_us.
 */
static int64_t next_pause_s(const sweep_options_t *given, spill_code_t code,
                            const spill_error_t *error, int *failed, int64_t *good_us)
{
    int64_t now_us = spill_clock_now_us(NULL), pause_s = 1;
    if (!given->watch || (code != SPILL_OK && !passes(code, error)))
        return 0;
    if (code == SPILL_OK) {
        *failed = 0;
        *good_us = now_us;
        return given->interval_s;
    }
    if (now_us - *good_us > (int64_t)GIVE_UP_S * 1000000)
        return 0;
    for (int i = 0; i < *failed && pause_s < given->interval_s; i++)
        pause_s *= 2;
    ++*failed;
    return pause_s < given->interval_s ? pause_s : given->interval_s;
}

/* The definition whose heads are swept: that of the name, or the original of one that is forming.
 */
static spill_code_t find_swept(migrate_run_t *run, spill_definition_t *definition, bool *forming,
                               spill_error_t *error)
{
    spill_forming_t mark = {0};
    spill_code_t code = spill_store_definition(run->store, run->name, definition, error);
    if (code == SPILL_OK)
        code = spill_forming_load(run->store, run->name, &mark, error);
    *forming = mark.stored != NULL;
    if (code == SPILL_OK && *forming)
        code = spill_bring_check(run->store, mark.original, run->name, error);
    if (code == SPILL_OK && *forming)
        code = spill_store_definition(run->store, mark.original, definition, error);
    spill_forming_release(&mark);
    return code;
}

static spill_code_t sweep_all(migrate_run_t *run, spill_error_t *error)
{
    const sweep_options_t *given = run->invocation->options;
    spill_definition_t definition;
    int failed = 0;
    int64_t pause_s = 1, good_us = spill_clock_now_us(NULL);
    bool forming;
    run->name = run->invocation->arguments[1];
    spill_code_t code = find_swept(run, &definition, &forming, error);
    if (code != SPILL_OK)
        return code;
    run->definition = &definition;
    while (pause_s > 0) {
        run->survey = (spill_migrate_result_t){0};
        code = find_swept(run, &definition, &forming, error);
        if (code == SPILL_OK)
            code = pass_over(run, spill_migrate, "swept", error);
        if (code == SPILL_OK && forming)
            code = bring(run, definition.name, run->name, error);
        pause_s = next_pause_s(given, code, error, &failed, &good_us);
        if (code != SPILL_OK && pause_s > 0)
            fprintf(stderr, "spillway: %s; again in %" PRId64 " s\n", error->message, pause_s);
        if (pause_s > 0 && !pause_between(pause_s))
            pause_s = 0;
    }
    run->definition = NULL;
    return code;
}

/* ---- the commands ---------------------------------------------------------------------------- */

/* A server's database need not be a store yet: nothing is written there by opening it. */
static spill_cli_mode_t migrate_mode(const spill_invocation_t *invocation, bool execute)
{
    char uri[SPILL_CLI_URI];
    spill_error_t error;
    if (spill_cli_store_uri(invocation->arguments[0], uri, &error) == SPILL_OK &&
        spill_browse_serves(uri))
        return SPILL_CLI_CREATE;
    return execute ? SPILL_CLI_WRITE : SPILL_CLI_READ;
}

typedef spill_code_t (*work_fn)(migrate_run_t *run, spill_error_t *error);

static spill_exit_t operate(const spill_invocation_t *invocation,
                            const spill_cli_operate_given_t *given, int64_t threads,
                            spill_cli_mode_t mode, work_fn work)
{
    if (threads == 0)
        threads = given->latency_ms > 0 ? THREADS_WITH_LATENCY : THREADS;
    if (threads < 1 || threads > SPILL_PARALLEL_MAX)
        return spill_cli_usage(invocation, "--threads is from 1 to %d", SPILL_PARALLEL_MAX);
    migrate_run_t run = {.invocation = invocation, .threads = (int)threads};
    spill_throttle_options_t throttle = {0};
    spill_error_t error, closing;
    spill_code_t code = spill_cli_operate_start(&run.operate, invocation, given, &throttle, &error);
    throttle.latency = latency_s;
    spill_throttle_init(&run.throttle, &throttle);
    if (code == SPILL_OK)
        code = spill_cli_open_store(invocation, mode, &run.store, &error);
    if (code == SPILL_OK && given->latency_ms > 0)
        code = spill_probe_start(&run.probe, read_little, &run, &error);
    if (code == SPILL_OK &&
        (spill_cli_store_uri(invocation->arguments[0], run.uri, &closing) != SPILL_OK ||
         !spill_browse_serves(run.uri)))
        run.uri[0] = '\0';
    if (code == SPILL_OK)
        code = work(&run, &error);
    spill_probe_stop(&run.probe);
    if (spill_cli_operate_end(&run.operate, &closing) != SPILL_OK && code == SPILL_OK) {
        code = closing.code;
        error = closing;
    }
    spill_exit_t status = spill_cli_close(NULL, run.store, code, &error);
    if (code == SPILL_CANCELLED)
        return SPILL_EXIT_INTERRUPTED;
    if (status != SPILL_EXIT_DONE)
        return status;
    if (run.unfinished && !invocation->quiet)
        fprintf(stderr, "the originals are still there, and programs go on with them. To change "
                        "over, stop what writes, then: migrate ... --execute --finish\n");
    return run.failed > 0 ? SPILL_EXIT_FOUND : run.refused ? SPILL_EXIT_REFUSED : SPILL_EXIT_DONE;
}

static spill_exit_t run_migrate(const spill_invocation_t *invocation)
{
    const migrate_options_t *given = invocation->options;
    spill_exit_t refused = SPILL_EXIT_DONE;
    if (given->undo && given->finish)
        return spill_cli_usage(invocation, "--finish and --undo exclude each other");
    if (given->undo && given->operate.execute && !given->yes)
        refused = spill_cli_confirm(invocation,
                                    "Make the arrays of '%s' plain ones again? Programs that use "
                                    "Spillway's library have to be stopped.",
                                    invocation->arguments[1]);
    else if (given->finish && given->operate.execute && !given->yes)
        refused = spill_cli_confirm(invocation,
                                    "Drop the originals of the arrays of '%s', once all is "
                                    "compared? Programs that write to them have to be stopped.",
                                    invocation->arguments[1]);
    if (refused != SPILL_EXIT_DONE)
        return refused;
    spill_exit_t status = operate(invocation, &given->operate, given->threads,
                                  migrate_mode(invocation, given->operate.execute), migrate_all);
    if (!given->operate.execute && status != SPILL_EXIT_USAGE && status != SPILL_EXIT_FAILED &&
        !invocation->quiet)
        fprintf(stderr, "nothing was changed: --execute acts\n");
    return status;
}

static spill_exit_t run_sweep(const spill_invocation_t *invocation)
{
    const sweep_options_t *given = invocation->options;
    if (given->interval_s < 1)
        return spill_cli_usage(invocation, "--interval is at least a second");
    return operate(invocation, &given->operate, given->threads, SPILL_CLI_WRITE, sweep_all);
}

static const spill_option_t OPTIONS[] = {
    SPILL_CLI_OPERATE_OPTIONS(migrate_options_t, operate, "elements"),
    {"threads", "N", SPILL_OPTION_NUMBER, offsetof(migrate_options_t, threads),
     "Lay out N owners at a time (4; with --max-latency 1)"},
    {"only", "NAME", SPILL_OPTION_TEXT, offsetof(migrate_options_t, only),
     "Of the plan's definitions that one alone"},
    {"finish", NULL, SPILL_OPTION_FLAG, offsetof(migrate_options_t, finish),
     "Go on, compare all, and drop the originals of what is not laid out in place"},
    {"undo", NULL, SPILL_OPTION_FLAG, offsetof(migrate_options_t, undo),
     "Make the arrays plain ones again, with all that they have now"},
    {"yes", NULL, SPILL_OPTION_FLAG, offsetof(migrate_options_t, yes),
     "With --finish and --undo: do not ask"},
    {0}};

const spill_command_t spill_command_migrate = {
    .name = "migrate",
    .arguments = "STORE PLAN",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "Lay existing arrays out as a plan says, while programs go on",
    .text =
        "PLAN is what `spillway plan --output' writes, and may be edited: each array with "
        "\"migrate\": true is laid out as its \"definition\" says. Without --execute it says what "
        "would be done.\n"
        "\n"
        "Layout outlier, keep newest, is laid out in place. For any other, arrays are so laid out "
        "under a definition of their own (NAME.original), and brought from there into the planned "
        "one, owner by owner. Run it again for what was changed since, or `sweep'. Until --finish "
        "the original stays, programs go on to use it, and the planned definition can be read and "
        "not changed. To change over: stop the writers; --finish, which brings the rest, compares "
        "all, element for element, and drops the original (and what a cap does not keep); let "
        "programs open the planned definition.\n"
        "\n"
        "Each document is taken over by one update, and its oldest elements go to pages, by "
        "updates of single documents; every page is read again and compared. Other programs may "
        "go on: push at any time; edit and pull while the document has no pages yet (put "
        "\"overflowPages\": {\"$exists\": false}, or how your definition names it, into their "
        "filters). Nothing they were told is lost, and nothing doubled. It may be killed at any "
        "moment: the same command goes on, for the documents say what is done.\n"
        "\n"
        "Owners that fail (damaged, or without room for the bookkeeping) are passed over and "
        "printed, and the exit code is 1; definitions that cannot be likewise, with 4. What is "
        "pushed to the documents afterwards, `spillway "
        "sweep' moves. --undo makes plain arrays again; where one would pass the limit of 16 MiB, "
        "that is said first, and nothing is changed. After --finish there is no way back.\n"
        "\n"
        "Examples:\n"
        "  spillway plan mongodb://localhost/shop --output plan.json\n"
        "  spillway migrate mongodb://localhost/shop plan.json\n"
        "  spillway migrate mongodb://localhost/shop plan.json --execute --rate 5000 --log moved\n"
        "  spillway migrate mongodb://localhost/shop plan.json --execute --finish\n"
        "  spillway migrate mongodb://localhost/shop plan.json --execute --undo",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_DURABILITY,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_migrate};

static const spill_option_t SWEEP_OPTIONS[] = {
    SPILL_CLI_PACE_OPTIONS(sweep_options_t, operate, "elements"),
    {"threads", "N", SPILL_OPTION_NUMBER, offsetof(sweep_options_t, threads),
     "Lay out N owners at a time (4; with --max-latency 1)"},
    {"watch", NULL, SPILL_OPTION_FLAG, offsetof(sweep_options_t, watch),
     "Again and again, until it is interrupted, or the store was away for 15 minutes"},
    {"interval", "SECONDS", SPILL_OPTION_NUMBER, offsetof(sweep_options_t, interval_s),
     "With --watch: seconds between two passes (60)"},
    {0}};

const spill_command_t spill_command_sweep = {
    .name = "sweep",
    .arguments = "STORE NAME",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "Move what other programs have pushed to heads into pages",
    .text = "For applications that go on pushing to the documents with their own driver: what is "
            "too much in a head goes to pages, new documents are taken over, and counts are made "
            "anew, which a plain push does not keep. Programs with Spillway's library, too, may "
            "be at work. Of what `spillway migrate' has brought to a definition of another layout, "
            "and not finished, the original is swept, and brought there again. Once a document has "
            "pages, other programs may push to it, and no more: an "
            "edit by place, or a pull, would meet other elements than they think.\n"
            "\n"
            "Examples:\n"
            "  spillway sweep mongodb://localhost/shop orders\n"
            "  spillway sweep mongodb://localhost/shop orders --watch --interval 10 --rate 2000",
    .common = SPILL_COMMON_QUIET | SPILL_COMMON_DURABILITY,
    .options = SWEEP_OPTIONS,
    .defaults = &SWEEP_DEFAULTS,
    .options_bytes = sizeof SWEEP_DEFAULTS,
    .run = run_sweep};
