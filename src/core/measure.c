/* The number and the bytes of an owner's elements, from the states of its documents alone. */
#include "core/array.h"
#include "definition/schema.h"
#include "util/error.h"

enum { TRIES_MAX = 20 };

typedef struct measuring {
    spill_owner_t *owner;
    spill_response_t head;
    spill_response_t now; /* the head, read again */
    spill_response_t page;
    spill_sizes_t *sizes;
    bool changed; /* a trim, a drop or an undo came between two reads: begin again */
} measuring_t;

static void release(measuring_t *measuring)
{
    spill_response_release(&measuring->head);
    spill_response_release(&measuring->now);
    spill_response_release(&measuring->page);
}

static void add(measuring_t *measuring, int64_t elements, int64_t bytes)
{
    measuring->sizes->elements += elements;
    measuring->sizes->bytes += bytes;
}

/* Add a page that the array has. Only a page with the watermark inside is read with elements. */
static spill_code_t add_page(measuring_t *measuring, int64_t number, spill_error_t *error)
{
    const spill_state_t *state = &measuring->page.state;
    int64_t watermark = measuring->head.state.watermark;
    if (spill_state_end(state) <= watermark)
        return SPILL_OK;
    if (state->first >= watermark) {
        add(measuring, state->live, state->live_bytes);
        return SPILL_OK;
    }
    spill_request_t read = spill_owner_whole_request(measuring->owner, number);
    read.read.seq = watermark;
    SPILL_TRY(spill_owner_call(measuring->owner, &read, &measuring->page, error));
    const spill_run_t *run = &measuring->page.run;
    add(measuring, (int64_t)run->count, spill_run_bytes(run));
    return SPILL_OK;
}

/* A page that the head counts is absent: it was trimmed, its owner was dropped, or it is lost. */
static spill_code_t judge_absent(measuring_t *measuring, int64_t number, spill_error_t *error)
{
    const spill_state_t *head = &measuring->head.state;
    bool newest = spill_schema_of(&measuring->owner->array->definition)->appends_to_head;
    if (!newest && number == head->pages - 1)
        return SPILL_OK; /* its head is sealed, and the page is not made yet */
    SPILL_TRY(spill_owner_read_state(measuring->owner, SPILL_HEAD, &measuring->now, error));
    const spill_state_t *now = &measuring->now.state;
    measuring->changed =
        !now->present || now->incarnation != head->incarnation || now->watermark != head->watermark;
    return measuring->changed ? SPILL_OK
                              : spill_owner_missing_page(measuring->owner, number, error);
}

/*
 * *first is the number of the first page that may have elements. *known: all pages from it on must
 * exist. Trims may have deleted those before it.
 */
static spill_code_t find_first(measuring_t *measuring, int64_t *first, bool *known,
                               spill_error_t *error)
{
    const spill_state_t *head = &measuring->head.state;
    bool newest = spill_schema_of(&measuring->owner->array->definition)->appends_to_head;
    *first = 0;
    *known = head->watermark == 0;
    if (newest && head->watermark >= head->first)
        *first = head->pages;
    if (*known || *first == head->pages)
        return SPILL_OK;
    spill_request_t read = spill_outlier_request_holding(measuring->owner, head, head->watermark);
    SPILL_TRY(spill_owner_call(measuring->owner, &read, &measuring->page, error));
    *known = measuring->page.state.present;
    if (*known)
        *first = measuring->page.state.page;
    return SPILL_OK;
}

static spill_code_t add_pages(measuring_t *measuring, spill_error_t *error)
{
    int64_t number, missing = 0;
    bool known;
    const spill_state_t *head = &measuring->head.state;
    SPILL_TRY(find_first(measuring, &number, &known, error));
    for (; number < head->pages && !measuring->changed; number++) {
        const spill_owner_t *owner = measuring->owner;
        if (spill_store_stopped(owner->array->store))
            return spill_walk_stopped(error);
        SPILL_TRY(spill_owner_read_state(owner, number, &measuring->page, error));
        const spill_state_t *page = &measuring->page.state;
        bool present = page->present && page->incarnation == head->incarnation;
        missing = present ? 0 : missing + 1;
        if (present)
            SPILL_TRY(add_page(measuring, number, error));
        else if (known)
            SPILL_TRY(judge_absent(measuring, number, error));
        else
            SPILL_TRY(spill_owner_check_missing(owner, head, number, missing, error));
        known = known || present;
    }
    return SPILL_OK;
}

/* One try. An unmanaged array has neither pages nor a head: the state has its sizes. */
static spill_code_t measure(measuring_t *measuring, spill_error_t *error)
{
    const spill_state_t *head = &measuring->head.state;
    spill_request_t read = spill_owner_unmanaged_request(measuring->owner, 0);
    read.read.unmanaged = spill_array_has_unmanaged(measuring->owner->array);
    SPILL_TRY(spill_owner_call(measuring->owner, &read, &measuring->head, error));
    *measuring->sizes = (spill_sizes_t){.managed = head->present || head->live == 0};
    measuring->changed = false;
    add(measuring, head->live, head->live_bytes);
    return head->present ? add_pages(measuring, error) : SPILL_OK;
}

spill_code_t spill_measure_any(spill_array_t *array, const spill_value_t *owner,
                               spill_sizes_t *sizes, spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_SCOPED(release) measuring_t measuring = {.owner = &own, .sizes = sizes};
    *sizes = (spill_sizes_t){.managed = true};
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    own.walked = true;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        SPILL_TRY(measure(&measuring, error));
        if (!measuring.changed)
            return SPILL_OK;
    }
    return spill_fail_retryable(error, SPILL_CONFLICT,
                                "other programs keep trimming an array of '%s', or dropping it",
                                array->definition.name);
}
