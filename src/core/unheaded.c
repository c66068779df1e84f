/*
 * Elements that a walk over the owners does not reach: of pages without a head, and of documents
 * without the _id of a page. A walk that promises all elements reports them at its end.
 */
#include "core/array.h"
#include "layout/repair.h"
#include "util/error.h"

#include <spillway/verify.h>

typedef struct unheaded {
    spill_array_t *array;
    bool any;
    spill_error_t first;
} unheaded_t;

static void describe(spill_array_t *array, const spill_orphan_t *orphan, spill_error_t *error)
{
    char text[SPILL_FINDING_TEXT_SIZE];
    const spill_owner_t owner = {.array = array, .value = &orphan->owner};
    spill_orphan_describe(orphan, text, sizeof text);
    spill_fail(error, SPILL_CORRUPT, "%s", text);
    if (orphan->strays > 0)
        spill_fail_prefix(error, SPILL_CORRUPT, "'%s'", array->definition.name);
    else
        spill_owner_name(&owner, SPILL_CORRUPT, error);
}

/* Pages that a drop has left belong to no array. */
static spill_code_t report(void *context, const spill_orphan_t *orphan, spill_error_t *error)
{
    unheaded_t *unheaded = context;
    spill_error_t found = {.message = ""};
    bool stays;
    if (orphan->dropped)
        return SPILL_OK;
    SPILL_TRY(spill_orphan_stays(unheaded->array, orphan, &stays, error));
    if (!stays)
        return SPILL_OK;
    describe(unheaded->array, orphan, &found);
    spill_store_log(unheaded->array->store, SPILL_LOG_WARNING, "skipped: %s", found.message);
    if (!unheaded->any)
        unheaded->first = found;
    unheaded->any = true;
    return SPILL_OK;
}

spill_code_t spill_check_unheaded(spill_array_t *array, const spill_value_t *owner,
                                  spill_error_t *error)
{
    unheaded_t unheaded = {.array = array};
    if (!array->store->ops->others_write)
        return SPILL_OK;
    SPILL_TRY(spill_each_orphan(array, owner, report, &unheaded, error));
    if (unheaded.any && error)
        *error = unheaded.first;
    return unheaded.any ? SPILL_CORRUPT : SPILL_OK;
}

spill_code_t spill_end_walk(spill_array_t *array, spill_code_t code, spill_error_t *error)
{
    spill_error_t failure;
    if (code != SPILL_OK && code != SPILL_CORRUPT)
        return code;
    spill_code_t second = spill_check_unheaded(array, NULL, &failure);
    if (code == SPILL_OK && second != SPILL_OK && error)
        *error = failure;
    return code == SPILL_OK ? second : code;
}
