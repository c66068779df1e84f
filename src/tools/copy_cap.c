/*
 * A capped target with keep newest. It receives what its cap keeps: the newest `threshold` elements
 * of the source. If the source's last number has no element, it receives one fewer, because a
 * placeholder must occupy that number once. The store drops the oldest of these if they do not fit
 * its bytes. Older elements are not appended; placeholders get their numbers, many at a time.
 */
#include "tools/copy_owner.h"

#include "definition/fields.h"
#include "definition/limits.h"
#include "definition/schema.h"
#include "util/error.h"

bool spill_copy_is_capped(const spill_copy_t *copy)
{
    const spill_definition_t *definition = spill_array_get_definition(copy->target.array);
    return spill_schema_of(definition)->is_capped && !spill_schema_of(definition)->keeps_top_n;
}

/* ---- what the cap keeps ---------------------------------------------------------------------- */

/* Count the next older element of the source. False: the cap does not keep it. */
static bool keep_element(spill_copy_owner_t *owner, const spill_bounds_t *bounds, int64_t seq,
                         size_t size_bytes, int64_t *count, int64_t *bytes)
{
    if (*count == 0 && owner->cap_room == bounds->threshold && seq != owner->end - 1)
        owner->cap_room--;
    *bytes += (int64_t)size_bytes;
    if (*count == owner->cap_room || (*count > 0 && *bytes > bounds->head_bytes_max))
        return false;
    ++*count;
    owner->cap_from = seq;
    return true;
}

static spill_code_t find_kept(spill_copy_owner_t *owner, const spill_bounds_t *bounds,
                              spill_error_t *error)
{
    spill_read_options_t read;
    spill_read_options_init(&read);
    read.limit = SPILL_COPY_FIRST_READ;
    read.before = owner->end;
    int64_t count = 0, bytes = 0;
    bool more = owner->end > 0;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && more) {
        spill_slice_t *slice;
        code =
            spill_array_read(owner->copy->source.array, owner->source.value, &read, &slice, error);
        if (code != SPILL_OK)
            break;
        more = slice->more;
        read.before = slice->next;
        int64_t read_bytes = 0;
        for (size_t i = 0; i < slice->count; i++) {
            const spill_element_t *element = &slice->elements[i];
            if (!keep_element(owner, bounds, element->seq, element->value.size_bytes, &count,
                              &bytes)) {
                more = false;
                break;
            }
            read_bytes += element->value.size_bytes;
        }
        read.limit = spill_copy_next_limit(read.limit, slice->count, read_bytes);
        spill_slice_free(slice);
    }
    return code;
}

static spill_code_t find_kept_in_windows(spill_copy_owner_t *owner, const spill_bounds_t *bounds,
                                         spill_error_t *error)
{
    spill_bucket_read_options_t read;
    spill_bucket_read_options_init(&read);
    read.limit = SPILL_COPY_FIRST_READ;
    char window[SPILL_WINDOW_SIZE];
    int64_t seq = owner->end, count = 0, bytes = 0;
    bool more = owner->end > 0;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && more) {
        spill_bucket_slice_t *slice;
        code =
            spill_bucket_read(owner->copy->source.array, owner->source.value, &read, &slice, error);
        if (code != SPILL_OK)
            break;
        more = slice->more;
        int64_t read_bytes = 0;
        for (size_t i = 0; i < slice->count; i++) {
            if (!keep_element(owner, bounds, --seq, slice->elements[i].value.size_bytes, &count,
                              &bytes)) {
                more = false;
                break;
            }
            read_bytes += slice->elements[i].value.size_bytes;
        }
        read.limit = spill_copy_next_limit(read.limit, slice->count, read_bytes);
        snprintf(window, sizeof window, "%s", slice->cursor_window);
        read.cursor_window = window;
        read.cursor_seq = slice->cursor_seq;
        spill_bucket_slice_free(slice);
    }
    return code;
}

static spill_code_t read_head(const spill_copy_owner_t *owner, spill_response_t *head,
                              spill_error_t *error)
{
    spill_code_t code = spill_owner_read_state(&owner->target, SPILL_HEAD, head, error);
    return spill_copy_failed(&owner->copy->target, code, error);
}

spill_code_t spill_copy_cap_read(spill_copy_owner_t *owner, spill_error_t *error)
{
    const spill_copy_t *copy = owner->copy;
    const spill_bounds_t *bounds = &spill_array_get_definition(copy->target.array)->bounds;
    spill_response_t head = SPILL_RESPONSE_INIT;
    owner->cap_room = bounds->threshold;
    owner->cap_from = owner->end;
    spill_code_t code = read_head(owner, &head, error);
    owner->cap_low = head.state.present ? head.state.watermark : 0;
    spill_response_release(&head);
    if (code != SPILL_OK)
        return code;
    code = copy->joins_windows ? find_kept_in_windows(owner, bounds, error)
                               : find_kept(owner, bounds, error);
    if (code == SPILL_OK && owner->has > 0 && owner->cap_from == owner->end)
        code = spill_fail(error, SPILL_CONFLICT, "its elements are deleted while they are counted");
    return spill_copy_failed(&copy->source, code, error);
}

