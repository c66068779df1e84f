/*
 * The products that each shopper viewed last: a capped array keeps the newest 50 in the shopper's
 * own document, newest first. Each new product drops the oldest one.
 *
 *   recently_viewed [STORE]      STORE is rocksdb:PATH; without it, a store in memory
 */
#include <spillway/spillway.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 50, VIEWS = 1000 };

static void check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK) {
        fprintf(stderr, "%s: %s\n", spill_code_name(code), error->message);
        exit(1);
    }
}

static spill_array_t *open_viewed(spill_store_t *store)
{
    spill_error_t error;
    spill_definition_t viewed;
    spill_definition_init(&viewed, "viewed");
    spill_definition_set_layout(&viewed, SPILL_LAYOUT_CAPPED);
    viewed.bounds.threshold = KEPT;
    viewed.order = SPILL_ARRAY_NEWEST_FIRST;
    strcpy(viewed.collection, "shoppers");
    strcpy(viewed.array, "recentlyViewed");
    strcpy(viewed.count_field, ""); /* not needed: the count is the array's length */
    check(spill_store_define(store, &viewed, &error), &error);

    spill_array_t *array;
    check(spill_array_open(store, "viewed", &array, &error), &error);
    return array;
}

static void view(spill_array_t *viewed, const spill_value_t *shopper, int32_t product)
{
    spill_error_t error;
    bson_t *seen = BCON_NEW("productId", BCON_INT32(product));
    spill_value_t element = spill_value_from_document(seen);
    check(spill_array_append(viewed, shopper, &element, 1, NULL, NULL, &error), &error);
    bson_destroy(seen);
}

int main(int argc, char **argv)
{
    spill_error_t error;
    spill_store_t *store;
    check(spill_store_open(argc > 1 ? argv[1] : "memory:", NULL, &store, &error), &error);
    spill_array_t *viewed = open_viewed(store);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t shopper = spill_value_from_utf8(&storage, "ada");
    for (int32_t product = 0; product < VIEWS; product++)
        view(viewed, &shopper, product);

    spill_count_t count;
    check(spill_array_count(viewed, &shopper, &count, &error), &error);
    printf("%" PRId64 " of %" PRId64 " views are kept\n", count.count, count.next);

    spill_slice_t *newest;
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.limit = 3;
    check(spill_array_read(viewed, &shopper, &options, &newest, &error), &error);
    for (size_t i = 0; i < newest->count; i++) {
        char *json = spill_value_to_json(&newest->elements[i].value, true);
        printf("view %" PRId64 ": %s\n", newest->elements[i].seq, json);
        bson_free(json);
    }
    bool right = count.count == KEPT && newest->count == 3 && newest->elements[0].seq == VIEWS - 1;
    spill_slice_free(newest);
    bson_destroy(&storage);
    spill_array_close(viewed);
    check(spill_store_close(store, &error), &error);
    return right ? 0 : 1;
}
