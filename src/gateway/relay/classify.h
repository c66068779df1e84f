/* The kinds of commands, and questions about the collections that a command names. */
#ifndef SPILL_GATEWAY_RELAY_CLASSIFY_H
#define SPILL_GATEWAY_RELAY_CLASSIFY_H

#include "gateway/translate/translations.h"

typedef enum spill_command_kind {
    SPILL_COMMAND_OTHER, /* not known: refused on served and hidden collections */
    SPILL_COMMAND_HARMLESS,
    SPILL_COMMAND_READ,
    SPILL_COMMAND_AGGREGATE,
    SPILL_COMMAND_INSERT,
    SPILL_COMMAND_WRITE,  /* translated on served collections, refused on hidden ones */
    SPILL_COMMAND_CHANGE, /* relayed on served collections, refused on hidden ones */
    SPILL_COMMAND_CREATE,
    SPILL_COMMAND_DATABASE, /* of the whole database */
    SPILL_COMMAND_RENAME,
    SPILL_COMMAND_BULK,       /* bulkWrite: names its collections in nsInfo */
    SPILL_COMMAND_OPERATIONS, /* applyOps */
    SPILL_COMMAND_OUTPUT      /* mapReduce */
} spill_command_kind_t;

spill_command_kind_t spill_command_kind(const char *name);

/* Does "database.collection" have a definition, or is it hidden? */
bool spill_namespace_concerns(const spill_served_t *served, const char *ns);
bool spill_rename_concerns(const spill_served_t *served, const bson_t *body);
bool spill_get_more_concerns(const spill_served_t *served, const spill_client_command_t *command);

/* A field of the documents to insert that clients cannot insert; NULL: none. */
const char *spill_insert_reserved(const spill_served_collection_t *at,
                                  const spill_wire_message_t *message);

/* The next document of a sequence. *at begins at 0. False: the end, or a malformed length. */
bool spill_sequence_next(const spill_wire_sequence_t *sequence, size_t *at, bson_t *document);

#endif