/* ---- preparing the target -------------------------------------------------------------------- */

static spill_code_t trim_target(const spill_copy_owner_t *owner, int64_t below,
                                spill_error_t *error)
{
    const spill_copy_side_t *target = &owner->copy->target;
    spill_code_t code = spill_array_trim(target->array, owner->target.value, below, error);
    return spill_copy_failed(target, code, error);
}

spill_code_t spill_copy_cap_begin(spill_copy_owner_t *owner, spill_error_t *error)
{
    bool skips = owner->next < owner->cap_from;
    int64_t next = skips ? owner->cap_from : owner->next;
    int64_t below = skips ? owner->next : owner->cap_from;
    bool trims = owner->cap_low < below;
    const spill_copy_options_t *options = owner->copy->options;
    spill_code_t code = SPILL_OK;
    if ((trims || skips) && options->turn)
        code = options->turn(options->context, 1, error);
    if (code == SPILL_OK && trims)
        code = trim_target(owner, below, error);
    if (code == SPILL_OK && skips) {
        code = spill_copy_skip(owner, owner->cap_from, error);
        if (code == SPILL_OK)
            code = trim_target(owner, owner->cap_from, error);
    }
    if (code == SPILL_OK && (skips || trims))
        code = spill_copy_read_target(owner, error);
    if (code == SPILL_OK && owner->next != next) /* a late append: check its elements, too */
        code = spill_copy_failed(&owner->copy->target,
                                 spill_fail(error, SPILL_CONFLICT, "another copy appends"), error);
    return code;
}

/* ---- comparing with the cap ------------------------------------------------------------------ */

/* Find the newest element of the source below a number, and its size; *seq is -1 if none. */
static spill_code_t newest_below(const spill_copy_owner_t *owner, int64_t below, int64_t *seq,
                                 int64_t *bytes, spill_error_t *error)
{
    const spill_copy_t *copy = owner->copy;
    *seq = -1;
    *bytes = 0;
    if (below <= 0)
        return SPILL_OK;
    if (copy->joins_windows) {
        spill_copy_cursor_t cursor;
        spill_element_t element = {.seq = -1};
        spill_copy_cursor_source(&cursor, owner, below - 1, below);
        spill_code_t code = spill_copy_cursor_get(&cursor, &element, error);
        *seq = cursor.ended ? -1 : element.seq;
        *bytes = element.value.size_bytes;
        spill_copy_cursor_release(&cursor);
        return code;
    }
    spill_read_options_t read;
    spill_read_options_init(&read);
    read.limit = 1;
    read.before = below;
    spill_slice_t *slice;
    spill_code_t code =
        spill_array_read(copy->source.array, owner->source.value, &read, &slice, error);
    if (code == SPILL_OK && slice->count > 0) {
        *seq = slice->elements[0].seq;
        *bytes = slice->elements[0].value.size_bytes;
    }
    spill_slice_free(slice);
    return spill_copy_failed(&copy->source, code, error);
}

/* Leave room for the operation that a batch records when it is appended. */
bool spill_copy_holds_one_more(const spill_copy_owner_t *owner, const spill_state_t *head,
                               int64_t room, int64_t bytes)
{
    const spill_definition_t *definition = spill_array_get_definition(owner->copy->target.array);
    int64_t all = spill_state_document_bytes(definition, owner->target.value, true, head,
                                             head->live + 1, head->live_bytes + bytes);
    return head->live < room && all + SPILL_OP_BYTES_MAX <= definition->bounds.head_bytes_max;
}

spill_code_t spill_copy_cap_check(spill_copy_owner_t *owner, int64_t *from, spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    int64_t seq, bytes;
    *from = 0;
    spill_code_t code = read_head(owner, &head, error);
    if (code == SPILL_OK && head.state.present) {
        *from = head.state.watermark;
        owner->live = head.state.live;
        code = newest_below(owner, *from, &seq, &bytes, error);
        if (code == SPILL_OK && seq >= 0 &&
            spill_copy_holds_one_more(owner, &head.state, owner->cap_room, bytes))
            spill_copy_differs(owner, seq, "the target does not have this element");
    }
    if (code == SPILL_OK && owner->has > owner->live)
        owner->copy->result->dropped += owner->has - owner->live;
    spill_response_release(&head);
    return code;
}
