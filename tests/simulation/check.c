/*
 * Check the answers of calls. Each request that took effect made a version of the plain array. An
 * answer is correct if it holds at one of the versions between the call's beginning and its end.
 */
#include "world.h"

#include <math.h>
#include <string.h>

/* ---- appends --------------------------------------------------------------------------------- */

/* Does the batch fit a page by its element count? Byte bounds may split it earlier. */
static bool fits_page(const sim_client_t *client, const sim_append_t *append)
{
    const spill_definition_t *definition = spill_array_get_definition(client->array);
    return append->count <= definition->bounds.page_capacity && !client->world->settings.padded;
}

static void check_acknowledged(sim_client_t *client, const sim_append_t *append,
                               const spill_append_result_t *result, int32_t tried_from)
{
    sim_world_t *world = client->world;
    const sim_origin_t *first = &world->origins[append->first_value];
    int index = (int)(append - world->appends);
    if (world->settings.unique) {
        sim_check_left_out(client, append, result, tried_from);
        return;
    }
    if (result->count != append->skip + append->count)
        sim_fail(world, "append #%d: %d elements, %lld acknowledged", index, append->count,
                 (long long)result->count);
    bool moved = false; /* a later owner of the name got elements of it, too: no promise then */
    for (int i = 0; i < append->count; i++) {
        const sim_origin_t *origin = &first[i];
        moved = moved || origin->applied > 1 || origin->generation != first->generation;
        if (origin->applied == 0)
            sim_fail(world, "append #%d: acknowledged, but v%lld was not appended", index,
                     (long long)append->first_value + i);
        if (!result->repeated && append->tries == 1 && origin->version <= tried_from)
            sim_fail(world, "append #%d: v%lld is older than the append", index,
                     (long long)append->first_value + i);
        if (i > 0 && origin->seq <= first[i - 1].seq && !moved)
            sim_fail(world, "append #%d: a batch is out of order", index);
        bool split = origin->version != first->version && append->tries == 1;
        if (split && world->settings.layout == SPILL_LAYOUT_CAPPED)
            sim_fail(world, "append #%d: a batch to a capped head was split", index);
        if (split && fits_page(client, append) && append->fill)
            sim_saw(world, SIM_BATCH_FILLS);
        else if (split && fits_page(client, append))
            sim_fail(world, "append #%d: a batch that fits a page was split", index);
    }
    if (result->first >= 0 && result->first + append->skip != first->seq && !moved)
        sim_fail(world, "append #%d: answered %lld, appended at %lld", index,
                 (long long)result->first, (long long)first->seq);
    bool newest = world->settings.keep == SPILL_KEEP_NEWEST;
    if (append->updates && newest && append->updated != 1 && !moved)
        sim_fail(world, "append #%d: its update was applied %d times", index, append->updated);
    if (append->count > 1)
        sim_saw(world, first->version == first[append->count - 1].version ? SIM_BATCH_ONE_STEP
                                                                          : SIM_BATCH_SPLIT);
}

static bool was_without_owner(const sim_model_t *plain, sim_span_t span)
{
    for (int32_t v = span.from; v <= span.to; v++)
        if (!plain->moments[v].exists)
            return true;
    return false;
}

/*
 * Was the owner dropped between two parts of the batch? A later element reached the present owner.
 * The first one that the call did not acknowledge reached only an earlier owner of the name.
 */
static bool was_separated(const sim_world_t *world, const sim_append_t *append,
                          int64_t acknowledged)
{
    const sim_origin_t *missing = &world->origins[append->first_value + acknowledged];
    int32_t generation = sim_model_now(&world->plains[append->owner])->generation;
    bool later = false;
    for (int64_t i = 1; acknowledged + i < append->count; i++)
        later = later || missing[i].generation == generation;
    return later && missing->applied > 0 && missing->generation < generation;
}

/* A session's operation may be refused for three reasons. */
static void check_session_conflict(sim_world_t *world, const sim_append_t *append,
                                   int64_t acknowledged)
{
    int index = (int)(append - world->appends);
    bool late = world->sessions[append->session].txn > append->txn;
    if (append->reason == SPILL_REASON_TOO_OLD && late)
        sim_saw(world, SIM_SESSION_TOO_OLD);
    else if (append->reason == SPILL_REASON_SESSIONS)
        sim_saw(world, SIM_SESSION_REFUSED);
    else if (append->reason != SPILL_REASON_NONE || !was_separated(world, append, acknowledged))
        sim_fail(world, "append #%d: conflict in a session", index);
}

