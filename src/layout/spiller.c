/* The queue of due spills, and the thread that performs them. */
#include "layout/spiller.h"

#include "store/timed.h"
#include "util/clock.h"
#include "util/error.h"

#include <string.h>

enum { ENTRIES_MAX = 1024, HEADS_BYTES_MAX = 8 << 20 };

/* An owner with a head that is due to be spilled. */
typedef struct entry {
    struct entry *next;
    spill_array_t *array;  /* finish removes its entries before it is closed */
    spill_response_t head; /* what the append has shown; or nothing */
    int64_t head_bytes;
    spill_value_t owner; /* in `bytes` */
    uint8_t bytes[];
} entry_t;

struct spill_spiller {
    pthread_mutex_t lock;   /* guards the other fields */
    pthread_cond_t changed; /* an entry was added, a spill has ended, or the thread must end */
    pthread_t thread;
    bool runs, ends;
    entry_t *first, **last;
    size_t count;
    int64_t heads_bytes; /* of all entries in the queue */
    entry_t *current;    /* being spilled, no longer in the queue */
    uint64_t ended;      /* spills that have ended */
    spill_due_fn spill;
};

/* ---- one spill ------------------------------------------------------------------------------- */

static bool perform(const spill_spiller_t *spiller, entry_t *entry)
{
    spill_owner_t owner = {0};
    spill_error_t error;
    spill_code_t code = spill_owner_init(&owner, entry->array, &entry->owner, &error);
    if (code == SPILL_OK)
        code = spiller->spill(&owner, &entry->head, &error);
    if (code != SPILL_OK)
        spill_store_log(entry->array->store, SPILL_LOG_WARNING, "spill put off: %s", error.message);
    spill_owner_release(&owner);
    return code == SPILL_OK;
}

static void free_entry(entry_t *entry)
{
    spill_response_release(&entry->head);
    bson_free(entry);
}

