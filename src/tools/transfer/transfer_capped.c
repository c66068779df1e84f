/*
 * A capped target with keep newest. It receives what its cap keeps: the newest `threshold` elements
 * of the source. If the source's last number has no element, it receives one fewer, because a
 * placeholder must occupy that number once. The store drops the oldest of these if they do not fit
 * its bytes. Older elements are not appended; placeholders get their numbers, many at a time.
 */
#include "tools/transfer/transfer_parts.h"
#include "util/error.h"

/* ---- what the cap keeps ---------------------------------------------------------------------- */

static void free_slice(spill_slice_t **slice)
{
    spill_slice_free(*slice);
}

static void free_bucket_slice(spill_bucket_slice_t **slice)
{
    spill_bucket_slice_free(*slice);
}

/* The elements that were found to be kept, from the newest on. */
typedef struct kept {
    spill_transfer_owner_t *owner;
    const spill_bounds_t *bounds;
    int64_t count;
    int64_t bytes;
    int64_t read_bytes; /* of the present slice */
} kept_t;

/* Count the next older element of the source. False: the cap does not keep it. */
static bool keep_element(kept_t *kept, int64_t seq, size_t size_bytes)
{
    spill_transfer_owner_t *owner = kept->owner;
    if (kept->count == 0 && owner->cap_room == kept->bounds->threshold && seq != owner->end - 1)
        owner->cap_room--;
    kept->bytes += (int64_t)size_bytes;
    if (kept->count == owner->cap_room ||
        (kept->count > 0 && kept->bytes > kept->bounds->head_bytes_max))
        return false;
    kept->count++;
    kept->read_bytes += (int64_t)size_bytes;
    owner->cap_from = seq;
    return true;
}

static spill_code_t find_kept(kept_t *kept, spill_error_t *error)
{
    const spill_transfer_owner_t *owner = kept->owner;
    spill_read_options_t read;
    spill_read_options_init(&read);
    read.limit = SPILL_TRANSFER_FIRST_READ;
    read.before = owner->end;
    for (bool more = owner->end > 0; more;) {
        SPILL_SCOPED(free_slice) spill_slice_t *slice = NULL;
        SPILL_TRY(spill_array_read(owner->transfer->source.array, owner->source.value, &read,
                                   &slice, error));
        more = slice->more;
        read.before = slice->next;
        kept->read_bytes = 0;
        for (size_t i = 0; i < slice->count; i++) {
            const spill_element_t *element = &slice->elements[i];
            if (!keep_element(kept, element->seq, element->value.size_bytes))
                return SPILL_OK;
        }
        read.limit = spill_transfer_next_limit(read.limit, slice->count, kept->read_bytes);
    }
    return SPILL_OK;
}

static spill_code_t find_kept_in_windows(kept_t *kept, spill_error_t *error)
{
    const spill_transfer_owner_t *owner = kept->owner;
    spill_bucket_read_options_t read;
    spill_bucket_read_options_init(&read);
    read.limit = SPILL_TRANSFER_FIRST_READ;
    char window[SPILL_WINDOW_SIZE];
    int64_t seq = owner->end;
    for (bool more = owner->end > 0; more;) {
        SPILL_SCOPED(free_bucket_slice) spill_bucket_slice_t *slice = NULL;
        SPILL_TRY(spill_bucket_read(owner->transfer->source.array, owner->source.value, &read,
                                    &slice, error));
        more = slice->more;
        kept->read_bytes = 0;
        for (size_t i = 0; i < slice->count; i++)
            if (!keep_element(kept, --seq, slice->elements[i].value.size_bytes))
                return SPILL_OK;
        read.limit = spill_transfer_next_limit(read.limit, slice->count, kept->read_bytes);
        snprintf(window, sizeof window, "%s", slice->cursor_window);
        read.cursor_window = window;
        read.cursor_seq = slice->cursor_seq;
    }
    return SPILL_OK;
}

static spill_code_t read_head(const spill_transfer_owner_t *owner, spill_response_t *head,
                              spill_error_t *error)
{
    spill_code_t code = spill_owner_read_state(&owner->target, SPILL_HEAD, head, error);
    return spill_transfer_failed(&owner->transfer->target, code, error);
}

