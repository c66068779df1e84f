/* Complete the array of a head that has pages. */
#include "gateway/translate/asked.h"

#include "bson/field_path.h"
#include "bson/value.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "gateway/translate/mention.h"
#include "util/error.h"

#include <string.h>
#include <time.h>

enum { TRIES = 5, PAGES_AT_A_TIME = 16 };

/* ---- bookkeeping ----------------------------------------------------------------------------- */

/* *number: -1 if it is not a number; 0 if it is not there (false). */
static bool find_number(const bson_t *own, const char *name, int64_t *number)
{
    bson_iter_t iter;
    *number = 0;
    if (!bson_iter_init_find(&iter, own, name))
        return false;
    *number = BSON_ITER_HOLDS_NUMBER(&iter) ? bson_iter_as_int64(&iter) : -1;
    return true;
}

/* Live elements in pages. */
static int64_t in_pages(const spill_book_t *book)
{
    int64_t count = book->first - book->low - book->removed;
    return count > 0 ? count : 0;
}

/* False: the array is unmanaged, although the gateway may keep sessions in its document. */
static bool read_numbers(const bson_t *own, spill_book_t *book)
{
    const struct {
        const char *name;
        int64_t *number;
        bool required;
    } numbers[] = {{SPILL_STORED_INCARNATION, &book->epoch, true},
                   {SPILL_STORED_REV, &book->rev, true},
                   {SPILL_STORED_FIRST, &book->first, true},
                   {SPILL_STORED_PAGES, &book->pages, true},
                   {SPILL_STORED_WATERMARK, &book->low, false},
                   {SPILL_STORED_REMOVED, &book->removed, false}};
    size_t count = sizeof numbers / sizeof *numbers;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        if (find_number(own, numbers[i].name, numbers[i].number))
            any = true;
        else if (numbers[i].required)
            book->damaged = numbers[i].name;
    for (size_t i = 0; i < count; i++)
        if (*numbers[i].number < 0)
            book->damaged = numbers[i].name;
    if (book->epoch == 0)
        book->damaged = SPILL_STORED_INCARNATION;
    /* Only pages can have numbers below the head's first one, and each page has a number. */
    if (!book->damaged && book->pages == 0 && in_pages(book) > 0)
        book->damaged = SPILL_STORED_PAGES;
    else if (!book->damaged && book->first < book->pages)
        book->damaged = SPILL_STORED_FIRST;
    return any;
}

bool spill_book_check(spill_translation_t *translation, const bson_t *document,
                      const spill_book_t *book)
{
    bson_iter_t id;
    spill_error_t error;
    if (!book->damaged)
        return true;
    spill_value_t owner =
        bson_iter_init_find(&id, document, "_id") ? spill_value_from_iter(&id) : (spill_value_t){0};
    char *json = spill_value_to_json(&owner, false);
    spill_fail(&error, SPILL_CORRUPT,
               "the document of _id %.200s is damaged: its field spill.%s.%s is missing or wrong; "
               "run `spillway verify`",
               json ? json : "?", translation->array, book->damaged);
    bson_free(json);
    return spill_translation_fail_library(translation, SPILL_CORRUPT, &error);
}

bool spill_book_read(const bson_t *document, const char *array, spill_book_t *book)
{
    bson_iter_t iter;
    bson_t spill, own;
    char name[SPILL_NAME_SIZE];
    spill_bookkeeping_name(array, name);
    *book = (spill_book_t){0};
    if (!bson_iter_init_find(&iter, document, SPILL_STORED_ROOT) ||
        !BSON_ITER_HOLDS_DOCUMENT(&iter) || !spill_iter_document(&iter, &spill) ||
        !bson_iter_init_find(&iter, &spill, name) || !BSON_ITER_HOLDS_DOCUMENT(&iter) ||
        !spill_iter_document(&iter, &own))
        return false;
    book->has_gone = bson_iter_init_find(&iter, &own, SPILL_STORED_DELETED) &&
                     BSON_ITER_HOLDS_ARRAY(&iter) && spill_iter_document(&iter, &book->gone);
    return read_numbers(&own, book);
}

/* ---- one completion -------------------------------------------------------------------------- */

