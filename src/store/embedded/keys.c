/* Make and parse the keys of records. */
#include "store/embedded/embedded_codec.h"

#include "definition/schema.h"

#include <assert.h>
#include <bson/bson.h>
#include <string.h>

void spill_id_prefix(uint8_t *data, uint32_t id)
{
    uint32_t bytes = BSON_UINT32_TO_BE(id);
    memcpy(data, &bytes, sizeof bytes);
}

void spill_record_key_init(spill_record_key_t *key, uint32_t id, const uint8_t *owner,
                           size_t owner_bytes)
{
    assert(owner_bytes <= SPILL_OWNER_KEY_MAX);
    spill_id_prefix(key->data, id);
    if (owner_bytes > 0) /* no key: before all owners */
        memcpy(key->data + 4, owner, owner_bytes);
    key->prefix = 4 + owner_bytes;
    key->size = key->prefix;
}

void spill_record_key_kind(spill_record_key_t *key, spill_record_t kind)
{
    key->data[key->prefix] = (uint8_t)kind;
    key->size = key->prefix + 1;
}

static void add_number(spill_record_key_t *key, uint64_t number)
{
    uint64_t bytes = BSON_UINT64_TO_BE(number);
    memcpy(key->data + key->size, &bytes, sizeof bytes);
    key->size += sizeof bytes;
}

static void add_id(spill_record_key_t *key, const spill_buffer_t *id)
{
    assert(id->size <= SPILL_ELEMENT_ID_MAX);
    memcpy(key->data + key->size, id->data, id->size);
    key->size += id->size;
}

void spill_record_key_element(spill_record_key_t *key, int64_t incarnation, int64_t seq)
{
    spill_record_key_kind(key, SPILL_RECORD_ELEMENT);
    add_number(key, ~(uint64_t)incarnation);
    add_number(key, ~(uint64_t)seq);
}

void spill_record_key_page(spill_record_key_t *key, int64_t page)
{
    spill_record_key_kind(key, SPILL_RECORD_PAGE);
    add_number(key, (uint64_t)page);
}

void spill_record_key_first(spill_record_key_t *key, int64_t incarnation, int64_t first,
                            int64_t page)
{
    spill_record_key_kind(key, SPILL_RECORD_FIRST);
    add_number(key, ~(uint64_t)incarnation);
    add_number(key, ~(uint64_t)first);
    add_number(key, ~(uint64_t)page);
}

static void add_ordinal(spill_record_key_t *key, spill_record_t kind, int64_t incarnation,
                        int64_t ordinal)
{
    spill_record_key_kind(key, kind);
    add_number(key, ~(uint64_t)incarnation);
    add_number(key, (uint64_t)ordinal);
}

void spill_record_key_op(spill_record_key_t *key, int64_t incarnation, int64_t ordinal)
{
    add_ordinal(key, SPILL_RECORD_OP, incarnation, ordinal);
}

void spill_record_key_ops(spill_record_key_t *key, int64_t incarnation, int64_t first)
{
    add_ordinal(key, SPILL_RECORD_OPS, incarnation, first);
}

void spill_record_key_session(spill_record_key_t *key, int64_t incarnation, const uint8_t *session)
{
    spill_record_key_kind(key, SPILL_RECORD_SESSION);
    add_number(key, ~(uint64_t)incarnation);
    if (!session)
        return;
    memcpy(key->data + key->size, session, SPILL_SESSION_KEY_BYTES);
    key->size += SPILL_SESSION_KEY_BYTES;
}

void spill_record_key_id(spill_record_key_t *key, int64_t incarnation, const spill_buffer_t *id,
                         int64_t seq)
{
    spill_record_key_kind(key, SPILL_RECORD_ID);
    add_number(key, ~(uint64_t)incarnation);
    add_id(key, id);
    add_number(key, (uint64_t)seq);
}

void spill_record_key_rank(spill_record_key_t *key, int64_t incarnation, const spill_rank_t *rank,
                           int64_t seq)
{
    spill_record_key_kind(key, SPILL_RECORD_RANK);
    add_number(key, ~(uint64_t)incarnation);
    if (!rank)
        return;
    spill_rank_key(rank, key->data + key->size);
    key->size += SPILL_RANK_KEY_BYTES;
    add_number(key, ~(uint64_t)seq);
}

void spill_record_key_window_ids(spill_record_key_t *key, const spill_buffer_t *id,
                                 const char *window, bool behind)
{
    size_t length = strlen(window);
    spill_record_key_kind(key, SPILL_RECORD_WINDOW_ID);
    add_id(key, id);
    memcpy(key->data + key->size, window, length);
    key->size += length;
    if (behind) /* no text has this byte */
        key->data[key->size++] = 1;
}

void spill_record_key_window_id(spill_record_key_t *key, const spill_buffer_t *id,
                                const char *window, int64_t incarnation, int64_t seq)
{
    spill_record_key_window_ids(key, id, window, false);
    key->data[key->size++] = 0;
    add_number(key, ~(uint64_t)incarnation);
    add_number(key, (uint64_t)seq);
}

bool spill_record_key_is_window_id(const spill_record_key_t *key, const spill_buffer_t *id,
                                   const uint8_t *data, size_t size, const char **window)
{
    enum { TAIL = 1 + 2 * sizeof(uint64_t) };
    size_t before = key->prefix + 1 + id->size;
    if (spill_record_key_kind_of(key, data, size) != SPILL_RECORD_WINDOW_ID ||
        size <= before + TAIL || memcmp(data + key->prefix + 1, id->data, id->size) != 0)
        return false;
    *window = (const char *)data + before;
    return memchr(*window, '\0', size - before) == data + size - TAIL &&
           spill_window_text_valid(*window, size - before - TAIL);
}

