/*
 * The first program: keep a feed for each user, append to one, and read the newest entries.
 *
 *   first_program [STORE]      STORE is rocksdb:PATH or mongodb://...; without it, one in memory
 */
#include <spillway/spillway.h>

#include <stdio.h>

static spill_code_t use_feed(spill_store_t *store, spill_error_t *error)
{
    spill_array_t *feed = NULL;
    spill_slice_t *newest = NULL;
    spill_definition_t definition;
    bson_oid_t user;

    spill_definition_init(&definition, "feed"); /* the preset "feed-recent" */
    bson_oid_init_from_string(&user, "65f0c0ffee0123456789abcd");
    bson_t *like = BCON_NEW("type", "like", "by", "ada");
    spill_value_t owner = spill_value_from_oid(&user);
    spill_value_t element = spill_value_from_document(like);

    spill_code_t code = spill_store_define(store, &definition, error);
    if (code == SPILL_OK)
        code = spill_array_open(store, "feed", &feed, error);
    if (code == SPILL_OK)
        code = spill_array_append(feed, &owner, &element, 1, NULL, NULL, error);
    if (code == SPILL_OK)
        code = spill_array_read(feed, &owner, NULL, &newest, error);
    for (size_t i = 0; newest && i < newest->count; i++) {
        char *json = spill_value_to_json(&newest->elements[i].value, false);
        printf("%lld: %s\n", (long long)newest->elements[i].seq, json);
        bson_free(json);
    }
    spill_slice_free(newest);
    spill_array_close(feed);
    bson_destroy(like);
    return code;
}

int main(int argc, char **argv)
{
    spill_error_t error;
    spill_store_t *store;
    spill_code_t code = spill_store_open(argc > 1 ? argv[1] : "memory:", NULL, &store, &error);
    if (code == SPILL_OK)
        code = use_feed(store, &error);
    if (code != SPILL_OK)
        fprintf(stderr, "%s: %s\n", spill_code_name(code), error.message);
    spill_store_close(store, NULL);
    return code == SPILL_OK ? 0 : 1;
}