typedef enum outcome {
    OUTCOME_DONE,
    OUTCOME_CHANGED, /* the array has changed since its head was read */
    OUTCOME_FAILED   /* the failure is stored */
} outcome_t;

typedef struct completion {
    spill_translation_t *translation;
    const spill_asked_t *asked;
    const bson_t *document;
    spill_book_t book;
    spill_value_t owner;
    size_t room;
    int64_t end; /* elements from this number on are left out */
    bson_t *out;
    bson_t array; /* F in `out` */
    uint32_t length;
    bool newest_first;
} completion_t;

/* Name the document: a find of many has one that is too long. */
static bool fail_too_long(const completion_t *completion)
{
    enum { ID_SHOWN_MAX = 200 };
    const char *array = completion->translation->array;
    char *json = spill_value_to_json(&completion->owner, false);
    bool shown = json != NULL && strlen(json) <= ID_SHOWN_MAX;
    spill_translation_fail(
        completion->translation, SPILL_SERVER_DOCUMENT_TOO_LARGE,
        "spillway: the document%s%s with the whole array '%s' would exceed the message size: ask "
        "for a part of it, as in {\"%s\": {$slice: -100}}, or leave it out, {\"%s\": 0}",
        shown ? " of _id " : "", shown ? json : "", array, array, array);
    bson_free(json);
    return false;
}

static bool append_element(completion_t *completion, const spill_value_t *element)
{
    char text[16];
    const char *key;
    bson_uint32_to_string(completion->length, &key, text, sizeof text);
    if ((size_t)completion->array.len + element->size_bytes + 32 <= completion->room &&
        spill_value_append(element, &completion->array, key)) {
        completion->length++;
        return true;
    }
    return fail_too_long(completion);
}

/* The library could not read the array: perhaps another client has replaced the document since. */
static outcome_t judge(const completion_t *completion, spill_code_t code,
                       const spill_error_t *error)
{
    if (code == SPILL_REFUSED && error->reason == SPILL_REASON_UNMANAGED)
        return OUTCOME_CHANGED;
    spill_translation_fail_library(completion->translation, code, error);
    return OUTCOME_FAILED;
}

/* Read [options->after + 1, options->before) or less; append it. *count: the elements read. */
static outcome_t append_run(completion_t *completion, spill_read_options_t *options, int64_t most,
                            int64_t *count)
{
    spill_error_t error;
    spill_slice_t *slice = NULL;
    outcome_t outcome = OUTCOME_DONE;
    const spill_served_collection_t *at = completion->translation->at;
    int64_t portion = at->definition->bounds.page_capacity * PAGES_AT_A_TIME;
    bool more = most > 0;
    *count = 0;
    spill_activity_owner(completion->translation->connection->activity, at->collection,
                         &completion->owner);
    while (more && outcome == OUTCOME_DONE) {
        if (!spill_translation_has_time(completion->translation))
            return OUTCOME_FAILED;
        options->limit = most - *count < portion ? most - *count : portion;
        spill_code_t code =
            spill_array_read(at->array, &completion->owner, options, &slice, &error);
        if (code != SPILL_OK)
            return judge(completion, code, &error);
        for (size_t i = 0; i < slice->count && outcome == OUTCOME_DONE; i++)
            if (!append_element(completion, &slice->elements[i].value))
                outcome = OUTCOME_FAILED;
        *count += (int64_t)slice->count;
        more = slice->more && slice->count > 0 && *count < most;
        options->skip = 0;
        if (options->order == SPILL_NEWEST_FIRST)
            options->before = slice->next;
        else
            options->after = slice->next;
        spill_slice_free(slice);
    }
    return outcome;
}

/* ---- the whole array ------------------------------------------------------------------------- */

static outcome_t append_pages(completion_t *completion)
{
    const spill_book_t *book = &completion->book;
    spill_read_options_t options;
    int64_t count, expected = in_pages(book);
    spill_read_options_init(&options);
    options.order = completion->newest_first ? SPILL_NEWEST_FIRST : SPILL_OLDEST_FIRST;
    options.after = book->low - 1;
    /* After a later spill, elements from `end` on are in pages, too. */
    bool counted = completion->end >= book->first;
    options.before = counted ? book->first : completion->end;
    if (expected == 0)
        return OUTCOME_DONE;
    outcome_t outcome = append_run(completion, &options, expected + 1, &count);
    return outcome == OUTCOME_DONE && counted && count != expected ? OUTCOME_CHANGED : outcome;
}