uint8_t spill_record_key_kind_of(const spill_record_key_t *owner, const uint8_t *data, size_t size)
{
    if (size <= owner->prefix || memcmp(data, owner->data, owner->prefix) != 0)
        return 0;
    return data[owner->prefix];
}

/* Is it a key of this owner and kind that ends with `count` numbers? */
static bool is_kind(const spill_record_key_t *owner, spill_record_t kind, const uint8_t *data,
                    size_t size, size_t count)
{
    return size == owner->prefix + 1 + count * sizeof(uint64_t) &&
           data[owner->prefix] == (uint8_t)kind && memcmp(data, owner->data, owner->prefix) == 0;
}

static uint64_t number_at(const spill_record_key_t *owner, const uint8_t *data, size_t index)
{
    uint64_t bytes;
    memcpy(&bytes, data + owner->prefix + 1 + index * sizeof bytes, sizeof bytes);
    return BSON_UINT64_FROM_BE(bytes);
}

static bool number_valid(int64_t number)
{
    return number >= 0 && number <= SPILL_NUMBER_MAX;
}

static bool incarnation_valid(int64_t incarnation)
{
    return incarnation >= 0 && incarnation <= SPILL_MOMENT_MAX;
}

bool spill_record_key_is_element(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                                 int64_t *incarnation, int64_t *seq)
{
    if (!is_kind(owner, SPILL_RECORD_ELEMENT, data, size, 2))
        return false;
    *incarnation = (int64_t)~number_at(owner, data, 0);
    *seq = (int64_t)~number_at(owner, data, 1);
    return incarnation_valid(*incarnation) && number_valid(*seq);
}

bool spill_record_key_is_page(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                              int64_t *page)
{
    if (!is_kind(owner, SPILL_RECORD_PAGE, data, size, 1))
        return false;
    *page = (int64_t)number_at(owner, data, 0);
    return number_valid(*page);
}

bool spill_record_key_is_first(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                               int64_t *incarnation, int64_t *first, int64_t *page)
{
    if (!is_kind(owner, SPILL_RECORD_FIRST, data, size, 3))
        return false;
    *incarnation = (int64_t)~number_at(owner, data, 0);
    *first = (int64_t)~number_at(owner, data, 1);
    *page = (int64_t)~number_at(owner, data, 2);
    return incarnation_valid(*incarnation) && number_valid(*first) && number_valid(*page);
}

static bool is_ordinal(const spill_record_key_t *owner, spill_record_t kind, const uint8_t *data,
                       size_t size, int64_t *incarnation, int64_t *ordinal)
{
    if (!is_kind(owner, kind, data, size, 2))
        return false;
    *incarnation = (int64_t)~number_at(owner, data, 0);
    *ordinal = (int64_t)number_at(owner, data, 1);
    return incarnation_valid(*incarnation) && number_valid(*ordinal);
}

bool spill_record_key_is_op(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                            int64_t *incarnation, int64_t *ordinal)
{
    return is_ordinal(owner, SPILL_RECORD_OP, data, size, incarnation, ordinal);
}

bool spill_record_key_is_ops(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                             int64_t *incarnation, int64_t *first)
{
    return is_ordinal(owner, SPILL_RECORD_OPS, data, size, incarnation, first) &&
           *first % SPILL_OPS_TOGETHER == 0;
}

bool spill_record_key_is_session(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                                 int64_t *incarnation, const uint8_t **session)
{
    size_t before = owner->prefix + 1 + sizeof(uint64_t);
    if ((size != before && size != before + SPILL_SESSION_KEY_BYTES) ||
        spill_record_key_kind_of(owner, data, size) != SPILL_RECORD_SESSION)
        return false;
    *incarnation = (int64_t)~number_at(owner, data, 0);
    *session = size > before ? data + before : NULL;
    return incarnation_valid(*incarnation);
}

bool spill_record_key_is_id(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                            int64_t *incarnation, const uint8_t **id, size_t *id_bytes,
                            int64_t *seq)
{
    size_t before = owner->prefix + 1 + sizeof(uint64_t);
    if (size <= before + sizeof(uint64_t) ||
        spill_record_key_kind_of(owner, data, size) != SPILL_RECORD_ID)
        return false;
    *id = data + before;
    *id_bytes = size - before - sizeof(uint64_t);
    if (spill_element_id_key_length(*id, *id_bytes) != *id_bytes)
        return false;
    uint64_t bytes;
    memcpy(&bytes, data + size - sizeof bytes, sizeof bytes);
    *incarnation = (int64_t)~number_at(owner, data, 0);
    *seq = (int64_t)BSON_UINT64_FROM_BE(bytes);
    return incarnation_valid(*incarnation) && number_valid(*seq);
}

bool spill_record_key_is_rank(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                              int64_t *incarnation, int64_t *seq)
{
    uint64_t bytes;
    if (size != owner->prefix + 1 + sizeof bytes + SPILL_RANK_KEY_BYTES + sizeof bytes ||
        spill_record_key_kind_of(owner, data, size) != SPILL_RECORD_RANK)
        return false;
    memcpy(&bytes, data + size - sizeof bytes, sizeof bytes);
    *incarnation = (int64_t)~number_at(owner, data, 0);
    *seq = (int64_t)~BSON_UINT64_FROM_BE(bytes);
    return incarnation_valid(*incarnation) && number_valid(*seq);
}

void spill_system_key(spill_buffer_t *key, spill_system_record_t kind, const char *name)
{
    uint8_t id[4];
    spill_id_prefix(id, 0);
    spill_buffer_clear(key);
    spill_buffer_append(key, id, sizeof id);
    spill_buffer_append_byte(key, (uint8_t)kind);
    spill_buffer_append(key, name, strlen(name));
}
