/*
 * Pages without a head: the records of an array are gone through from owner to owner, with a seek
 * or three for each. No other program writes here, so what has no head was dropped.
 */
#include "store/embedded/embedded.h"

#include "store/embedded/codec.h"
#include "util/error.h"

#include <string.h>

/* Of one owner, whose records' key is `key`; all by one iterator, so at one moment. */
typedef struct looking {
    spill_embedded_t *store;
    spill_kv_iter_t *iter;
    bool oldest;
    spill_record_key_t key;
    spill_state_t state;
} looking_t;

static bool at_key(const looking_t *looking)
{
    const spill_kv_iter_t *iter = looking->iter;
    return iter->valid && iter->key_bytes == looking->key.size &&
           memcmp(iter->key, looking->key.data, looking->key.size) == 0;
}

/* The head's epoch; INT64_MAX: there is none. False: it cannot be read, and whoever does is told.
 */
static bool read_head(looking_t *looking, int64_t *epoch)
{
    *epoch = INT64_MAX;
    spill_record_key_kind(&looking->key, SPILL_RECORD_HEAD);
    looking->iter->ops->seek(looking->iter, looking->key.data, looking->key.size);
    if (!at_key(looking))
        return true;
    spill_state_clear(&looking->state);
    bool good =
        spill_state_decode(looking->iter->value, looking->iter->value_bytes, true, &looking->state);
    *epoch = looking->state.epoch;
    return good;
}

/* Has this page elements? The iterator moves. */
static bool holds_elements(looking_t *looking, int64_t page)
{
    spill_record_key_page(&looking->key, page);
    looking->iter->ops->seek(looking->iter, looking->key.data, looking->key.size);
    spill_state_clear(&looking->state);
    return at_key(looking) &&
           spill_state_decode(looking->iter->value, looking->iter->value_bytes, false,
                              &looking->state) &&
           looking->state.live > 0;
}

/* The pages of the latest incarnation before `epoch` of which there are some, by their index. */
static bool find_pages(looking_t *looking, int64_t epoch, spill_orphan_t *orphan)
{
    spill_kv_iter_t *iter = looking->iter;
    int64_t of, first, page;
    *orphan = (spill_orphan_t){.dropped = true};
    spill_record_key_first(&looking->key, epoch - 1, INT64_MAX, INT64_MAX);
    iter->ops->seek(iter, looking->key.data, looking->key.size);
    while (iter->valid && spill_record_key_is_first(&looking->key, iter->key, iter->key_bytes, &of,
                                                    &first, &page)) {
        if (orphan->pages > 0 && of != orphan->epoch)
            break;
        bool counts = !looking->oldest || holds_elements(looking, page);
        if (counts)
            orphan->epoch = of;
        orphan->pages += counts ? 1 : 0;
        spill_record_key_first(&looking->key, of, first, page);
        iter->ops->seek(iter, looking->key.data, looking->key.size);
        if (iter->valid)
            iter->ops->next(iter);
    }
    return orphan->pages > 0;
}

/* With keep oldest each tombstone is in the index, but holds no element: elements are met first. */
static bool has_elements(looking_t *looking, int64_t epoch)
{
    int64_t of, seq;
    spill_kv_iter_t *iter = looking->iter;
    spill_record_key_element(&looking->key, epoch - 1, INT64_MAX);
    iter->ops->seek(iter, looking->key.data, looking->key.size);
    return iter->valid &&
           spill_record_key_is_element(&looking->key, iter->key, iter->key_bytes, &of, &seq);
}

static spill_code_t look_at(looking_t *looking, uint32_t index, bson_t *found, bool *any,
                            spill_error_t *error)
{
    spill_orphan_t orphan;
    int64_t epoch;
    *any = false;
    if (!read_head(looking, &epoch) || (looking->oldest && !has_elements(looking, epoch)) ||
        !find_pages(looking, epoch, &orphan))
        return SPILL_OK;
    bson_t storage = BSON_INITIALIZER;
    *any = spill_owner_from_key(looking->key.data + 4, looking->key.prefix - 4, &storage,
                                &orphan.owner);
    if (*any)
        spill_orphan_append(&orphan, index, found);
    bson_destroy(&storage);
    return *any ? SPILL_OK
                : spill_fail(error, SPILL_CORRUPT, "%s: the key of an owner cannot be read",
                             looking->store->base.uri);
}

