/* Find groups of collections that differ only by an identifier in their names. */
#include "tools/scan/shape.h"

#include "util/buffer.h"

#include <bson/bson.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Most borders in one name; all words beyond count as one. */
#define BORDERS_MAX 17

/*
 * A pattern without beginning and end says little: small tables that happen to have the same fields
 * would be a group. Its score is reduced by this factor, and it needs this many times the least
 * number of collections.
 */
#define BARE_WEIGHT 0.4
#define BARE_TIMES 5

/* Of patterns that cover nearly as many names, choose the longest. */
#define NEARLY 0.9

static const char *const kind_names[] = {[SPILL_SPRAWL_NAMES] = "names",
                                         [SPILL_SPRAWL_NUMBERS] = "numbers",
                                         [SPILL_SPRAWL_DATES] = "dates"};

const char *spill_sprawl_kind_name(spill_sprawl_kind_t kind)
{
    return kind_names[kind];
}

/* ---- clusters of the same shape and indexes -------------------------------------------------- */

typedef struct cluster {
    size_t *members;
    size_t count;
} cluster_t;

typedef struct clusters {
    cluster_t *at;
    size_t count;
} clusters_t;

static bool is_alike(const spill_sprawl_collection_t *left, const spill_sprawl_collection_t *right)
{
    bool known = left->indexes != 0 && right->indexes != 0;
    return (!known || left->indexes == right->indexes) &&
           spill_shape_likeness(left->shape, right->shape) >= SPILL_SPRAWL_LIKENESS;
}

/* A collection joins the cluster if it is like the cluster's first collection. */
static clusters_t find_clusters(const spill_sprawl_collection_t *collections, size_t count)
{
    clusters_t clusters = {bson_malloc(count * sizeof(cluster_t) + 1), 0};
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        if (collections[i].shape->documents == 0)
            continue;
        while (at < clusters.count &&
               !is_alike(&collections[clusters.at[at].members[0]], &collections[i]))
            at++;
        if (at == clusters.count)
            clusters.at[clusters.count++] = (cluster_t){0};
        cluster_t *cluster = &clusters.at[at];
        if ((cluster->count & (cluster->count - 1)) == 0) /* full at every power of two */
            cluster->members =
                bson_realloc(cluster->members, (2 * cluster->count + 1) * sizeof *cluster->members);
        cluster->members[cluster->count++] = i;
    }
    return clusters;
}

/* ---- patterns of names ----------------------------------------------------------------------- */

/* A beginning and an end of a name, which other names may share. */
typedef struct pattern {
    uint64_t hash;
    size_t member;       /* of the cluster */
    uint32_t head, tail; /* bytes */
} pattern_t;

static bool is_border(const char *name, size_t at)
{
    unsigned char left = (unsigned char)name[at - 1], right = (unsigned char)name[at];
    if (!isalnum(left) || !isalnum(right))
        return left < 0x80 && right < 0x80;
    return (isdigit(left) != 0) != (isdigit(right) != 0) || (islower(left) && isupper(right));
}

/* Where words begin and end, including both ends of the name. */
static size_t find_borders(const char *name, uint32_t *borders)
{
    size_t length = strlen(name), count = 0;
    borders[count++] = 0;
    for (size_t at = 1; at < length && count < BORDERS_MAX - 1; at++)
        if (is_border(name, at))
            borders[count++] = (uint32_t)at;
    borders[count++] = (uint32_t)length;
    return count;
}

static uint64_t hash_pattern(const char *name, size_t length, uint32_t head, uint32_t tail)
{
    uint64_t ends[2] = {spill_hash(name, head), spill_hash(name + length - tail, tail)};
    return spill_hash(ends, sizeof ends);
}

/* Add every pattern of a name: at least one word in its middle is the identifier. */
static size_t add_patterns(const char *name, size_t member, pattern_t *patterns)
{
    uint32_t borders[BORDERS_MAX];
    size_t count = 0, border_count = find_borders(name, borders), length = strlen(name);
    for (size_t i = 0; i + 1 < border_count; i++)
        for (size_t j = i + 1; j < border_count; j++) {
            uint32_t head = borders[i], tail = (uint32_t)length - borders[j];
            patterns[count++] = (pattern_t){.hash = hash_pattern(name, length, head, tail),
                                            .member = member,
                                            .head = head,
                                            .tail = tail};
        }
    return count;
}

static int by_hash(const void *left, const void *right)
{
    const pattern_t *a = left, *b = right;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return (a->member > b->member) - (a->member < b->member);
}

/* The names of a cluster, and the least number for a group. */
typedef struct names {
    const spill_sprawl_collection_t *collections;
    const size_t *members;
    size_t min;
    bool qualified;
} names_t;

/* A run of equal patterns. */
typedef struct run {
    const pattern_t *first;
    size_t count;
    double score;
} run_t;

/* Report whether the pattern has no beginning and end, except a database ("shop.*"). */
static bool is_bare(const names_t *names, const pattern_t *pattern)
{
    const char *name = names->collections[names->members[pattern->member]].name;
    const char *dot = names->qualified ? strchr(name, '.') : NULL;
    return pattern->tail == 0 &&
           (pattern->head == 0 || (dot && pattern->head <= (size_t)(dot - name) + 1));
}

static run_t next_run(const names_t *names, const pattern_t *patterns, size_t count, size_t from)
{
    run_t run = {.first = &patterns[from]};
    while (from + run.count < count && patterns[from + run.count].hash == run.first->hash)
        run.count++;
    run.score = (double)run.count;
    if (is_bare(names, run.first))
        run.score *= run.count >= BARE_TIMES * names->min ? BARE_WEIGHT : 0;
    return run;
}

