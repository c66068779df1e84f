/*
 * The decoders of the embedded store's records: states of heads and pages, operations, elements,
 * other fields, catalog entries, keys and numbers. The first byte chooses the decoder. A record
 * that a decoder accepts must be well-formed and in range, and encode to the same value.
 */
#include "bson/element_fields.h"
#include "bson/value.h"
#include "fuzz.h"
#include "store/embedded/embedded_codec.h"

#include <string.h>

/* ---- states ---------------------------------------------------------------------------------- */

static void check_state(const spill_state_t *state)
{
    REQUIRE(state->present && state->incarnation >= 0 && state->incarnation <= SPILL_MOMENT_MAX);
    REQUIRE(state->first >= 0 && state->live >= 0 && state->pages >= 0 && state->op_count >= 0);
    REQUIRE(spill_state_end(state) >= state->first);
    REQUIRE(spill_state_slots(state) >= state->live);
    for (size_t i = 0; i < state->deleted.run_count; i++)
        REQUIRE(state->deleted.runs[i].first >= state->first &&
                state->deleted.runs[i].end <= spill_state_end(state));
}

static void read_state(const uint8_t *data, size_t size, bool head)
{
    static spill_state_t state, again;
    static spill_buffer_t bytes, twice;
    if (!spill_state_decode(data, size, head, &state)) {
        REQUIRE(!state.present && state.deleted.count == 0 && state.top.count == 0);
        return;
    }
    check_state(&state);
    spill_buffer_clear(&bytes);
    spill_buffer_clear(&twice);
    spill_state_encode(&state, head, &bytes);
    REQUIRE(spill_state_decode(bytes.data, bytes.size, head, &again));
    spill_state_encode(&again, head, &twice);
    REQUIRE(spill_buffer_equal(&bytes, &twice));
}

/* ---- operations, elements, documents --------------------------------------------------------- */

static void read_operation(const uint8_t *data, size_t size)
{
    spill_op_entry_t entry, again;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    if (!spill_op_decode(data, size, &entry))
        return;
    spill_op_encode(&entry, &bytes);
    REQUIRE(spill_op_decode(bytes.data, bytes.size, &again));
    REQUIRE(entry.seq == again.seq && entry.count == again.count &&
            spill_op_entry_is(&again, entry.id, entry.id_bytes));
    spill_buffer_release(&bytes);
}

static void read_operations(const uint8_t *data, size_t size)
{
    spill_op_entry_t entry;
    int64_t count = spill_op_list_count(data, size);
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    REQUIRE(count >= 0 && count <= SPILL_OPS_TOGETHER);
    for (int64_t i = 0; i < count; i++) {
        REQUIRE(spill_op_list_get(data, size, count, i, &entry));
        spill_op_list_add(&bytes, &entry);
    }
    REQUIRE(!spill_op_list_get(data, size, count, count, &entry));
    REQUIRE(count == 0 || spill_op_list_count(bytes.data, bytes.size) == count);
    spill_buffer_release(&bytes);
}

static void read_element(const uint8_t *data, size_t size)
{
    spill_value_t value, found;
    spill_buffer_t key = SPILL_BUFFER_INIT;
    int64_t time_ms;
    spill_definition_t definition;
    spill_definition_init(&definition, "feed");
    if (!spill_element_decode(&definition, data, size, &value))
        return;
    REQUIRE(spill_value_valid(&value) && spill_value_compare(&value, &value) == 0);
    for (int any = 0; any < 2; any++) {
        spill_buffer_clear(&key);
        if (spill_element_key(&value, "a", any, &key))
            REQUIRE(spill_element_id_key_length(key.data, key.size) == key.size);
    }
    spill_element_time_ms(&value, "a", &time_ms);
    spill_value_at(&value, "a.0.b", &found);
    spill_buffer_release(&key);
}