/* To the first record of the next owner, from the iterator's place on; false: there is none. */
static bool next_owner(looking_t *looking, uint32_t array_id)
{
    spill_kv_iter_t *iter = looking->iter;
    uint8_t prefix[4];
    spill_id_prefix(prefix, array_id);
    for (; iter->valid && iter->key_bytes > 4 && memcmp(iter->key, prefix, sizeof prefix) == 0;
         iter->ops->next(iter)) {
        size_t length = spill_owner_key_length(iter->key + 4, iter->key_bytes - 4);
        if (length == 0 || length > SPILL_OWNER_KEY_MAX || iter->key_bytes == 4 + length)
            continue; /* no owner's */
        uint8_t owner[SPILL_OWNER_KEY_MAX];
        memcpy(owner, iter->key + 4, length);
        spill_record_key_init(&looking->key, array_id, owner, length);
        return true;
    }
    return false;
}

/* Behind all records of an owner. */
static void pass_owner(looking_t *looking)
{
    spill_record_key_kind(&looking->key, SPILL_RECORD_END);
    looking->iter->ops->seek(looking->iter, looking->key.data, looking->key.size);
}

static spill_code_t list(looking_t *looking, const spill_binding_t *binding, size_t limit,
                         bson_t *found, spill_buffer_t *last, spill_error_t *error)
{
    uint32_t count = 0;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && count < limit && next_owner(looking, binding->array_id)) {
        bool any;
        code = look_at(looking, count, found, &any, error);
        if (any) {
            count++;
            spill_buffer_clear(last);
            spill_buffer_append(last, looking->key.data + 4, looking->key.prefix - 4);
        }
        pass_owner(looking);
    }
    if (code == SPILL_OK && !looking->iter->valid)
        code = looking->iter->ops->status(looking->iter, error);
    return code;
}

static spill_code_t look_at_one(looking_t *looking, const spill_binding_t *binding,
                                const spill_value_t *owner, bson_t *found, spill_error_t *error)
{
    bool any;
    spill_buffer_t name = SPILL_BUFFER_INIT;
    spill_code_t code = spill_owner_key(owner, &name, error);
    if (code == SPILL_OK) {
        spill_record_key_init(&looking->key, binding->array_id, name.data, name.size);
        code = look_at(looking, 0, found, &any, error);
    }
    if (code == SPILL_OK && !looking->iter->valid)
        code = looking->iter->ops->status(looking->iter, error);
    spill_buffer_release(&name);
    return code;
}

spill_code_t spill_embedded_orphans(spill_store_t *store, const spill_definition_t *definition,
                                    const spill_binding_t *binding,
                                    const spill_orphan_query_t *query, bson_t *found,
                                    spill_buffer_t *last, spill_error_t *error)
{
    spill_kv_t *kv = ((spill_embedded_t *)store)->kv;
    looking_t looking = {.store = (spill_embedded_t *)store,
                         .iter = kv->ops->iterate(kv),
                         .oldest = definition->keep == SPILL_KEEP_OLDEST};
    spill_code_t code;
    bson_init(found);
    spill_buffer_clear(last);
    spill_record_key_init(&looking.key, binding->array_id, query->after, query->after_bytes);
    if (query->owner) {
        code = look_at_one(&looking, binding, query->owner, found, error);
    } else if (query->after_bytes > 0) {
        pass_owner(&looking);
        code = list(&looking, binding, query->limit, found, last, error);
    } else {
        looking.iter->ops->seek(looking.iter, looking.key.data, looking.key.size);
        code = list(&looking, binding, query->limit, found, last, error);
    }
    looking.iter->ops->free(looking.iter);
    spill_state_release(&looking.state);
    if (code != SPILL_OK)
        bson_destroy(found);
    return code;
}
