#include "plain.h"

#include <bson/bson.h>

/* Room for one more. */
#define GROW(array, count, capacity)                                                               \
    do {                                                                                           \
        if ((count) == (capacity)) {                                                               \
            (capacity) = (capacity) ? 2 * (capacity) : 64;                                         \
            (array) = bson_realloc((array), (capacity) * sizeof *(array));                         \
        }                                                                                          \
    } while (0)

void sim_plain_clear(sim_plain_t *plain)
{
    plain->epoch = 0;
    plain->element_count = 0;
    plain->incarnation_start = 0;
    plain->edit_count = 0;
    plain->moment_count = 0;
    GROW(plain->moments, plain->moment_count, plain->moment_capacity);
    plain->moments[plain->moment_count++] = (sim_plain_moment_t){0};
}

void sim_plain_release(sim_plain_t *plain)
{
    bson_free(plain->elements);
    bson_free(plain->edits);
    bson_free(plain->moments);
    *plain = (sim_plain_t){0};
}

int32_t sim_plain_version(const sim_plain_t *plain)
{
    return (int32_t)plain->moment_count - 1;
}

const sim_plain_moment_t *sim_plain_now(const sim_plain_t *plain)
{
    return &plain->moments[plain->moment_count - 1];
}

/* The new version's moment, a copy of the last one to be changed. */
static sim_plain_moment_t *change(sim_plain_t *plain, sim_change_t kind)
{
    GROW(plain->moments, plain->moment_count, plain->moment_capacity);
    sim_plain_moment_t *moment = &plain->moments[plain->moment_count++];
    *moment = moment[-1];
    moment->change = kind;
    return moment;
}

void sim_plain_create(sim_plain_t *plain, int64_t epoch)
{
    sim_plain_moment_t *moment = change(plain, SIM_CHANGE_CREATE);
    moment->exists = true;
    moment->incarnation++;
    plain->epoch = epoch;
    plain->incarnation_start = plain->element_count;
}

static void add_element(sim_plain_t *plain, int64_t seq, int64_t value, int32_t died)
{
    GROW(plain->elements, plain->element_count, plain->element_capacity);
    plain->elements[plain->element_count++] = (sim_plain_element_t){
        .seq = seq,
        .incarnation = sim_plain_now(plain)->incarnation,
        .epoch = plain->epoch,
        .born = sim_plain_version(plain),
        .died = died,
        .last_edit = -1,
        .value = value,
    };
}

const char *sim_plain_append(sim_plain_t *plain, int64_t seq, int64_t skip, const int64_t *values,
                             size_t count)
{
    if (!sim_plain_now(plain)->exists)
        return "an append to an owner that is not there";
    if (seq < sim_plain_now(plain)->next)
        return "a sequence number was given twice";
    if (seq > sim_plain_now(plain)->next)
        return "a sequence number was left out";
    sim_plain_moment_t *moment = change(plain, SIM_CHANGE_APPEND);
    for (int64_t i = 0; i < skip; i++)
        add_element(plain, seq + i, SIM_NO_VALUE, sim_plain_version(plain));
    for (size_t i = 0; i < count; i++)
        add_element(plain, seq + skip + (int64_t)i, values[i], SIM_ALIVE);
    moment->next += skip + (int64_t)count;
    moment->live += (int32_t)count;
    return NULL;
}

sim_plain_element_t *sim_plain_find(const sim_plain_t *plain, int64_t seq)
{
    if (!sim_plain_now(plain)->exists || seq < 0 || seq >= sim_plain_now(plain)->next)
        return NULL;
    return &plain->elements[plain->incarnation_start + (size_t)seq];
}

const sim_plain_element_t *sim_plain_find_at(const sim_plain_t *plain, int32_t version, int64_t seq)
{
    int32_t incarnation = plain->moments[version].incarnation;
    for (size_t i = plain->element_count; i-- > 0;) {
        const sim_plain_element_t *element = &plain->elements[i];
        if (element->incarnation == incarnation && element->seq == seq)
            return element;
        if (element->incarnation < incarnation)
            return NULL;
    }
    return NULL;
}

static sim_plain_element_t *find_alive(const sim_plain_t *plain, int64_t seq)
{
    sim_plain_element_t *element = sim_plain_find(plain, seq);
    return element && element->died == SIM_ALIVE ? element : NULL;
}

static void note_edit(sim_plain_t *plain, sim_plain_element_t *element, int32_t version,
                      int64_t value)
{
    GROW(plain->edits, plain->edit_count, plain->edit_capacity);
    plain->edits[plain->edit_count] =
        (sim_plain_edit_t){.version = version, .previous = element->last_edit, .value = value};
    element->last_edit = (int32_t)plain->edit_count++;
}

const char *sim_plain_edit(sim_plain_t *plain, int64_t seq, int64_t value)
{
    sim_plain_element_t *element = find_alive(plain, seq);
    if (!element)
        return "an edit of an element that is not there";
    change(plain, SIM_CHANGE_EDIT);
    note_edit(plain, element, sim_plain_version(plain), value);
    return NULL;
}

