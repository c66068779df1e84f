/* The windows of a source as one array: in their order, numbered from 0. */
#include "tools/copy_owner.h"

#include <string.h>

int64_t spill_copy_next_limit(int64_t limit, size_t count, int64_t bytes)
{
    enum { MOST = 200, BYTES_MOST = 2 * 1024 * 1024 };
    return spill_run_next_limit(limit, MOST, BYTES_MOST, (int64_t)count, bytes);
}

spill_code_t spill_copy_join_count(const spill_copy_side_t *side, const spill_owner_t *owner,
                                   int64_t *count, spill_error_t *error)
{
    spill_statistics_t statistics;
    spill_code_t code =
        spill_bucket_statistics(side->array, owner->value, NULL, NULL, &statistics, NULL, error);
    *count = statistics.count;
    return spill_copy_failed(side, code, error);
}

/* ---- where to begin -------------------------------------------------------------------------- */

typedef struct search {
    spill_copy_cursor_t *cursor;
    int64_t from;
} search_t;

static bool find_window(void *context, const spill_bucket_window_t *window)
{
    const search_t *search = context;
    spill_copy_cursor_t *cursor = search->cursor;
    if (cursor->first + window->statistics.count <= search->from) {
        cursor->first += window->statistics.count;
        return true;
    }
    memcpy(cursor->window, window->window, strlen(window->window) + 1);
    return false;
}

/* Find the window with number `from`; the windows before it have cursor->first elements. */
static spill_code_t find_start(spill_copy_cursor_t *cursor, int64_t from, spill_error_t *error)
{
    search_t search = {.cursor = cursor, .from = from};
    if (from == 0)
        return SPILL_OK;
    spill_code_t code = spill_bucket_windows(cursor->side->array, cursor->owner->value, NULL, NULL,
                                             SPILL_OLDEST_FIRST, find_window, &search, error);
    if (code == SPILL_OK)
        cursor->ended = true; /* the windows have fewer elements */
    return code == SPILL_CANCELLED ? SPILL_OK : code;
}

/* ---- the next read --------------------------------------------------------------------------- */

static spill_code_t read_next(spill_copy_cursor_t *cursor, spill_error_t *error)
{
    spill_bucket_slice_t *last = cursor->slice;
    spill_bucket_read_options_t read;
    spill_bucket_read_options_init(&read);
    read.order = SPILL_OLDEST_FIRST;
    read.limit = cursor->limit > 0 ? cursor->limit : SPILL_COPY_FIRST_READ;
    if (last) {
        read.cursor_window = last->cursor_window;
        read.cursor_seq = last->cursor_seq;
        cursor->first += (int64_t)last->count;
    } else if (cursor->window[0] != '\0') {
        read.from = cursor->window;
    }
    spill_code_t code =
        spill_bucket_read(cursor->side->array, cursor->owner->value, &read, &cursor->slice, error);
    spill_bucket_slice_free(last);
    cursor->at = 0;
    cursor->limit = read.limit;
    if (code == SPILL_OK) {
        int64_t bytes = 0;
        for (size_t i = 0; i < cursor->slice->count; i++)
            bytes += cursor->slice->elements[i].value.size_bytes;
        cursor->limit = spill_copy_next_limit(read.limit, cursor->slice->count, bytes);
    }
    return code;
}

spill_code_t spill_copy_cursor_join(spill_copy_cursor_t *cursor, spill_element_t *element,
                                    spill_error_t *error)
{
    int64_t from = cursor->stretch.next;
    spill_code_t code = SPILL_OK;
    if (!cursor->ended && !cursor->slice)
        code = find_start(cursor, from, error);
    while (code == SPILL_OK && !cursor->ended &&
           (!cursor->slice || cursor->at == cursor->slice->count)) {
        cursor->ended = cursor->slice && !cursor->slice->more;
        if (cursor->ended)
            break;
        code = read_next(cursor, error);
        if (code == SPILL_OK && cursor->first < from) {
            int64_t before = from - cursor->first;
            size_t count = cursor->slice->count;
            cursor->at = before < (int64_t)count ? (size_t)before : count;
        }
    }
    if (code != SPILL_OK)
        return spill_copy_failed(cursor->side, code, error);
    if (!cursor->ended) {
        *element = (spill_element_t){.seq = cursor->first + (int64_t)cursor->at,
                                     .value = cursor->slice->elements[cursor->at].value};
        cursor->ended = element->seq >= cursor->to;
    }
    return SPILL_OK;
}
