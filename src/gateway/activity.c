#include "gateway/activity.h"

#include "gateway/gateway_log.h"
#include "gateway/relay/classify.h"
#include "store/server_code.h"
#include "util/buffer.h"
#include "util/clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { HALVE_US = 300000000, LOGGED_FIRST = 10, LOGGED_EACH = 100 };

struct spill_activity {
    uint8_t secret[16]; /* of hashes */
    bool shows_owners;
    atomic_int_fast64_t adoptions;
    atomic_int_fast64_t errors[SPILL_ACTIVITY_ERRORS];
    pthread_mutex_t lock; /* for what follows */
    spill_activity_owner_row_t owners[SPILL_ACTIVITY_OWNERS];
    size_t owner_count;
    int64_t halved_us;
    spill_activity_refusal_row_t refusals[SPILL_ACTIVITY_REFUSALS];
    size_t refusal_count;
};

spill_activity_t *spill_activity_new(bool shows_owners)
{
    spill_activity_t *activity = bson_malloc0(sizeof *activity);
    activity->shows_owners = shows_owners;
    activity->halved_us = spill_clock_monotonic_us(NULL);
    if (getrandom(activity->secret, sizeof activity->secret, 0) < 0)
        memcpy(activity->secret, &activity->halved_us, sizeof activity->halved_us);
    pthread_mutex_init(&activity->lock, NULL);
    return activity;
}

void spill_activity_free(spill_activity_t *activity)
{
    if (activity == NULL)
        return;
    pthread_mutex_destroy(&activity->lock);
    bson_free(activity);
}

bool spill_activity_shows_owners(const spill_activity_t *activity)
{
    return activity->shows_owners;
}

/* ---- owners ---------------------------------------------------------------------------------- */

static uint64_t key_of(const spill_activity_t *activity, const char *collection,
                       const spill_value_t *owner)
{
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_buffer_append(&bytes, activity->secret, sizeof activity->secret);
    spill_buffer_append(&bytes, collection, strlen(collection) + 1);
    spill_buffer_append_byte(&bytes, (uint8_t)owner->type);
    spill_buffer_append(&bytes, owner->data, owner->size_bytes);
    uint64_t key = spill_hash(bytes.data, bytes.size);
    spill_buffer_release(&bytes);
    return key;
}

static void halve(spill_activity_t *activity)
{
    int64_t now_us = spill_clock_monotonic_us(NULL);
    if (now_us - activity->halved_us < HALVE_US)
        return;
    activity->halved_us = now_us;
    for (size_t i = 0; i < activity->owner_count; i++)
        activity->owners[i].commands /= 2;
}

/* Name a row, which has the count of the owner that was in it. */
static void name_owner(const spill_activity_t *activity, spill_activity_owner_row_t *row,
                       uint64_t key, const char *collection, const spill_value_t *owner)
{
    row->key = key;
    snprintf(row->collection, sizeof row->collection, "%s", collection);
    snprintf(row->owner, sizeof row->owner, "%08" PRIx32, (uint32_t)(key >> 32));
    if (!activity->shows_owners)
        return;
    char *json = spill_value_to_json(owner, false);
    snprintf(row->owner, sizeof row->owner, "%s", json != NULL ? json : "");
    bson_free(json);
}

void spill_activity_owner(spill_activity_t *activity, const char *collection,
                          const spill_value_t *owner)
{
    if (activity == NULL)
        return;
    uint64_t key = key_of(activity, collection, owner);
    size_t at = 0, least = 0;
    pthread_mutex_lock(&activity->lock);
    halve(activity);
    for (; at < activity->owner_count && activity->owners[at].key != key; at++)
        if (activity->owners[at].commands < activity->owners[least].commands)
            least = at;
    if (at == SPILL_ACTIVITY_OWNERS)
        at = least;
    else if (at == activity->owner_count)
        activity->owner_count++;
    if (activity->owners[at].key != key)
        name_owner(activity, &activity->owners[at], key, collection, owner);
    activity->owners[at].commands++;
    pthread_mutex_unlock(&activity->lock);
}

static int compare_owners(const void *left, const void *right)
{
    const spill_activity_owner_row_t *first = left, *second = right;
    if (first->commands != second->commands)
        return first->commands > second->commands ? -1 : 1;
    return strcmp(first->owner, second->owner);
}

size_t spill_activity_owners(spill_activity_t *activity,
                             spill_activity_owner_row_t rows[SPILL_ACTIVITY_OWNERS])
{
    pthread_mutex_lock(&activity->lock);
    halve(activity);
    size_t count = activity->owner_count;
    memcpy(rows, activity->owners, count * sizeof *rows);
    pthread_mutex_unlock(&activity->lock);
    qsort(rows, count, sizeof *rows, compare_owners);
    return count;
}

void spill_activity_adopted(spill_activity_t *activity)
{
    if (activity != NULL)
        atomic_fetch_add(&activity->adoptions, 1);
}