spill_code_t spill_transfer_cap_read(spill_transfer_owner_t *owner, spill_error_t *error)
{
    const spill_transfer_t *transfer = owner->transfer;
    const spill_bounds_t *bounds = &spill_transfer_target(transfer)->bounds;
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    kept_t kept = {.owner = owner, .bounds = bounds};
    owner->cap_room = bounds->threshold;
    owner->cap_from = owner->end;
    owner->cap_low = 0;
    SPILL_TRY(read_head(owner, &head, error));
    if (head.state.present)
        owner->cap_low = head.state.watermark;
    spill_code_t code =
        transfer->joins_windows ? find_kept_in_windows(&kept, error) : find_kept(&kept, error);
    if (code == SPILL_OK && owner->has > 0 && owner->cap_from == owner->end)
        code = spill_fail(error, SPILL_CONFLICT, "its elements are deleted while they are counted");
    return spill_transfer_failed(&transfer->source, code, error);
}

/* ---- preparing the target -------------------------------------------------------------------- */

static spill_code_t trim_target(const spill_transfer_owner_t *owner, int64_t below,
                                spill_error_t *error)
{
    const spill_transfer_side_t *target = &owner->transfer->target;
    spill_code_t code = spill_array_trim(target->array, owner->target.value, below, error);
    return spill_transfer_failed(target, code, error);
}

spill_code_t spill_transfer_cap_begin(spill_transfer_owner_t *owner, spill_error_t *error)
{
    bool skips = owner->next < owner->cap_from;
    int64_t next = skips ? owner->cap_from : owner->next;
    int64_t below = skips ? owner->next : owner->cap_from;
    bool trims = owner->cap_low < below;
    if (!trims && !skips)
        return SPILL_OK;
    SPILL_TRY(spill_transfer_wait(owner->transfer, 1, error));
    if (trims)
        SPILL_TRY(trim_target(owner, below, error));
    if (skips) {
        SPILL_TRY(spill_transfer_skip(owner, owner->cap_from, error));
        SPILL_TRY(trim_target(owner, owner->cap_from, error));
    }
    SPILL_TRY(spill_transfer_count_target(owner, error));
    if (owner->next == next)
        return SPILL_OK;
    /* a late append: check its elements, too */
    return spill_transfer_failed(&owner->transfer->target,
                                 spill_fail(error, SPILL_CONFLICT, "another copy appends"), error);
}

/* ---- comparing with the cap ------------------------------------------------------------------ */

/* Find the newest element of the source below a number, and its size; *seq is -1 if none. */
static spill_code_t newest_below(spill_transfer_owner_t *owner, int64_t below, int64_t *seq,
                                 int64_t *bytes, spill_error_t *error)
{
    const spill_transfer_side_t *source = &owner->transfer->source;
    *seq = -1;
    *bytes = 0;
    if (below <= 0)
        return SPILL_OK;
    if (owner->transfer->joins_windows) {
        spill_element_t element = {.seq = -1};
        SPILL_SCOPED(spill_transfer_reader_release)
        spill_transfer_reader_t reader = spill_transfer_reader_of_source(owner, below - 1, below);
        SPILL_TRY(spill_transfer_reader_get(&reader, &element, error));
        *seq = reader.ended ? -1 : element.seq;
        *bytes = element.value.size_bytes;
        return SPILL_OK;
    }
    spill_read_options_t read;
    spill_read_options_init(&read);
    read.limit = 1;
    read.before = below;
    SPILL_SCOPED(free_slice) spill_slice_t *slice = NULL;
    SPILL_TRY(spill_transfer_failed(
        source, spill_array_read(source->array, owner->source.value, &read, &slice, error), error));
    if (slice->count > 0) {
        *seq = slice->elements[0].seq;
        *bytes = slice->elements[0].value.size_bytes;
    }
    return SPILL_OK;
}

spill_code_t spill_transfer_cap_check(spill_transfer_owner_t *owner, int64_t *from,
                                      spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    int64_t seq, bytes;
    *from = 0;
    SPILL_TRY(read_head(owner, &head, error));
    if (!head.state.present)
        return SPILL_OK;
    *from = head.state.watermark;
    owner->live = head.state.live;
    SPILL_TRY(newest_below(owner, *from, &seq, &bytes, error));
    if (seq >= 0 && spill_transfer_holds_one_more(owner, &head.state, owner->cap_room, bytes))
        spill_transfer_differs(owner, seq, "the target does not have this element");
    return SPILL_OK;
}