void sim_check_append(sim_client_t *client, const sim_append_t *append,
                      const spill_append_result_t *result, int32_t tried_from)
{
    sim_world_t *world = client->world;
    int index = (int)(append - world->appends);
    switch (append->code) {
    case SPILL_OK:
        check_acknowledged(client, append, result, tried_from);
        if (result->repeated) {
            sim_saw(world, SIM_REPEAT_RECOGNIZED);
            if (client->pending == index)
                sim_saw(world, SIM_REPEAT_BY_SUCCESSOR);
        }
        return;
    case SPILL_UNKNOWN:
        if (client->faults_met == 0 && (!append->has_op || append->session >= 0))
            sim_fail(world, "append #%d: unknown, though nothing was lost", index);
        if (client->faults_met == 0)
            sim_saw(world, SIM_RETRY_STALE);
        return;
    case SPILL_IO:
        if (client->faults_met == 0)
            sim_fail(world, "append #%d: failed, though no request did", index);
        break;
    case SPILL_TOO_BIG:
        if (!world->settings.padded)
            sim_fail(world, "append #%d: too big", index);
        break;
    case SPILL_NOT_FOUND:
        if (!append->must_exist || append->reason != SPILL_REASON_NO_MATCH ||
            !was_without_owner(
                &world->plains[append->owner],
                (sim_span_t){tried_from, sim_model_version(&world->plains[append->owner])}))
            sim_fail(world, "append #%d: no owner", index);
        break;
    case SPILL_REFUSED:
        if (!append->rewrites)
            sim_fail(world, "append #%d: refused", index);
        break;
    /* an earlier try split the batch elsewhere, and its elements changed since */
    case SPILL_CONFLICT:
        if (append->session >= 0)
            check_session_conflict(world, append, result->count);
        else if (append->count == 1 || !append->unknown || !append->has_op)
            sim_fail(world, "append #%d: conflict", index);
        break;
    default:
        sim_fail(world, "append #%d: %s", index, spill_code_name(append->code));
    }
    for (int i = 0; i < append->count && !append->unknown && !world->settings.unique; i++)
        if (world->origins[append->first_value + i].applied != (i < result->count))
            sim_fail(world,
                     "append #%d: failed with %lld elements acknowledged, but v%lld was "
                     "appended %d times",
                     index, (long long)result->count, (long long)append->first_value + i,
                     (int)world->origins[append->first_value + i].applied);
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* The elements of the incarnation that existed at a version: a range of plain->elements. */
typedef struct stretch {
    const sim_model_element_t *first;
    size_t count;
} stretch_t;

static stretch_t stretch_of(const sim_model_t *plain, int32_t version)
{
    stretch_t stretch = {NULL, 0};
    int32_t generation = plain->moments[version].generation;
    for (size_t i = plain->element_count; i-- > 0;) {
        if (plain->elements[i].generation < generation)
            break;
        if (plain->elements[i].generation == generation) {
            stretch.first = &plain->elements[i];
            stretch.count++;
        }
    }
    return stretch;
}

static bool in_range(const spill_read_options_t *options, int64_t seq)
{
    return seq > options->after && seq < options->before;
}

/* Return the id of a read element, or -1 if its bytes differ from those written. */
static int64_t read_id(const sim_world_t *world, const spill_element_t *element)
{
    int padding;
    int64_t id = sim_value_id(&element->value, &padding);
    bool known = id >= 0 && id < (int64_t)world->origin_count;
    return known && world->origins[id].padding == padding ? id : -1;
}

/* Does a read of exactly this version return the slice? */
static bool matches_version(const sim_world_t *world, const sim_model_t *plain, int32_t version,
                            const spill_read_options_t *options, const spill_slice_t *slice)
{
    stretch_t stretch = stretch_of(plain, version);
    int64_t skip = options->skip;
    size_t taken = 0;
    bool more = false;
    for (size_t i = 0; i < stretch.count; i++) {
        size_t at = options->order == SPILL_OLDEST_FIRST ? i : stretch.count - 1 - i;
        const sim_model_element_t *element = &stretch.first[at];
        int64_t value = sim_model_value(plain, element, version);
        if (value < 0 || !in_range(options, element->seq) || skip-- > 0)
            continue;
        if ((int64_t)taken == options->limit) {
            more = true;
            break;
        }
        if (taken == slice->count || slice->elements[taken].seq != element->seq ||
            read_id(world, &slice->elements[taken]) != value)
            return false;
        taken++;
    }
    return taken == slice->count && (slice->more || !more);
}

static bool only_appends(const sim_model_t *plain, sim_span_t span)
{
    for (int32_t v = span.from + 1; v <= span.to; v++)
        if (plain->moments[v].change != SIM_CHANGE_APPEND &&
            plain->moments[v].change != SIM_CHANGE_CREATE)
            return false;
    return true;
}

/* Did the element exist with this value at some version of the span? */
static bool was_there(const sim_world_t *world, const sim_model_t *plain, sim_span_t span,
                      const spill_element_t *element)
{
    int64_t id = read_id(world, element);
    for (int32_t v = span.from; v <= span.to && id >= 0; v++) {
        const sim_model_element_t *found = sim_model_find_at(plain, v, element->seq);
        if (found && sim_model_value(plain, found, v) == id)
            return true;
    }
    const sim_model_element_t *first = sim_model_find_at(plain, span.from, element->seq);
    return first && first->died > span.from && first->died <= span.to &&
           sim_model_edited(plain, first, id, first->died - 1, first->died);
}

static bool contains(const spill_slice_t *slice, int64_t seq)
{
    for (size_t i = 0; i < slice->count; i++)
        if (slice->elements[i].seq == seq)
            return true;
    return false;
}

/* Should the slice include this number? `last` is the last number in the slice. */
static bool reached(const spill_read_options_t *options, const spill_slice_t *slice, int64_t last,
                    int64_t seq)
{
    if (!slice->more && (int64_t)slice->count < options->limit)
        return true;
    return options->order == SPILL_OLDEST_FIRST ? seq < last : seq > last;
}

/*
 * Check a read of several documents while elements changed. Each element that it returned must have
 * existed at some version, in order. It must return every element that existed at all versions.
 */
static const char *matches_several_versions(const sim_world_t *world, const sim_model_t *plain,
                                            sim_span_t span, const spill_read_options_t *options,
                                            const spill_slice_t *slice)
{
    bool oldest_first = options->order == SPILL_OLDEST_FIRST;
    if ((int64_t)slice->count > options->limit)
        return "more elements than the limit";
    for (size_t i = 0; i < slice->count; i++) {
        const spill_element_t *element = &slice->elements[i];
        if (!in_range(options, element->seq))
            return "an element out of range";
        if (i > 0 && (element->seq > slice->elements[i - 1].seq) != oldest_first)
            return "elements out of order";
        if (!was_there(world, plain, span, element))
            return "an element that did not exist";
    }
    if (options->skip > 0 ||
        plain->moments[span.from].generation != plain->moments[span.to].generation)
        return NULL;
    int64_t last =
        slice->count > 0 ? slice->elements[slice->count - 1].seq : (oldest_first ? -1 : INT64_MAX);
    stretch_t stretch = stretch_of(plain, span.from);
    for (size_t i = 0; i < stretch.count; i++) {
        const sim_model_element_t *element = &stretch.first[i];
        bool throughout = element->born <= span.from && element->died > span.to;
        if (throughout && in_range(options, element->seq) &&
            reached(options, slice, last, element->seq) && !contains(slice, element->seq))
            return "an element is missing";
    }
    return NULL;
}

static void describe_slice(const sim_world_t *world, const spill_slice_t *slice, char *text,
                           size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < slice->count && at < size; i++)
        at +=
            (size_t)snprintf(text + at, size - at, " %lld:v%lld", (long long)slice->elements[i].seq,
                             (long long)read_id(world, &slice->elements[i]));
}

