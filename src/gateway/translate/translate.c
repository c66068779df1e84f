/* Carry out a command: choose its translation, and make an error reply after a failure. */
#include "gateway/translate/translate.h"

#include "gateway/relay/classify.h"
#include "gateway/translate/mention.h"
#include "gateway/translate/reply_batch.h"
#include "util/error.h"

#include <string.h>

static const struct {
    const char *name;
    spill_translate_fn run;
} served_commands[] = {
    {"find", spill_translate_find},
    {"aggregate", spill_translate_aggregate},
    {"count", spill_translate_count},
    {"distinct", spill_translate_count},
    {"killCursors", spill_batch_kill},
    {"insert", spill_translate_insert},
    {"update", spill_translate_update},
    {"delete", spill_translate_delete},
    {"findAndModify", spill_translate_modify},
    {"findandmodify", spill_translate_modify},
    {"drop", spill_translate_drop},
    {"create", spill_translate_create},
    {"createIndexes", spill_translate_create_indexes},
};

bool spill_translate_insert(spill_translation_t *translation, bson_t *reply)
{
    const spill_wire_message_t *message = translation->command->message;
    const char *field = spill_insert_reserved(translation->at, message);
    if (field == NULL)
        return spill_translation_forward(translation, reply);
    return strcmp(field, "spill") == 0
               ? spill_translation_refuse_spill(translation, "insert")
               : spill_translation_refuse(translation, field, "insert", translation->at->reason);
}

/* A collection of pages or of bookkeeping. */
static bool run_hidden(spill_translation_t *translation)
{
    return spill_translation_fail(translation, SPILL_SERVER_UNAUTHORIZED,
                                  "spillway: '%s' belongs to Spillway: use another name",
                                  translation->command->collection);
}

/* A command that touches served collections in a way that is not translated. */
static bool run_unknown(spill_translation_t *translation)
{
    return spill_translation_refuse(
        translation, translation->array, translation->command->name,
        "the command is not translated: use another one, or connect to the server itself");
}

static bool run_served(spill_translation_t *translation, bson_t *reply)
{
    const char *name = translation->command->name;
    for (size_t i = 0; i < sizeof served_commands / sizeof *served_commands; i++)
        if (strcmp(served_commands[i].name, name) == 0)
            return served_commands[i].run(translation, reply);
    return run_unknown(translation);
}

/* No translated command is part of a transaction: pages would be outside it. */
static bool check_transaction(spill_translation_t *translation)
{
    if (!translation->command->in_transaction)
        return true;
    return spill_translation_fail(
        translation, SPILL_SERVER_NO_TRANSACTION,
        "spillway: '%s' cannot be used in a transaction: pages of arrays would be outside it",
        translation->at != NULL ? translation->at->collection : translation->command->name);
}

static bool run(spill_translation_t *translation, bson_t *reply)
{
    const spill_client_command_t *command = translation->command;
    const char *name = command->name;
    if (!check_transaction(translation))
        return false;
    if (strcmp(name, "getMore") == 0)
        return spill_batch_get_more(translation, reply);
    if (strcmp(name, "listCollections") == 0)
        return spill_translate_list_collections(translation, reply);
    if (strcmp(name, "dropDatabase") == 0)
        return spill_translate_drop_database(translation, reply);
    if (strcmp(name, "aggregate") == 0)
        return spill_translate_aggregate(translation, reply);
    if (strcmp(name, "bulkWrite") == 0)
        return spill_translate_bulk(translation, reply);
    if (spill_served_hidden(translation->served, command->database, command->collection))
        return run_hidden(translation);
    if (strcmp(name, "create") == 0)
        return spill_translate_create(translation, reply);
    return translation->at != NULL ? run_served(translation, reply) : run_unknown(translation);
}

void spill_translate_run(spill_served_t *served, spill_client_connection_t *connection,
                         const spill_client_command_t *command, bson_t *reply, bool *close)
{
    spill_translation_t translation;
    spill_translation_init(&translation, served, connection, command);
    *close = false;
    if (!run(&translation, reply)) {
        spill_translation_note_refusal(&translation);
        bson_init(reply);
        BSON_APPEND_DOUBLE(reply, "ok", 0);
        bson_concat(reply, &translation.failure);
        *close = translation.close;
    }
    spill_translation_release(&translation);
}
