/*
 * The input is a whole message of a client: which commands the gateway translates, what a pipeline
 * does with the array, and each statement of a write. The database has one definition, of array f
 * in collection c, with pages in c.pages.
 */
#include "fuzz.h"

#include "gateway/relay/classify.h"
#include "gateway/translate/mention.h"
#include "gateway/translate/pipeline.h"
#include "gateway/translate/statement.h"
#include "gateway/translate/translations.h"
#include "util/error.h"

#include <spillway/definition.h>

#include <string.h>

static const spill_served_collection_t *collection(const spill_served_t **served)
{
    static spill_served_t *only;
    static spill_served_collection_t at;
    static char somewhere; /* only compared with NULL */
    if (only == NULL) {
        spill_definition_t definition;
        REQUIRE(spill_definition_preset(&definition, "gateway", "c.f", NULL) == SPILL_OK);
        strcpy(definition.collection, "c");
        strcpy(definition.array, "f");
        strcpy(definition.page_array, "f");
        strcpy(definition.page_collection, "c.pages");
        only = spill_served_without_store("d", &definition);
        at = *spill_served_find(only, "d", "c");
        at.array = (spill_array_t *)(void *)&somewhere;
    }
    *served = only;
    return &at;
}

/* A statement as the translation reads it, and its parts. */
static void check_statement(const spill_served_collection_t *at, const bson_t *document)
{
    bson_iter_t q, u, id;
    bson_t filter, update;
    spill_statement_t statement;
    bson_t others = BSON_INITIALIZER;
    if (bson_iter_init_find(&q, document, "q") && spill_iter_document(&q, &filter)) {
        spill_mentions_in_filter(&filter, "f");
        if (spill_filter_is_id(&filter))
            REQUIRE(spill_filter_find_id(&filter, &id));
        if (bson_iter_init_find(&u, document, "u") && spill_iter_document(&u, &update) &&
            spill_statement_read(at, &filter, &update, BSON_ITER_HOLDS_ARRAY(&u), &statement)) {
            REQUIRE(statement.count >= 0);
            if (statement.kind == SPILL_STATEMENT_PUSH) {
                spill_statement_others(&statement, "f", NULL, &others);
                bson_free(spill_statement_elements(&statement, false));
            }
        }
    }
    bson_destroy(&others);
}

static void check_statements(const spill_served_collection_t *at,
                             const spill_wire_message_t *message)
{
    static const char *const names[] = {"updates", "deletes"};
    bson_iter_t iter, each;
    bson_t document;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bson_iter_init_find(&iter, &message->body, names[i]) && BSON_ITER_HOLDS_ARRAY(&iter) &&
            bson_iter_recurse(&iter, &each))
            while (bson_iter_next(&each))
                if (spill_iter_document(&each, &document))
                    check_statement(at, &document);
    for (size_t i = 0; i < message->sequence_count; i++)
        for (size_t next = 0; spill_sequence_next(&message->sequences[i], &next, &document);)
            check_statement(at, &document);
}

static void check_pipeline(const spill_served_t *served, const spill_client_command_t *command)
{
    spill_pipeline_t own, other;
    SPILL_SCOPED(bson_destroy) bson_t hidden = BSON_INITIALIZER;
    spill_pipeline_read(served, command, "f", &own);
    spill_pipeline_read(served, command, NULL, &other);
    REQUIRE(!other.has_array && (!other.uses_array || own.uses_array));
    REQUIRE(own.writes == other.writes && own.target == other.target);
    if (own.target != NULL)
        REQUIRE(spill_pipeline_concerns(served, command));
    spill_pipeline_reads(&command->message->body, "c");
    spill_pipeline_hide(served, &command->message->body, own.hide_at, &hidden);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const spill_served_t *served;
    const spill_served_collection_t *at = collection(&served);
    spill_wire_message_t message;
    spill_client_command_t command;
    if (spill_wire_read(data, size, &message, NULL) != SPILL_OK ||
        message.header.opcode != SPILL_WIRE_MSG ||
        spill_client_command_read(&message, &command, NULL) != SPILL_OK)
        return 0;
    spill_translate_classify(served, &command);
    spill_insert_reserved(at, &message);
    check_statements(at, &message);
    check_pipeline(served, &command);
    return 0;
}
