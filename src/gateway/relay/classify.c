/* What becomes of a command: a table of commands, and a look at the collections that it names. */
#include "gateway/relay/classify.h"

#include "bson/field_path.h"
#include "definition/stored_names.h"
#include "gateway/translate/mention.h"
#include "util/text.h"

#include <string.h>

static const struct {
    const char *name;
    spill_command_kind_t kind;
} commands[] = {
    {"find", SPILL_COMMAND_READ},
    {"aggregate", SPILL_COMMAND_AGGREGATE},
    {"count", SPILL_COMMAND_READ},
    {"distinct", SPILL_COMMAND_READ},
    {"getMore", SPILL_COMMAND_READ},
    {"killCursors", SPILL_COMMAND_READ},
    {"insert", SPILL_COMMAND_INSERT},
    {"update", SPILL_COMMAND_WRITE},
    {"delete", SPILL_COMMAND_WRITE},
    {"findAndModify", SPILL_COMMAND_WRITE},
    {"findandmodify", SPILL_COMMAND_WRITE},
    {"drop", SPILL_COMMAND_WRITE},
    {"create", SPILL_COMMAND_CREATE},
    {"createIndexes", SPILL_COMMAND_WRITE},
    {"dropIndexes", SPILL_COMMAND_CHANGE},
    {"deleteIndexes", SPILL_COMMAND_CHANGE},
    {"collMod", SPILL_COMMAND_CHANGE},
    {"listCollections", SPILL_COMMAND_DATABASE},
    {"dropDatabase", SPILL_COMMAND_DATABASE},
    {"renameCollection", SPILL_COMMAND_RENAME},
    {"bulkWrite", SPILL_COMMAND_BULK},
    {"mapReduce", SPILL_COMMAND_OUTPUT},
    {"mapreduce", SPILL_COMMAND_OUTPUT},
    {"applyOps", SPILL_COMMAND_OPERATIONS},
    {"listIndexes", SPILL_COMMAND_HARMLESS},
    {"collStats", SPILL_COMMAND_HARMLESS},
    {"collstats", SPILL_COMMAND_HARMLESS},
    {"dataSize", SPILL_COMMAND_HARMLESS},
    {"validate", SPILL_COMMAND_HARMLESS},
    {"compact", SPILL_COMMAND_HARMLESS},
    {"reIndex", SPILL_COMMAND_HARMLESS},
    {"planCacheClear", SPILL_COMMAND_HARMLESS},
    {"planCacheListFilters", SPILL_COMMAND_HARMLESS},
    {"planCacheSetFilter", SPILL_COMMAND_HARMLESS},
    {"planCacheClearFilters", SPILL_COMMAND_HARMLESS},
};

spill_command_kind_t spill_command_kind(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (spill_same_name(commands[i].name, name))
            return commands[i].kind;
    return SPILL_COMMAND_OTHER;
}

/* ---- namespaces ------------------------------------------------------------------------------ */

bool spill_namespace_concerns(const spill_served_t *served, const char *ns)
{
    const char *database = spill_served_database(served);
    size_t length = strlen(database);
    if (strncmp(ns, database, length) != 0 || ns[length] != '.')
        return false;
    return spill_served_find(served, database, ns + length + 1) != NULL ||
           spill_served_hidden(served, database, ns + length + 1);
}

/* Does a document have a namespace "ns" that concerns the gateway? */
static bool names_any(const spill_served_t *served, const bson_t *document)
{
    bson_iter_t ns;
    return bson_iter_init_find(&ns, document, "ns") && BSON_ITER_HOLDS_UTF8(&ns) &&
           spill_namespace_concerns(served, bson_iter_utf8(&ns, NULL));
}

/*
 * Operations may be nested, and commands such as drop have the namespace "d.$cmd". So an applyOps
 * that names the database at all is not relayed if the database has definitions.
 */
static bool names_database(const spill_served_t *served, bson_iter_t *fields, int depth)
{
    const char *database = spill_served_database(served);
    size_t length = strlen(database);
    bool found = false;
    while (!found && bson_iter_next(fields)) {
        bson_iter_t inner;
        if (BSON_ITER_HOLDS_UTF8(fields)) {
            const char *ns = bson_iter_utf8(fields, NULL);
            found = strcmp(bson_iter_key(fields), "ns") == 0 &&
                    strncmp(ns, database, length) == 0 && ns[length] == '.';
        } else if (BSON_ITER_HOLDS_DOCUMENT(fields) || BSON_ITER_HOLDS_ARRAY(fields)) {
            found = depth == 0 || !bson_iter_recurse(fields, &inner) ||
                    names_database(served, &inner, depth - 1);
        }
    }
    return found;
}

static bool operations_concern(const spill_served_t *served, const spill_wire_message_t *message)
{
    bson_iter_t fields;
    bson_t document;
    if (spill_served_all(served)[0] == NULL)
        return false;
    if (!bson_iter_init(&fields, &message->body) ||
        names_database(served, &fields, SPILL_COMMAND_DEPTH_MAX))
        return true;
    for (size_t i = 0; i < message->sequence_count; i++)
        for (size_t at = 0; spill_sequence_next(&message->sequences[i], &at, &document);)
            if (!bson_iter_init(&fields, &document) ||
                names_database(served, &fields, SPILL_COMMAND_DEPTH_MAX))
                return true;
    return false;
}

bool spill_sequence_next(const spill_wire_sequence_t *sequence, size_t *at, bson_t *document)
{
    uint32_t size;
    if (*at + sizeof size > sequence->bytes)
        return false;
    memcpy(&size, sequence->documents + *at, sizeof size);
    size = BSON_UINT32_FROM_LE(size);
    if (size > sequence->bytes - *at ||
        !bson_init_static(document, sequence->documents + *at, size))
        return false;
    *at += size;
    return true;
}