/* The number of the head's element at `slot`, counted from the oldest. */
static int64_t number_at(const spill_book_t *book, int64_t slot)
{
    bson_iter_t gone;
    int64_t number = book->first + slot;
    if (book->has_gone && bson_iter_init(&gone, &book->gone))
        while (bson_iter_next(&gone) && bson_iter_as_int64(&gone) <= number)
            number++;
    return number;
}

/* The head's elements that were there at the moment, in the order of its array. */
static outcome_t append_head(completion_t *completion, const bson_iter_t *field)
{
    const spill_book_t *book = &completion->book;
    bson_iter_t element;
    bson_t elements;
    if (!BSON_ITER_HOLDS_ARRAY(field) || !spill_iter_document(field, &elements) ||
        !bson_iter_init(&element, &elements))
        return OUTCOME_CHANGED;
    bool all = completion->end == INT64_MAX && book->low <= book->first;
    int64_t count = all ? 0 : (int64_t)bson_count_keys(&elements);
    for (int64_t at = 0; bson_iter_next(&element); at++) {
        spill_value_t value = spill_value_from_iter(&element);
        int64_t number = all ? 0 : number_at(book, completion->newest_first ? count - 1 - at : at);
        bool shown = all || (number >= book->low && number < completion->end);
        if (shown && !append_element(completion, &value))
            return OUTCOME_FAILED;
    }
    return OUTCOME_DONE;
}

static outcome_t append_whole(completion_t *completion, const bson_iter_t *field)
{
    outcome_t outcome = OUTCOME_DONE;
    if (!completion->newest_first)
        outcome = append_pages(completion);
    if (outcome == OUTCOME_DONE)
        outcome = append_head(completion, field);
    if (outcome == OUTCOME_DONE && completion->newest_first)
        outcome = append_pages(completion);
    return outcome;
}

/* ---- $slice ---------------------------------------------------------------------------------- */

/* The number of live elements now. */
static outcome_t count_now(completion_t *completion, int64_t *count)
{
    spill_count_t counted;
    spill_error_t error;
    spill_code_t code =
        spill_array_count(completion->translation->at->array, &completion->owner, &counted, &error);
    *count = counted.count;
    return code == SPILL_OK ? OUTCOME_DONE : judge(completion, code, &error);
}

static outcome_t append_slice(completion_t *completion, const bson_iter_t *field)
{
    const spill_asked_t *asked = completion->asked;
    spill_read_options_t options;
    int64_t shown = 0, count, limit = asked->limit, skip = asked->skip;
    bson_t elements;
    if (BSON_ITER_HOLDS_ARRAY(field) && spill_iter_document(field, &elements))
        shown = (int64_t)bson_count_keys(&elements);
    /* The head has the end of the array where elements are appended. */
    if (!asked->skips && limit != 0 && (limit < 0) != completion->newest_first &&
        shown == (limit < 0 ? -limit : limit))
        return append_head(completion, field);
    if (skip < 0 || limit < 0) {
        outcome_t outcome = count_now(completion, &count);
        if (outcome != OUTCOME_DONE)
            return outcome;
        skip = limit < 0 ? count + limit : count + skip;
        limit = limit < 0 ? -limit : limit;
        skip = skip < 0 ? 0 : skip;
    }
    spill_read_options_init(&options);
    options.order = completion->newest_first ? SPILL_NEWEST_FIRST : SPILL_OLDEST_FIRST;
    options.skip = skip;
    return append_run(completion, &options, limit, &count);
}

/* ---- the document ---------------------------------------------------------------------------- */

static outcome_t append_array(completion_t *completion, const bson_iter_t *field, bson_t *out)
{
    bson_append_array_begin(out, bson_iter_key(field), -1, &completion->array);
    outcome_t outcome = completion->asked->kind == SPILL_ASKED_SLICE
                            ? append_slice(completion, field)
                            : append_whole(completion, field);
    bson_append_array_end(out, &completion->array);
    return outcome;
}

