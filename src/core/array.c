/*
 * Open arrays; count, drop and other calls for one owner; the checks that several calls make on
 * their arguments.
 */
#include "core/array.h"
#include "layout/append.h"

#include "bson/element_fields.h"
#include "bson/update.h"
#include "bson/value.h"
#include "bson/value_text.h"
#include "core/building.h"
#include "definition/schema.h"
#include "layout/adoption.h"
#include "layout/append_combiner.h"
#include "layout/layout.h"
#include "layout/referenced.h"
#include "layout/spiller.h"
#include "store/timed.h"
#include "util/error.h"

#include <inttypes.h>
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
    SPILL_CHECK_STORE(error, store, name);
    spill_array_t *opened = bson_malloc0(sizeof *opened);
    opened->store = store;
    atomic_fetch_add(&store->arrays, 1);
    opened->retains = true;
    opened->others = spill_others_new();
    opened->adoption = spill_adoption_new();
    pthread_mutex_init(&opened->tails_lock, NULL);
    spill_code_t code = load_definition(opened, name, error);
    spill_spiller_attach(store, spill_layout_spill_due);
    if (store->ops->combines && !store->options.separate_appends)
        opened->combiner = spill_append_combiner_new();
    if (code == SPILL_OK)
        *array = opened;
    else
        spill_array_close(opened);
    return code;
}

static void release_array(spill_array_t *array)
{
    spill_deadline_t outer = spill_timed_suspend();
    spill_spiller_finish(array);
    spill_adoption_free(array);
    spill_deadline_end(outer);
    pthread_mutex_destroy(&array->tails_lock);
    spill_append_combiner_free(array->combiner);
    spill_others_free(array->others);
}

void spill_array_close(spill_array_t *array)
{
    if (array == NULL)
        return;
    spill_store_t *store = array->store;
    if (spill_maker_is_current(&store->maker))
        release_array(array); /* in a child of the process, its locks may be held for ever */
    bson_free(array);
    atomic_fetch_sub(&store->arrays, 1);
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
    SPILL_CHECK_ARRAY(error, array, owner);
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    spill_request_t read = spill_owner_request(&own, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.append_follows = true;
    SPILL_TRY(spill_owner_call(&own, &read, &response, error));
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

spill_code_t spill_array_count(spill_array_t *array, const spill_value_t *owner,
                               spill_count_t *count, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, count);
    *count = (spill_count_t){.version = SPILL_COUNT_VERSION};
    SPILL_CHECK_ARRAY(error, array, owner);
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    spill_code_t code = spill_layout_count(&own, count, error);
    count->version = SPILL_COUNT_VERSION;
    return code;
}

spill_code_t spill_array_drop_owner(spill_array_t *array, const spill_value_t *owner,
                                    spill_error_t *error)
{
    SPILL_CHECK_ARRAY(error, array, owner);
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    return spill_layout_drop(&own, error);
}

/* ---- checks of arguments --------------------------------------------------------------------- */

spill_code_t spill_array_check_layout(const spill_array_t *array, bool bucket, const char *what,
                                      spill_error_t *error)
{
    const spill_definition_t *definition = &array->definition;
    if (spill_schema_of(definition)->has_windows == bucket)
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID, "%s: the layout of '%s' is %s'bucket'", what,
                      definition->name, bucket ? "not " : "");
}

spill_code_t spill_array_check_element(const spill_value_t *element, size_t index,
                                       spill_error_t *error)
{
    if (!spill_value_valid(element))
        return spill_fail(error, SPILL_INVALID, "element %zu is not a well-formed BSON value",
                          index);
    if (element->size_bytes > SPILL_DOCUMENT_BYTES_MAX)
        return spill_fail(error, SPILL_TOO_BIG,
                          "element %zu has %u bytes: no document holds more than %d", index,
                          element->size_bytes, SPILL_DOCUMENT_BYTES_MAX);
    return SPILL_OK;
}

spill_code_t spill_array_check_text(const spill_array_t *array, const spill_value_t *element,
                                    size_t index, spill_error_t *error)
{
    if (array->keeps_any_text)
        return SPILL_OK;
    spill_code_t code = spill_value_check_text(element, error);
    return code == SPILL_OK ? SPILL_OK : spill_fail_prefix(error, code, "element %zu", index);
}

spill_code_t spill_array_check_rank(const spill_definition_t *definition,
                                    const spill_value_t *element, spill_error_t *error)
{
    spill_value_t value;
    if (!spill_schema_of(definition)->keeps_top_n ||
        !spill_value_at(element, definition->sort_field, &value) ||
        value.type != BSON_TYPE_DECIMAL128)
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "'%s' is a decimal128, which would rank below all numbers and be dropped "
                      "first: what elements rank by has to be a double or an integer (of cents, "
                      "say), or a date; the decimal may stand in another field",
                      definition->sort_field);
}

spill_code_t spill_array_check_top_n(const spill_owner_t *owner, const spill_value_t *element,
                                     spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    if (!spill_schema_of(definition)->keeps_top_n)
        return SPILL_OK;
    int64_t most = definition->bounds.head_bytes_max;
    int64_t bytes = spill_part_bytes_alone(owner, true, 1, element->size_bytes);
    SPILL_TRY(spill_array_check_rank(definition, element, error));
    if (bytes <= most)
        return SPILL_OK;
    return spill_fail(error, SPILL_TOO_BIG,
                      "with a head around it that is %" PRId64 " bytes, and one that keeps the "
                      "best has at most %" PRId64 " (headBytesMax, --max-bytes)",
                      bytes, most);
}

spill_code_t spill_array_check_id(const spill_array_t *array, const spill_value_t *id,
                                  spill_error_t *error)
{
    if (array->definition.id_field[0] == '\0')
        return spill_fail(error, SPILL_INVALID,
                          "definition '%s' does not say what an element's id is (idField, "
                          "--id-field)",
                          array->definition.name);
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    return spill_element_id_key(id, array->definition.unique, &key, error);
}

spill_code_t spill_array_check_window(const spill_owner_t *owner, const spill_value_t *element,
                                      spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    char window[SPILL_WINDOW_SIZE];
    spill_value_t of;
    const char *own;
    if (!spill_schema_of(definition)->has_windows)
        return SPILL_OK;
    SPILL_TRY(spill_window_of_element(definition, element, window, error));
    if (spill_window_split(owner->value, &of, &own) && strcmp(window, own) != 0)
        return spill_fail(error, SPILL_INVALID, "an element of window '%s' cannot be in '%s'",
                          window, own);
    return SPILL_OK;
}
