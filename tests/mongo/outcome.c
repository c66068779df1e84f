#include "outcome.h"

#include "history.h"
#include "worker.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static spill_array_t *open_array(spill_store_t *store, int array)
{
    spill_array_t *opened;
    spill_error_t error;
    if (spill_array_open(store, worker_array_names[array], &opened, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    return opened;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct reading {
    outcome_t *outcome;
    history_t history;
    spill_array_t *array;
    const char *array_name;
} reading_t;

static size_t add_owner(outcome_t *outcome, char *name)
{
    if (outcome->owner_count == outcome->owner_capacity) {
        outcome->owner_capacity = 2 * outcome->owner_capacity + 64;
        outcome->owners =
            bson_realloc(outcome->owners, outcome->owner_capacity * sizeof *outcome->owners);
    }
    outcome->owners[outcome->owner_count] = name;
    return outcome->owner_count++;
}

static void add_element(outcome_t *outcome, size_t owner, const spill_element_t *element)
{
    int64_t label;
    assert_int_equal(element->value.type, BSON_TYPE_INT64);
    memcpy(&label, element->value.data, sizeof label);
    if (outcome->element_count == outcome->element_capacity) {
        outcome->element_capacity = 2 * outcome->element_capacity + 1024;
        outcome->elements =
            bson_realloc(outcome->elements, outcome->element_capacity * sizeof *outcome->elements);
    }
    outcome->elements[outcome->element_count++] = (outcome_element_t){
        .label = (int64_t)BSON_UINT64_FROM_LE(label), .owner = owner, .seq = element->seq};
}

static bool read_owner(void *context, const spill_value_t *value)
{
    reading_t *reading = context;
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    const char *text = (const char *)value->data + 4; /* of a BSON string: after its length */
    size_t owner =
        add_owner(reading->outcome, bson_strdup_printf("%s/%s", reading->array_name, text));
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    options.limit = INT64_MAX;
    bool changed = strncmp(text, WORKER_CHANGED, strlen(WORKER_CHANGED)) == 0;
    if (!changed)
        history_read(&reading->history, reading->outcome->owners[owner], &options);
    if (spill_array_read(reading->array, value, &options, &slice, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    if (!changed)
        history_got(&reading->history, slice);
    for (size_t i = 0; i < slice->count; i++) {
        if (!changed)
            assert_int_equal(slice->elements[i].seq, i);
        else if (i > 0)
            assert_true(slice->elements[i].seq > slice->elements[i - 1].seq);
        add_element(reading->outcome, owner, &slice->elements[i]);
    }
    spill_slice_free(slice);
    return true;
}

static int by_label(const void *left, const void *right)
{
    const outcome_element_t *a = left, *b = right;
    return (a->label > b->label) - (a->label < b->label);
}

void outcome_read(outcome_t *outcome, spill_store_t *store, const char *folder, int reader)
{
    history_append_t none;
    *outcome = (outcome_t){0};
    reading_t reading = {.outcome = outcome};
    history_open(&reading.history, folder, reader, &none);
    for (int i = 0; i < WORKER_ARRAYS; i++) {
        spill_error_t error;
        reading.array = open_array(store, i);
        reading.array_name = worker_array_names[i];
        if (spill_array_owners(reading.array, read_owner, &reading, &error) != SPILL_OK)
            fail_msg("%s", error.message);
        spill_array_close(reading.array);
    }
    history_close(&reading.history);
    qsort(outcome->elements, outcome->element_count, sizeof *outcome->elements, by_label);
}

void outcome_release(outcome_t *outcome)
{
    for (size_t i = 0; i < outcome->owner_count; i++)
        bson_free(outcome->owners[i]);
    bson_free(outcome->owners);
    bson_free(outcome->elements);
}

/* ---- checking -------------------------------------------------------------------------------- */

static const outcome_element_t *find_element(const outcome_t *outcome, int worker, int64_t number,
                                             int64_t i)
{
    outcome_element_t wanted = {.label = history_label(worker, number, i)};
    return bsearch(&wanted, outcome->elements, outcome->element_count, sizeof wanted, by_label);
}

/* Whether a worker requested (*asked) and the store acknowledged (*done) the number's removal. */
static void find_removal(const history_book_t *books, int workers, const char *owner, int64_t seq,
                         bool *asked, bool *done)
{
    *asked = *done = false;
    for (int worker = 0; worker < workers; worker++)
        for (size_t i = 0; i < books[worker].removal_count; i++) {
            const history_removal_t *removal = &books[worker].removals[i];
            bool meant = removal->below ? seq < removal->seq : seq == removal->seq;
            if (meant && strcmp(removal->owner, owner) == 0) {
                *asked = true;
                *done = *done || removal->done;
            }
        }
}

/* The batch's first number: as acknowledged, or computed from a stored element; -1: none stored. */
static int64_t batch_first(const outcome_t *outcome, int worker, const history_append_t *append)
{
    if (append->outcome == HISTORY_APPENDED)
        return append->first;
    for (int64_t i = 0; i < append->count; i++) {
        const outcome_element_t *element = find_element(outcome, worker, append->number, i);
        if (element != NULL)
            return element->seq - i;
    }
    return -1;
}

/* The batch must be a run of its owner, except for removed elements. Adds its elements to *found.
 */
static void check_append(const outcome_t *outcome, const history_book_t *books, int workers,
                         int worker, const history_append_t *append, int64_t *found)
{
    int64_t first = batch_first(outcome, worker, append);
    for (int64_t i = 0; first >= 0 && i < append->count; i++) {
        const outcome_element_t *element = find_element(outcome, worker, append->number, i);
        bool asked, done;
        find_removal(books, workers, append->owner, first + i, &asked, &done);
        if (element == NULL && !asked)
            fail_msg("element %" PRId64 " of append %d/%" PRId64 " to %s, at %" PRId64 ", is lost",
                     i, worker, append->number, append->owner, first + i);
        if (element == NULL)
            continue;
        assert_string_equal(outcome->owners[element->owner], append->owner);
        if (done || element->seq != first + i)
            fail_msg("element %" PRId64 " of append %d/%" PRId64 " to %s is at %" PRId64
                     ", it was given %" PRId64 "%s",
                     i, worker, append->number, append->owner, element->seq, first + i,
                     done ? " and removed" : "");
        (*found)++;
    }
}

static void check_appends(outcome_t *outcome, const history_book_t *books, int workers)
{
    int64_t found = 0;
    for (int worker = 0; worker < workers; worker++) {
        const history_book_t *book = &books[worker];
        for (size_t i = 0; i < book->append_count; i++) {
            const history_append_t *append = &book->appends[i];
            int64_t before = found;
            assert_int_not_equal(append->outcome, HISTORY_OPEN);
            check_append(outcome, books, workers, worker, append, &found);
            outcome->appends++;
            outcome->unknown += append->outcome == HISTORY_UNKNOWN;
            outcome->stood += append->outcome == HISTORY_UNKNOWN && found > before;
        }
        outcome->removals += (int64_t)book->removal_count;
    }
    assert_int_equal(found, outcome->element_count); /* every element was appended by a worker */
}

void outcome_check(outcome_t *outcome, const char *folder, int workers)
{
    for (size_t i = 1; i < outcome->element_count; i++)
        if (outcome->elements[i].label == outcome->elements[i - 1].label)
            fail_msg("element %" PRId64 " is in %s more than once, at %" PRId64 " and %" PRId64,
                     outcome->elements[i].label, outcome->owners[outcome->elements[i].owner],
                     outcome->elements[i - 1].seq, outcome->elements[i].seq);
    history_book_t *books = bson_malloc0((size_t)workers * sizeof *books);
    for (int worker = 0; worker < workers; worker++)
        books[worker] = history_book(folder, worker);
    check_appends(outcome, books, workers);
    for (int worker = 0; worker < workers; worker++)
        history_book_release(&books[worker]);
    bson_free(books);
}

static void print_finding(void *context, const spill_finding_t *finding)
{
    (void)context;
    char *owner = finding->owner != NULL ? spill_value_to_json(finding->owner, false) : NULL;
    print_error("%s, owner %s, page %" PRId64 ", I%d: %s\n", finding->definition,
                owner != NULL ? owner : "-", finding->page, finding->invariant, finding->text);
    bson_free(owner);
}

void outcome_verify(spill_store_t *store)
{
    for (int i = 0; i < WORKER_ARRAYS; i++) {
        spill_array_t *array = open_array(store, i);
        spill_verify_summary_t summary;
        spill_error_t error;
        if (spill_array_verify(array, NULL, print_finding, NULL, &summary, &error) != SPILL_OK)
            fail_msg("%s", error.message);
        assert_int_equal(summary.findings, 0);
        assert_true(summary.pages > 0);
        spill_array_close(array);
    }
}
