/*
 * Product reviews in a separate collection: the product's document has no reviews, only their count
 * and average rating, which are exact after every change. Then the same with the three best reviews
 * in the product's document, for a page that shows them.
 *
 *   product_reviews [STORE]      STORE is rocksdb:PATH; without it, a store in memory
 */
#include <spillway/spillway.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char mountain_100[] = "ccc100030000000000000000";

static void check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK) {
        fprintf(stderr, "%s: %s\n", spill_code_name(code), error->message);
        exit(1);
    }
}

static spill_array_t *open_reviews(spill_store_t *store)
{
    spill_error_t error;
    spill_definition_t reviews;
    spill_array_t *array;
    check(spill_definition_preset(&reviews, "reviews-separate", "reviews", &error), &error);
    check(spill_store_define(store, &reviews, &error), &error);
    check(spill_array_open(store, "reviews", &array, &error), &error);
    return array;
}

/* A second array of the same products, with its own field and collection. */
static spill_array_t *open_top_n_reviews(spill_store_t *store)
{
    spill_error_t error;
    spill_definition_t best;
    spill_array_t *array;
    check(spill_definition_preset(&best, "reviews-subset", "best", &error), &error);
    strcpy(best.array, "bestReviews");
    strcpy(best.page_collection, "ratedReviews");
    check(spill_store_define(store, &best, &error), &error);
    check(spill_array_open(store, "best", &array, &error), &error);
    return array;
}

/* The application sets the other fields of the product's document. */
static void add_product(spill_array_t *reviews, const spill_value_t *product)
{
    spill_error_t error;
    bson_t *update = BCON_NEW("$set", "{", "name", "Mountain-100 Silver, 44", "price",
                              BCON_DOUBLE(3399.99), "}");
    check(spill_array_update(reviews, product, update, &error), &error);
    bson_destroy(update);
}

/* A review. Its stored document also has `productId`. Days count from 2025-06-15. */
static bson_t *make_review(const char *customer, int rating, const char *title, int day)
{
    const int64_t start_ms = INT64_C(1749981600000);
    return BCON_NEW("customerName", BCON_UTF8(customer), "rating", BCON_INT32(rating), "title",
                    BCON_UTF8(title), "createdAt",
                    BCON_DATE_TIME(start_ms + INT64_C(86400000) * day));
}

static spill_value_t value_of(const bson_t *review)
{
    return (spill_value_t){
        .data = bson_get_data(review), .size_bytes = review->len, .type = BSON_TYPE_DOCUMENT};
}

static int64_t write_review(spill_array_t *reviews, const spill_value_t *product, bson_t *review)
{
    spill_error_t error;
    spill_append_result_t result;
    spill_value_t element = value_of(review);
    check(spill_array_append(reviews, product, &element, 1, NULL, &result, &error), &error);
    bson_destroy(review);
    return result.first;
}

/* Check count and average. This reads one document, whatever the number of reviews. */
static bool has(spill_array_t *reviews, const spill_value_t *product, int64_t count, double average)
{
    spill_error_t error;
    spill_count_t now;
    check(spill_array_count(reviews, product, &now, &error), &error);
    printf("%" PRId64 " reviews, average %.4f\n", now.count, now.average);
    return now.count == count && now.average > average - 1e-9 && now.average < average + 1e-9;
}

static bool print_document(void *context, const char *collection, const bson_t *document)
{
    int *documents = context;
    char *json = bson_as_relaxed_extended_json(document, NULL);
    printf("%-9s %s\n", collection, json);
    bson_free(json);
    ++*documents;
    return true;
}

/* Read the newest ten reviews for a product's page: the product's document and ten reviews. */
static bool newest_are_right(spill_array_t *reviews, const spill_value_t *product)
{
    spill_error_t error;
    spill_slice_t *page;
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.limit = 10;
    check(spill_array_read(reviews, product, &options, &page, &error), &error);
    bool right = page->count == 10 && page->more;
    for (size_t i = 0; right && i < page->count; i++)
        right = page->elements[i].seq == 109 - (int64_t)i;
    spill_slice_free(page);
    return right;
}

/* Whether the best reviews have these numbers. This reads only the product's document. */
static bool top_n_are(spill_array_t *best, const spill_value_t *product, int64_t first,
                      int64_t second, int64_t third)
{
    const int64_t expected[] = {first, second, third};
    spill_error_t error;
    spill_slice_t *top;
    check(spill_array_top(best, product, 3, &top, &error), &error);
    bool right = top->count == 3;
    for (size_t i = 0; i < top->count; i++) {
        char *json = spill_value_to_json(&top->elements[i].value, false);
        printf("%zu. %s\n", i + 1, json);
        bson_free(json);
        right = right && top->elements[i].seq == expected[i];
    }
    spill_slice_free(top);
    return right;
}

/* After a review is withdrawn, the next-ranked one takes its place. */
static bool run_top_n(spill_array_t *best, const spill_value_t *product)
{
    spill_error_t error;
    int documents = 0;
    for (int i = 0; i < 20; i++)
        write_review(best, product, make_review("Gitte Olsen", i * 7 % 9 + 1, "Rated 1 to 9", i));
    bool right = top_n_are(best, product, 14, 5, 19);
    check(spill_array_documents(best, product, true, print_document, &documents, &error), &error);
    check(spill_array_remove(best, product, 5, &error), &error);
    return right && documents == 21 && top_n_are(best, product, 14, 19, 10);
}

static bool run_reviews(spill_array_t *reviews, const spill_value_t *product_id)
{
    spill_error_t error;
    spill_value_t product = *product_id;
    int documents = 0;

    add_product(reviews, &product);
    write_review(reviews, &product, make_review("Nikhil Barot", 5, "Handles rough terrain", 0));
    int64_t second =
        write_review(reviews, &product, make_review("Dusan Sykora", 4, "Good value for money", 17));
    bool right = has(reviews, &product, 2, 4.5);
    check(spill_array_documents(reviews, &product, true, print_document, &documents, &error),
          &error);
    right = right && documents == 3;

    /* The customer changes the review, and then withdraws it. */
    bson_t *changed = make_review("Dusan Sykora", 2, "Not that good", 17);
    spill_value_t element = value_of(changed);
    check(spill_array_edit(reviews, &product, second, &element, &error), &error);
    bson_destroy(changed);
    right = right && has(reviews, &product, 2, 3.5);
    check(spill_array_remove(reviews, &product, second, &error), &error);
    right = right && has(reviews, &product, 1, 5);

    for (int i = 2; i < 110; i++)
        write_review(reviews, &product, make_review("Moina Potongia", i % 5 + 1, "So so", i));
    right = right && has(reviews, &product, 109, (5 + 327.0) / 109);
    return right && newest_are_right(reviews, &product);
}

int main(int argc, char **argv)
{
    spill_error_t error;
    spill_store_t *store;
    check(spill_store_open(argc > 1 ? argv[1] : "memory:", NULL, &store, &error), &error);
    bson_t storage = BSON_INITIALIZER;
    bson_oid_t id;
    bson_iter_t iter;
    bson_oid_init_from_string(&id, mountain_100);
    BSON_APPEND_OID(&storage, "", &id);
    bson_iter_init_find(&iter, &storage, "");
    spill_value_t product = spill_value_from_iter(&iter);
    spill_array_t *reviews = open_reviews(store);
    spill_array_t *best = open_top_n_reviews(store);
    bool right = run_reviews(reviews, &product) && run_top_n(best, &product);
    spill_array_close(reviews);
    spill_array_close(best);
    bson_destroy(&storage);
    check(spill_store_close(store, &error), &error);
    return right ? 0 : 1;
}
