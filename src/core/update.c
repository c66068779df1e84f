/* Update a head's other fields; check updates and filters of them. */
#include "bson/update.h"
#include "bson/element_fields.h"
#include "bson/field_path.h"
#include "bson/value.h"
#include "core/array.h"
#include "core/building.h"
#include "definition/schema.h"
#include "layout/append.h"
#include "layout/layout.h"
#include "util/error.h"

#include <string.h>

void spill_update_options_init(spill_update_options_t *options)
{
    if (options == NULL)
        return;
    *options = (spill_update_options_t){.version = SPILL_UPDATE_OPTIONS_VERSION};
}

/* A refusal that none of the tries can explain: the document would be too large. */
enum { UNEXPLAINED_MAX = 3 };

/* What follows the refusal. *again: try once more. */
static spill_code_t after_refusal(const spill_owner_t *owner, const spill_request_t *request,
                                  int *tries, bool *again, bool *repeated, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_request_reading(request);
    *again = false;
    SPILL_TRY(spill_owner_call(owner, &read, &head, error));
    spill_seen_t seen = spill_seen_by(&head);
    spill_refusal_t refusal = spill_update_refusal(request, &head.state, &seen);
    bool last = ++*tries == UNEXPLAINED_MAX;
    switch (refusal) {
    case SPILL_REFUSAL_REPEATED:
        *repeated = true;
        return SPILL_OK;
    case SPILL_REFUSAL_ABSENT:
        return spill_owner_absent(owner, error);
    case SPILL_REFUSAL_GAPS:
        return spill_refuse(owner, refusal, error);
    case SPILL_REFUSAL_SESSIONS:
        if (last)
            return spill_refuse(owner, refusal, error);
        spill_forget_sessions(owner, request->append.session);
        *again = true;
        return SPILL_OK;
    case SPILL_REFUSAL_NONE:
        *again = !last;
        return last ? spill_fail(error, SPILL_TOO_BIG,
                                 "the head's other fields would not fit a document of 16 MiB")
                    : SPILL_OK;
    default:
        return spill_refuse(owner, refusal, error);
    }
}

static spill_code_t update_fields(const spill_owner_t *owner, const bson_t *update,
                                  const spill_update_options_t *options, bool *repeated,
                                  spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    bool again = true;
    int tries = 0;
    request.append.update = update;
    request.append.session = options->session;
    request.append.match = options->match;
    request.create = options->session == NULL && options->match == NULL;
    request.incarnation = spill_owner_now(owner);
    while (again) {
        SPILL_TRY(spill_owner_call(owner, &request, &response, error));
        if (response.outcome == SPILL_DONE)
            break;
        SPILL_TRY(after_refusal(owner, &request, &tries, &again, repeated, error));
    }
    if (options->session != NULL && !*repeated && spill_session_forgets(options->session))
        spill_forget_sessions(owner, options->session);
    return SPILL_OK;
}

spill_code_t spill_array_update_with(spill_array_t *array, const spill_value_t *owner,
                                     const bson_t *update, const spill_update_options_t *options,
                                     bool *repeated, spill_error_t *error)
{
    spill_update_options_t defaults;
    bool ignored;
    spill_update_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    repeated = repeated != NULL ? repeated : &ignored;
    *repeated = false;
    SPILL_CHECK_ARRAY(error, array, owner, update);
    if (options->version != SPILL_UPDATE_OPTIONS_VERSION)
        return spill_fail(error, SPILL_INVALID,
                          "update options have version %d, but this library needs version %d: "
                          "initialize them with spill_update_options_init",
                          options->version, SPILL_UPDATE_OPTIONS_VERSION);
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(spill_array_check_update(array, update, error));
    SPILL_TRY(spill_array_check_session(array, options->session, 1, options->match, error));
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    SPILL_TRY(spill_array_check_others(&own, update, error));
    return update_fields(&own, update, options, repeated, error);
}

spill_code_t spill_array_update(spill_array_t *array, const spill_value_t *owner,
                                const bson_t *update, spill_error_t *error)
{
    return spill_array_update_with(array, owner, update, NULL, NULL, error);
}

/* ---- checks ---------------------------------------------------------------------------------- */

spill_code_t spill_array_check_update(const spill_array_t *array, const bson_t *update,
                                      spill_error_t *error)
{
    const char *reserved[SPILL_RESERVED_MAX];
    SPILL_TRY(spill_array_check_layout(array, false, "there are no other fields", error));
    spill_array_reserved(&array->definition, reserved);
    return array->store->ops->others_write ? spill_update_check_names(update, reserved, error)
                                           : spill_update_check(update, reserved, error);
}

/* Does the filter name a reserved field, also in conditions of $and, $or and $nor? */
static bool names_reserved(const bson_t *match, const char *const *reserved)
{
    bson_iter_t iter, child;
    bool found = false;
    if (!bson_iter_init(&iter, match))
        return true;
    while (!found && bson_iter_next(&iter)) {
        const char *key = bson_iter_key(&iter);
        for (size_t i = 0; reserved[i] != NULL; i++)
            found = found || spill_paths_overlap(key, reserved[i]);
        if (found || key[0] != '$' || !BSON_ITER_HOLDS_ARRAY(&iter) ||
            !bson_iter_recurse(&iter, &child))
            continue;
        while (!found && bson_iter_next(&child)) {
            spill_value_t value = spill_value_from_iter(&child);
            bson_t part;
            if (value.type == BSON_TYPE_DOCUMENT &&
                bson_init_static(&part, value.data, value.size_bytes))
                found = names_reserved(&part, reserved);
        }
    }
    return found;
}

spill_code_t spill_array_check_match(const spill_array_t *array, const bson_t *match,
                                     spill_error_t *error)
{
    const char *reserved[SPILL_RESERVED_MAX];
    if (!spill_document_valid(match))
        return spill_fail(error, SPILL_INVALID, "match: not a well-formed document");
    spill_array_reserved(&array->definition, reserved);
    if (names_reserved(match, reserved))
        return spill_fail(error, SPILL_INVALID, "match: it names a field of the array");
    return bson_empty(match) || array->store->ops->others_write ? SPILL_OK
                                                                : spill_match_check(match, error);
}
