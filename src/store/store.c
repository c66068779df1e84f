#include "store/timed.h"

#include "util/clock.h"
#include "util/error.h"
#include "util/redact.h"

#include <stdarg.h>

void spill_store_base_init(spill_store_t *store, const spill_store_ops_t *ops, const char *uri,
                           const spill_store_options_t *options)
{
    *store = (spill_store_t){.ops = ops, .options = *options, .uri = bson_strdup(uri)};
    store->maker = spill_maker_now();
    pthread_mutex_init(&store->defining, NULL);
    pthread_mutex_init(&store->timed_lock, NULL);
    spill_clock_condition_init(&store->timed_changed);
    store->adopt_us = SPILL_ADOPT_US;
    store->adopter_us = SPILL_ADOPTER_US;
    store->margin_us = SPILL_MARGIN_US;
    store->adopt_room = SPILL_ADOPT_ROOM;
    store->defer_room = SPILL_DEFER_ROOM;
    if (!store->options.clock.now_us)
        store->options.clock.now_us = spill_clock_now_us;
    if (!store->options.clock.sleep_us)
        store->options.clock.sleep_us = spill_clock_sleep_us;
}

void spill_store_base_release(spill_store_t *store)
{
    pthread_cond_destroy(&store->timed_changed);
    pthread_mutex_destroy(&store->timed_lock);
    pthread_mutex_destroy(&store->defining);
    bson_free(store->uri);
    store->uri = NULL;
}

spill_code_t spill_store_forked(const spill_store_t *store, spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID,
                      "%s: process %ld opened this store, and this process is a fork of it: open "
                      "the store after the fork",
                      store->uri, (long)store->maker.pid);
}

bool spill_store_defers(const spill_store_t *store, const spill_request_t *append)
{
    return store->defer_spill && append->limits.slots_max - append->append.due >= store->defer_room;
}

bool spill_store_stopped(const spill_store_t *store)
{
    return store->stop && atomic_load_explicit(store->stop, memory_order_relaxed);
}

void spill_store_log(spill_store_t *store, spill_log_level_t level, const char *format, ...)
{
    if (!store->options.log)
        return;
    va_list arguments;
    va_start(arguments, format);
    char *whole = bson_strdupv_printf(format, arguments);
    va_end(arguments);
    char *message = spill_redact(whole);
    store->options.log(store->options.log_context, level, message);
    bson_free(message);
    bson_free(whole);
}

