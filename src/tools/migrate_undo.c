/* Make the arrays of a definition unmanaged again. */
#include "tools/migrate_pass.h"

#include "core/array.h"
#include "util/error.h"

#include <inttypes.h>

static spill_code_t measure_owner(const spill_migrate_pass_t *pass, const spill_value_t *value,
                                  spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    int64_t bytes = 0;
    SPILL_TRY(spill_owner_init(&owner, pass->array, value, error));
    return spill_unmanage_size(&owner, &bytes, error);
}

static spill_code_t check_fits(void *context, const spill_value_t *value, spill_error_t *error)
{
    spill_migrate_pass_t *pass = context;
    spill_error_t failure;
    spill_code_t code = measure_owner(pass, value, &failure);
    pass->result->owners++;
    return spill_migrate_report_failure(pass, value, code, &failure, error);
}

static spill_code_t unmanage(const spill_migrate_pass_t *pass, const spill_value_t *value,
                             int64_t *elements, spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_TRY(spill_owner_init(&owner, pass->array, value, error));
    return spill_unmanage(&owner, elements, error);
}

static spill_code_t unmanage_owner(void *context, const spill_value_t *value, spill_error_t *error)
{
    spill_migrate_pass_t *pass = context;
    spill_error_t failure;
    int64_t elements = 0, started_us = 0;
    SPILL_TRY(spill_migrate_wait(pass, &started_us, error));
    spill_code_t code = unmanage(pass, value, &elements, &failure);
    spill_migrate_end_turn(pass, elements > 0 ? elements : 1, started_us);
    spill_migrate_result_t added = {.owners = 1, .elements = elements};
    spill_migrated_t migrated = {.owner = value, .elements = elements, .unmanaged = true};
    return spill_migrate_report(pass, code, &failure, &added, &migrated, error);
}

static spill_code_t free_pages(const spill_migrate_pass_t *pass, const spill_value_t *value,
                               spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_TRY(spill_owner_init(&owner, pass->array, value, error));
    return spill_free_pages(&owner, error);
}

/*
 * Free the pages that an earlier undo left when it died after it had unmanaged the array. Skip an
 * array that is managed: some client has adopted it again meanwhile.
 */
static spill_code_t finish_undo(spill_migrate_pass_t *pass, const spill_oversized_t *oversized,
                                spill_error_t *error)
{
    spill_error_t failure;
    if (oversized->ours)
        return SPILL_OK;
    spill_code_t code = free_pages(pass, &oversized->owner, &failure);
    return spill_migrate_report_failure(pass, &oversized->owner, code, &failure, error);
}

static spill_code_t count_managed(void *context, const spill_value_t *owner, spill_error_t *error)
{
    (void)owner;
    (void)error;
    ++*(int64_t *)context;
    return SPILL_OK;
}

static spill_code_t check_none_adopted(spill_array_t *array, spill_error_t *error)
{
    int64_t managed = 0;
    SPILL_TRY(spill_each_owner(array, count_managed, &managed, true, error));
    if (managed == 0)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "%" PRId64 " arrays of '%s' are managed again: stop the programs that "
                      "adopt them (`spillway sweep', another migration, programs with the "
                      "library), then undo once more",
                      managed, array->definition.name);
}

spill_code_t spill_migrate_check_undo(spill_array_t *array, const spill_migrate_options_t *options,
                                      spill_migrate_result_t *result, spill_error_t *error)
{
    spill_migrate_pass_t pass = spill_migrate_pass_begin(array, options, result);
    int64_t failed = result->failed;
    SPILL_TRY(spill_migrate_check(&array->definition, error));
    SPILL_TRY(spill_each_owner(array, check_fits, &pass, false, error));
    if (result->failed == failed)
        return SPILL_OK;
    return spill_fail(error, SPILL_TOO_BIG,
                      "%" PRId64 " owners of '%s' cannot be undone; nothing was changed",
                      result->failed - failed, array->definition.name);
}

spill_code_t spill_migrate_undo(spill_array_t *array, const spill_migrate_options_t *options,
                                spill_migrate_result_t *result, spill_error_t *error)
{
    spill_migrate_pass_t pass = spill_migrate_pass_begin(array, options, result);
    spill_migrate_result_t measured = {0};
    spill_code_t code = spill_migrate_check_undo(array, options, &measured, error);
    result->failed += measured.failed;
    SPILL_TRY(code);
    SPILL_TRY(spill_each_owner(array, unmanage_owner, &pass, false, error));
    SPILL_TRY(spill_migrate_each(&pass, finish_undo, SPILL_OWNERS_AT_A_TIME, error));
    SPILL_TRY(spill_migrate_report_orphans(&pass, error));
    return check_none_adopted(array, error);
}
