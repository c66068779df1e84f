#include "tools/transfer/numbered.h"
#include "layout/oldest.h"
#include "layout/trim.h"

#include "core/array.h"
#include "definition/schema.h"
#include "layout/unique.h"
#include "tools/transfer/transfer_parts.h"
#include "util/error.h"

#include <inttypes.h>

#define TRIES_MAX 5 /* without progress */

typedef struct numbered {
    spill_copy_options_t options; /* none */
    spill_copy_result_t result;   /* not used */
    spill_transfer_t transfer;    /* has a target only */
    spill_transfer_owner_t owner;
    const spill_element_t *elements;
    size_t count;
    int64_t began;   /* numbers below it were used before the first try */
    int64_t seen;    /* numbers below it were used before this call */
    size_t appended; /* the elements from this index on must be appended */
    int64_t repeated, dropped;
} numbered_t;

static spill_code_t begin(numbered_t *numbered, spill_array_t *array, const spill_value_t *value,
                          spill_error_t *error)
{
    numbered->transfer = (spill_transfer_t){.target = {.store = array->store, .array = array},
                                            .options = &numbered->options,
                                            .result = &numbered->result};
    numbered->owner.transfer = &numbered->transfer;
    return spill_owner_init(&numbered->owner.target, array, value, error);
}

static void end(numbered_t *numbered)
{
    spill_owner_release(&numbered->owner.target);
}

/* ---- what the owner has ---------------------------------------------------------------------- */

static spill_code_t refuse(const numbered_t *numbered, int64_t seq, const char *text,
                           spill_error_t *error)
{
    spill_fail(error, SPILL_REFUSED, "number %" PRId64 " %s", seq, text);
    return spill_owner_name(&numbered->owner.target, SPILL_REFUSED, error);
}

/* Count an element whose number was used, and which the owner does not have. */
static spill_code_t count_missing(numbered_t *numbered, int64_t seq, int64_t watermark,
                                  spill_error_t *error)
{
    bool dropped = seq < watermark || spill_transfer_keeps_top_n(&numbered->transfer);
    if (!dropped && seq < numbered->began)
        return refuse(numbered, seq,
                      "was used before, and its element removed; drop the owner, or import with "
                      "--new-numbers",
                      error);
    numbered->dropped += dropped;
    numbered->repeated += !dropped;
    return SPILL_OK;
}

static spill_code_t compare_one(numbered_t *numbered, const spill_element_t *here,
                                const spill_element_t *there, spill_error_t *error)
{
    if (!spill_value_equal(&here->value, &there->value))
        return refuse(numbered, here->seq,
                      "has another element already; drop the owner, or import with "
                      "--new-numbers",
                      error);
    numbered->repeated += here->seq < numbered->seen;
    return SPILL_OK;
}

/* Remove the placeholders. If they are all that the array has, trim them. */
static spill_code_t remove_placeholders(numbered_t *numbered, const spill_seqs_t *placeholders,
                                        spill_error_t *error)
{
    spill_transfer_owner_t *owner = &numbered->owner;
    const spill_value_t *value = owner->target.value;
    int64_t count = (int64_t)spill_seqs_count_below(placeholders, owner->next);
    bool trims = !spill_schema_of(spill_transfer_target(owner->transfer))->has_windows;
    bool all = count > 0 && count == owner->live;
    owner->live -= count;
    if (all && trims)
        return spill_array_trim(owner->transfer->target.array, value, owner->next, error);
    for (int64_t seq = numbered->began; count > 0 && seq < owner->next; seq++) {
        if (!spill_seqs_contains(placeholders, seq))
            continue;
        SPILL_TRY(spill_transfer_remove(owner, seq, error));
        count--;
    }
    return SPILL_OK;
}

/*
 * Compare the elements below the owner's next number with those that it has. Note the placeholders
 * that an earlier try has left. From numbered->appended on, elements must be appended.
 */
static spill_code_t compare_used(numbered_t *numbered, spill_seqs_t *placeholders,
                                 spill_error_t *error)
{
    spill_transfer_owner_t *owner = &numbered->owner;
    bool tried = owner->next > numbered->began;
    int64_t from = numbered->elements[0].seq;
    int64_t to = numbered->elements[numbered->count - 1].seq + 1;
    if (tried && numbered->began < from)
        from = numbered->began;
    if (tried || to > owner->next)
        to = owner->next;
    SPILL_SCOPED(spill_transfer_reader_release)
    spill_transfer_reader_t reader = spill_transfer_reader_of_target(owner, from, to);
    size_t at = 0;
    while (at < numbered->count && numbered->elements[at].seq < owner->next) {
        const spill_element_t *here = &numbered->elements[at];
        spill_element_t there = {0};
        SPILL_TRY(spill_transfer_reader_get(&reader, &there, error));
        if (reader.ended || there.seq > here->seq) {
            SPILL_TRY(
                count_missing(numbered, here->seq, reader.stretch.head.state.watermark, error));
            at++;
            continue;
        }
        reader.at++;
        if (there.seq == here->seq) {
            SPILL_TRY(compare_one(numbered, here, &there, error));
            at++;
        } else if (there.seq >= numbered->began && spill_transfer_is_placeholder(&there.value)) {
            spill_seqs_insert(placeholders, there.seq);
        }
    }
    numbered->appended = at;
    while (!reader.ended) { /* behind the last element that was appended */
        spill_element_t there = {0};
        SPILL_TRY(spill_transfer_reader_get(&reader, &there, error));
        if (!reader.ended && there.seq >= numbered->began &&
            spill_transfer_is_placeholder(&there.value))
            spill_seqs_insert(placeholders, there.seq);
        reader.at += !reader.ended;
    }
    return SPILL_OK;
}

