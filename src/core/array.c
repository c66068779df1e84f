/* Opening arrays; counting, dropping and other calls for one owner. */
#include "core/array.h"

#include "core/building.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "layout/referenced.h"
#include "util/error.h"

#include <string.h>

/* Set the definition, whether it is under construction, and its numbers. */
static spill_code_t load_definition(spill_array_t *array, const char *name, spill_error_t *error)
{
    char import[SPILL_BUILDING_NAME_SIZE];
    SPILL_SCOPED(spill_entries_release) spill_entries_t entries = {0};
    SPILL_SCOPED(spill_building_release) spill_building_t building = {0};
    spill_store_t *store = array->store;
    spill_building_entry_name(name, import);
    SPILL_TRY(spill_store_open_entries(store, name, import, &entries, error));
    SPILL_TRY(
        spill_store_read_definition(store, name, entries.definition, &array->definition, error));
    bson_t *entry = entries.import;
    entries.import = NULL;
    SPILL_TRY(spill_building_load_entry(store, name, entry, &building, error));
    array->building = building.stored != NULL;
    array->binding = entries.binding;
    return entries.bound ? SPILL_OK
                         : store->ops->bind(store, &array->definition, &array->binding, error);
}

spill_code_t spill_array_open(spill_store_t *store, const char *name, spill_array_t **array,
                              spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, array);
    *array = NULL;
    SPILL_CHECK_POINTERS(error, store, name);
    spill_array_t *opened = bson_malloc0(sizeof *opened);
    opened->store = store;
    opened->retains = true;
    pthread_mutex_init(&opened->tails_lock, NULL);
    spill_code_t code = load_definition(opened, name, error);
    if (store->ops->combines && !store->options.separate_appends)
        opened->combine = spill_combine_new();
    if (code == SPILL_OK)
        *array = opened;
    else
        spill_array_close(opened);
    return code;
}

void spill_array_close(spill_array_t *array)
{
    if (array == NULL)
        return;
    pthread_mutex_destroy(&array->tails_lock);
    spill_combine_free(array->combine);
    bson_free(array);
}

const spill_definition_t *spill_array_get_definition(const spill_array_t *array)
{
    return array != NULL ? &array->definition : NULL;
}

spill_code_t spill_array_op_base(spill_array_t *array, const spill_value_t *owner, int64_t *base,
                                 spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, base);
    *base = 0;
    SPILL_CHECK_POINTERS(error, array, owner);
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    SPILL_TRY(spill_owner_read_state(&own, SPILL_HEAD, &response, error));
    /* With keep oldest the head's n stands still once it is sealed: any value seen is a base. */
    if (response.state.pages > 0 && !spill_schema_of(&array->definition)->appends_to_head) {
        int64_t tail = response.state.pages - 1;
        int64_t incarnation = response.state.incarnation;
        *base = response.state.op_count;
        SPILL_TRY(spill_owner_read_state(&own, tail, &response, error));
        if (response.state.incarnation != incarnation && tail > 0)
            SPILL_TRY(spill_owner_read_state(&own, tail - 1, &response, error));
        if (response.state.incarnation != incarnation)
            response.state.op_count = 0; /* an earlier owner's */
    }
    if (response.state.op_count > *base)
        *base = response.state.op_count;
    return SPILL_OK;
}

spill_code_t spill_array_update(spill_array_t *array, const spill_value_t *owner,
                                const bson_t *update, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, array, owner, update);
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(spill_array_check_update(array, update, error));
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    spill_request_t request = spill_owner_request(&own, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    request.append.update = update;
    request.create = true;
    request.incarnation = spill_owner_now(&own);
    SPILL_TRY(spill_owner_call(&own, &request, &response, error));
    if (response.outcome != SPILL_DONE)
        return spill_fail(error, SPILL_TOO_BIG,
                          "the head's other fields would not fit a document of 16 MiB");
    return SPILL_OK;
}

spill_code_t spill_array_count(spill_array_t *array, const spill_value_t *owner,
                               spill_count_t *count, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, count);
    *count = (spill_count_t){0};
    SPILL_CHECK_POINTERS(error, array, owner);
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    return spill_layout_count(&own, count, error);
}

spill_code_t spill_array_drop_owner(spill_array_t *array, const spill_value_t *owner,
                                    spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, array, owner);
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    return spill_layout_drop(&own, error);
}