void sim_check_read(sim_client_t *client, int owner, sim_span_t span,
                    const spill_read_options_t *options, const spill_slice_t *slice)
{
    sim_world_t *world = client->world;
    const sim_model_t *plain = &world->plains[owner];
    if (client->reads > 1)
        sim_saw(world, SIM_READ_TWO_DOCUMENTS);
    for (int32_t v = span.to; v >= span.from; v--)
        if (matches_version(world, plain, v, options, slice))
            return;
    const char *wrong = "no moment of the read had these elements";
    if (client->reads > 1 && !only_appends(plain, span)) {
        sim_saw(world, SIM_READ_AMID_CHANGE);
        wrong = matches_several_versions(world, plain, span, options, slice);
    }
    char elements[256];
    describe_slice(world, slice, elements, sizeof elements);
    if (wrong)
        sim_fail(world,
                 "owner %d, versions %d to %d: read %s first, limit %lld skip %lld before %lld "
                 "after %lld: %s:%s%s",
                 owner, (int)span.from, (int)span.to,
                 options->order == SPILL_OLDEST_FIRST ? "oldest" : "newest",
                 (long long)options->limit, (long long)options->skip,
                 (long long)(options->before == INT64_MAX ? -1 : options->before),
                 (long long)options->after, wrong, elements, slice->more ? " and more" : "");
}

