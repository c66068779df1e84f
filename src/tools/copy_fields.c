/* The application's fields in the head. */
#include "tools/copy_owner.h"

#include <string.h>

/* Report whether the field belongs to another definition of the store on the same heads. */
static bool is_of_another(const spill_copy_side_t *side, const char *name)
{
    const spill_definition_t *own = spill_array_get_definition(side->array);
    for (size_t i = 0; i < side->definition_count; i++) {
        const spill_definition_t *other = &side->definitions[i];
        if (strcmp(other->name, own->name) == 0 || strcmp(other->collection, own->collection) != 0)
            continue;
        if (strcmp(name, other->array) == 0 || strcmp(name, other->count_field) == 0 ||
            strcmp(name, other->overflow_field) == 0 || strcmp(name, other->pages_field) == 0)
            return true;
    }
    return false;
}

/* An update would read other names as a path or an operator. */
static bool can_be_set(const char *name)
{
    return name[0] != '\0' && name[0] != '$' && strchr(name, '.') == NULL;
}

static spill_code_t read_fields(const spill_copy_side_t *side, const spill_owner_t *owner,
                                spill_response_t *head, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want_fields = true;
    spill_code_t code = spill_owner_call(owner, &read, head, error);
    return spill_copy_failed(side, code, error);
}

static bool has_equal(const bson_t *fields, const char *name, const spill_value_t *value)
{
    bson_iter_t iter;
    if (!fields || !bson_iter_init_find(&iter, fields, name))
        return false;
    spill_value_t there = spill_value_from_iter(&iter);
    return spill_value_equal(&there, value);
}

/* Make {$set: ...} of the fields that the target lacks or has with other values. False: none. */
static bool make_update(spill_copy_owner_t *owner, const bson_t *source, const bson_t *target,
                        bson_t *update)
{
    bson_t set;
    bson_iter_t iter;
    bool any = false;
    BSON_APPEND_DOCUMENT_BEGIN(update, "$set", &set);
    if (source && bson_iter_init(&iter, source)) {
        while (bson_iter_next(&iter)) {
            const char *name = bson_iter_key(&iter);
            spill_value_t value = spill_value_from_iter(&iter);
            if (strcmp(name, "_id") == 0 || is_of_another(&owner->copy->source, name) ||
                has_equal(target, name, &value))
                continue;
            if (is_of_another(&owner->copy->target, name)) {
                spill_copy_differs(owner, -1,
                                   "another definition of the target has a field of "
                                   "the head that is the application's in the source");
            } else if (!can_be_set(name)) {
                spill_copy_differs(owner, -1,
                                   "the name of a field of the head is empty, begins "
                                   "with '$' or has a '.' in it: it is not copied");
            } else {
                any |= spill_value_append(&value, &set, name);
            }
        }
    }
    bson_append_document_end(update, &set);
    return any;
}

spill_code_t spill_copy_fields(spill_copy_owner_t *owner, spill_error_t *error)
{
    const spill_copy_side_t *target = &owner->copy->target;
    spill_response_t here = SPILL_RESPONSE_INIT;
    spill_response_t there = SPILL_RESPONSE_INIT;
    bson_t update = BSON_INITIALIZER;
    spill_code_t code = read_fields(&owner->copy->source, &owner->source, &here, error);
    if (code == SPILL_OK)
        code = read_fields(target, &owner->target, &there, error);
    if (code == SPILL_OK && make_update(owner, here.fields, there.fields, &update)) {
        code = spill_array_update(target->array, owner->target.value, &update, error);
        if (code == SPILL_UNKNOWN) /* applying the same update twice is harmless */
            code = spill_array_update(target->array, owner->target.value, &update, error);
        code = spill_copy_failed(target, code, error);
    }
    bson_destroy(&update);
    spill_response_release(&here);
    spill_response_release(&there);
    return code;
}