static void add(atomic_llong *counter, long long amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

/* Count a request that was carried out. */
static void count_done(spill_store_t *store, const spill_request_t *request)
{
    if (request->kind == SPILL_REQUEST_APPEND) {
        add(&store->counts.appends,
            request->append.member_count > 0 ? (long long)request->append.member_count : 1);
        add(&store->counts.elements, (long long)request->append.element_count);
    } else if (request->kind == SPILL_REQUEST_CUT || request->kind == SPILL_REQUEST_SEAL) {
        add(&store->counts.spills, 1);
    }
}

spill_code_t spill_store_call(spill_store_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error)
{
    if (spill_timed_is_set())
        return spill_timed_call(store, request, response, error);
    add(&store->counts.calls, 1);
    spill_request_assert(request);
#ifdef __SANITIZE_ADDRESS__
    spill_request_t poisoned;
    request = spill_request_poisoned(request, &poisoned);
#endif
    spill_code_t code = store->ops->call(store, request, response, error);
    if (code != SPILL_OK || response->outcome != SPILL_DONE)
        return code;
    count_done(store, request);
    return code;
}

spill_slice_t *spill_store_recall(spill_store_t *store, const spill_recall_t *recall)
{
    if (!store->ops->recall || spill_timed_is_set())
        return NULL;
    spill_slice_t *slice = store->ops->recall(store, recall);
    if (slice)
        add(&store->counts.calls, 1);
    return slice;
}

spill_code_t spill_store_call_all(spill_store_t *store, const spill_request_t *requests,
                                  size_t count, spill_response_t *responses, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    if (count > 1 && spill_timed_is_set())
        return spill_timed_call_all(store, requests, count, responses, error);
    if (count > 1 && store->ops->call_all) {
        add(&store->counts.calls, 1);
        return store->ops->call_all(store, requests, count, responses, error);
    }
    for (size_t i = 0; code == SPILL_OK && i < count; i++)
        code = spill_store_call(store, &requests[i], &responses[i], error);
    return code;
}

spill_code_t spill_store_call_many(spill_store_t *store, const spill_request_t *requests,
                                   size_t count, spill_response_t *responses, spill_error_t *error)
{
    add(&store->counts.calls, 1);
    SPILL_TRY(store->ops->call_many(store, requests, count, responses, error));
    for (size_t i = 0; i < count; i++)
        if (responses[i].outcome == SPILL_DONE)
            count_done(store, &requests[i]);
    return SPILL_OK;
}

spill_code_t spill_store_now(spill_store_t *store, int64_t *now_us, spill_error_t *error)
{
    if (store->ops->now)
        return store->ops->now(store, now_us, error);
    const spill_clock_t *clock = &store->options.clock;
    *now_us = clock->now_us(clock->context);
    return SPILL_OK;
}

spill_code_t spill_store_definitions_beside(spill_store_t *store,
                                            const spill_definition_t *definition,
                                            spill_listing_t *names, spill_error_t *error)
{
    if (store->ops->definitions_beside)
        return store->ops->definitions_beside(store, definition, names, error);
    return store->ops->catalog_names(store, SPILL_CATALOG_DEFINITION, names, error);
}

/* Changes of heads of different owners, by one function of the store, or by call_many. */
static spill_code_t
change_heads(spill_store_t *store,
             spill_code_t (*change)(spill_store_t *store, const spill_request_t *requests,
                                    size_t count, spill_error_t *error),
             const spill_request_t *requests, size_t count, spill_error_t *error)
{
    if (change) {
        add(&store->counts.calls, 1);
        SPILL_TRY(change(store, requests, count, error));
        for (size_t i = 0; i < count; i++)
            count_done(store, &requests[i]);
        return SPILL_OK;
    }
    if (!store->ops->call_many)
        return SPILL_OK;
    spill_response_t *responses = bson_malloc0(count * sizeof *responses);
    spill_code_t code = spill_store_call_many(store, requests, count, responses, error);
    for (size_t i = 0; i < count; i++)
        spill_response_release(&responses[i]);
    bson_free(responses);
    return code;
}

spill_code_t spill_store_make_heads(spill_store_t *store, const spill_request_t *requests,
                                    size_t count, spill_error_t *error)
{
    return change_heads(store, store->ops->make_heads, requests, count, error);
}

spill_code_t spill_store_cut_heads(spill_store_t *store, const spill_request_t *requests,
                                   size_t count, spill_error_t *error)
{
    return change_heads(store, store->ops->cut_heads, requests, count, error);
}

spill_code_t spill_store_head_ends(spill_store_t *store, int64_t rev, spill_error_t *error)
{
    return (spill_timed_is_set() ? spill_timed_head_ends : store->ops->head_ends)(store, rev,
                                                                                  error);
}

spill_code_t spill_store_note_drop(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_value_t *owner, const spill_drop_note_t *note,
                                   spill_error_t *error)
{
    return (spill_timed_is_set() ? spill_timed_note_drop
                                 : store->ops->note_drop)(store, definition, owner, note, error);
}

spill_code_t spill_store_find_drop(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_value_t *owner, spill_drop_note_t *note,
                                   spill_error_t *error)
{
    return (spill_timed_is_set() ? spill_timed_find_drop
                                 : store->ops->find_drop)(store, definition, owner, note, error);
}

spill_code_t spill_store_forget_drop(spill_store_t *store, const spill_definition_t *definition,
                                     const spill_value_t *owner, const spill_drop_note_t *note,
                                     spill_error_t *error)
{
    return (spill_timed_is_set() ? spill_timed_forget_drop
                                 : store->ops->forget_drop)(store, definition, owner, note, error);
}

spill_code_t spill_store_open_entries(spill_store_t *store, const char *name, const char *import,
                                      spill_entries_t *entries, spill_error_t *error)
{
    *entries = (spill_entries_t){0};
    if (spill_timed_is_set())
        return spill_timed_open_entries(store, name, import, entries, error);
    if (store->ops->open)
        return store->ops->open(store, name, import, entries, error);
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_DEFINITION, name, &entries->definition,
                                      error));
    return entries->definition
               ? store->ops->catalog_get(store, SPILL_CATALOG_JOB, import, &entries->import, error)
               : SPILL_OK;
}

void spill_entries_release(spill_entries_t *entries)
{
    bson_destroy(entries->definition);
    bson_destroy(entries->import);
    *entries = (spill_entries_t){0};
}

