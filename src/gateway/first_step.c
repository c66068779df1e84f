/* The first step of an update of one plain array. */
#include "gateway/first_step.h"

#include "gateway/mention.h"
#include "gateway/statements.h"
#include "gateway/translations.h"

#include <string.h>

/* Does the update begin with one statement for a plain array, and does q name the owner? */
static bool begins_plain(spill_translation_t *translation, spill_change_t *change)
{
    bson_iter_t id;
    const spill_statement_t *statement = change->statement;
    if (statement->multi || statement->has_collation || spill_statement_is_relayed(statement) ||
        !spill_filter_find_id(&statement->q, &id) ||
        !spill_change_check_served(translation, statement))
        return false;
    spill_value_t owner = spill_value_from_iter(&id);
    return !spill_change_is_known_managed(change, &owner);
}

static bool make(spill_translation_t *translation, const bson_t *document, bson_t *body)
{
    spill_statement_t statement;
    spill_statement_numbers_t numbers = {SPILL_BUFFER_INIT};
    spill_change_t change;
    if (!spill_update_read(translation, document, &statement))
        return false;
    spill_change_init(&change, translation, &statement, &numbers);
    bool made = begins_plain(translation, &change);
    if (made) {
        bson_t guards = BSON_INITIALIZER;
        bson_init(body);
        spill_change_guard(&change, true, &guards);
        /* Other operators than $push may fail on an empty document, though there is one. */
        bool upsert = statement.upsert && statement.kind == SPILL_STATEMENT_PUSH;
        spill_update_body(translation, &statement, &guards, upsert, false, body);
        bson_destroy(&guards);
    }
    spill_change_release(&change);
    spill_numbers_release(&numbers);
    return made;
}

bool spill_first_step_make(spill_served_t *served, const spill_client_command_t *command,
                           bson_t *body)
{
    bson_t document;
    spill_translation_t translation;
    if (strcmp(command->name, "update") != 0 || command->unanswered || command->in_transaction)
        return false;
    spill_translation_init(&translation, served, NULL, command);
    bool made = translation.at != NULL && translation.at->array != NULL &&
                spill_statements_only(&translation, "updates", &document) &&
                make(&translation, &document, body);
    spill_translation_release(&translation);
    return made;
}

bool spill_first_step_is_done(const bson_t *reply)
{
    bson_iter_t iter;
    int code = spill_reply_error_code(reply);
    if (code != 0)
        return spill_server_changes_state(code) || spill_server_may_have_changed(code);
    return bson_iter_init_find(&iter, reply, "ok") && spill_iter_is_true(&iter) &&
           !bson_has_field(reply, "writeErrors") && bson_iter_init_find(&iter, reply, "n") &&
           bson_iter_as_int64(&iter) > 0;
}
