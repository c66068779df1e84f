/* The fields of a command's body that decide what the gateway does with it. */
#include "gateway/relay/client_command.h"
#include "util/text.h"

#include <string.h>

static spill_code_t fail_malformed(spill_error_t *error)
{
    return spill_fail(error, SPILL_PARSE, "the command's body is not BSON");
}

static spill_code_t check_fields(bson_iter_t *fields, int depth, spill_error_t *error);

/* Check what is in the field, if it is a document or an array. */
static spill_code_t check_field(const bson_iter_t *field, int depth, spill_error_t *error)
{
    bson_iter_t inner;
    if (!BSON_ITER_HOLDS_DOCUMENT(field) && !BSON_ITER_HOLDS_ARRAY(field))
        return SPILL_OK;
    if (!bson_iter_recurse(field, &inner))
        return fail_malformed(error);
    return check_fields(&inner, depth - 1, error);
}

/* Check that the fields are well-formed and not too deep. It calls itself at most `depth` times. */
static spill_code_t check_fields(bson_iter_t *fields, int depth, spill_error_t *error)
{
    if (depth == 0)
        return spill_fail(error, SPILL_PARSE, "the command's body is deeper than %d",
                          SPILL_COMMAND_DEPTH_MAX);
    while (bson_iter_next(fields))
        SPILL_TRY(check_field(fields, depth, error));
    return fields->err_off == 0 ? SPILL_OK : fail_malformed(error);
}

/* Point to the 16 bytes of lsid.id, or return NULL. */
static const uint8_t *session_of(const bson_iter_t *lsid)
{
    enum { SESSION_BYTES = 16 };
    bson_iter_t inner;
    bson_subtype_t subtype;
    uint32_t size;
    const uint8_t *bytes;
    if (!BSON_ITER_HOLDS_DOCUMENT(lsid) || !bson_iter_recurse(lsid, &inner) ||
        !bson_iter_find(&inner, "id") || !BSON_ITER_HOLDS_BINARY(&inner))
        return NULL;
    bson_iter_binary(&inner, &subtype, &size, &bytes);
    return size == SESSION_BYTES ? bytes : NULL;
}

static int64_t number_of(const bson_iter_t *iter, int64_t otherwise)
{
    return BSON_ITER_HOLDS_INT32(iter) || BSON_ITER_HOLDS_INT64(iter) ||
                   BSON_ITER_HOLDS_DOUBLE(iter)
               ? bson_iter_as_int64(iter)
               : otherwise;
}

static const char *text_of(const bson_iter_t *iter)
{
    return BSON_ITER_HOLDS_UTF8(iter) ? bson_iter_utf8(iter, NULL) : NULL;
}

/* Is the field in a section, too? Servers differ in which one they read. */
static bool is_in_section(const spill_wire_message_t *message, const char *key)
{
    for (size_t i = 0; i < message->sequence_count; i++)
        if (strcmp(message->sequences[i].name, key) == 0)
            return true;
    return false;
}

static void read_field(const bson_iter_t *iter, spill_client_command_t *command)
{
    const char *key = bson_iter_key(iter);
    if (spill_same_name(key, "$db"))
        command->database = text_of(iter);
    else if (spill_same_name(key, "lsid"))
        command->session = session_of(iter);
    else if (spill_same_name(key, "txnNumber"))
        command->txn_number = number_of(iter, -1);
    else if (spill_same_name(key, "autocommit"))
        command->in_transaction = BSON_ITER_HOLDS_BOOL(iter) && !bson_iter_bool(iter);
    else if (spill_same_name(key, "startTransaction"))
        command->starts_transaction = BSON_ITER_HOLDS_BOOL(iter) && bson_iter_bool(iter);
    else if (spill_same_name(key, "maxTimeMS"))
        command->max_time_ms = number_of(iter, 0);
}

spill_code_t spill_client_command_check(const bson_t *body, spill_error_t *error)
{
    bson_iter_t iter;
    if (!bson_iter_init(&iter, body))
        return fail_malformed(error);
    return check_fields(&iter, SPILL_COMMAND_DEPTH_MAX, error);
}

spill_code_t spill_client_command_read(const spill_wire_message_t *message,
                                       spill_client_command_t *command, spill_error_t *error)
{
    bson_iter_t iter;
    *command =
        (spill_client_command_t){.message = message,
                                 .txn_number = -1,
                                 .unanswered = (message->flags & SPILL_WIRE_MORE_TO_COME) != 0};
    if (!bson_iter_init(&iter, &message->body))
        return fail_malformed(error);
    while (bson_iter_next(&iter)) {
        if (command->name == NULL) {
            command->name = bson_iter_key(&iter);
            command->collection = text_of(&iter);
        }
        if (is_in_section(message, bson_iter_key(&iter)))
            return spill_fail(error, SPILL_PARSE, "a field is in the body and in a section");
        read_field(&iter, command);
        SPILL_TRY(check_field(&iter, SPILL_COMMAND_DEPTH_MAX, error));
    }
    if (iter.err_off != 0)
        return fail_malformed(error);
    if (command->name == NULL)
        return spill_fail(error, SPILL_PARSE, "the command's body is empty");
    if (!command->database)
        return spill_fail(error, SPILL_PARSE, "the command's body has no text $db");
    return SPILL_OK;
}
