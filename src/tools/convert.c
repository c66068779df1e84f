/* Convert: copy the arrays of a definition into another layout, and drop the old ones. */
#include "tools/definition_jobs.h"

#include "bson/field_path.h"
#include "core/array.h"
#include "definition/schema.h"
#include "layout/drop.h"
#include "store/job.h"
#include "tools/import/import_chunk.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the new definition ---------------------------------------------------------------------- */

/*
 * Set the retention. Given a number and an age, an element is kept if either keeps it. A cap can
 * express only the number. Windows have no number, so they keep everything.
 */
static void carry_retention(const spill_definition_t *from, spill_definition_t *definition)
{
    bool capped = spill_schema_of(definition)->is_capped;
    bool both = !capped && !spill_schema_of(definition)->has_windows;
    definition->keep_elements = both ? from->keep_elements : 0;
    definition->keep_seconds = both || from->keep_elements == 0 ? from->keep_seconds : 0;
    if (capped && from->keep_elements > 0)
        definition->bounds.threshold = from->keep_elements;
}

spill_code_t spill_convert_definition(const spill_definition_t *from, const char *as,
                                      spill_layout_t layout, const spill_keep_t *keep,
                                      spill_definition_t *definition, spill_error_t *error)
{
    static const char suffix[] = ".pages";
    *definition = *from;
    if (strlen(as) + sizeof suffix > SPILL_NAME_SIZE)
        return spill_fail(error, SPILL_INVALID, "'%.40s...' is longer than %zu bytes", as,
                          SPILL_NAME_SIZE - sizeof suffix);
    strcpy(definition->name, as);
    strcpy(definition->collection, as);
    if (keep && layout != SPILL_LAYOUT_OUTLIER)
        return spill_fail(error, SPILL_INVALID,
                          "which elements a head keeps (--keep) can be chosen for layout outlier "
                          "only, not for %s",
                          spill_layout_name(layout));
    spill_definition_set_layout(definition, layout);
    if (layout == SPILL_LAYOUT_CAPPED && spill_schema_of(from)->keeps_top_n)
        strcpy(definition->sort_field, from->sort_field);
    carry_retention(from, definition);
    if (keep)
        definition->keep = *keep;
    if (definition->page_collection[0] != '\0')
        snprintf(definition->page_collection, sizeof definition->page_collection, "%s%s", as,
                 spill_schema_of(definition)->has_windows ? "" : suffix);
    definition->largest = definition->bounds;
    SPILL_TRY(spill_definition_carry_unique(
        from,
        "To give that up, define the new definition without --unique, and convert into it (--as)",
        definition, error));
    return spill_definition_check(definition, error);
}

/* ---- the job checkpoint ---------------------------------------------------------------------- */

static const spill_field_t checkpoint_fields[] = {
    SPILL_FIELD(CHARS, spill_convert_checkpoint_t, as, "as"),
    SPILL_FIELD(BOOL, spill_convert_checkpoint_t, emptied, "emptied")};
static const spill_record_t checkpoint_record =
    SPILL_RECORD("conversion", spill_convert_checkpoint_t, checkpoint_fields);
static const spill_job_kind_t checkpoint_kind = {.suffix = ":convert",
                                                 .activity = "the conversion of",
                                                 .record = &checkpoint_record,
                                                 .named = true,
                                                 .stored =
                                                     offsetof(spill_convert_checkpoint_t, stored)};

bool spill_convert_checkpoint_stands(const spill_convert_checkpoint_t *checkpoint)
{
    return checkpoint->stored && !checkpoint->emptied;
}

void spill_convert_checkpoint_release(spill_convert_checkpoint_t *checkpoint)
{
    spill_job_release(&checkpoint_kind, checkpoint);
}

spill_code_t spill_convert_checkpoint_load(spill_store_t *store, const char *name,
                                           spill_convert_checkpoint_t *checkpoint,
                                           spill_error_t *error)
{
    return spill_job_load(&(spill_job_catalog_t){.store = store}, &checkpoint_kind, name,
                          checkpoint, error);
}

spill_code_t spill_convert_checkpoint_load_with(spill_store_t *store, const char *building_name,
                                                spill_building_t *building, const char *name,
                                                spill_convert_checkpoint_t *checkpoint,
                                                spill_error_t *error)
{
    char record[SPILL_BUILDING_NAME_SIZE];
    SPILL_SCOPED(spill_free_text)
    char *entry = bson_strdup_printf("%s%s", name, checkpoint_kind.suffix);
    bson_t *documents[2];
    spill_building_entry_name(building_name, record);
    spill_code_t code =
        spill_store_jobs_get(store, (const char *const[]){record, entry}, documents, error);
    if (code != SPILL_OK) {
        bson_destroy(documents[0]);
        bson_destroy(documents[1]);
        return code;
    }
    code = spill_job_load_entry(&(spill_job_catalog_t){.store = store}, &checkpoint_kind, name,
                                documents[1], checkpoint, error);
    spill_code_t loaded =
        spill_building_load_entry(store, building_name, documents[0], building, error);
    return code == SPILL_OK ? loaded : code;
}

