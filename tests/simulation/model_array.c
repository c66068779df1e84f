#include "model_array.h"

#include <bson/bson.h>

/* Room for one more. */
#define GROW(array, count, capacity)                                                               \
    do {                                                                                           \
        if ((count) == (capacity)) {                                                               \
            (capacity) = (capacity) ? 2 * (capacity) : 64;                                         \
            (array) = bson_realloc((array), (capacity) * sizeof *(array));                         \
        }                                                                                          \
    } while (0)

void sim_model_clear(sim_model_t *plain)
{
    plain->incarnation = 0;
    plain->element_count = 0;
    plain->generation_start = 0;
    plain->edit_count = 0;
    plain->moment_count = 0;
    GROW(plain->moments, plain->moment_count, plain->moment_capacity);
    plain->moments[plain->moment_count++] = (sim_model_moment_t){0};
}

void sim_model_release(sim_model_t *plain)
{
    bson_free(plain->elements);
    bson_free(plain->edits);
    bson_free(plain->moments);
    *plain = (sim_model_t){0};
}

int32_t sim_model_version(const sim_model_t *plain)
{
    return (int32_t)plain->moment_count - 1;
}

const sim_model_moment_t *sim_model_now(const sim_model_t *plain)
{
    return &plain->moments[plain->moment_count - 1];
}

/* Add a version: return its moment, a copy of the last one for the caller to change. */
static sim_model_moment_t *new_moment(sim_model_t *plain, sim_change_t kind)
{
    GROW(plain->moments, plain->moment_count, plain->moment_capacity);
    sim_model_moment_t *moment = &plain->moments[plain->moment_count++];
    *moment = moment[-1];
    moment->change = kind;
    return moment;
}

void sim_model_create(sim_model_t *plain, int64_t incarnation)
{
    sim_model_moment_t *moment = new_moment(plain, SIM_CHANGE_CREATE);
    moment->exists = true;
    moment->generation++;
    plain->incarnation = incarnation;
    plain->generation_start = plain->element_count;
}

static void add_element(sim_model_t *plain, int64_t seq, int64_t value, int32_t died)
{
    GROW(plain->elements, plain->element_count, plain->element_capacity);
    plain->elements[plain->element_count++] = (sim_model_element_t){
        .seq = seq,
        .generation = sim_model_now(plain)->generation,
        .incarnation = plain->incarnation,
        .born = sim_model_version(plain),
        .died = died,
        .last_edit = -1,
        .value = value,
    };
}

const char *sim_model_append(sim_model_t *plain, int64_t seq, int64_t skip, const int64_t *values,
                             size_t count)
{
    if (!sim_model_now(plain)->exists)
        return "an append to an absent owner";
    if (seq < sim_model_now(plain)->next)
        return "a sequence number was given twice";
    if (seq > sim_model_now(plain)->next)
        return "a sequence number was left out";
    sim_model_moment_t *moment = new_moment(plain, SIM_CHANGE_APPEND);
    for (int64_t i = 0; i < skip; i++)
        add_element(plain, seq + i, SIM_NO_VALUE, sim_model_version(plain));
    for (size_t i = 0; i < count; i++)
        add_element(plain, seq + skip + (int64_t)i, values[i], SIM_ALIVE);
    moment->next += skip + (int64_t)count;
    moment->live += (int32_t)count;
    return NULL;
}

sim_model_element_t *sim_model_find(const sim_model_t *plain, int64_t seq)
{
    if (!sim_model_now(plain)->exists || seq < 0 || seq >= sim_model_now(plain)->next)
        return NULL;
    return &plain->elements[plain->generation_start + (size_t)seq];
}

const sim_model_element_t *sim_model_find_at(const sim_model_t *plain, int32_t version, int64_t seq)
{
    int32_t generation = plain->moments[version].generation;
    for (size_t i = plain->element_count; i-- > 0;) {
        const sim_model_element_t *element = &plain->elements[i];
        if (element->generation == generation && element->seq == seq)
            return element;
        if (element->generation < generation)
            return NULL;
    }
    return NULL;
}

static sim_model_element_t *find_alive(const sim_model_t *plain, int64_t seq)
{
    sim_model_element_t *element = sim_model_find(plain, seq);
    return element && element->died == SIM_ALIVE ? element : NULL;
}

static void note_edit(sim_model_t *plain, sim_model_element_t *element, int32_t version,
                      int64_t value)
{
    GROW(plain->edits, plain->edit_count, plain->edit_capacity);
    plain->edits[plain->edit_count] =
        (sim_model_edit_t){.version = version, .previous = element->last_edit, .value = value};
    element->last_edit = (int32_t)plain->edit_count++;
}

const char *sim_model_edit(sim_model_t *plain, int64_t seq, int64_t value)
{
    sim_model_element_t *element = find_alive(plain, seq);
    if (!element)
        return "an edit of an absent element";
    new_moment(plain, SIM_CHANGE_EDIT);
    note_edit(plain, element, sim_model_version(plain), value);
    return NULL;
}

void sim_model_edit_late(sim_model_t *plain, int64_t incarnation, int64_t seq, int64_t value)
{
    for (size_t i = plain->element_count; i-- > 0;) {
        sim_model_element_t *element = &plain->elements[i];
        if (element->incarnation != incarnation || element->seq != seq)
            continue;
        if (element->died != SIM_ALIVE)
            note_edit(plain, element, element->died, value);
        return;
    }
}

