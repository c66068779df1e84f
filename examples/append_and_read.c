/*
 * Append one element and a batch to an array, then read the whole array page by page with a cursor.
 *
 *   append_and_read [STORE]      STORE is rocksdb:PATH; without it, a store in memory
 */
#include <spillway/spillway.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK) {
        fprintf(stderr, "%s: %s\n", spill_code_name(code), error->message);
        exit(1);
    }
}

/* A user's feed keeps its newest 100 to 200 activities in the user's own document. */
static spill_array_t *open_feed(spill_store_t *store)
{
    spill_error_t error;
    spill_definition_t feed;
    check(spill_definition_preset(&feed, "feed-recent", "feed", &error), &error);
    feed.bounds.threshold = 100;
    feed.bounds.page_capacity = 100;
    check(spill_store_define(store, &feed, &error), &error);

    spill_array_t *array;
    check(spill_array_open(store, "feed", &array, &error), &error);
    return array;
}

static void append_one(spill_array_t *feed, const spill_value_t *owner)
{
    spill_error_t error;
    bson_t *activity = BCON_NEW("type", "joined", "group", "analytical engines");
    spill_value_t element = spill_value_from_document(activity);
    spill_append_result_t result;
    check(spill_array_append(feed, owner, &element, 1, NULL, &result, &error), &error);
    printf("appended number %" PRId64 "\n", result.first);
    bson_destroy(activity);
}

/* A batch that fits in a page is appended as a whole or not at all. This one is split into three.
 */
static void append_batch(spill_array_t *feed, const spill_value_t *owner)
{
    enum { BATCH = 250 };
    spill_error_t error;
    bson_t *activities[BATCH];
    spill_value_t elements[BATCH];
    for (int i = 0; i < BATCH; i++) {
        activities[i] = BCON_NEW("type", "note", "number", BCON_INT32(i));
        elements[i] = spill_value_from_document(activities[i]);
    }

    spill_append_result_t result;
    check(spill_array_append(feed, owner, elements, BATCH, NULL, &result, &error), &error);
    printf("appended %" PRId64 " more\n", result.count);

    for (int i = 0; i < BATCH; i++) {
        bson_destroy(activities[i]);
    }
}

static void print_page(const spill_slice_t *page)
{
    for (size_t i = 0; i < page->count; i++) {
        char *json = spill_value_to_json(&page->elements[i].value, false);
        printf("%6" PRId64 "  %s\n", page->elements[i].seq, json);
        bson_free(json);
    }
}

/* Read newest first. Appends do not invalidate the cursor: it is a sequence number. */
static int64_t read_all(spill_array_t *feed, const spill_value_t *owner)
{
    spill_error_t error;
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.limit = 20;

    int64_t elements = 0;
    bool more = true;
    while (more) {
        spill_slice_t *page;
        check(spill_array_read(feed, owner, &options, &page, &error), &error);
        if (elements == 0) {
            print_page(page);
        }
        elements += (int64_t)page->count;
        more = page->more;
        options.before = page->next;
        spill_slice_free(page);
    }
    return elements;
}

int main(int argc, char **argv)
{
    spill_error_t error;
    spill_store_t *store;
    check(spill_store_open(argc > 1 ? argv[1] : "memory:", NULL, &store, &error), &error);

    spill_array_t *feed = open_feed(store);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    append_one(feed, &owner);
    append_batch(feed, &owner);

    int64_t elements = read_all(feed, &owner);
    spill_count_t count;
    check(spill_array_count(feed, &owner, &count, &error), &error);
    printf("read %" PRId64 " elements; the count is %" PRId64 ": %" PRId64
           " in the head, the others in %" PRId64 " pages\n",
           elements, count.count, count.head, count.pages);

    bson_destroy(&storage);
    spill_array_close(feed);
    check(spill_store_close(store, &error), &error);
    return elements == count.count ? 0 : 1;
}