spill_code_t spill_convert_checkpoint_save(spill_store_t *store, const char *name, const char *as,
                                           bool emptied, spill_convert_checkpoint_t *checkpoint,
                                           spill_error_t *error)
{
    spill_convert_checkpoint_t next = {.emptied = emptied, .stored = checkpoint->stored};
    snprintf(next.as, sizeof next.as, "%s", as);
    SPILL_TRY(spill_job_save(&(spill_job_catalog_t){.store = store}, &checkpoint_kind, name, &next,
                             error));
    *checkpoint = next;
    return SPILL_OK;
}

/* ---- copying arrays -------------------------------------------------------------------------- */

static spill_code_t refuse_itself(const char *name, const char *as, spill_error_t *error)
{
    if (strcmp(name, as) != 0)
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "'%s' cannot be converted into itself: the old documents stay beside the "
                      "new ones, so the conversion needs a definition of another name",
                      name);
}

/* No conversion can begin from what is left of a definition that is being dropped. */
static spill_code_t refuse_dropped(const char *name, const spill_convert_checkpoint_t *checkpoint,
                                   spill_error_t *error)
{
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' is being dropped, and part of it may be deleted: '%s' may be the only "
                      "complete copy, so drop nothing there. Convert as '%s' with --finish "
                      "continues; dropping '%s' removes what is left of it",
                      name, checkpoint->as, checkpoint->as, name);
}

spill_code_t spill_convert_check(spill_store_t *store, const char *name, const char *as,
                                 spill_error_t *error)
{
    SPILL_SCOPED(spill_convert_checkpoint_release) spill_convert_checkpoint_t checkpoint = {0};
    SPILL_TRY(refuse_itself(name, as, error));
    SPILL_TRY(spill_convert_checkpoint_load(store, name, &checkpoint, error));
    return spill_convert_checkpoint_stands(&checkpoint) ? refuse_dropped(name, &checkpoint, error)
                                                        : SPILL_OK;
}

spill_code_t spill_convert(spill_store_t *store, const char *name,
                           const spill_copy_options_t *options, spill_copy_result_t *result,
                           spill_error_t *error)
{
    SPILL_TRY(spill_convert_check(store, name, options->as, error));
    return spill_copy(store, store, name, options, result, error);
}

/* ---- the end of the old documents ------------------------------------------------------------ */

static spill_code_t refuse_differences(const char *name, const char *as, int64_t differences,
                                       int64_t ahead, spill_error_t *error)
{
    if (ahead > 0)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' is kept: %" PRId64
                          " of its owners are not the same in '%s', and %" PRId64
                          " of these have more in '%s' than in '%s': it may be the only complete "
                          "copy, so drop nothing there before you know why",
                          name, differences, as, ahead, as, name);
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' is kept: %" PRId64 " of its owners are not the same in '%s', which has "
                      "no more of them than '%s'. Compare both; if only convert has written to "
                      "'%s', an owner that is dropped there is copied again",
                      name, differences, as, name, as);
}

/* What is left of a source that is being dropped differs: it cannot be copied again. */
static spill_code_t refuse_rest(const char *name, const char *as, int64_t differences,
                                spill_error_t *error)
{
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' was being dropped, and %" PRId64 " of the owners that are left are not "
                      "the same in '%s', which may be the only complete copy: drop nothing "
                      "there. If nothing of '%s' is needed, dropping '%s' removes what is left of "
                      "it",
                      name, differences, as, name, name);
}

/* The target belongs to a migration: its next pass copies the changed owners again. */
static spill_code_t refuse_changed(const char *name, int64_t differences, spill_error_t *error)
{
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' is kept: %" PRId64 " of its owners were changed since they were "
                      "copied. Stop the programs that write to them, and start again",
                      name, differences);
}

static spill_code_t compare_all(spill_store_t *store, const char *name,
                                const spill_copy_options_t *options, bool dropping,
                                spill_copy_result_t *result, spill_error_t *error)
{
    spill_copy_options_t compared = *options;
    compared.unverified = false;
    compared.dropping = dropping;
    int64_t differences = result->differences, ahead = result->ahead;
    SPILL_TRY(spill_copy(store, store, name, &compared, result, error));
    differences = result->differences - differences;
    ahead = result->ahead - ahead;
    if (differences == 0)
        return SPILL_OK;
    if (options->building && !dropping)
        return refuse_changed(name, differences, error);
    return dropping ? refuse_rest(name, options->as, differences, error)
                    : refuse_differences(name, options->as, differences, ahead, error);
}

static spill_code_t check_end(void *context, const spill_value_t *value, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    spill_code_t code = spill_owner_init(&owner, context, value, error);
    if (code == SPILL_OK)
        code = spill_owner_read_state(&owner, SPILL_HEAD, &head, error);
    if (code == SPILL_OK && head.state.present)
        code = spill_outlier_may_end(&owner, &head.state, error);
    return code == SPILL_REFUSED ? SPILL_OK : code;
}

