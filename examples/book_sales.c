/*
 * The MongoDB manual's outlier pattern: most books have few buyers, all in the book's own document.
 * A popular book has the first 50 buyers there, `has_extras`, and the other buyers in
 * `extra_sales`.
 *
 *   book_sales [STORE]      STORE is rocksdb:PATH; without it, a store in memory
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

/* The preset has the manual's names, and its threshold of 50. */
static spill_array_t *open_sales(spill_store_t *store)
{
    spill_error_t error;
    spill_definition_t sales;
    spill_array_t *array;
    check(spill_definition_preset(&sales, "sales", "sales", &error), &error);
    check(spill_store_define(store, &sales, &error), &error);
    check(spill_array_open(store, "sales", &array, &error), &error);
    return array;
}

/* The application sets the other fields of the book's document. */
static void add_book(spill_array_t *sales, const spill_value_t *book, const char *title, int year,
                     const char *author)
{
    spill_error_t error;
    bson_t *update = BCON_NEW("$set", "{", "title", BCON_UTF8(title), "year", BCON_INT32(year),
                              "author", BCON_UTF8(author), "}");
    check(spill_array_update(sales, book, update, &error), &error);
    bson_destroy(update);
}

static void sell(spill_array_t *sales, const spill_value_t *book, int buyer)
{
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    char name[16];
    snprintf(name, sizeof name, "user%02d", buyer);
    spill_value_t element = spill_value_from_utf8(&storage, name);
    check(spill_array_append(sales, book, &element, 1, NULL, NULL, &error), &error);
    bson_destroy(&storage);
}

/* Print a document as a document database stores it, with only the lengths of its arrays. */
static bool print_document(void *context, const char *collection, const bson_t *document)
{
    int64_t *documents = context;
    bson_t shown = BSON_INITIALIZER;
    bson_copy_to_excluding_noinit(document, &shown, "customers_purchased",
                                  "customers_purchased_extra", NULL);
    const char *arrays[] = {"customers_purchased", "customers_purchased_extra"};
    for (int i = 0; i < 2; i++) {
        bson_iter_t iter, elements;
        int length = 0;
        if (!bson_iter_init_find(&iter, document, arrays[i]) ||
            !bson_iter_recurse(&iter, &elements))
            continue;
        while (bson_iter_next(&elements))
            length++;
        char text[32];
        snprintf(text, sizeof text, "%d elements", length);
        BSON_APPEND_UTF8(&shown, arrays[i], text);
    }
    char *json = bson_as_relaxed_extended_json(&shown, NULL);
    printf("%-12s %s\n", collection, json);
    bson_free(json);
    bson_destroy(&shown);
    ++*documents;
    return true;
}

/* Print a book's documents and return their number. Option plain leaves out the bookkeeping. */
static int64_t print_book(spill_array_t *sales, const spill_value_t *book)
{
    spill_error_t error;
    int64_t documents = 0;
    check(spill_array_documents(sales, book, true, print_document, &documents, &error), &error);
    return documents;
}

/* Showing a book and its first buyers needs only one document. */
static bool first_buyers_are_right(spill_array_t *sales, const spill_value_t *book)
{
    spill_error_t error;
    spill_read_options_t options;
    spill_slice_t *page;
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    options.limit = 50;
    check(spill_array_read(sales, book, &options, &page, &error), &error);
    bool right = page->count == 50;
    for (size_t i = 0; right && i < page->count; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "user%02zu", i);
        char *json = spill_value_to_json(&page->elements[i].value, false);
        right = strncmp(json + 1, expected, strlen(expected)) == 0;
        bson_free(json);
    }
    spill_slice_free(page);
    return right;
}

int main(int argc, char **argv)
{
    spill_error_t error;
    spill_store_t *store;
    check(spill_store_open(argc > 1 ? argv[1] : "memory:", NULL, &store, &error), &error);
    spill_array_t *sales = open_sales(store);

    bson_t storage = BSON_INITIALIZER;
    spill_value_t typical = spill_value_from_int64(&storage, 1);
    spill_value_t popular = spill_value_from_int64(&storage, 2);
    add_book(sales, &typical, "Invisible Cities", 1972, "Italo Calvino");
    add_book(sales, &popular, "The Wooden Amulet", 2023, "Lesley Moreno");
    for (int buyer = 0; buyer < 3; buyer++)
        sell(sales, &typical, buyer);
    for (int buyer = 0; buyer < 1000; buyer++)
        sell(sales, &popular, buyer);

    bool right = print_book(sales, &typical) == 1;     /* only the book's document */
    right = print_book(sales, &popular) == 2 && right; /* and one of extra_sales */
    right = first_buyers_are_right(sales, &popular) && right;

    bson_destroy(&storage);
    spill_array_close(sales);
    check(spill_store_close(store, &error), &error);
    return right ? 0 : 1;
}