static spill_code_t refuse_dropped(const numbered_t *numbered, spill_error_t *error)
{
    spill_fail(error, SPILL_REFUSED,
               "it was dropped meanwhile, or is being dropped; import it from the start into an "
               "owner without elements");
    return spill_owner_name(&numbered->owner.target, SPILL_REFUSED, error);
}

/* Read the base and then the next number: no operation that begins there was applied before. */
static spill_code_t read_owner(numbered_t *numbered, spill_error_t *error)
{
    bool begun = false;
    SPILL_TRY(spill_transfer_count_target(&numbered->owner, error));
    if (numbered->owner.next > 0)
        SPILL_TRY(spill_outlier_drop_has_begun(&numbered->owner.target, &begun, error));
    return begun ? refuse_dropped(numbered, error) : SPILL_OK;
}

/* ---- appends --------------------------------------------------------------------------------- */

/*
 * The array was trimmed before it was exported: let it begin at its first number. If it had
 * elements before, placeholders use the numbers up.
 */
static spill_code_t begin_at(numbered_t *numbered, int64_t first, spill_error_t *error)
{
    spill_transfer_owner_t *owner = &numbered->owner;
    bool done = false;
    if (owner->live > 0 || first <= owner->next)
        return SPILL_OK;
    SPILL_TRY(spill_documents_begin(&owner->target, first, &done, error));
    if (done)
        owner->next = first;
    return SPILL_OK;
}

static spill_code_t append_rest(numbered_t *numbered, spill_error_t *error)
{
    spill_transfer_owner_t *owner = &numbered->owner;
    if (numbered->appended == numbered->count)
        return SPILL_OK;
    SPILL_TRY(begin_at(numbered, numbered->elements[numbered->appended].seq, error));
    SPILL_SCOPED(spill_transfer_batch_free)
    spill_transfer_batch_t *batch = spill_transfer_batch_new(owner->next);
    int64_t next = owner->next;
    for (size_t i = numbered->appended; i < numbered->count; i++) {
        const spill_element_t *element = &numbered->elements[i];
        SPILL_TRY(spill_transfer_push_gap(owner, batch, next, element->seq, error));
        SPILL_TRY(spill_transfer_push(owner, batch, &element->value, false, error));
        next = element->seq + 1;
    }
    return spill_transfer_flush(owner, batch, error);
}

static spill_code_t try_append(numbered_t *numbered, spill_error_t *error)
{
    SPILL_SCOPED(spill_seqs_release) spill_seqs_t placeholders = {0};
    SPILL_TRY(read_owner(numbered, error));
    if (numbered->owner.next < numbered->began)
        return refuse_dropped(numbered, error);
    if (numbered->seen < 0)
        numbered->seen = numbered->owner.next;
    numbered->repeated = numbered->dropped = 0;
    SPILL_TRY(compare_used(numbered, &placeholders, error));
    SPILL_TRY(remove_placeholders(numbered, &placeholders, error));
    return append_rest(numbered, error);
}

/* ---- one owner ------------------------------------------------------------------------------- */

spill_code_t spill_numbered_check(spill_array_t *array, const spill_value_t *owner,
                                  const spill_element_t *elements, size_t count, int64_t *next,
                                  spill_error_t *error)
{
    SPILL_SCOPED(spill_seqs_release) spill_seqs_t none = {0};
    SPILL_SCOPED(end)
    numbered_t numbered = {.elements = elements, .count = count, .began = INT64_MAX};
    *next = 0;
    SPILL_TRY(begin(&numbered, array, owner, error));
    for (size_t i = 0; i < count; i++) {
        SPILL_TRY(spill_array_check_element(&elements[i].value, i, error));
        SPILL_TRY(spill_storable_check(&numbered.owner.target, &numbered.owner.target, &elements[i],
                                       error));
    }
    SPILL_TRY(read_owner(&numbered, error));
    *next = numbered.owner.next;
    SPILL_TRY(compare_used(&numbered, &none, error));
    return spill_unique_check_new(&numbered.owner.target, elements + numbered.appended,
                                  count - numbered.appended, error);
}

spill_code_t spill_numbered_append(spill_array_t *array, const spill_value_t *owner,
                                   const spill_element_t *elements, size_t count, int64_t began,
                                   spill_numbered_counts_t *counts, spill_error_t *error)
{
    SPILL_SCOPED(end)
    numbered_t numbered = {.elements = elements, .count = count, .began = began, .seen = -1};
    *counts = (spill_numbered_counts_t){0};
    SPILL_TRY(begin(&numbered, array, owner, error));
    spill_code_t code;
    int64_t next;
    int tries = 0;
    do {
        next = numbered.owner.next;
        code = try_append(&numbered, error);
        tries = numbered.owner.next > next ? 0 : tries + 1;
    } while ((code == SPILL_UNKNOWN || code == SPILL_CONFLICT) && tries < TRIES_MAX);
    if (code != SPILL_OK)
        return code;
    counts->repeated = numbered.repeated;
    counts->dropped = numbered.dropped + numbered.owner.evicted;
    counts->appended = (int64_t)count - counts->repeated - counts->dropped;
    return SPILL_OK;
}
