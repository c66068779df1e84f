/* Memory and connections, counted. */
#include "gateway/relay/limits.h"

#include "util/buffer.h"

#include <bson/bson.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

enum { BUCKETS = 4096 };

/* The connections of one address. */
typedef struct counted_peer {
    struct counted_peer *next;
    spill_peer_t peer;
    int64_t connections;
} counted_peer_t;

struct spill_limits {
    atomic_int_fast64_t memory_bytes;
    int64_t memory_bytes_max;
    int64_t connections_max, address_connections_max;
    pthread_mutex_t lock; /* for what follows */
    int64_t connections;
    counted_peer_t *buckets[BUCKETS];
};

spill_limits_t *spill_limits_new(int64_t memory_bytes_max, int64_t connections_max,
                                 int64_t address_connections_max)
{
    spill_limits_t *limits = bson_malloc0(sizeof *limits);
    limits->memory_bytes_max = memory_bytes_max;
    limits->connections_max = connections_max;
    limits->address_connections_max = address_connections_max;
    pthread_mutex_init(&limits->lock, NULL);
    return limits;
}

void spill_limits_free(spill_limits_t *limits)
{
    if (!limits)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        while (limits->buckets[i]) {
            counted_peer_t *next = limits->buckets[i]->next;
            bson_free(limits->buckets[i]);
            limits->buckets[i] = next;
        }
    }
    pthread_mutex_destroy(&limits->lock);
    bson_free(limits);
}

/* ---- memory ---------------------------------------------------------------------------------- */

bool spill_limits_reserve(spill_limits_t *limits, size_t bytes)
{
    int64_t before = atomic_fetch_add(&limits->memory_bytes, (int64_t)bytes);
    if (before + (int64_t)bytes <= limits->memory_bytes_max)
        return true;
    spill_limits_release(limits, bytes);
    return false;
}

void spill_limits_release(spill_limits_t *limits, size_t bytes)
{
    atomic_fetch_sub(&limits->memory_bytes, (int64_t)bytes);
}

int64_t spill_limits_memory(spill_limits_t *limits)
{
    return atomic_load(&limits->memory_bytes);
}

/* ---- connections ----------------------------------------------------------------------------- */

spill_peer_t spill_peer_of(const struct sockaddr *address)
{
    spill_peer_t peer = {{0}};
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)address;
        memset(peer.address + 10, 0xFF, 2); /* an IPv4 address as IPv6 maps it */
        memcpy(peer.address + 12, &four->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
        memcpy(peer.address, &six->sin6_addr, sizeof peer.address);
    }
    return peer;
}

/* The place of the peer's entry in its bucket, or of the bucket's end. */
static counted_peer_t **place_of(spill_limits_t *limits, const spill_peer_t *peer)
{
    uint64_t hash = spill_hash(peer, sizeof *peer);
    counted_peer_t **place = &limits->buckets[hash % BUCKETS];
    while (*place && memcmp(&(*place)->peer, peer, sizeof *peer) != 0)
        place = &(*place)->next;
    return place;
}

const char *spill_limits_admit(spill_limits_t *limits, const spill_peer_t *peer)
{
    const char *refusal = NULL;
    pthread_mutex_lock(&limits->lock);
    counted_peer_t **place = place_of(limits, peer);
    if (limits->connections >= limits->connections_max) {
        refusal = "--max-connections is reached";
    } else if (*place && (*place)->connections >= limits->address_connections_max) {
        refusal = "--max-per-address is reached";
    } else {
        if (!*place) {
            *place = bson_malloc0(sizeof **place);
            (*place)->peer = *peer;
        }
        (*place)->connections++;
        limits->connections++;
    }
    pthread_mutex_unlock(&limits->lock);
    return refusal;
}

void spill_limits_leave(spill_limits_t *limits, const spill_peer_t *peer)
{
    pthread_mutex_lock(&limits->lock);
    counted_peer_t **place = place_of(limits, peer);
    counted_peer_t *entry = *place;
    limits->connections--;
    if (entry && --entry->connections == 0) {
        *place = entry->next;
        bson_free(entry);
    }
    pthread_mutex_unlock(&limits->lock);
}

int64_t spill_limits_connections(spill_limits_t *limits)
{
    pthread_mutex_lock(&limits->lock);
    int64_t connections = limits->connections;
    pthread_mutex_unlock(&limits->lock);
    return connections;
}
