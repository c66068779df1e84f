/*
 * The input is a document. If one of its first two values can be an owner, its key must end at the
 * right byte. The two keys must be equal exactly if the values are. The input is also read as a
 * key.
 */
#include "bson/key.h"
#include "bson/value.h"
#include "fuzz.h"

#include <string.h>

static void check_key(const spill_buffer_t *key)
{
    REQUIRE(key->size <= SPILL_OWNER_KEY_MAX);
    REQUIRE(spill_owner_key_length(key->data, key->size) == key->size);
    for (size_t cut = key->size > 64 ? key->size - 64 : 0; cut < key->size; cut++)
        REQUIRE(spill_owner_key_length(key->data, cut) == 0);
}

static void check_pair(const spill_value_t *left, const spill_value_t *right)
{
    spill_buffer_t left_key = SPILL_BUFFER_INIT;
    spill_buffer_t right_key = SPILL_BUFFER_INIT;
    if (spill_owner_key(left, &left_key, NULL) == SPILL_OK) {
        check_key(&left_key);
        if (spill_owner_key(right, &right_key, NULL) == SPILL_OK) {
            bool equal = spill_value_compare(left, right) == 0;
            REQUIRE(spill_buffer_equal(&left_key, &right_key) == equal);
            REQUIRE(spill_value_same_owner(left, right) == equal);
        }
    }
    spill_buffer_release(&left_key);
    spill_buffer_release(&right_key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    REQUIRE(spill_owner_key_length(data, size) <= size);
    bson_t document;
    if (!bson_init_static(&document, data, size) || !spill_document_valid(&document))
        return 0;
    spill_fields_t fields = spill_fields_of(data);
    const char *name;
    spill_value_t first, second;
    if (spill_fields_next(&fields, &name, &first))
        check_pair(&first, spill_fields_next(&fields, &name, &second) ? &second : &first);
    return 0;
}
