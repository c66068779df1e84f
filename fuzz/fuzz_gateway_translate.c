/*
 * The translation's parsing: a command from a client, on a served collection. Bytes: a BSON body.
 * The first byte chooses the order of the array.
 */
#include "fuzz.h"

#include "gateway/translate/asked.h"
#include "gateway/translate/mention.h"
#include "gateway/translate/statement.h"

#include <bson/bson.h>
#include <string.h>

static void read_statement(const spill_served_collection_t *at, const bson_t *q, const bson_t *u,
                           bool pipeline)
{
    spill_statement_t statement;
    bson_t others = BSON_INITIALIZER;
    if (!spill_statement_read(at, q, u, pipeline, &statement)) {
        bson_destroy(&others);
        return;
    }
    REQUIRE(statement.count >= 0);
    if (statement.kind == SPILL_STATEMENT_PUSH) {
        spill_statement_others(&statement, at->definition->array, NULL, &others);
        bson_free(spill_statement_elements(&statement, true));
    }
    bson_destroy(&others);
}

static void read_asked(const bson_t *projection)
{
    spill_asked_t asked = {0};
    if (spill_asked_read("f", projection, &asked))
        REQUIRE(asked.kind != SPILL_ASKED_REFUSE || asked.operation != NULL);
    spill_asked_release(&asked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const fields[] = {"f", "count", NULL};
    static char somewhere; /* only compared with NULL */
    spill_definition_t definition = {.array = "f"};
    spill_served_collection_t at = {
        .array = (spill_array_t *)(void *)&somewhere, .definition = &definition, .fields = fields};
    bson_t body;
    bson_iter_t q, u, id;
    if (size < 1)
        return 0;
    definition.order = data[0] % 2 == 0 ? SPILL_ARRAY_OLDEST_FIRST : SPILL_ARRAY_NEWEST_FIRST;
    if (!bson_init_static(&body, data + 1, size - 1))
        return 0;
    spill_mentions_in_filter(&body, "f");
    spill_mentions_in_document(&body, "f");
    spill_filter_find_id(&body, &id);
    spill_filter_is_id(&body);
    read_asked(&body);
    read_statement(&at, &body, &body, false);
    bson_t filter, update;
    if (bson_iter_init_find(&q, &body, "q") && spill_iter_document(&q, &filter) &&
        bson_iter_init_find(&u, &body, "u") && spill_iter_document(&u, &update))
        read_statement(&at, &filter, &update, BSON_ITER_HOLDS_ARRAY(&u));
    return 0;
}
