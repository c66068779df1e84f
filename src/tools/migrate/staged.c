/* A migration in two stages: begin, finish, undo. */
#include "tools/migrate/staged.h"

#include "core/array.h"
#include "core/building.h"
#include "definition/schema.h"
#include "store/raw_reader.h"
#include "tools/definition_jobs.h"
#include "tools/migrate/migrate_place.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

static const char *planned_name(const spill_staged_t *staged)
{
    return staged->planned->definition.name;
}

static const char *original_name(const spill_staged_t *staged)
{
    return staged->planned->original.name;
}

static spill_code_t is_defined(const spill_staged_t *staged, const char *name, bool *defined,
                               spill_error_t *error)
{
    spill_definition_t definition;
    spill_code_t code = spill_store_definition(staged->store, name, &definition, error);
    *defined = code == SPILL_OK;
    return code == SPILL_NOT_FOUND ? SPILL_OK : code;
}

/* ---- may it begin? --------------------------------------------------------------------------- */

/* Check that the planned definitions share no documents with other definitions. */
static spill_code_t check_definitions(const spill_staged_t *staged, spill_error_t *error)
{
    spill_definition_t *others;
    size_t count;
    const spill_planned_t *planned = staged->planned;
    spill_code_t code = spill_store_definitions(staged->store, &others, &count, error);
    for (size_t i = 0; code == SPILL_OK && i < count; i++) {
        if (strcmp(others[i].name, planned->original.name) == 0) {
            code = spill_definition_compatible(&others[i], &planned->original, error);
            continue;
        }
        code = spill_definition_beside(&planned->original, &others[i], error);
        if (code == SPILL_OK)
            code = spill_definition_beside(&planned->definition, &others[i], error);
    }
    bson_free(others);
    return code;
}

static void close_reader(spill_raw_reader_t **reader)
{
    spill_raw_reader_close(*reader);
}

static spill_code_t check_collection(spill_raw_reader_t *reader, const char *collection,
                                     spill_error_t *error)
{
    const uint8_t *data = NULL;
    uint32_t size;
    spill_raw_reader_begin(reader, collection, 0);
    SPILL_TRY(spill_raw_reader_next(reader, &data, &size, error));
    if (!data)
        return SPILL_OK;
    return spill_fail(
        error, SPILL_REFUSED,
        "there is a collection '%s' with documents already, and no migration has created "
        "it: choose another name in the plan's definition",
        collection);
}

/* Planned documents need collections of their own, or those of the original's documents. */
static spill_code_t check_collections(const spill_staged_t *staged, spill_error_t *error)
{
    const spill_definition_t *definition = &staged->planned->definition;
    const spill_definition_t *original = &staged->planned->original;
    const char *pages = definition->page_collection;
    SPILL_SCOPED(close_reader) spill_raw_reader_t *reader = NULL;
    if (!staged->uri)
        return SPILL_OK;
    SPILL_TRY(spill_raw_reader_open(staged->uri, NULL, &reader, error));
    if (strcmp(definition->collection, original->collection) != 0)
        SPILL_TRY(check_collection(reader, definition->collection, error));
    if (pages[0] != '\0' && strcmp(pages, definition->collection) != 0)
        SPILL_TRY(check_collection(reader, pages, error));
    return SPILL_OK;
}

static spill_code_t check_new(const spill_staged_t *staged, spill_error_t *error)
{
    bool defined;
    SPILL_TRY(is_defined(staged, planned_name(staged), &defined, error));
    if (defined)
        return spill_fail(
            error, SPILL_REFUSED,
            "there is a definition '%s' already, and no migration has created it: choose "
            "another name in the plan",
            planned_name(staged));
    SPILL_TRY(check_definitions(staged, error));
    return check_collections(staged, error);
}

/* ---- the stage ------------------------------------------------------------------------------- */

static spill_code_t check_original(const spill_staged_t *staged, const spill_building_t *building,
                                   spill_error_t *error)
{
    if (strcmp(building->original, original_name(staged)) == 0)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' is being built from '%s', not '%s'; use the original plan",
                      planned_name(staged), building->original, original_name(staged));
}

/* Existing definitions must be as planned: their names decide which collections are emptied. */
static spill_code_t check_same(const spill_staged_t *staged, const spill_definition_t *planned,
                               bool *defined, spill_error_t *error)
{
    spill_definition_t stored;
    spill_code_t code = spill_store_definition(staged->store, planned->name, &stored, error);
    *defined = code == SPILL_OK;
    if (code == SPILL_OK) {
        spill_definition_t wanted = *planned;
        spill_definition_keep_without_id(&stored, &wanted);
        code = spill_definition_compatible(&stored, &wanted, error);
    }
    if (code == SPILL_REFUSED)
        code = spill_fail_prefix(error, code, "the migration was begun with another plan");
    return code == SPILL_NOT_FOUND ? SPILL_OK : code;
}