const char *sim_model_prepare(sim_model_t *plain, int64_t seq)
{
    sim_model_element_t *element = find_alive(plain, seq);
    if (!element)
        return "the removal of an absent element was counted";
    if (element->pending)
        return "a removal was counted twice";
    element->pending = true;
    new_moment(plain, SIM_CHANGE_PREPARE)->pending++;
    return NULL;
}

static void mark_dead(sim_model_t *plain, sim_model_moment_t *moment, sim_model_element_t *element)
{
    element->died = sim_model_version(plain);
    moment->live--;
    if (element->pending)
        moment->pending--;
    element->pending = false;
}

const char *sim_model_delete(sim_model_t *plain, int64_t seq)
{
    sim_model_element_t *element = find_alive(plain, seq);
    if (!element)
        return "a removal of an absent element";
    mark_dead(plain, new_moment(plain, SIM_CHANGE_DELETE), element);
    return NULL;
}

const char *sim_model_trim(sim_model_t *plain, int64_t watermark)
{
    const sim_model_moment_t *now = sim_model_now(plain);
    if (!now->exists)
        return "a trim of an absent owner";
    if (watermark < now->watermark || watermark > now->next)
        return "a trim to a number that no element has yet, or that was trimmed before";
    sim_model_moment_t *moment = new_moment(plain, SIM_CHANGE_TRIM);
    moment->watermark = watermark;
    for (size_t i = plain->generation_start; i < plain->element_count; i++)
        if (plain->elements[i].seq < watermark && plain->elements[i].died == SIM_ALIVE)
            mark_dead(plain, moment, &plain->elements[i]);
    return NULL;
}

const char *sim_model_rewrite(sim_model_t *plain, int64_t seq, const int64_t *values, size_t count)
{
    const char *wrong = sim_model_append(plain, seq, 0, values, count);
    if (wrong)
        return wrong;
    sim_model_moment_t *moment = &plain->moments[plain->moment_count - 1];
    moment->change = SIM_CHANGE_TRIM; /* it was both */
    moment->watermark = seq;
    for (size_t i = plain->generation_start; i < plain->element_count; i++)
        if (plain->elements[i].seq < seq && plain->elements[i].died == SIM_ALIVE)
            mark_dead(plain, moment, &plain->elements[i]);
    return NULL;
}

const char *sim_model_drop(sim_model_t *plain)
{
    if (!sim_model_now(plain)->exists)
        return "a drop of an absent owner";
    sim_model_moment_t *moment = new_moment(plain, SIM_CHANGE_DROP);
    for (size_t i = plain->generation_start; i < plain->element_count; i++)
        if (plain->elements[i].died == SIM_ALIVE)
            mark_dead(plain, moment, &plain->elements[i]);
    moment->exists = false;
    moment->next = 0;
    moment->watermark = 0;
    plain->generation_start = plain->element_count;
    plain->incarnation = 0;
    return NULL;
}

const char *sim_model_fall(sim_model_t *plain, int64_t first, int64_t cap, bool exactly)
{
    sim_model_moment_t *moment = &plain->moments[plain->moment_count - 1];
    int32_t most = moment->live > cap ? moment->live - (int32_t)cap : 0;
    int32_t fell = 0;
    for (size_t i = plain->generation_start; i < plain->element_count; i++)
        if (plain->elements[i].seq < first && plain->elements[i].died == SIM_ALIVE) {
            mark_dead(plain, moment, &plain->elements[i]);
            fell++;
        }
    if (fell > 0)
        moment->change = SIM_CHANGE_TRIM; /* it was both */
    sim_model_lift(plain);
    if (fell < most)
        return "more elements than the cap allows";
    if (fell > most && exactly)
        return "an element that fits was dropped";
    if (fell > most && moment->live == 0)
        return "the newest element was dropped";
    return moment->watermark == first ? NULL : "the head does not begin with a live element";
}

const char *sim_model_fall_one(sim_model_t *plain, int64_t seq)
{
    sim_model_moment_t *moment = &plain->moments[plain->moment_count - 1];
    sim_model_element_t *element = find_alive(plain, seq);
    if (!element)
        return "an absent element was dropped";
    mark_dead(plain, moment, element);
    moment->change = SIM_CHANGE_TRIM;
    return NULL;
}

void sim_model_lift(sim_model_t *plain)
{
    sim_model_moment_t *moment = &plain->moments[plain->moment_count - 1];
    while (moment->watermark < moment->next &&
           sim_model_find(plain, moment->watermark)->died != SIM_ALIVE)
        moment->watermark++;
}

int64_t sim_model_value(const sim_model_t *plain, const sim_model_element_t *element,
                        int32_t version)
{
    if (version < element->born || version >= element->died)
        return -1;
    for (int32_t i = element->last_edit; i >= 0; i = plain->edits[i].previous)
        if (plain->edits[i].version <= version)
            return plain->edits[i].value;
    return element->value;
}

bool sim_model_edited(const sim_model_t *plain, const sim_model_element_t *element, int64_t value,
                      int32_t from, int32_t to)
{
    for (int32_t i = element->last_edit; i >= 0; i = plain->edits[i].previous)
        if (plain->edits[i].version > from && plain->edits[i].version <= to &&
            plain->edits[i].value == value)
            return true;
    return false;
}