void sim_plain_edit_late(sim_plain_t *plain, int64_t epoch, int64_t seq, int64_t value)
{
    for (size_t i = plain->element_count; i-- > 0;) {
        sim_plain_element_t *element = &plain->elements[i];
        if (element->epoch != epoch || element->seq != seq)
            continue;
        if (element->died != SIM_ALIVE)
            note_edit(plain, element, element->died, value);
        return;
    }
}

const char *sim_plain_intend(sim_plain_t *plain, int64_t seq)
{
    sim_plain_element_t *element = find_alive(plain, seq);
    if (!element)
        return "the removal of an element that is not there was counted";
    if (element->pending)
        return "a removal was counted twice";
    element->pending = true;
    change(plain, SIM_CHANGE_INTEND)->pending++;
    return NULL;
}

static void bury(sim_plain_t *plain, sim_plain_moment_t *moment, sim_plain_element_t *element)
{
    element->died = sim_plain_version(plain);
    moment->live--;
    if (element->pending)
        moment->pending--;
    element->pending = false;
}

const char *sim_plain_delete(sim_plain_t *plain, int64_t seq)
{
    sim_plain_element_t *element = find_alive(plain, seq);
    if (!element)
        return "a removal of an element that is not there";
    bury(plain, change(plain, SIM_CHANGE_DELETE), element);
    return NULL;
}

const char *sim_plain_trim(sim_plain_t *plain, int64_t low)
{
    const sim_plain_moment_t *now = sim_plain_now(plain);
    if (!now->exists)
        return "a trim of an owner that is not there";
    if (low < now->low || low > now->next)
        return "a trim to a number that was not given yet, or was trimmed before";
    sim_plain_moment_t *moment = change(plain, SIM_CHANGE_TRIM);
    moment->low = low;
    for (size_t i = plain->incarnation_start; i < plain->element_count; i++)
        if (plain->elements[i].seq < low && plain->elements[i].died == SIM_ALIVE)
            bury(plain, moment, &plain->elements[i]);
    return NULL;
}

const char *sim_plain_drop(sim_plain_t *plain)
{
    if (!sim_plain_now(plain)->exists)
        return "a drop of an owner that is not there";
    sim_plain_moment_t *moment = change(plain, SIM_CHANGE_DROP);
    for (size_t i = plain->incarnation_start; i < plain->element_count; i++)
        if (plain->elements[i].died == SIM_ALIVE)
            bury(plain, moment, &plain->elements[i]);
    moment->exists = false;
    moment->next = 0;
    moment->low = 0;
    plain->incarnation_start = plain->element_count;
    plain->epoch = 0;
    return NULL;
}

const char *sim_plain_fall(sim_plain_t *plain, int64_t first, int64_t cap, bool exactly)
{
    sim_plain_moment_t *moment = &plain->moments[plain->moment_count - 1];
    int32_t most = moment->live > cap ? moment->live - (int32_t)cap : 0;
    int32_t fell = 0;
    for (size_t i = plain->incarnation_start; i < plain->element_count; i++)
        if (plain->elements[i].seq < first && plain->elements[i].died == SIM_ALIVE) {
            bury(plain, moment, &plain->elements[i]);
            fell++;
        }
    if (fell > 0)
        moment->change = SIM_CHANGE_TRIM; /* it was both */
    sim_plain_lift(plain);
    if (fell < most)
        return "more elements than the cap allows";
    if (fell > most && exactly)
        return "an element fell off that there was room for";
    if (fell > most && moment->live == 0)
        return "the newest element fell off";
    return moment->low == first ? NULL : "the head does not begin with an element that is there";
}

const char *sim_plain_fall_one(sim_plain_t *plain, int64_t seq)
{
    sim_plain_moment_t *moment = &plain->moments[plain->moment_count - 1];
    sim_plain_element_t *element = find_alive(plain, seq);
    if (!element)
        return "an element that is not there fell off";
    bury(plain, moment, element);
    moment->change = SIM_CHANGE_TRIM;
    return NULL;
}

void sim_plain_lift(sim_plain_t *plain)
{
    sim_plain_moment_t *moment = &plain->moments[plain->moment_count - 1];
    while (moment->low < moment->next && sim_plain_find(plain, moment->low)->died != SIM_ALIVE)
        moment->low++;
}

int64_t sim_plain_value(const sim_plain_t *plain, const sim_plain_element_t *element,
                        int32_t version)
{
    if (version < element->born || version >= element->died)
        return -1;
    for (int32_t i = element->last_edit; i >= 0; i = plain->edits[i].previous)
        if (plain->edits[i].version <= version)
            return plain->edits[i].value;
    return element->value;
}

bool sim_plain_edited(const sim_plain_t *plain, const sim_plain_element_t *element, int64_t value,
                      int32_t from, int32_t to)
{
    for (int32_t i = element->last_edit; i >= 0; i = plain->edits[i].previous)
        if (plain->edits[i].version > from && plain->edits[i].version <= to &&
            plain->edits[i].value == value)
            return true;
    return false;
}
