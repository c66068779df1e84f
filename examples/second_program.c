/*
 * The second program: append exactly once, give each try a deadline, and read all pages.
 *
 *   second_program [STORE]      STORE is rocksdb:PATH or mongodb://...; without it, one in memory
 */
#include <spillway/spillway.h>

#include <stdio.h>
#include <string.h>

/* Store `op` (id and base) durably before the first call: a retry needs both. */
static spill_code_t append_once(spill_array_t *feed, const spill_value_t *owner,
                                const spill_value_t *element, const spill_op_t *op,
                                spill_error_t *error)
{
    spill_append_options_t options;
    spill_append_options_init(&options);
    options.op = op;
    bool unknown = false; /* an earlier try may have appended it */
    spill_code_t code = SPILL_OK;
    for (int tries = 0; tries < 5; tries++) { /* a real program waits between two tries */
        spill_deadline_t outer = spill_deadline_begin(2000); /* milliseconds */
        code = spill_array_append(feed, owner, element, 1, &options, NULL, error);
        spill_deadline_end(outer);
        unknown = unknown || code == SPILL_UNKNOWN;
        if (code == SPILL_OK || (code != SPILL_UNKNOWN && !error->retryable))
            break;
    }
    /* SPILL_UNKNOWN: keep `op`, and try again later */
    return code != SPILL_OK && unknown ? SPILL_UNKNOWN : code;
}

static spill_code_t print_all(spill_array_t *feed, const spill_value_t *owner, spill_error_t *error)
{
    spill_read_options_t options;
    spill_slice_t *page;
    spill_read_options_init(&options); /* newest first */
    options.limit = 100;
    for (bool more = true; more;) {
        spill_code_t code = spill_array_read(feed, owner, &options, &page, error);
        if (code != SPILL_OK)
            return code;
        for (size_t i = 0; i < page->count; i++)
            printf("%lld\n", (long long)page->elements[i].seq);
        more = page->more;
        options.before = page->next;
        spill_slice_free(page);
    }
    return SPILL_OK;
}

static spill_code_t use_feed(spill_array_t *feed, spill_error_t *error)
{
    bson_t storage = BSON_INITIALIZER;
    bson_t *like = BCON_NEW("type", "like", "by", "ada");
    spill_value_t owner = spill_value_from_utf8(&storage, "ben");
    spill_value_t element = spill_value_from_document(like);
    spill_op_t op = {.id = "like-1", .id_bytes = strlen("like-1")};

    spill_code_t code = spill_array_op_base(feed, &owner, &op.base, error);
    for (int again = 0; code == SPILL_OK && again < 2;
         again++) /* the second call changes nothing */
        code = append_once(feed, &owner, &element, &op, error);
    for (int i = 0; code == SPILL_OK && i < 200; i++)
        code = spill_array_append(feed, &owner, &element, 1, NULL, NULL, error);
    if (code == SPILL_OK)
        code = print_all(feed, &owner, error);
    bson_destroy(like);
    bson_destroy(&storage);
    return code;
}

int main(int argc, char **argv)
{
    spill_error_t error;
    spill_store_t *store;
    spill_array_t *feed = NULL;
    spill_definition_t definition;
    spill_definition_init(&definition, "feed");

    spill_code_t code = spill_store_open(argc > 1 ? argv[1] : "memory:", NULL, &store, &error);
    if (code == SPILL_OK)
        code = spill_store_define(store, &definition, &error);
    if (code == SPILL_OK)
        code = spill_array_open(store, "feed", &feed, &error);
    if (code == SPILL_OK)
        code = use_feed(feed, &error);
    if (code != SPILL_OK)
        fprintf(stderr, "%s: %s\n", spill_code_name(code), error.message);
    spill_array_close(feed);
    spill_store_close(store, NULL);
    return code == SPILL_OK ? 0 : 1;
}
