/*
 * A separate program, built against the installed library: see CMakeLists.txt, or
 *
 *   cc consumer.c -o consumer $(pkg-config --cflags --libs spillway)
 */
#include <spillway/spillway.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static spill_code_t append_hello(spill_store_t *store, spill_count_t *count, spill_error_t *error)
{
    spill_definition_t definition;
    spill_definition_init(&definition, "greetings");
    spill_code_t code = spill_store_define(store, &definition, error);
    spill_array_t *array = NULL;
    if (code == SPILL_OK) {
        code = spill_array_open(store, "greetings", &array, error);
    }

    bson_t owners = BSON_INITIALIZER;
    bson_t elements = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&owners, "world");
    spill_value_t element = spill_value_from_utf8(&elements, "hello");
    spill_append_result_t result;
    if (code == SPILL_OK) {
        code = spill_array_append(array, &owner, &element, 1, NULL, &result, error);
    }
    if (code == SPILL_OK) {
        code = spill_array_count(array, &owner, count, error);
    }
    bson_destroy(&elements);
    bson_destroy(&owners);
    spill_array_close(array);
    return code;
}

int main(void)
{
    spill_error_t error;
    spill_store_t *store;
    spill_count_t count = {0};
    spill_code_t code = spill_store_open("memory:", NULL, &store, &error);
    if (code == SPILL_OK) {
        code = append_hello(store, &count, &error);
        spill_store_close(store, NULL);
    }
    if (code != SPILL_OK) {
        fprintf(stderr, "%s: %s\n", spill_code_name(code), error.message);
        return 1;
    }
    printf("Spillway %s: %" PRId64 " element\n", spill_version(), count.count);
    return count.count == 1 && strcmp(spill_version(), SPILL_VERSION) == 0 ? 0 : 1;
}