/* Does nsInfo of a bulkWrite name a collection that concerns the gateway? */
static bool bulk_concerns(const spill_served_t *served, const spill_wire_message_t *message)
{
    bson_iter_t iter, each;
    bson_t document;
    if (bson_iter_init_find(&iter, &message->body, "nsInfo") && BSON_ITER_HOLDS_ARRAY(&iter) &&
        bson_iter_recurse(&iter, &each))
        while (bson_iter_next(&each))
            if (spill_iter_document(&each, &document) && names_any(served, &document))
                return true;
    for (size_t i = 0; i < message->sequence_count; i++)
        for (size_t at = 0; spill_sequence_next(&message->sequences[i], &at, &document);)
            if (strcmp(message->sequences[i].name, "nsInfo") == 0 && names_any(served, &document))
                return true;
    return false;
}

/* ---- inserts --------------------------------------------------------------------------------- */

/* The first field of the document that clients cannot insert; NULL: none. */
static const char *find_reserved(const spill_served_collection_t *at, const bson_t *document)
{
    bson_iter_t field;
    if (!bson_iter_init(&field, document))
        return SPILL_STORED_ROOT;
    while (bson_iter_next(&field))
        if (strcmp(bson_iter_key(&field), SPILL_STORED_ROOT) == 0)
            return SPILL_STORED_ROOT;
    for (size_t i = 0; at->array == NULL && at->fields[i] != NULL; i++)
        if (spill_path_find(document, at->fields[i], &field))
            return at->fields[i];
    return field.err_off != 0 ? SPILL_STORED_ROOT : NULL;
}

const char *spill_insert_reserved(const spill_served_collection_t *at,
                                  const spill_wire_message_t *message)
{
    bson_iter_t iter, each;
    bson_t document;
    const char *found = NULL;
    if (bson_iter_init_find(&iter, &message->body, "documents") && BSON_ITER_HOLDS_ARRAY(&iter) &&
        bson_iter_recurse(&iter, &each))
        while (found == NULL && bson_iter_next(&each))
            found = spill_iter_document(&each, &document) ? find_reserved(at, &document)
                                                          : SPILL_STORED_ROOT;
    for (size_t i = 0; found == NULL && i < message->sequence_count; i++)
        for (size_t next = 0;
             found == NULL && spill_sequence_next(&message->sequences[i], &next, &document);)
            found = find_reserved(at, &document);
    return found;
}

/* ---- the decision ---------------------------------------------------------------------------- */

static bool reads_or_writes(const spill_served_t *served, const spill_client_command_t *command,
                            spill_command_kind_t kind)
{
    const spill_served_collection_t *at =
        spill_served_find(served, command->database, command->collection);
    bool own = at != NULL && at->array != NULL;
    bool hidden = spill_served_hidden(served, command->database, command->collection);
    bool in_part = at != NULL && at->array == NULL && at->parts[0] != NULL;
    bool view = spill_served_find_view(served, command->database, command->collection) != NULL;
    switch (kind) {
    case SPILL_COMMAND_HARMLESS:
        return false;
    case SPILL_COMMAND_READ: /* the cursors of a collection that is not served are the server's */
        return own || ((in_part || view) && strcmp(command->name, "killCursors") != 0);
    case SPILL_COMMAND_AGGREGATE:
        return own || in_part || view || spill_pipeline_concerns(served, command) ||
               spill_pipeline_watches(served, command);
    case SPILL_COMMAND_INSERT:
        return hidden || (at != NULL && spill_insert_reserved(at, command->message) != NULL);
    case SPILL_COMMAND_CHANGE:
    case SPILL_COMMAND_CREATE:
        return hidden || spill_pipeline_concerns(served, command);
    case SPILL_COMMAND_OUTPUT:
        return at != NULL || hidden || view || spill_pipeline_concerns(served, command);
    default:
        return at != NULL || hidden;
    }
}

spill_translation_class_t spill_translate_classify(const spill_served_t *served,
                                                   const spill_client_command_t *command)
{
    spill_command_kind_t kind = spill_command_kind(command->name);
    bool runs = false;
    switch (kind) {
    case SPILL_COMMAND_DATABASE:
        runs = strcmp(command->database, spill_served_database(served)) == 0;
        break;
    case SPILL_COMMAND_RENAME:
        runs = spill_rename_concerns(served, &command->message->body);
        break;
    case SPILL_COMMAND_BULK:
        runs = bulk_concerns(served, command->message);
        break;
    case SPILL_COMMAND_OPERATIONS:
        runs = operations_concern(served, command->message);
        break;
    default:
        if (strcmp(command->name, "getMore") == 0)
            runs = spill_get_more_concerns(served, command);
        else
            runs = reads_or_writes(served, command, kind);
        break;
    }
    return runs ? SPILL_TRANSLATION_RUN : SPILL_TRANSLATION_RELAY;
}

bool spill_rename_concerns(const spill_served_t *served, const bson_t *body)
{
    static const char *const names[] = {"renameCollection", "to", NULL};
    bson_iter_t iter;
    for (size_t i = 0; names[i] != NULL; i++)
        if (bson_iter_init_find(&iter, body, names[i]) && BSON_ITER_HOLDS_UTF8(&iter) &&
            spill_namespace_concerns(served, bson_iter_utf8(&iter, NULL)))
            return true;
    return false;
}

bool spill_get_more_concerns(const spill_served_t *served, const spill_client_command_t *command)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, &command->message->body, "collection") ||
        !BSON_ITER_HOLDS_UTF8(&iter))
        return false;
    const spill_served_collection_t *at =
        spill_served_find(served, command->database, bson_iter_utf8(&iter, NULL));
    return at != NULL && at->array != NULL;
}
