/* No served collections: every command is relayed. The translation replaces this file. */
#include "gateway/translate.h"

#include "util/error.h"

struct spill_served {
    int unused;
};

struct spill_rights {
    int unused;
};

spill_code_t spill_served_open(const char *uri, spill_served_t **served, spill_error_t *error)
{
    (void)uri;
    (void)error;
    *served = bson_malloc0(sizeof **served);
    return SPILL_OK;
}

void spill_served_free(spill_served_t *served)
{
    bson_free(served);
}

spill_code_t spill_served_reload(spill_served_t *served, spill_error_t *error)
{
    (void)served;
    (void)error;
    return SPILL_OK;
}

const spill_served_collection_t *spill_served_find(const spill_served_t *served,
                                                   const char *database, const char *collection)
{
    (void)served;
    (void)database;
    (void)collection;
    return NULL;
}

bool spill_served_hidden(const spill_served_t *served, const char *database, const char *collection)
{
    (void)served;
    (void)database;
    (void)collection;
    return false;
}

const spill_served_collection_t *const *spill_served_all(const spill_served_t *served)
{
    static const spill_served_collection_t *const none = NULL;
    (void)served;
    return &none;
}

spill_rights_t *spill_rights_new(void)
{
    return bson_malloc0(sizeof(spill_rights_t));
}

void spill_rights_free(spill_rights_t *rights)
{
    bson_free(rights);
}

spill_translation_class_t spill_translate_classify(const spill_served_t *served,
                                                   const spill_client_command_t *command)
{
    (void)served;
    (void)command;
    return SPILL_TRANSLATION_RELAY;
}

void spill_translate_run(spill_served_t *served, spill_client_connection_t *connection,
                         const spill_client_command_t *command, bson_t *reply, bool *close)
{
    (void)served;
    (void)connection;
    (void)command;
    *close = true;
    bson_init(reply);
}