/* Check that every owner may be dropped, before any is. Only stores with other writers lease. */
static spill_code_t check_ends(spill_store_t *store, const char *name, spill_error_t *error)
{
    spill_array_t *array;
    if (!store->ops->others_write)
        return SPILL_OK;
    SPILL_TRY(spill_array_open(store, name, &array, error));
    spill_code_t code = spill_each_owner(array, check_end, array, false, error);
    spill_array_close(array);
    return code;
}

/* ---- do other programs still write? ---------------------------------------------------------- */

typedef struct numbers {
    spill_array_t *array;
    int64_t sum;
} numbers_t;

static spill_code_t add_next(void *context, const spill_value_t *owner, spill_error_t *error)
{
    numbers_t *numbers = context;
    spill_count_t count;
    SPILL_TRY(spill_array_count(numbers->array, owner, &count, error));
    numbers->sum += count.next;
    return SPILL_OK;
}

/* The sum of all owners' next numbers. Each append by any program raises it. One read per owner. */
static spill_code_t sum_numbers(spill_store_t *store, const char *name, int64_t *sum,
                                spill_error_t *error)
{
    numbers_t numbers = {0};
    SPILL_TRY(spill_array_open(store, name, &numbers.array, error));
    spill_code_t code = spill_each_owner(numbers.array, add_next, &numbers, false, error);
    spill_array_close(numbers.array);
    *sum = numbers.sum;
    return code;
}

/* Compare everything of a migration, and check that no program has appended meanwhile. A program
 * that only begins to write after this is not noticed. */
static spill_code_t compare_unwritten(spill_store_t *store, const char *name,
                                      const spill_copy_options_t *options,
                                      spill_copy_result_t *result, spill_error_t *error)
{
    int64_t before, after;
    SPILL_TRY(sum_numbers(store, name, &before, error));
    SPILL_TRY(compare_all(store, name, options, false, result, error));
    SPILL_TRY(sum_numbers(store, name, &after, error));
    if (before == after)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' is kept: programs still append to its arrays (%" PRId64
                      " more while they were compared), and what they append after the "
                      "comparison would be lost. Stop these programs, and start again",
                      name, after - before);
}

/* ---- dropping -------------------------------------------------------------------------------- */

/*
 * Save the checkpoint before the first array is dropped, and record that no array is left before
 * the definition is dropped. A new definition of the old name is then not mistaken for the rest of
 * this one.
 */
static spill_code_t drop_all(spill_store_t *store, const char *name,
                             const spill_copy_options_t *options,
                             spill_convert_checkpoint_t *checkpoint, spill_error_t *error)
{
    const char *as = options->as;
    if (!spill_convert_checkpoint_stands(checkpoint)) {
        SPILL_TRY(
            spill_import_checkpoints_drop(store, name, error)); /* an older conversion's too */
        spill_convert_checkpoint_release(checkpoint);
        SPILL_TRY(spill_convert_checkpoint_save(store, name, as, false, checkpoint, error));
    }
    /* options->building: the arrays were migrated in place, in the application's documents */
    SPILL_TRY(spill_drop_owners(store, name, options->building, false, error));
    SPILL_TRY(spill_convert_checkpoint_save(store, name, as, true, checkpoint, error));
    return spill_store_drop(store, name, error);
}

spill_code_t spill_convert_finish(spill_store_t *store, const char *name,
                                  const spill_copy_options_t *options, spill_copy_result_t *result,
                                  spill_error_t *error)
{
    SPILL_SCOPED(spill_convert_checkpoint_release) spill_convert_checkpoint_t checkpoint = {0};
    SPILL_TRY(refuse_itself(name, options->as, error));
    SPILL_TRY(spill_convert_checkpoint_load(store, name, &checkpoint, error));
    bool dropping = spill_convert_checkpoint_stands(&checkpoint);
    if (dropping && strcmp(checkpoint.as, options->as) != 0)
        return refuse_dropped(name, &checkpoint, error);
    SPILL_TRY(options->building && !dropping
                  ? compare_unwritten(store, name, options, result, error)
                  : compare_all(store, name, options, dropping, result, error));
    if (!dropping)
        SPILL_TRY(check_ends(store, name, error));
    return drop_all(store, name, options, &checkpoint, error);
}

spill_code_t spill_convert_finished(spill_store_t *store, const char *name, const char *as,
                                    bool *finished, spill_error_t *error)
{
    spill_definition_t definition;
    SPILL_SCOPED(spill_convert_checkpoint_release) spill_convert_checkpoint_t checkpoint = {0};
    *finished = false;
    spill_code_t code = spill_store_definition(store, as, &definition, error);
    if (code == SPILL_OK)
        code = spill_convert_checkpoint_load(store, name, &checkpoint, error);
    *finished = code == SPILL_OK && strcmp(checkpoint.as, as) == 0;
    return code == SPILL_NOT_FOUND ? SPILL_OK : code;
}