void sim_check_count(sim_client_t *client, int owner, sim_span_t span, const spill_count_t *count)
{
    const sim_model_t *plain = &client->world->plains[owner];
    for (int32_t v = span.to; v >= span.from; v--) {
        const sim_model_moment_t *moment = &plain->moments[v];
        if (count->exists == moment->exists && count->count == moment->live - moment->pending &&
            count->next == moment->next)
            return;
    }
    const sim_model_moment_t *now = sim_model_now(plain);
    sim_fail(
        client->world,
        "owner %d: counted %lld, next %lld; the array has %d (%d with a pending removal), next "
        "%lld, and no earlier version matches",
        owner, (long long)count->count, (long long)count->next, (int)now->live, (int)now->pending,
        (long long)now->next);
}

/*
 * The statistics of the plain array at one version. A sum over several parts may be added in
 * another order.
 */
static void statistics_at(const sim_world_t *world, const sim_model_t *plain, int32_t version,
                          spill_window_stats_t *window_stats, int64_t *count)
{
    stretch_t stretch = stretch_of(plain, version);
    *window_stats = (spill_window_stats_t){0};
    *count = 0;
    for (size_t i = 0; i < stretch.count; i++) {
        sim_value_bytes_t bytes;
        int64_t id = sim_model_value(plain, &stretch.first[i], version);
        if (id < 0)
            continue;
        spill_value_t value = sim_value_of(world, &bytes, id);
        spill_window_stats_add(window_stats, &world->definition, &value);
        ++*count;
    }
}

static bool nearly_equal(double left, double right)
{
    double scale = fabs(left) > 1 ? fabs(left) : 1;
    return fabs(left - right) <= scale * 1e-9;
}

void sim_check_statistics(sim_client_t *client, int owner, sim_span_t span,
                          const spill_statistics_t *statistics)
{
    sim_world_t *world = client->world;
    const sim_model_t *plain = &world->plains[owner];
    spill_window_stats_t window_stats = {0};
    int64_t count = 0;
    if (client->reads > 1 && span.from != span.to)
        return; /* the parts were read at different versions */
    for (int32_t v = span.to; v >= span.from; v--) {
        statistics_at(world, plain, v, &window_stats, &count);
        if (statistics->count == count && statistics->values == window_stats.values &&
            nearly_equal(statistics->sum.value, window_stats.run) &&
            (window_stats.values == 0 || (statistics->min.value == window_stats.min.value &&
                                          statistics->max.value == window_stats.max.value)))
            return;
    }
    sim_fail(world,
             "owner %d: statistics of %lld elements, %lld values, sum %g; no version has them, "
             "the last has %lld, %lld, %g",
             owner, (long long)statistics->count, (long long)statistics->values,
             statistics->sum.value, (long long)count, (long long)window_stats.values,
             window_stats.run);
}

/* ---- changes --------------------------------------------------------------------------------- */

/*
 * Was the element missing at some version? An element with a pending removal may be missing, too.
 */
static bool was_missing(const sim_model_t *plain, sim_span_t span, int64_t seq)
{
    for (int32_t v = span.from; v <= span.to; v++) {
        const sim_model_element_t *element = sim_model_find_at(plain, v, seq);
        if (!plain->moments[v].exists || !element || element->pending ||
            sim_model_value(plain, element, v) < 0)
            return true;
    }
    return false;
}

static void check_not_found(sim_world_t *world, int owner, bool missing, spill_code_t code,
                            const char *what, int64_t seq)
{
    if (code == SPILL_NOT_FOUND && missing)
        return;
    if (code == SPILL_TOO_BIG && world->settings.padded)
        return;
    sim_fail(world, "owner %d: %s %lld: %s", owner, what, (long long)seq, spill_code_name(code));
}