static outcome_t copy_field(completion_t *completion, const bson_iter_t *field, const char *path,
                            bson_t *out);

/* Copy a document around F, completing F in it. `path` leads from there to F. */
static outcome_t copy_inner(completion_t *completion, const bson_iter_t *document, const char *path,
                            bson_t *out)
{
    bson_iter_t field;
    bson_t inner;
    outcome_t outcome = OUTCOME_DONE;
    bson_append_document_begin(out, bson_iter_key(document), -1, &inner);
    if (bson_iter_recurse(document, &field))
        while (outcome == OUTCOME_DONE && bson_iter_next(&field))
            outcome = copy_field(completion, &field, path, &inner);
    bson_append_document_end(out, &inner);
    return outcome;
}

/* Copy a field that may be F, or around F. */
static outcome_t copy_field(completion_t *completion, const bson_iter_t *field, const char *path,
                            bson_t *out)
{
    const char *key = bson_iter_key(field);
    if (strcmp(key, path) == 0)
        return append_array(completion, field, out);
    if (spill_path_begins(path, key) && BSON_ITER_HOLDS_DOCUMENT(field))
        return copy_inner(completion, field, path + strlen(key) + 1, out);
    bson_append_iter(out, NULL, -1, field);
    return OUTCOME_DONE;
}

static bool is_hidden(const spill_asked_t *asked, const char *key)
{
    return strcmp(key, SPILL_STORED_ROOT) == 0 || (asked->hides_id && strcmp(key, "_id") == 0);
}

/* Copy the document, without what is hidden. `completion` is NULL if F needs no completion. */
static outcome_t copy_fields(const spill_translation_t *translation, const spill_asked_t *asked,
                             const bson_t *document, completion_t *completion, bson_t *out)
{
    bson_iter_t field;
    outcome_t outcome = OUTCOME_DONE;
    if (!bson_iter_init(&field, document))
        return OUTCOME_DONE;
    while (outcome == OUTCOME_DONE && bson_iter_next(&field)) {
        if (is_hidden(asked, bson_iter_key(&field)))
            continue;
        if (completion != NULL)
            outcome = copy_field(completion, &field, translation->array, out);
        else
            bson_append_iter(out, NULL, -1, &field);
    }
    return outcome;
}

/* A read concern that cannot hold for head and pages. */
static bool check_read(spill_translation_t *translation, const spill_asked_t *asked)
{
    bson_t concern;
    bson_iter_t level;
    if (asked->kind == SPILL_ASKED_REFUSE)
        return spill_translation_refuse(
            translation, translation->array, asked->operation,
            "read the whole array or {$slice: ...} of it, and choose in the application");
    if (spill_translation_find_document(translation, "readConcern", &concern) &&
        bson_iter_init_find(&level, &concern, "level") && BSON_ITER_HOLDS_UTF8(&level) &&
        (strcmp(bson_iter_utf8(&level, NULL), "snapshot") == 0 ||
         strcmp(bson_iter_utf8(&level, NULL), "linearizable") == 0))
        return spill_translation_refuse(
            translation, translation->array, bson_iter_utf8(&level, NULL),
            "head and pages are not read at one moment: use another read concern");
    return spill_translation_require(translation, SPILL_RIGHT_FIND);
}

/* Read the head again. *found is false if it is gone, or matches no longer. */
static bool read_again(spill_translation_t *translation, const spill_asked_t *asked,
                       const spill_value_t *id, bson_t *document, bool *found)
{
    bson_t reply, filter = BSON_INITIALIZER, find = BSON_INITIALIZER, only;
    bson_iter_t iter, batch;
    *found = false;
    spill_value_append(id, &filter, "_id");
    BCON_APPEND(&find, "find", BCON_UTF8(translation->at->collection), "filter", "{", "$and", "[",
                BCON_DOCUMENT(&filter), BCON_DOCUMENT(asked->filter), "]", "}", "limit",
                BCON_INT64(1), "singleBatch", BCON_BOOL(true));
    if (asked->projection != NULL)
        BSON_APPEND_DOCUMENT(&find, "projection", asked->projection);
    bson_concat(&find, asked->options);
    spill_translation_finish_step(translation, &find);
    bool done = spill_translation_call(translation, &find, &reply);
    if (done) {
        *found = bson_iter_init(&iter, &reply) &&
                 bson_iter_find_descendant(&iter, "cursor.firstBatch.0", &batch) &&
                 spill_iter_document(&batch, &only);
        if (*found)
            bson_copy_to(&only, document);
        bson_destroy(&reply);
    }
    bson_destroy(&filter);
    bson_destroy(&find);
    return done;
}