/*
 * Find the stage between beginning and end: the building's checkpoint exists. The original is
 * defined before the planned definition, and dropped after that is complete. So if the original is
 * missing, nothing is copied any longer, whatever has become of its own checkpoint.
 */
static spill_code_t find_begun_stage(const spill_staged_t *staged, const spill_building_t *building,
                                     spill_stage_t *stage, spill_error_t *error)
{
    SPILL_SCOPED(spill_convert_checkpoint_release) spill_convert_checkpoint_t checkpoint = {0};
    bool planned = false, original = false;
    *stage = building->undoing ? SPILL_STAGE_UNDOING : SPILL_STAGE_COPYING;
    SPILL_TRY(check_original(staged, building, error));
    SPILL_TRY(check_same(staged, &staged->planned->definition, &planned, error));
    SPILL_TRY(check_same(staged, &staged->planned->original, &original, error));
    if (building->undoing || !planned)
        return SPILL_OK;
    if (original)
        SPILL_TRY(spill_convert_checkpoint_load(staged->store, original_name(staged), &checkpoint,
                                                error));
    /* emptied or not: all its elements are in the planned definition */
    if (!original || strcmp(checkpoint.as, planned_name(staged)) == 0)
        *stage = SPILL_STAGE_DROPPING;
    return SPILL_OK;
}

/* No checkpoint exists. If the original is defined without arrays, another run defined it to begin
 * just when this migration was finished. */
static spill_code_t find_ended_stage(const spill_staged_t *staged, spill_stage_t *stage,
                                     spill_error_t *error)
{
    bool finished = false, defined;
    *stage = SPILL_STAGE_NONE;
    SPILL_TRY(spill_convert_finished(staged->store, original_name(staged), planned_name(staged),
                                     &finished, error));
    if (!finished)
        return check_new(staged, error);
    SPILL_TRY(check_same(staged, &staged->planned->definition, &defined, error));
    *stage = SPILL_STAGE_FINISHED;
    return SPILL_OK;
}

spill_code_t spill_staged_find_stage(const spill_staged_t *staged, spill_stage_t *stage,
                                     spill_error_t *error)
{
    SPILL_SCOPED(spill_building_release) spill_building_t building = {0};
    *stage = SPILL_STAGE_NONE;
    SPILL_TRY(spill_planned_check(staged->planned, error));
    SPILL_TRY(spill_building_load(staged->store, planned_name(staged), &building, error));
    return building.stored ? find_begun_stage(staged, &building, stage, error)
                           : find_ended_stage(staged, stage, error);
}

/* ---- begin ----------------------------------------------------------------------------------- */

static spill_code_t refuse_stage(const spill_staged_t *staged, spill_stage_t stage,
                                 spill_error_t *error)
{
    const char *name = planned_name(staged);
    if (stage == SPILL_STAGE_UNDOING)
        return spill_fail(error, SPILL_REFUSED,
                          "the migration to '%s' is being undone: continue with --undo --execute",
                          name);
    if (stage == SPILL_STAGE_DROPPING)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' is complete, and '%s' is being dropped: continue with --finish "
                          "--execute",
                          name, original_name(staged));
    if (stage == SPILL_STAGE_FINISHED)
        return spill_fail(error, SPILL_REFUSED, "the migration to '%s' was finished", name);
    return spill_fail(error, SPILL_REFUSED, "no migration to '%s' was begun", name);
}

static spill_code_t fail_begun(const spill_staged_t *staged, spill_error_t *error)
{
    return spill_fail(error, SPILL_REFUSED,
                      "another migration to '%s' has begun and continued meanwhile: check what it "
                      "does, and start again",
                      planned_name(staged));
}

/*
 * An earlier migration with these names may have left a checkpoint older than the planned
 * definition. It does not mean that this migration ends. Replace it instead of deleting it: the
 * save fails if another run, which drops the original now, has saved another checkpoint.
 */
static spill_code_t replace_earlier(const spill_staged_t *staged, spill_error_t *error)
{
    SPILL_SCOPED(spill_convert_checkpoint_release) spill_convert_checkpoint_t checkpoint = {0};
    const char *name = original_name(staged);
    bool defined = false;
    SPILL_TRY(spill_convert_checkpoint_load(staged->store, name, &checkpoint, error));
    SPILL_TRY(is_defined(staged, planned_name(staged), &defined, error));
    if (defined)
        return SPILL_OK;
    if (spill_convert_checkpoint_stands(&checkpoint))
        return spill_convert_check(staged->store, name, planned_name(staged), error);
    if (checkpoint.as[0] == '\0')
        return SPILL_OK;
    return spill_convert_checkpoint_save(staged->store, name, "", true, &checkpoint, error);
}

