#include "tools/storable.h"

#include "core/array.h"
#include "definition/schema.h"
#include "definition/stored_element.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

bool spill_storable_may_refuse(const spill_definition_t *definition)
{
    return spill_schema_of(definition)->has_referenced_elements ||
           spill_schema_of(definition)->keeps_top_n;
}

bool spill_storable_differs(const spill_definition_t *from, const spill_definition_t *to)
{
    if (spill_schema_of(from)->has_referenced_elements &&
        spill_schema_of(to)->has_referenced_elements)
        return !spill_stored_element_same_rules(from, to);
    if (spill_schema_of(from)->keeps_top_n && spill_schema_of(to)->keeps_top_n)
        return strcmp(from->sort_field, to->sort_field) != 0;
    return spill_storable_may_refuse(to);
}

spill_code_t spill_storable_check(const spill_definition_t *to, const spill_owner_t *owner,
                                  const spill_element_t *element, spill_error_t *error)
{
    spill_code_t code = spill_schema_of(to)->has_referenced_elements
                            ? spill_stored_element_check(to, &element->value, NULL, error)
                            : spill_array_check_rank(to, &element->value, error);
    if (code == SPILL_OK)
        return SPILL_OK;
    spill_fail_prefix(error, code, "element %" PRId64, element->seq);
    return spill_owner_name(owner, code, error);
}

static spill_code_t check_run(const spill_definition_t *to, const spill_owner_t *owner,
                              const spill_run_t *run, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; code == SPILL_OK && i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        code = spill_storable_check(to, owner, &element, error);
    }
    return code;
}

static spill_code_t check_stretches(const spill_definition_t *to, const spill_owner_t *owner,
                                    spill_error_t *error)
{
    spill_stretch_t stretch = {0};
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && !stretch.last) {
        code = spill_stretch_read(owner, &stretch, error);
        if (code == SPILL_OK)
            code = check_run(to, owner, stretch.run, error);
    }
    spill_stretch_release(&stretch);
    return code;
}

spill_code_t spill_storable_check_owner(const spill_definition_t *to, const spill_owner_t *owner,
                                        spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_unmanaged_request(owner, INT64_MAX);
    if (!spill_storable_may_refuse(to))
        return SPILL_OK;
    spill_code_t code = spill_owner_call(owner, &read, &head, error);
    bool managed = code == SPILL_OK && head.state.present;
    if (code == SPILL_OK && !managed)
        code = check_run(to, owner, &head.run, error);
    spill_response_release(&head);
    return managed ? check_stretches(to, owner, error) : code;
}
