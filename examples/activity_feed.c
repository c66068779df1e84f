/*
 * A social platform's feeds: most users have a few hundred activities, a bot has 50 000, and no
 * document is larger than a few hundred kilobytes. The user's own document has the newest
 * activities, so reading the first page of a feed needs only that document, however long the feed
 * is.
 *
 *   activity_feed [STORE]      STORE is rocksdb:PATH; without it, a store in memory
 */
#include <spillway/spillway.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 500, CALLS_FOR_A_PAGE = 2 };

static void check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK) {
        fprintf(stderr, "%s: %s\n", spill_code_name(code), error->message);
        exit(1);
    }
}

/* Documents of 200 KB and activities of 200 bytes: 1000 of them in a head, which the preset has. */
static spill_array_t *open_feeds(spill_store_t *store)
{
    spill_error_t error;
    spill_definition_t feeds;
    spill_array_t *array;
    check(spill_definition_preset(&feeds, "feed-recent", "feeds", &error), &error);
    feeds.bounds.threshold = spill_threshold(200 * 1000, 200);
    check(spill_store_define(store, &feeds, &error), &error);
    check(spill_array_open(store, "feeds", &array, &error), &error);
    return array;
}

static void add_user(spill_array_t *feeds, const spill_value_t *user, const char *name)
{
    spill_error_t error;
    bson_t *update = BCON_NEW("$set", "{", "name", BCON_UTF8(name), "}");
    check(spill_array_update(feeds, user, update, &error), &error);
    bson_destroy(update);
}

static void act(spill_array_t *feeds, const spill_value_t *user, int activities)
{
    static const char *const types[] = {"post", "like", "comment", "share"};
    spill_error_t error;
    bson_t *documents[BATCH];
    spill_value_t elements[BATCH];
    for (int at = 0; at < activities; at += BATCH) {
        int count = activities - at < BATCH ? activities - at : BATCH;
        for (int i = 0; i < count; i++) {
            documents[i] = BCON_NEW("type", BCON_UTF8(types[(at + i) % 4]), "ts",
                                    BCON_DATE_TIME(1700000000000 + 1000LL * (at + i)), "content",
                                    "what a user of a platform may have to say");
            elements[i] = spill_value_from_document(documents[i]);
        }
        check(spill_array_append(feeds, user, elements, (size_t)count, NULL, NULL, &error), &error);
        for (int i = 0; i < count; i++)
            bson_destroy(documents[i]);
    }
}

/* Read the first page, and count the store operations. */
static int64_t read_first_page(spill_store_t *store, spill_array_t *feeds,
                               const spill_value_t *user)
{
    spill_error_t error;
    spill_counters_t before, after;
    spill_slice_t *page;
    spill_store_counters(store, &before);
    check(spill_array_read_newest(feeds, user, 0, 20, &page, &error), &error);
    spill_store_counters(store, &after);
    char *newest = spill_value_to_json(&page->elements[0].value, false);
    printf("    the newest of %zu: number %" PRId64 ", %s\n", page->count, page->elements[0].seq,
           newest);
    bson_free(newest);
    spill_slice_free(page);
    return after.calls - before.calls;
}

static bool largest(void *context, const char *collection, const bson_t *document)
{
    int64_t *bytes = context;
    (void)collection;
    if (*bytes < document->len)
        *bytes = document->len;
    return true;
}

static bool show(spill_store_t *store, spill_array_t *feeds, const spill_value_t *user)
{
    spill_error_t error;
    spill_count_t count;
    int64_t bytes = 0;
    check(spill_array_count(feeds, user, &count, &error), &error);
    check(spill_array_documents(feeds, user, false, largest, &bytes, &error), &error);
    printf("    %" PRId64 " activities in %" PRId64 " documents, the largest of %" PRId64
           " bytes\n",
           count.count, 1 + count.pages, bytes);
    int64_t calls = read_first_page(store, feeds, user);
    printf("    the first page took %" PRId64 " store operation(s)\n", calls);
    return calls < CALLS_FOR_A_PAGE && bytes < 1024 * 1024;
}

int main(int argc, char **argv)
{
    spill_error_t error;
    spill_store_t *store;
    check(spill_store_open(argc > 1 ? argv[1] : "memory:", NULL, &store, &error), &error);
    spill_array_t *feeds = open_feeds(store);

    static const struct {
        const char *id, *name;
        int activities;
    } users[] = {{"user-00042", "Alice", 300}, {"user-00043", "a bot", 50000}};
    bool right = true;
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_value_t user = spill_value_from_utf8(&storage, users[i].id);
        printf("%s, %s\n", users[i].id, users[i].name);
        add_user(feeds, &user, users[i].name);
        act(feeds, &user, users[i].activities);
        right = show(store, feeds, &user) && right;
        bson_destroy(&storage);
    }

    spill_array_close(feeds);
    check(spill_store_close(store, &error), &error);
    return right ? 0 : 1;
}
