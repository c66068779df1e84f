/*
 * The lengths of arrays after this store's last append. An append with the length in its guard need
 * not ask for it in its answer, which saves the server an expression: about 50 us. If the hint is
 * wrong, the guard does not hold, and the document is read.
 */
#include "store/mongo/mongo.h"

#include "util/hash.h"

#include <pthread.h>
#include <string.h>

enum {
    SLOTS = 1024,
    DOUBT = 16 /* appends without the hint after it was wrong, because other clients append */
};

typedef struct slot {
    uint64_t key; /* of the document; 0: none */
    int64_t length;
    int doubt;
} slot_t;

struct spill_mongo_hints {
    pthread_mutex_t lock;
    slot_t slots[SLOTS];
};

spill_mongo_hints_t *spill_mongo_hints_new(void)
{
    spill_mongo_hints_t *hints = bson_malloc0(sizeof *hints);
    pthread_mutex_init(&hints->lock, NULL);
    return hints;
}

void spill_mongo_hints_free(spill_mongo_hints_t *hints)
{
    if (!hints)
        return;
    pthread_mutex_destroy(&hints->lock);
    bson_free(hints);
}

/* If two documents have the same key, the only cost is a refusal. */
static uint64_t key_of(const spill_mongo_document_t *document)
{
    const spill_request_t *request = document->request;
    const spill_value_t *owner = request->owner;
    uint64_t parts[] = {spill_hash(document->collection, strlen(document->collection)),
                        spill_hash(document->array, strlen(document->array)),
                        spill_hash(owner->data, owner->size_bytes), (uint64_t)owner->type,
                        (uint64_t)request->page};
    return spill_hash(parts, sizeof parts) | 1;
}

/* The document's slot, cleared if another document had it. The lock is held. */
static slot_t *slot_of(spill_mongo_hints_t *hints, const spill_mongo_document_t *document)
{
    uint64_t key = key_of(document);
    pthread_mutex_lock(&hints->lock);
    slot_t *slot = &hints->slots[key / 2 % SLOTS];
    if (slot->key != key)
        *slot = (slot_t){.key = key, .length = -1};
    return slot;
}

bool spill_mongo_hint(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                      spill_mongo_hint_t *hint)
{
    slot_t *slot = slot_of(hints, document);
    bool known = slot->length >= 0 && slot->doubt == 0;
    *hint = (spill_mongo_hint_t){.length = slot->length};
    pthread_mutex_unlock(&hints->lock);
    return known;
}

void spill_mongo_hint_learn(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                            const spill_state_t *state)
{
    slot_t *slot = slot_of(hints, document);
    slot->length = state->deleted.count == 0 ? state->live : -1;
    slot->doubt -= slot->doubt > 0;
    pthread_mutex_unlock(&hints->lock);
}

void spill_mongo_hint_shorten(spill_mongo_hints_t *hints, const spill_mongo_document_t *document,
                              int64_t by)
{
    slot_t *slot = slot_of(hints, document);
    slot->length = slot->length >= by ? slot->length - by : -1;
    pthread_mutex_unlock(&hints->lock);
}

void spill_mongo_hint_doubt(spill_mongo_hints_t *hints, const spill_mongo_document_t *document)
{
    slot_t *slot = slot_of(hints, document);
    slot->length = -1;
    slot->doubt = DOUBT;
    pthread_mutex_unlock(&hints->lock);
}