static void pause_before(int attempt)
{
    struct timespec pause = {.tv_nsec = (long)attempt * attempt * 2000000};
    nanosleep(&pause, NULL);
}

/* Complete the document, or find that it changed. `out` is initialized in every case. */
static outcome_t complete(completion_t *completion)
{
    bson_iter_t id;
    spill_translation_t *translation = completion->translation;
    bson_init(completion->out);
    completion->length = 0;
    bool managed = spill_book_read(completion->document, translation->array, &completion->book);
    if (managed && !spill_book_check(translation, completion->document, &completion->book))
        return OUTCOME_FAILED;
    if (managed && completion->asked->whole && !check_read(translation, completion->asked))
        return OUTCOME_FAILED; /* the expression has `spill`, too */
    if (!managed || (completion->book.pages == 0 && completion->end == INT64_MAX))
        return copy_fields(translation, completion->asked, completion->document, NULL,
                           completion->out);
    if (completion->book.pages > 0 && !check_read(translation, completion->asked))
        return OUTCOME_FAILED;
    if (!bson_iter_init_find(&id, completion->document, "_id"))
        return OUTCOME_CHANGED;
    completion->owner = spill_value_from_iter(&id);
    return copy_fields(translation, completion->asked, completion->document, completion,
                       completion->out);
}

bool spill_asked_document(spill_translation_t *translation, const spill_asked_t *asked,
                          const bson_t *document, size_t room, int64_t end, bson_t *out, bool *gone)
{
    bson_t again = BSON_INITIALIZER;
    completion_t completion = {.translation = translation,
                               .asked = asked,
                               .document = document,
                               .room = room,
                               .end = end,
                               .out = out,
                               .newest_first =
                                   translation->at->definition->order == SPILL_ARRAY_NEWEST_FIRST};
    bool found = true;
    *gone = false;
    if (asked->kind <= SPILL_ASKED_STRIP) {
        bson_init(out);
        copy_fields(translation, asked, document, NULL, out);
        return true;
    }
    outcome_t outcome = complete(&completion);
    for (int attempt = 1; outcome == OUTCOME_CHANGED && attempt < TRIES && found; attempt++) {
        bson_destroy(out);
        bson_init(out);
        if (asked->filter == NULL || asked->options == NULL)
            break;
        bson_t next;
        pause_before(attempt);
        if (!read_again(translation, asked, &completion.owner, &next, &found)) {
            outcome = OUTCOME_FAILED;
        } else if (found) {
            bson_destroy(&again);
            bson_steal(&again, &next);
            completion.document = &again;
            bson_destroy(out);
            outcome = complete(&completion);
        }
    }
    *gone = !found;
    if (outcome == OUTCOME_CHANGED && found)
        spill_translation_fail(translation, SPILL_SERVER_WRITE_CONFLICT,
                               "spillway: the array changed while its pages were read: try again");
    bson_destroy(&again);
    bool done = outcome == OUTCOME_DONE || *gone;
    if (!done)
        bson_destroy(out);
    return done;
}

size_t spill_asked_estimate(const spill_translation_t *translation, const spill_asked_t *asked,
                            const bson_t *document)
{
    spill_book_t book;
    bson_iter_t field;
    bson_t elements;
    if (asked->kind != SPILL_ASKED_WHOLE || !spill_book_read(document, translation->array, &book) ||
        book.pages == 0 || !spill_path_find(document, translation->array, &field) ||
        !spill_iter_document(&field, &elements))
        return document->len;
    size_t length = bson_count_keys(&elements);
    size_t mean = length > 0 ? elements.len / length : 64;
    return document->len + mean * (size_t)in_pages(&book);
}
