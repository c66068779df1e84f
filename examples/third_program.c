/*
 * The third program: visit every element of an array, oldest first, and read a field of each.
 *
 *   third_program [STORE]      STORE is rocksdb:PATH or mongodb://...; without it, one in memory
 */
#include <spillway/spillway.h>

#include <stdio.h>

typedef struct count {
    long long elements, minutes;
} count_t;

/* Called for each element. `element` is only valid until the return. */
static bool add_minutes(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    count_t *count = context;
    bson_t run;
    bson_iter_t field;
    (void)owner;
    count->elements++;
    if (spill_value_to_document(&element->value, &run) &&
        bson_iter_init_find(&field, &run, "minutes"))
        count->minutes += bson_iter_as_int64(&field);
    return true; /* false ends the walk with SPILL_CANCELLED */
}

static spill_code_t print_sum(spill_array_t *feed, const spill_value_t *owner, spill_error_t *error)
{
    count_t count = {0, 0};
    spill_code_t code = spill_array_export(feed, owner, add_minutes, &count, error);
    if (code == SPILL_OK)
        printf("%lld runs, %lld minutes\n", count.elements, count.minutes);
    return code;
}

static spill_code_t add_runs(spill_array_t *feed, const spill_value_t *owner, int number,
                             spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    for (int i = 0; i < number && code == SPILL_OK; i++) {
        bson_t *run = BCON_NEW("type", "run", "minutes", BCON_INT32(20 + i % 3));
        spill_value_t element = spill_value_from_document(run);
        code = spill_array_append(feed, owner, &element, 1, NULL, NULL, error);
        bson_destroy(run);
    }
    return code;
}

int main(int argc, char **argv)
{
    spill_error_t error;
    spill_store_t *store;
    spill_array_t *feed = NULL;
    spill_definition_t definition;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    spill_definition_init(&definition, "feed");
    definition.bounds.threshold = definition.bounds.page_capacity = 50; /* so there are pages */
    spill_code_t code = spill_store_open(argc > 1 ? argv[1] : "memory:", NULL, &store, &error);
    if (code == SPILL_OK)
        code = spill_store_define(store, &definition, &error);
    if (code == SPILL_OK)
        code = spill_array_open(store, "feed", &feed, &error);
    if (code == SPILL_OK)
        code = add_runs(feed, &owner, 300, &error);
    if (code == SPILL_OK)
        code = print_sum(feed, &owner, &error);
    if (code != SPILL_OK)
        fprintf(stderr, "%s: %s\n", spill_code_name(code), error.message);
    spill_array_close(feed);
    spill_store_close(store, NULL);
    bson_destroy(&storage);
    return code == SPILL_OK ? 0 : 1;
}