void sim_check_edit(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                    int64_t seq, int64_t value)
{
    sim_world_t *world = client->world;
    const sim_model_t *plain = &world->plains[owner];
    if (code != SPILL_OK) {
        check_not_found(world, owner, was_missing(plain, span, seq), code, "edit", seq);
        return;
    }
    for (int32_t v = span.from; v <= span.to; v++) {
        const sim_model_element_t *element = sim_model_find_at(plain, v, seq);
        bool died = element && element->died > span.from && element->died <= span.to;
        if (died || (element && sim_model_edited(plain, element, value, span.from, span.to)))
            return;
    }
    sim_fail(world, "owner %d: an edit of %lld was acknowledged, but not made", owner,
             (long long)seq);
}

void sim_check_remove(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                      int64_t seq)
{
    sim_world_t *world = client->world;
    sim_model_t *plain = &world->plains[owner];
    if (code != SPILL_OK) {
        check_not_found(world, owner, was_missing(plain, span, seq), code, "remove", seq);
        return;
    }
    for (int32_t v = span.from; v <= span.to; v++) {
        const sim_model_element_t *element = sim_model_find_at(plain, v, seq);
        if (element && element->died > span.from && element->died <= span.to) {
            bool *claimed = &plain->elements[element - plain->elements].claimed;
            if (*claimed)
                continue;
            *claimed = true;
            return;
        }
    }
    sim_fail(world,
             "owner %d: a removal of %lld was acknowledged, but this client did not remove it",
             owner, (long long)seq);
}

void sim_check_trim(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                    int64_t below)
{
    const sim_model_t *plain = &client->world->plains[owner];
    if (code != SPILL_OK) {
        check_not_found(client->world, owner, was_without_owner(plain, span), code, "trim", below);
        return;
    }
    int64_t next = plain->moments[span.from].next;
    int64_t watermark = below < next ? below : next;
    for (int32_t v = span.from; v <= span.to; v++)
        if (plain->moments[v].watermark >= watermark || !plain->moments[v].exists)
            return;
    sim_fail(client->world, "owner %d: a trim below %lld was acknowledged, but not made", owner,
             (long long)below);
}

void sim_check_drop(sim_client_t *client, int owner, sim_span_t span, spill_code_t code)
{
    const sim_model_t *plain = &client->world->plains[owner];
    if (code != SPILL_OK) {
        check_not_found(client->world, owner, was_without_owner(plain, span), code, "drop", 0);
        return;
    }
    for (int32_t v = span.from + 1; v <= span.to; v++)
        if (plain->moments[v].change == SIM_CHANGE_DROP)
            return;
    if (!was_without_owner(plain, span))
        sim_fail(client->world, "owner %d: a drop was acknowledged, but not made", owner);
    else /* another client dropped the owner before and left pages */
        sim_saw(client->world, SIM_DROP_FINISHED);
}

/*
 * Whoever changes a summary keeps only the elements that fit its own bounds. So a client with
 * larger bounds may find a summary with fewer elements than fit.
 */
static bool has_larger_head(const sim_client_t *client)
{
    const spill_bounds_t *bounds = client->world->settings.bounds;
    int64_t own = spill_array_get_definition(client->array)->bounds.head_bytes_max;
    return own > bounds[0].head_bytes_max || own > bounds[1].head_bytes_max;
}

void sim_check_finding(void *context, const spill_finding_t *finding)
{
    sim_client_t *client = context;
    sim_world_t *world = client->world;
    int owner = sim_owner_number(finding->owner);
    if (finding->invariant == 3 && sim_model_now(&world->plains[owner])->generation > 1)
        return;
    if (finding->invariant == 5 && sim_is_corrupted(world, owner))
        return;
    if (has_larger_head(client) && strstr(finding->text, "have room"))
        return;
    if (strstr(finding->text, "a drop of the owner was begun") && world->drop_begun[owner])
        return;
    bool ended = world->ends[owner].any || (world->settings.notes && world->drop_begun[owner]);
    if (strstr(finding->text, " no head: ") && ended)
        return;
    if (strstr(finding->text, "left of an owner that was dropped")) {
        const sim_model_moment_t *now = sim_model_now(&world->plains[owner]);
        if (now->exists && now->generation == 1)
            sim_fail(world, "owner %d: verify: left of a drop, but no drop happened", owner);
        return;
    }
    sim_fail(world, "owner %d: verify: page %lld, I%d: %s", owner, (long long)finding->page,
             finding->invariant, finding->text);
}