/*
 * Save the building's checkpoint. No migration had begun when this run checked. If another run has
 * begun or even finished since, there is a checkpoint or a definition.
 */
static spill_code_t save_building(const spill_staged_t *staged, spill_error_t *error)
{
    SPILL_SCOPED(spill_building_release) spill_building_t building = {0};
    const char *name = planned_name(staged);
    bool defined = false;
    SPILL_TRY(
        spill_building_save(staged->store, name, original_name(staged), false, &building, error));
    SPILL_TRY(is_defined(staged, name, &defined, error));
    if (!defined)
        return SPILL_OK;
    SPILL_TRY(spill_building_end(staged->store, name, error));
    return fail_begun(staged, error);
}

/* Save the checkpoint first: every client that reads the definition sees that it is building. */
spill_code_t spill_staged_begin(const spill_staged_t *staged, spill_error_t *error)
{
    spill_stage_t stage;
    const char *original = original_name(staged), *planned = planned_name(staged);
    SPILL_TRY(spill_staged_find_stage(staged, &stage, error));
    if (stage != SPILL_STAGE_NONE && stage != SPILL_STAGE_COPYING)
        return refuse_stage(staged, stage, error);
    if (stage == SPILL_STAGE_NONE) {
        SPILL_TRY(spill_convert_check(staged->store, original, planned, error));
        SPILL_TRY(save_building(staged, error));
    }
    SPILL_TRY(replace_earlier(staged, error));
    SPILL_TRY(spill_catch_up_check(staged->store, original, planned, error));
    SPILL_TRY(spill_store_define(staged->store, &staged->planned->original, error));
    SPILL_TRY(spill_store_define(staged->store, &staged->planned->definition, error));
    return spill_catch_up_check(staged->store, original, planned, error);
}

/* ---- finish ---------------------------------------------------------------------------------- */

typedef spill_code_t (*pass_fn)(spill_array_t *array, const spill_migrate_options_t *options,
                                spill_migrate_result_t *result, spill_error_t *error);

static spill_code_t pass_original(const spill_staged_t *staged, pass_fn pass,
                                  const spill_migrate_options_t *options,
                                  spill_migrate_result_t *result, spill_error_t *error)
{
    spill_array_t *array;
    SPILL_TRY(spill_array_open(staged->store, original_name(staged), &array, error));
    spill_code_t code = pass(array, options, result, error);
    spill_array_close(array);
    return code;
}

/* Pages without a head may be the only copy of their elements. */
static spill_code_t check_pages(spill_array_t *original, const spill_migrate_options_t *options,
                                spill_migrate_result_t *result, spill_error_t *error)
{
    (void)options;
    (void)result;
    return spill_catch_up_check_pages(original, NULL, error);
}

/* A pass that ends makes them. This run may have had no pass: make them before anything is dropped.
 */
static spill_code_t make_indexes(const spill_staged_t *staged, spill_error_t *error)
{
    spill_definition_t definition;
    SPILL_TRY(spill_store_definition(staged->store, planned_name(staged), &definition, error));
    return spill_store_make_indexes(staged->store, &definition, error);
}

spill_code_t spill_staged_finish(const spill_staged_t *staged,
                                 const spill_migrate_options_t *options,
                                 spill_copy_result_t *result, spill_error_t *error)
{
    spill_stage_t stage;
    bool defined = true;
    spill_migrate_result_t ignored = {0};
    spill_copy_options_t copy = {.as = planned_name(staged),
                                 .uri = staged->uri,
                                 .building = true,
                                 .progress = options->caught_up,
                                 .context = options->context};
    SPILL_TRY(spill_staged_find_stage(staged, &stage, error));
    if (stage == SPILL_STAGE_FINISHED)
        return SPILL_OK;
    if (stage != SPILL_STAGE_COPYING && stage != SPILL_STAGE_DROPPING)
        return refuse_stage(staged, stage, error);
    SPILL_TRY(is_defined(staged, original_name(staged), &defined, error));
    SPILL_TRY(make_indexes(staged, error));
    if (stage == SPILL_STAGE_COPYING)
        SPILL_TRY(pass_original(staged, check_pages, options, &ignored, error));
    if (defined)
        SPILL_TRY(spill_convert_finish(staged->store, original_name(staged), &copy, result, error));
    SPILL_TRY(spill_migrate_place_delete(staged->store, planned_name(staged), error));
    return spill_building_end(staged->store, planned_name(staged), error);
}

/* ---- undo ------------------------------------------------------------------------------------ */