static run_t best_run(const names_t *names, const pattern_t *patterns, size_t count)
{
    run_t best = {0}, run;
    double highest = 0;
    for (size_t i = 0; i < count; i += run.count) {
        run = next_run(names, patterns, count, i);
        highest = run.score > highest ? run.score : highest;
    }
    for (size_t i = 0; i < count; i += run.count) {
        run = next_run(names, patterns, count, i);
        uint32_t says = run.first->head + run.first->tail;
        if (run.score > 0 && run.score >= NEARLY * highest &&
            (!best.first || says > best.first->head + best.first->tail))
            best = run;
    }
    return best;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* The kind of an identifier of `length` bytes. */
static spill_sprawl_kind_t kind_of(const char *text, size_t length)
{
    size_t digits = 0;
    for (size_t i = 0; i < length; i++) {
        if (isdigit((unsigned char)text[i]))
            digits++;
        else if (!strchr("-_.", text[i]))
            return SPILL_SPRAWL_NAMES;
    }
    bool year = length >= 4 && (strncmp(text, "20", 2) == 0 || strncmp(text, "19", 2) == 0) &&
                isdigit((unsigned char)text[2]) && isdigit((unsigned char)text[3]) &&
                strncmp(text, "1970", 4) >= 0;
    if (year && digits >= 4 && digits <= 10 && digits % 2 == 0)
        return SPILL_SPRAWL_DATES;
    return digits == length && digits > 0 ? SPILL_SPRAWL_NUMBERS : SPILL_SPRAWL_NAMES;
}

/* The kind for both; an identifier of only digits may be a number and a date. */
static spill_sprawl_kind_t join_kinds(spill_sprawl_kind_t left, spill_sprawl_kind_t right)
{
    return left < right ? left : right;
}

static spill_sprawl_group_t make_group(const spill_sprawl_collection_t *collections,
                                       const size_t *members, const run_t *run)
{
    spill_sprawl_group_t group = {.kind = SPILL_SPRAWL_DATES};
    const char *name = collections[members[run->first->member]].name;
    group.pattern = bson_strdup_printf("%.*s*%s", (int)run->first->head, name,
                                       name + strlen(name) - run->first->tail);
    group.members = bson_malloc(run->count * sizeof *group.members);
    for (size_t i = 0; i < run->count; i++) {
        size_t index = members[run->first[i].member];
        const spill_sprawl_collection_t *collection = &collections[index];
        size_t length = strlen(collection->name) - run->first->head - run->first->tail;
        group.kind = join_kinds(group.kind, kind_of(collection->name + run->first->head, length));
        group.members[group.count++] = index;
        group.index_count += collection->index_count;
        group.index_bytes += collection->index_bytes;
        group.documents += collection->documents;
        group.bytes += collection->bytes;
    }
    return group;
}

/* Remove the members of the run from the cluster. */
static void remove_run(cluster_t *cluster, const run_t *run)
{
    size_t kept = 0, next = 0;
    for (size_t i = 0; i < cluster->count; i++) {
        if (next < run->count && run->first[next].member == i)
            next++;
        else
            cluster->members[kept++] = cluster->members[i];
    }
    cluster->count = kept;
}

/* Split a cluster into groups, the best first, until too few collections are left. */
static void split_cluster(const spill_sprawl_collection_t *collections, cluster_t *cluster,
                          size_t min, bool qualified, spill_sprawl_t *sprawl)
{
    size_t most = cluster->count * (size_t)(BORDERS_MAX * (BORDERS_MAX - 1) / 2);
    pattern_t *patterns = cluster->count >= min ? bson_malloc(most * sizeof *patterns) : NULL;
    while (cluster->count >= min) {
        names_t names = {collections, cluster->members, min, qualified};
        size_t count = 0;
        for (size_t i = 0; i < cluster->count; i++)
            count += add_patterns(collections[cluster->members[i]].name, i, &patterns[count]);
        qsort(patterns, count, sizeof *patterns, by_hash);
        run_t run = best_run(&names, patterns, count);
        if (!run.first || run.count < min)
            break;
        sprawl->groups = bson_realloc(sprawl->groups, (sprawl->count + 1) * sizeof *sprawl->groups);
        sprawl->groups[sprawl->count++] = make_group(collections, cluster->members, &run);
        remove_run(cluster, &run);
    }
    bson_free(patterns);
}

static int by_size(const void *left, const void *right)
{
    const spill_sprawl_group_t *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return strcmp(a->pattern, b->pattern);
}

spill_sprawl_t spill_sprawl_find(const spill_sprawl_collection_t *collections, size_t count,
                                 size_t min, bool qualified)
{
    spill_sprawl_t sprawl = {0};
    clusters_t clusters = find_clusters(collections, count);
    for (size_t i = 0; i < clusters.count; i++) {
        split_cluster(collections, &clusters.at[i], min, qualified, &sprawl);
        bson_free(clusters.at[i].members);
    }
    bson_free(clusters.at);
    if (sprawl.count > 0)
        qsort(sprawl.groups, sprawl.count, sizeof *sprawl.groups, by_size);
    return sprawl;
}

void spill_sprawl_release(spill_sprawl_t *sprawl)
{
    for (size_t i = 0; i < sprawl->count; i++) {
        bson_free(sprawl->groups[i].pattern);
        bson_free(sprawl->groups[i].members);
    }
    bson_free(sprawl->groups);
    *sprawl = (spill_sprawl_t){0};
}