static void read_documents(const uint8_t *data, size_t size)
{
    static const uint8_t owner[] = {0x28, 'a', 0, 0};
    bson_t document;
    bool catalog = spill_catalog_decode(data, size, &document);
    bool fields = spill_fields_decode(data, size, owner, sizeof owner, &document);
    REQUIRE(catalog || !fields);
    if (catalog)
        REQUIRE(bson_count_keys(&document) <= size);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void same_key(const spill_record_key_t *key, const uint8_t *data, size_t size)
{
    REQUIRE(key->size == size && memcmp(key->data, data, size) == 0);
}

/* The input follows the prefix of an owner. */
static void read_key(const uint8_t *data, size_t size)
{
    static const uint8_t owner[] = {0x28, 'a', 0, 0};
    enum { PREFIX = 4 + sizeof owner, MOST = 1200 };
    uint8_t whole[PREFIX + MOST];
    spill_record_key_t key;
    const uint8_t *id;
    const char *window;
    size_t id_bytes;
    int64_t incarnation, first, seq;
    size = size < MOST ? size : MOST;
    spill_record_key_init(&key, 2, owner, sizeof owner);
    memcpy(whole, key.data, PREFIX);
    memcpy(whole + PREFIX, data, size);
    size += PREFIX;
    if (spill_record_key_is_element(&key, whole, size, &incarnation, &seq)) {
        spill_record_key_element(&key, incarnation, seq);
        same_key(&key, whole, size);
    } else if (spill_record_key_is_page(&key, whole, size, &seq)) {
        spill_record_key_page(&key, seq);
        same_key(&key, whole, size);
    } else if (spill_record_key_is_first(&key, whole, size, &incarnation, &first, &seq)) {
        spill_record_key_first(&key, incarnation, first, seq);
        same_key(&key, whole, size);
    } else if (spill_record_key_is_op(&key, whole, size, &incarnation, &seq)) {
        spill_record_key_op(&key, incarnation, seq);
        same_key(&key, whole, size);
    } else if (spill_record_key_is_ops(&key, whole, size, &incarnation, &seq)) {
        spill_record_key_ops(&key, incarnation, seq);
        same_key(&key, whole, size);
    } else if (spill_record_key_is_id(&key, whole, size, &incarnation, &id, &id_bytes, &seq)) {
        REQUIRE(id_bytes > 0 && id >= whole && id + id_bytes <= whole + size && seq >= 0);
    } else if (spill_record_key_is_rank(&key, whole, size, &incarnation, &seq)) {
        REQUIRE(incarnation >= 0 && seq >= 0);
    }
    spill_buffer_t window_id = SPILL_BUFFER_INIT;
    spill_buffer_append(&window_id, owner, sizeof owner);
    if (spill_record_key_is_window_id(&key, &window_id, whole, size, &window))
        REQUIRE(strlen(window) > 0 && strlen(window) < 64);
    spill_buffer_release(&window_id);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void read_numbers(const uint8_t *data, size_t size)
{
    spill_reader_t reader = spill_reader_of(data, size);
    while (!reader.bad && reader.at < reader.end) {
        uint64_t number = spill_reader_varint(&reader);
        spill_buffer_t bytes = SPILL_BUFFER_INIT;
        if (reader.bad)
            break;
        spill_buffer_append_varint(&bytes, number);
        spill_reader_t again = spill_reader_of(bytes.data, bytes.size);
        REQUIRE(spill_reader_varint(&again) == number && spill_reader_ended(&again));
        spill_buffer_release(&bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t decoder = data[0] % 7;
    data++;
    size--;
    switch (decoder) {
    case 0:
    case 1:
        read_state(data, size, decoder == 0);
        break;
    case 2:
        read_operation(data, size);
        read_operations(data, size);
        break;
    case 3:
        read_element(data, size);
        break;
    case 4:
        read_documents(data, size);
        break;
    case 5:
        read_key(data, size);
        break;
    default:
        read_numbers(data, size);
        break;
    }
    return 0;
}