spill_code_t spill_store_jobs_get(spill_store_t *store, const char *const names[2],
                                  bson_t *documents[2], spill_error_t *error)
{
    documents[0] = documents[1] = NULL;
    if (store->ops->jobs_get)
        return store->ops->jobs_get(store, names, documents, error);
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_JOB, names[0], &documents[0], error));
    return store->ops->catalog_get(store, SPILL_CATALOG_JOB, names[1], &documents[1], error);
}

spill_code_t spill_store_make_indexes(spill_store_t *store, const spill_definition_t *definition,
                                      spill_error_t *error)
{
    return store->ops->make_indexes ? store->ops->make_indexes(store, definition, error) : SPILL_OK;
}

spill_code_t spill_store_retire(spill_store_t *store, const spill_definition_t *definition,
                                const spill_binding_t *binding, bool *done, spill_error_t *error)
{
    *done = true;
    if (store->ops->retire)
        return store->ops->retire(store, definition, binding, done, error);
    return store->ops->catalog_delete(store, SPILL_CATALOG_DEFINITION, definition->name, error);
}

spill_code_t spill_store_same(spill_store_t *store, spill_store_t *other, bool *same,
                              spill_error_t *error)
{
    *same = store == other;
    if (*same || store->ops != other->ops || !store->ops->same)
        return SPILL_OK;
    return store->ops->same(store, other, same, error);
}

spill_code_t spill_store_ended(spill_error_t *error)
{
    return spill_fail(error, SPILL_NOT_FOUND,
                      "the definition was dropped, or another one saved: open the array again");
}

static int64_t value_of(atomic_llong *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void spill_store_counters(spill_store_t *store, spill_counters_t *counters)
{
    if (counters == NULL)
        return;
    *counters = (spill_counters_t){.version = SPILL_COUNTERS_VERSION};
    if (store == NULL)
        return;
    spill_counts_t *counts = &store->counts;
    *counters = (spill_counters_t){
        .version = SPILL_COUNTERS_VERSION,
        .calls = value_of(&counts->calls),
        .appends = value_of(&counts->appends),
        .elements = value_of(&counts->elements),
        .repeats = value_of(&counts->repeats),
        .spills = value_of(&counts->spills),
        .retries = value_of(&counts->retries),
        .waits = value_of(&counts->waits),
        .commits = value_of(&counts->commits),
        .syncs = value_of(&counts->syncs),
        .bytes_written = value_of(&counts->bytes_written),
        .bytes_read = value_of(&counts->bytes_read),
        .tail_hits = value_of(&counts->tail_hits),
        .tail_misses = value_of(&counts->tail_misses),
        .tail_bytes = value_of(&counts->tail_bytes),
    };
}

const char *spill_store_damage(const spill_store_t *store)
{
    return store && store->ops->damage ? store->ops->damage(store) : NULL;
}

spill_code_t spill_store_close(spill_store_t *store, spill_error_t *error)
{
    if (!store)
        return SPILL_OK;
    long long arrays = atomic_load(&store->arrays);
    if (arrays > 0)
        return spill_fail(
            error, SPILL_REFUSED, "%s: %lld array%s open: close %s first (the store stays open)",
            store->uri, arrays, arrays == 1 ? " is" : "s are", arrays == 1 ? "it" : "them");
    if (!spill_maker_is_current(&store->maker)) {
        bson_free(store->uri);
        bson_free(store); /* the rest stays: its locks, files and sockets belong to the parent */
        return SPILL_OK;
    }
    spill_timed_finish(store);
    if (store->spiller)
        store->close_spiller(store->spiller);
    return store->ops->close(store, error);
}

spill_code_t spill_store_backup(spill_store_t *store, const char *folder, spill_error_t *error)
{
    SPILL_CHECK_STORE(error, store, folder);
    if (folder[0] != '/' && folder[0] != '.' && spill_resembles_secret_uri(folder))
        return spill_fail(error, SPILL_INVALID,
                          "%s resembles a connection string, but a backup is a folder (a path may "
                          "begin with \"./\"); `spillway copy' copies to a server",
                          folder);
    if (!store->ops->backup)
        return spill_fail(error, SPILL_INVALID,
                          "%s: a store of kind \"%s\" has no backup; export its arrays instead",
                          store->uri, store->ops->name);
    return store->ops->backup(store, folder, error);
}
