/*
 * Append exactly once although answers get lost: an operation has an id. A retry with the same id
 * finds that the append is done, and returns the same answer.
 *
 *   exactly_once [STORE]      STORE is rocksdb:PATH; without it, a store in memory
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

static spill_array_t *open_orders(spill_store_t *store)
{
    spill_error_t error;
    spill_definition_t orders;
    check(spill_definition_preset(&orders, "feed-recent", "orders", &error), &error);
    check(spill_store_define(store, &orders, &error), &error);

    spill_array_t *array;
    check(spill_array_open(store, "orders", &array, &error), &error);
    return array;
}

/* One try. If the caller does not know whether it succeeded, it repeats the same call. */
static spill_append_result_t try_order(spill_array_t *orders, const spill_value_t *customer,
                                       const spill_op_t *op)
{
    spill_error_t error;
    bson_t *order = BCON_NEW("order", "A-1017", "total", BCON_INT32(4200));
    bson_t *update = BCON_NEW("$inc", "{", "spent", BCON_INT32(4200), "}");
    spill_value_t element = spill_value_from_document(order);

    spill_append_options_t options;
    spill_append_options_init(&options);
    options.op = op;
    options.update = update; /* one atomic step with the append: applied once or not at all */

    spill_append_result_t result;
    check(spill_array_append(orders, customer, &element, 1, &options, &result, &error), &error);
    printf("number %" PRId64 "%s\n", result.first,
           result.repeated ? " (it was there already)" : "");
    bson_destroy(update);
    bson_destroy(order);
    return result;
}

int main(int argc, char **argv)
{
    spill_error_t error;
    spill_store_t *store;
    check(spill_store_open(argc > 1 ? argv[1] : "memory:", NULL, &store, &error), &error);
    spill_array_t *orders = open_orders(store);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t customer = spill_value_from_utf8(&storage, "customer 7");

    /* Store the id and the base durably before the first try: a retry needs both. */
    const char *id = "payment 5f0c-1017";
    spill_op_t op = {.id = id, .id_bytes = strlen(id)};
    check(spill_array_op_base(orders, &customer, &op.base, &error), &error);

    spill_append_result_t first = try_order(orders, &customer, &op);
    spill_append_result_t again = try_order(orders, &customer, &op);

    spill_count_t count;
    check(spill_array_count(orders, &customer, &count, &error), &error);
    printf("tried twice, stored %" PRId64 " time\n", count.count);

    bson_destroy(&storage);
    spill_array_close(orders);
    check(spill_store_close(store, &error), &error);
    return count.count == 1 && again.repeated && again.first == first.first ? 0 : 1;
}
