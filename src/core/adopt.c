/* Adopt the unmanaged array of one owner. `migrate` adopts those of all owners
 * (tools/migrate/migrate.h).
 */
#include "core/array.h"
#include "core/building.h"
#include "definition/schema.h"
#include "layout/adoption.h"
#include "layout/layout.h"
#include "layout/reshape.h"
#include "util/error.h"

static bool may_adopt(const spill_definition_t *definition)
{
    return definition->layout == SPILL_LAYOUT_OUTLIER &&
           spill_schema_of(definition)->appends_to_head;
}

bool spill_array_has_unmanaged(const spill_array_t *array)
{
    return array->store->ops->others_write && may_adopt(&array->definition);
}

static spill_code_t check_layout(const spill_array_t *array, spill_error_t *error)
{
    const spill_definition_t *definition = &array->definition;
    if (may_adopt(definition))
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "'%s' cannot adopt arrays: only layout outlier that keeps the newest can",
                      definition->name);
}

static int64_t document_bytes(const spill_state_t *head)
{
    return head->fields_bytes + head->live_bytes + spill_array_framing(head->live);
}

static spill_code_t adopt(spill_owner_t *owner, bool *adopted, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    spill_reshaped_t reshaped = {0};
    spill_request_t read = spill_owner_unmanaged_request(owner, 0);
    SPILL_TRY(spill_owner_call(owner, &read, &head, error));
    if (head.state.present)
        return SPILL_OK;
    if (head.state.live == 0) {
        spill_fail(error, SPILL_NOT_FOUND, "there is no array to adopt, or it is empty");
        return spill_owner_name(owner, SPILL_NOT_FOUND, error);
    }
    spill_oversized_t unmanaged = {.owner = *owner->value,
                                   .elements = head.state.live,
                                   .bytes = head.state.live_bytes,
                                   .document_bytes = document_bytes(&head.state)};
    /* Hardly any room for the bookkeeping is left. */
    unmanaged.full =
        unmanaged.document_bytes >= SPILL_DOCUMENT_BYTES_MAX - owner->array->store->adopt_room;
    spill_code_t code = spill_reshape(owner, &unmanaged, NULL, &reshaped, error);
    *adopted = reshaped.adopted;
    return code;
}

spill_code_t spill_array_adopt(spill_array_t *array, const spill_value_t *owner, bool *adopted,
                               spill_error_t *error)
{
    bool ignored;
    adopted = adopted != NULL ? adopted : &ignored;
    *adopted = false;
    SPILL_CHECK_ARRAY(error, array, owner);
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(check_layout(array, error));
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    SPILL_TRY(spill_adoption_check(&own, error));
    spill_adoption_begin(array);
    spill_code_t code = adopt(&own, adopted, error);
    spill_adoption_end(array);
    return code;
}