static spill_code_t save_undoing(const spill_staged_t *staged, spill_error_t *error)
{
    SPILL_SCOPED(spill_building_release) spill_building_t building = {0};
    const char *name = planned_name(staged);
    SPILL_TRY(spill_building_load(staged->store, name, &building, error));
    if (!building.stored)
        return fail_begun(staged, error);
    return spill_building_save(staged->store, name, original_name(staged), true, &building, error);
}

/* Empty the collections, by their stored names, while the definition that names them still exists.
 */
static spill_code_t drop_planned(const spill_staged_t *staged, spill_error_t *error)
{
    spill_definition_t stored;
    const char *name = planned_name(staged);
    SPILL_TRY(save_undoing(staged, error));
    SPILL_TRY(spill_migrate_place_delete(staged->store, name, error));
    spill_code_t code = spill_store_definition(staged->store, name, &stored, error);
    if (code != SPILL_OK)
        return code == SPILL_NOT_FOUND ? SPILL_OK : code;
    bool same = strcmp(stored.collection, staged->planned->original.collection) == 0;
    SPILL_TRY(spill_drop_owners(staged->store, name, same, true, error));
    if (staged->uri)
        SPILL_TRY(spill_drop_emptied(staged->store, staged->uri, &stored, error));
    return spill_store_drop(staged->store, name, error);
}

/* A run that ended after it saved the checkpoint has defined no original: nothing to undo. */
static spill_code_t undo_original(const spill_staged_t *staged, bool begun, pass_fn pass,
                                  const spill_migrate_options_t *options,
                                  spill_migrate_result_t *result, spill_error_t *error)
{
    bool defined = true;
    if (begun)
        SPILL_TRY(is_defined(staged, original_name(staged), &defined, error));
    return defined ? pass_original(staged, pass, options, result, error) : SPILL_OK;
}

/* After an earlier undo the original still exists, but has nothing left to undo. */
static spill_code_t check_undo_stage(const spill_staged_t *staged, spill_stage_t *stage,
                                     spill_error_t *error)
{
    SPILL_TRY(spill_staged_find_stage(staged, stage, error));
    if (*stage == SPILL_STAGE_DROPPING || *stage == SPILL_STAGE_FINISHED)
        return refuse_stage(staged, *stage, error);
    return SPILL_OK;
}

spill_code_t spill_staged_check_undo(const spill_staged_t *staged,
                                     const spill_migrate_options_t *options,
                                     spill_migrate_result_t *result, spill_error_t *error)
{
    spill_stage_t stage;
    SPILL_TRY(check_undo_stage(staged, &stage, error));
    bool begun = stage != SPILL_STAGE_NONE;
    return undo_original(staged, begun, spill_migrate_check_undo, options, result, error);
}

spill_code_t spill_staged_undo(const spill_staged_t *staged, const spill_migrate_options_t *options,
                               spill_migrate_result_t *result, spill_error_t *error)
{
    spill_stage_t stage;
    spill_migrate_result_t measured = {0};
    int64_t failed = result->failed;
    SPILL_TRY(check_undo_stage(staged, &stage, error));
    bool begun = stage != SPILL_STAGE_NONE;
    SPILL_TRY(undo_original(staged, begun, spill_migrate_check_undo, options, &measured, error));
    if (begun)
        SPILL_TRY(drop_planned(staged, error));
    SPILL_TRY(undo_original(staged, begun, spill_migrate_undo, options, result, error));
    return begun && result->failed == failed
               ? spill_building_end(staged->store, planned_name(staged), error)
               : SPILL_OK;
}

/* ---- elements that a cap will not keep ------------------------------------------------------- */

typedef struct counting {
    spill_array_t *array;
    int64_t cap;
    int64_t dropped;
} counting_t;

static spill_code_t count_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    counting_t *counting = context;
    spill_count_t count;
    spill_code_t code = spill_array_count(counting->array, owner, &count, error);
    if (code == SPILL_OK && count.count > counting->cap)
        counting->dropped += count.count - counting->cap;
    return code;
}

spill_code_t spill_staged_count_dropped(const spill_staged_t *staged, int64_t *dropped,
                                        spill_error_t *error)
{
    const spill_definition_t *definition = &staged->planned->definition;
    counting_t counting = {.cap = definition->bounds.threshold};
    *dropped = 0;
    if (!spill_schema_of(definition)->is_capped)
        return SPILL_OK;
    spill_code_t code =
        spill_array_open(staged->store, original_name(staged), &counting.array, error);
    if (code == SPILL_NOT_FOUND)
        return SPILL_OK;
    if (code == SPILL_OK)
        code = spill_each_owner(counting.array, count_owner, &counting, true, error);
    spill_array_close(counting.array);
    *dropped = counting.dropped;
    return code;
}
