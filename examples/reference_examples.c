/*
 * The examples of the C reference: what stands between two marks of one name is part of the manual
 * page of a function. main() runs them in the order of a program's life.
 *
 *   reference_examples [STORE]      STORE is rocksdb:PATH or mongodb://...; without it, one in
 * memory
 */
#include <spillway/spillway.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK) {
        fprintf(stderr, "%s: %s\n", spill_code_name(code), error->message);
        exit(1);
    }
}

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "not true: %s\n", what);
        exit(1);
    }
}

static spill_store_t *open_store(const char *uri)
{
    /* [open] */
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.cache_bytes = INT64_C(256) << 20;

    spill_store_t *store;
    spill_error_t error;
    if (spill_store_open(uri, &options, &store, &error) != SPILL_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    /* [open] */
    return store;
}

static void define(spill_store_t *store)
{
    spill_error_t error;
    /* [define] */
    spill_definition_t feed;
    spill_definition_init(&feed, "feed"); /* the preset "feed-recent" */
    feed.bounds.threshold = 100;          /* elements in the user's own document */
    feed.bounds.page_capacity = 100;      /* elements in a page */
    feed.keep_elements = 10000;           /* appends delete older ones */
    strcpy(feed.id_field, "eventId");     /* for spill_array_find_id() */
    check(spill_store_define(store, &feed, &error), &error); /* again at each start: no change */
    /* [define] */
}

static spill_array_t *open_array(spill_store_t *store)
{
    spill_error_t error;
    /* [open_array] */
    spill_array_t *feed;
    spill_code_t code = spill_array_open(store, "feed", &feed, &error);
    if (code == SPILL_NOT_FOUND)
        fprintf(stderr, "define it first: %s\n", error.message);
    /* [open_array] */
    check(code, &error);
    return feed;
}

static int64_t append(spill_array_t *feed, const spill_value_t *owner)
{
    spill_error_t error;
    /* [append] */
    bson_t *event = BCON_NEW("eventId", BCON_INT64(7), "type", "like", "by", "ada");
    spill_value_t element = spill_value_from_document(event); /* borrows from event */
    spill_append_result_t result;
    check(spill_array_append(feed, owner, &element, 1, NULL, &result, &error), &error);
    printf("element %" PRId64 "\n", result.first);
    bson_destroy(event);
    /* [append] */
    return result.first;
}

static void append_once(spill_array_t *feed, const spill_value_t *owner)
{
    spill_error_t error;
    /* [op_base] */
    bson_t *event = BCON_NEW("eventId", BCON_INT64(8), "type", "post");
    spill_value_t element = spill_value_from_document(event);
    spill_op_t op = {.id = "event-8", .id_bytes = strlen("event-8")};
    spill_append_options_t options;
    spill_append_options_init(&options);
    options.op = &op;

    check(spill_array_op_base(feed, owner, &op.base, &error), &error);
    spill_code_t code = SPILL_UNKNOWN;
    for (int try = 0; try < 5 && (code == SPILL_UNKNOWN || error.retryable); try++) {
        code = spill_array_append(feed, owner, &element, 1, &options, NULL, &error);
        if (code == SPILL_OK)
            break; /* it is stored once, however often it was tried */
    }
    bson_destroy(event);
    /* [op_base] */
    check(code, &error);
}

static void read_all(spill_array_t *feed, const spill_value_t *owner)
{
    spill_error_t error;
    /* [read] */
    spill_read_options_t options;
    spill_read_options_init(&options); /* the newest 20 */
    bool more = true;
    while (more) {
        spill_slice_t *slice;
        check(spill_array_read(feed, owner, &options, &slice, &error), &error);
        for (size_t i = 0; i < slice->count; i++) {
            char *json = spill_value_to_json(&slice->elements[i].value, false);
            printf("%" PRId64 ": %s\n", slice->elements[i].seq, json);
            bson_free(json);
        }
        more = slice->more;
        options.before = slice->next; /* continue with the elements before this slice */
        spill_slice_free(slice);
    }
    /* [read] */
}

static void read_in_time(spill_array_t *feed, const spill_value_t *owner)
{
    spill_error_t error;
    /* [deadline] */
    spill_count_t count;
    spill_deadline_t outer = spill_deadline_begin(60000); /* milliseconds */
    spill_code_t code = spill_array_count(feed, owner, &count, &error);
    spill_deadline_end(outer);
    if (code == SPILL_TIMED_OUT)
        fprintf(stderr, "no answer within a minute\n");
    /* [deadline] */
    check(code, &error);
    require(count.count == 2, "two elements");
}

static void edit(spill_array_t *feed, const spill_value_t *owner)
{
    spill_error_t error;
    /* [find_id] */
    bson_t storage = BSON_INITIALIZER;
    spill_value_t id = spill_value_from_int64(&storage, 7);
    int64_t seq;
    spill_code_t code = spill_array_find_id(feed, owner, &id, &seq, &error);
    if (code == SPILL_NOT_FOUND)
        printf("no event 7\n");
    bson_destroy(&storage);
    /* [find_id] */
    check(code, &error);
    /* [edit] */
    bson_t *event = BCON_NEW("eventId", BCON_INT64(7), "type", "unlike", "by", "ada");
    spill_value_t element = spill_value_from_document(event);
    check(spill_array_edit(feed, owner, seq, &element, &error), &error);
    bson_destroy(event);
    /* [edit] */
}

/* [export] */
static bool print_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    int64_t *printed = context;
    char *user = spill_value_to_json(owner, false);
    char *json = spill_value_to_json(&element->value, false);
    printf("%s %" PRId64 " %s\n", user, element->seq, json);
    bson_free(json);
    bson_free(user);
    ++*printed;
    return true; /* continue */
}

static int64_t print_all(spill_array_t *feed)
{
    spill_error_t error;
    int64_t printed = 0;
    check(spill_array_export(feed, NULL, print_element, &printed, &error), &error);
    return printed;
}
/* [export] */

static void trim(spill_array_t *feed, const spill_value_t *owner)
{
    spill_error_t error;
    /* [trim] */
    int64_t below;
    check(spill_array_trim_keep(feed, owner, 1, &below, &error), &error);
    printf("elements below %" PRId64 " were removed\n", below);
    /* [trim] */
    require(below == 1, "one element was removed");
}

int main(int argc, char **argv)
{
    spill_error_t error;
    spill_store_t *store = open_store(argc > 1 ? argv[1] : "memory:");
    define(store);
    spill_array_t *feed = open_array(store);
    bson_oid_t user;
    bson_oid_init(&user, NULL);
    spill_value_t owner = spill_value_from_oid(&user);

    require(append(feed, &owner) == 0, "the first element has the number 0");
    append_once(feed, &owner);
    read_all(feed, &owner);
    read_in_time(feed, &owner);
    edit(feed, &owner);
    require(print_all(feed) >= 2, "the walk visits both elements");
    trim(feed, &owner);

    spill_array_close(feed);
    check(spill_store_close(store, &error), &error);
    return 0;
}
