/* Carry out a command: choose its translation, and make an error reply after a failure. */
#include "gateway/translate/translate.h"

#include "definition/stored_names.h"
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
    return strcmp(field, SPILL_STORED_ROOT) == 0
               ? spill_translation_refuse_spill(translation, "insert")
               : spill_translation_refuse(translation, field, "insert", translation->at->reason);
}

/* Commands on served collections that are refused, and what to do instead. */
static const struct {
    const char *name;
    const char *reason;
} refused_commands[] = {
    {"renameCollection", "its definition and its pages have the old name: undo the definition with "
                         "`spillway migrate --undo`, rename the collection, and define it again"},
    {"mapReduce", "it would see heads without their pages, or write over them: use aggregate, or "
                  "find and compute in the application"},
    {"mapreduce", "it would see heads without their pages, or write over them: use aggregate, or "
                  "find and compute in the application"},
    {"applyOps", "it would change documents beside the arrays in them: send insert, update and "
                 "delete commands"},
};

static const char *refusal_reason(const char *command)
{
    for (size_t i = 0; i < sizeof refused_commands / sizeof *refused_commands; i++)
        if (strcmp(refused_commands[i].name, command) == 0)
            return refused_commands[i].reason;
    return "the gateway does not translate the command: use find, aggregate, insert, update or "
           "delete";
}

static bool concerns(const spill_translation_t *translation, const char *collection)
{
    const char *database = spill_served_database(translation->served);
    return spill_served_find(translation->served, database, collection) != NULL ||
           spill_served_hidden(translation->served, database, collection);
}

/* The collection that renameCollection is refused for: the old name, or else the new one. */
static const char *find_renamed(const spill_translation_t *translation)
{
    static const char *const names[] = {"renameCollection", "to"};
    bson_iter_t ns;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (spill_translation_find(translation, names[i], &ns) && BSON_ITER_HOLDS_UTF8(&ns) &&
            spill_namespace_concerns(translation->served, bson_iter_utf8(&ns, NULL)))
            return bson_iter_utf8(&ns, NULL) + strlen(spill_served_database(translation->served)) +
                   1;
    return NULL;
}

/* The collection into which mapReduce writes, if the command is refused for that one: "c", or
 * {merge: "c"}. */
static const char *find_output(const spill_translation_t *translation)
{
    bson_iter_t out, child;
    if (translation->at != NULL || !spill_translation_find(translation, "out", &out))
        return NULL;
    if (BSON_ITER_HOLDS_UTF8(&out))
        return concerns(translation, bson_iter_utf8(&out, NULL)) ? bson_iter_utf8(&out, NULL)
                                                                 : NULL;
    if (BSON_ITER_HOLDS_DOCUMENT(&out) && bson_iter_recurse(&out, &child))
        while (bson_iter_next(&child))
            if (BSON_ITER_HOLDS_UTF8(&child) && concerns(translation, bson_iter_utf8(&child, NULL)))
                return bson_iter_utf8(&child, NULL);
    return NULL;
}

/* A command that touches served collections in a way that is not translated. */
static bool run_unknown(spill_translation_t *translation)
{
    const spill_client_command_t *command = translation->command;
    const char *database = spill_served_database(translation->served);
    const char *name = NULL;
    spill_command_kind_t kind = spill_command_kind(command->name);
    if (kind == SPILL_COMMAND_RENAME)
        name = find_renamed(translation);
    else if (kind == SPILL_COMMAND_OUTPUT)
        name = find_output(translation);
    if (name == NULL)
        name = command->collection != NULL ? command->collection : database;
    if (spill_served_hidden(translation->served, database, name))
        return spill_translation_refuse_hidden(translation, name);
    return spill_translation_refuse_in(translation, name, translation->array, command->name,
                                       refusal_reason(command->name));
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
    const spill_served_view_t *view =
        spill_served_find_view(translation->served, command->database, command->collection);
    if (view != NULL)
        return spill_translation_refuse_view(translation, view, name);
    if (strcmp(name, "aggregate") == 0)
        return spill_translate_aggregate(translation, reply);
    if (strcmp(name, "bulkWrite") == 0)
        return spill_translate_bulk(translation, reply);
    if (spill_served_hidden(translation->served, command->database, command->collection))
        return spill_translation_refuse_hidden(translation, command->collection);
    if (strcmp(name, "create") == 0 || strcmp(name, "collMod") == 0) /* of a view */
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
        spill_translation_note_failure(&translation);
        bson_init(reply);
        BSON_APPEND_DOUBLE(reply, "ok", 0);
        bson_concat(reply, &translation.failure);
        *close = translation.close;
    } else {
        spill_translation_note_reply(&translation, reply);
    }
    spill_translation_release(&translation);
}