/* The owner's array may be another handle of the same definition. */
static bool is_of(const entry_t *entry, const spill_owner_t *owner)
{
    const spill_definition_t *definition = &owner->array->definition;
    return strcmp(entry->array->definition.name, definition->name) == 0 &&
           spill_value_equal(&entry->owner, owner->value);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Remove the entry that `at` points to from the queue. The lock is held. */
static entry_t *remove_entry(spill_spiller_t *spiller, entry_t **at)
{
    entry_t *entry = *at;
    *at = entry->next;
    if (!*at)
        spiller->last = at;
    spiller->count--;
    spiller->heads_bytes -= entry->head_bytes;
    return entry;
}

static void *work(void *argument)
{
    spill_spiller_t *spiller = argument;
    pthread_mutex_lock(&spiller->lock);
    while (!spiller->ends) {
        if (!spiller->first) {
            pthread_cond_wait(&spiller->changed, &spiller->lock);
            continue;
        }
        spiller->current = remove_entry(spiller, &spiller->first);
        pthread_mutex_unlock(&spiller->lock);
        perform(spiller, spiller->current);
        pthread_mutex_lock(&spiller->lock);
        free_entry(spiller->current);
        spiller->current = NULL;
        spiller->ended++;
        pthread_cond_broadcast(&spiller->changed);
    }
    pthread_mutex_unlock(&spiller->lock);
    return NULL;
}

static bool has_entry(const spill_spiller_t *spiller, const spill_owner_t *owner)
{
    for (const entry_t *entry = spiller->first; entry; entry = entry->next)
        if (is_of(entry, owner))
            return true;
    return false;
}

/* Move to the entry what the append has shown of the head, if there is room for its elements. */
static void keep_head(spill_spiller_t *spiller, entry_t *entry, spill_response_t *head)
{
    static const spill_response_t nothing = SPILL_RESPONSE_INIT;
    int64_t bytes = spill_run_bytes(&head->run);
    if (!head->shows_read || spiller->heads_bytes + bytes > HEADS_BYTES_MAX)
        return;
    entry->head = *head;
    entry->head_bytes = bytes;
    *head = nothing;
    spiller->heads_bytes += bytes;
}

/* Add the owner to the queue, and start the thread for the first one. The lock is held. */
static bool add_entry(spill_spiller_t *spiller, const spill_owner_t *owner, spill_response_t *head)
{
    if (has_entry(spiller, owner))
        return true;
    if (spiller->count == ENTRIES_MAX)
        return false;
    if (!spiller->runs && pthread_create(&spiller->thread, NULL, work, spiller) != 0)
        return false;
    spiller->runs = true;
    const spill_value_t *value = owner->value;
    entry_t *entry = bson_malloc(sizeof *entry + value->size_bytes);
    *entry = (entry_t){.array = owner->array, .head = SPILL_RESPONSE_INIT, .owner = *value};
    keep_head(spiller, entry, head);
    if (value->size_bytes > 0)
        memcpy(entry->bytes, value->data, value->size_bytes);
    entry->owner.data = entry->bytes;
    *spiller->last = entry;
    spiller->last = &entry->next;
    spiller->count++;
    pthread_cond_broadcast(&spiller->changed);
    return true;
}

/* spill_store_t.defer_spill */
static bool defer(const spill_owner_t *owner, spill_response_t *head)
{
    spill_spiller_t *spiller = owner->array->store->spiller;
    pthread_mutex_lock(&spiller->lock);
    bool added = add_entry(spiller, owner, head);
    pthread_mutex_unlock(&spiller->lock);
    return added;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* spill_store_t.close_spiller: all arrays are closed, so the queue is empty. */
static void close_spiller(spill_spiller_t *spiller)
{
    pthread_mutex_lock(&spiller->lock);
    spiller->ends = true;
    pthread_cond_broadcast(&spiller->changed);
    pthread_mutex_unlock(&spiller->lock);
    if (spiller->runs)
        pthread_join(spiller->thread, NULL);
    while (spiller->first)
        free_entry(remove_entry(spiller, &spiller->first));
    pthread_cond_destroy(&spiller->changed);
    pthread_mutex_destroy(&spiller->lock);
    bson_free(spiller);
}

void spill_spiller_attach(spill_store_t *store, spill_due_fn spill)
{
    if (!store->ops->defers_spills)
        return;
    pthread_mutex_lock(&store->defining);
    if (!store->spiller) {
        spill_spiller_t *spiller = bson_malloc0(sizeof *spiller);
        spiller->last = &spiller->first;
        spiller->spill = spill;
        pthread_mutex_init(&spiller->lock, NULL);
        spill_clock_condition_init(&spiller->changed);
        store->spiller = spiller;
        store->close_spiller = close_spiller;
        store->defer_spill = defer;
    }
    pthread_mutex_unlock(&store->defining);
}

/* Remove the array's entries from the queue, and return them as a list. */
static entry_t *take_entries(spill_spiller_t *spiller, const spill_array_t *array)
{
    entry_t *taken = NULL, **end = &taken;
    pthread_mutex_lock(&spiller->lock);
    for (entry_t **at = &spiller->first; *at;) {
        if ((*at)->array != array) {
            at = &(*at)->next;
            continue;
        }
        *end = remove_entry(spiller, at);
        end = &(*end)->next;
    }
    *end = NULL;
    while (spiller->current && spiller->current->array == array)
        pthread_cond_wait(&spiller->changed, &spiller->lock);
    pthread_mutex_unlock(&spiller->lock);
    return taken;
}

void spill_spiller_finish(spill_array_t *array)
{
    spill_store_t *store = array->store;
    if (!store->spiller)
        return;
    bool good = true;
    for (entry_t *entry = take_entries(store->spiller, array), *next; entry; entry = next) {
        next = entry->next;
        good = good && !spill_store_stopped(store) && perform(store->spiller, entry);
        free_entry(entry);
    }
}

bool spill_spiller_await(const spill_owner_t *owner)
{
    spill_spiller_t *spiller = owner->array->store->spiller;
    if (!spiller)
        return false;
    pthread_mutex_lock(&spiller->lock);
    for (entry_t **at = &spiller->first; *at; at = &(*at)->next)
        if (is_of(*at, owner)) {
            free_entry(remove_entry(spiller, at));
            break;
        }
    bool busy = spiller->current && is_of(spiller->current, owner);
    uint64_t ended = spiller->ended;
    while (busy && spiller->ended == ended)
        if (!spill_timed_wait(&spiller->changed, &spiller->lock))
            break; /* the caller's next step returns the error */
    pthread_mutex_unlock(&spiller->lock);
    return busy;
}