int64_t spill_activity_adoptions(spill_activity_t *activity)
{
    return atomic_load(&activity->adoptions);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/*
 * Is the text an operator, a command, or a phrase of the gateway? Then it has no data of users.
 * Clients choose the names of fields and the values of options.
 */
static bool is_public(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char *const phrases[] = {"a filter",       "a filter, a sort or an expression",
                                          "a replacement",  "an update pipeline",
                                          "arrayFilters",   "collation",
                                          "multi: true",    "sort",
                                          "$out or $merge", "$lookup, $graphLookup or $unionWith"};
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (strcmp(text, phrases[i]) == 0)
            return true;
    return (text[0] == '$' && text[1 + strspn(text + 1, letters)] == '\0') ||
           spill_command_kind(text) != SPILL_COMMAND_OTHER;
}

void spill_activity_refused(spill_activity_t *activity, const char *command, const char *collection,
                            int code, const char *operation)
{
    if (activity == NULL)
        return;
    spill_activity_refusal_row_t row = {.code = code};
    size_t at = 0;
    snprintf(row.command, sizeof row.command, "%s", is_public(command) ? command : "other");
    if (operation != NULL)
        snprintf(row.operation, sizeof row.operation, "%s",
                 is_public(operation) ? operation : "other");
    pthread_mutex_lock(&activity->lock);
    spill_activity_refusal_row_t *rows = activity->refusals;
    while (at < activity->refusal_count &&
           (rows[at].code != code || strcmp(rows[at].command, row.command) != 0 ||
            strcmp(rows[at].operation, row.operation) != 0))
        at++;
    if (at == SPILL_ACTIVITY_REFUSALS)
        at--;
    else if (at == activity->refusal_count)
        rows[activity->refusal_count++] = row;
    int64_t count = ++rows[at].count;
    pthread_mutex_unlock(&activity->lock);
    if (count > LOGGED_FIRST && count % LOGGED_EACH != 0)
        return;
    bson_t *fields = BCON_NEW("command", BCON_UTF8(row.command));
    if (collection[0] != '\0')
        BSON_APPEND_UTF8(fields, "collection", collection);
    BSON_APPEND_INT32(fields, "code", code);
    if (row.operation[0] != '\0')
        BSON_APPEND_UTF8(fields, "operation", row.operation);
    BSON_APPEND_INT64(fields, "count", count);
    spill_gateway_log("refused", fields);
}

/* ---- errors ---------------------------------------------------------------------------------- */

const char *spill_activity_error_name(spill_activity_error_t class)
{
    static const char *const names[] = {[SPILL_ACTIVITY_UNAVAILABLE] = "unavailable",
                                        [SPILL_ACTIVITY_DENIED] = "denied",
                                        [SPILL_ACTIVITY_INVALID] = "invalid",
                                        [SPILL_ACTIVITY_TOO_LARGE] = "too_large",
                                        [SPILL_ACTIVITY_TIME] = "time",
                                        [SPILL_ACTIVITY_CONFLICT] = "conflict",
                                        [SPILL_ACTIVITY_OVERLOAD] = "overload",
                                        [SPILL_ACTIVITY_OTHER] = "other"};
    return names[class];
}

static spill_activity_error_t class_of_meaning(spill_server_meaning_t meaning)
{
    switch (meaning) {
    case SPILL_SERVER_MEANS_NOT_DONE:
    case SPILL_SERVER_MEANS_PERHAPS:
        return SPILL_ACTIVITY_UNAVAILABLE;
    case SPILL_SERVER_MEANS_DENIED:
        return SPILL_ACTIVITY_DENIED;
    case SPILL_SERVER_MEANS_INVALID:
        return SPILL_ACTIVITY_INVALID;
    case SPILL_SERVER_MEANS_TOO_LARGE:
        return SPILL_ACTIVITY_TOO_LARGE;
    case SPILL_SERVER_MEANS_OTHER:
        break;
    }
    return SPILL_ACTIVITY_OTHER;
}

spill_activity_error_t spill_activity_error_of(int code)
{
    switch (code) {
    case SPILL_SERVER_TIME_EXPIRED:
    case SPILL_SERVER_EXCEEDED_TIME_LIMIT:
        return SPILL_ACTIVITY_TIME;
    case SPILL_SERVER_WRITE_CONFLICT:
    case SPILL_SERVER_DUPLICATE_KEY:
    case SPILL_SERVER_TRANSACTION_TOO_OLD:
    case SPILL_SERVER_INCOMPLETE_HISTORY:
        return SPILL_ACTIVITY_CONFLICT;
    case SPILL_SERVER_OVERLOADED:
        return SPILL_ACTIVITY_OVERLOAD;
    case SPILL_SERVER_CURSOR_NOT_FOUND:
        return SPILL_ACTIVITY_OTHER;
    default:
        return class_of_meaning(spill_server_meaning_of(code));
    }
}

void spill_activity_failed(spill_activity_t *activity, const char *command, int code)
{
    if (activity == NULL)
        return;
    spill_activity_error_t class = spill_activity_error_of(code);
    int64_t count = atomic_fetch_add(&activity->errors[class], 1) + 1;
    if (count > LOGGED_FIRST && count % LOGGED_EACH != 0)
        return;
    spill_gateway_log(
        "failed", BCON_NEW("command", BCON_UTF8(is_public(command) ? command : "other"), "code",
                           BCON_INT32(code), "class", BCON_UTF8(spill_activity_error_name(class)),
                           "count", BCON_INT64(count)));
}

int64_t spill_activity_errors(spill_activity_t *activity, spill_activity_error_t class)
{
    return atomic_load(&activity->errors[class]);
}

/* ---- the rows of refusals -------------------------------------------------------------------- */

static int compare_refusals(const void *left, const void *right)
{
    const spill_activity_refusal_row_t *first = left, *second = right;
    if (first->count != second->count)
        return first->count > second->count ? -1 : 1;
    int order = strcmp(first->command, second->command);
    return order != 0 ? order : strcmp(first->operation, second->operation);
}

size_t spill_activity_refusals(spill_activity_t *activity,
                               spill_activity_refusal_row_t rows[SPILL_ACTIVITY_REFUSALS])
{
    pthread_mutex_lock(&activity->lock);
    size_t count = activity->refusal_count;
    memcpy(rows, activity->refusals, count * sizeof *rows);
    pthread_mutex_unlock(&activity->lock);
    qsort(rows, count, sizeof *rows, compare_refusals);
    return count;
}
