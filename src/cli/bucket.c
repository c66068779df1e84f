/* Commands on a definition of layout bucket: an owner's elements are in its windows. */
#include "cli/cli.h"

#include "core/array.h"
#include "definition/schema.h"
#include "util/error.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

bool spill_cli_is_bucket(const spill_cli_session_t *session)
{
    return spill_schema_of(spill_array_get_definition(session->array))->has_windows;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static bool split_address(const char *text, spill_cli_address_t *address)
{
    const char *colon = strrchr(text, ':');
    *address = (spill_cli_address_t){.seq = 0};
    if (!colon)
        return spill_cli_parse_number(text, &address->seq);
    size_t length = (size_t)(colon - text);
    if (length == 0 || length >= sizeof address->window)
        return false;
    memcpy(address->window, text, length);
    return spill_cli_parse_number(colon + 1, &address->seq);
}

bool spill_cli_parse_address(const spill_invocation_t *invocation, const char *text,
                             spill_cli_address_t *address)
{
    if (split_address(text, address))
        return true;
    spill_cli_usage(invocation,
                    "SEQ: '%s' is not a sequence number, nor a window with one "
                    "('2026-03:17'): " SPILL_CLI_NUMBER,
                    text);
    return false;
}

spill_code_t spill_cli_address_owner(const spill_cli_session_t *session,
                                     const spill_cli_address_t *address, bson_t *storage,
                                     spill_value_t *owner, spill_error_t *error)
{
    const char *name = spill_array_get_definition(session->array)->name;
    bool bucket = spill_cli_is_bucket(session);
    bool given = address->window[0] != '\0';
    if (bucket && !given)
        return spill_fail(error, SPILL_INVALID,
                          "'%s' has windows: give WINDOW:SEQ, such as 2026-03:17", name);
    if (!bucket && given)
        return spill_fail(error, SPILL_INVALID, "'%s' has no windows: give SEQ alone", name);
    *owner = bucket ? spill_bucket_name(storage, session->owner, address->window) : *session->owner;
    return SPILL_OK;
}

/* Parse the next number of `digits` digits behind `separator`; advance *at. */
static bool next_number(const char **at, char separator, int digits, int *number)
{
    if (separator != '\0' && **at != separator)
        return false;
    const char *from = *at + (separator != '\0');
    int value = 0, count = 0;
    for (; count < digits && isdigit((unsigned char)from[count]); count++)
        value = 10 * value + (from[count] - '0');
    if (count < digits)
        return false;
    *number = value;
    *at = from + count;
    return true;
}

/*
 * TIME on the command line: "2026", "2026-03", "2026-03-05", "2026-03-05T10", ... with minutes,
 * seconds, milliseconds, and an optional Z at the end; always UTC. *time_ms is its first moment.
 */
static bool parse_moment(const char *text, int64_t *time_ms)
{
    struct tm date = {.tm_mday = 1};
    int month = 1, milliseconds = 0;
    const char *at = text;
    if (!next_number(&at, '\0', 4, &date.tm_year))
        return false;
    if (next_number(&at, '-', 2, &month) && next_number(&at, '-', 2, &date.tm_mday) &&
        next_number(&at, 'T', 2, &date.tm_hour) && next_number(&at, ':', 2, &date.tm_min) &&
        next_number(&at, ':', 2, &date.tm_sec))
        next_number(&at, '.', 3, &milliseconds);
    at += *at == 'Z';
    date.tm_year -= 1900;
    date.tm_mon = month - 1;
    struct tm copy = date;
    int64_t seconds = (int64_t)timegm(&copy);
    bool real = copy.tm_mon == date.tm_mon && copy.tm_mday == date.tm_mday &&
                copy.tm_hour == date.tm_hour && copy.tm_min == date.tm_min &&
                copy.tm_sec == date.tm_sec;
    *time_ms = seconds * 1000 + milliseconds;
    return *at == '\0' && real;
}

/* ---- append ---------------------------------------------------------------------------------- */

#define APPENDED(type, member, name) SPILL_FIELD(type, spill_bucket_appended_t, member, name)
static const spill_field_t appended_fields[] = {
    APPENDED(CHARS, window, "window"), APPENDED(INT64, result.first, "first"),
    APPENDED(INT64, result.count, "count"), APPENDED(BOOL, result.repeated, "repeated")};
static const spill_record_t appended_record =
    SPILL_RECORD("appended", spill_bucket_appended_t, appended_fields);

static void print_appended(const spill_cli_session_t *session,
                           const spill_bucket_appended_t *appended)
{
    const spill_append_result_t *result = &appended->result;
    if (session->invocation->json) {
        spill_cli_print_record(&appended_record, appended);
    } else if (result->count == 1) {
        printf("%s:%" PRId64 "\n", appended->window, result->first);
    } else {
        printf("%s:%" PRId64 "..%" PRId64 "\n", appended->window, result->first,
               result->first + result->count - 1);
    }
    if (result->repeated && !session->invocation->quiet)
        fputs("spillway: the operation was applied before: nothing was written this time\n",
              stderr);
}

/* Read the bases for the operation; refuse more than one window. */
static spill_code_t find_base(const spill_cli_session_t *session, const spill_value_t *elements,
                              size_t count, spill_op_t *op, spill_bucket_base_t **bases,
                              spill_error_t *error)
{
    size_t windows = 0;
    SPILL_TRY(spill_bucket_op_bases(session->array, session->owner, elements, count, bases,
                                    &windows, error));
    if (windows > 1)
        return spill_fail(error, SPILL_INVALID,
                          "--op: the elements are in %zu windows, but an operation must be in one; "
                          "append the elements of each window separately",
                          windows);
    if (op->base >= 0)
        (*bases)[0].base = op->base;
    else
        fprintf(stderr, "%.*s@%" PRId64 "\n", (int)op->id_bytes, (const char *)op->id,
                (*bases)[0].base);
    fflush(stderr);
    return SPILL_OK;
}

spill_code_t spill_cli_bucket_append(const spill_cli_session_t *session,
                                     const spill_value_t *elements, size_t count, spill_op_t *op,
                                     bool fill, spill_error_t *error)
{
    spill_bucket_append_options_t options;
    spill_bucket_append_options_init(&options);
    options.fill = fill;
    spill_bucket_base_t *bases = NULL;
    spill_bucket_appended_t *appended = NULL;
    size_t windows = 0;
    spill_code_t code = SPILL_OK;
    if (op) {
        code = find_base(session, elements, count, op, &bases, error);
        options.op_id = op->id;
        options.op_id_bytes = op->id_bytes;
        options.bases = bases;
        options.base_count = 1;
    }
    if (code == SPILL_OK)
        code = spill_bucket_append(session->array, session->owner, elements, count, &options,
                                   &appended, &windows, error);
    for (size_t i = 0; i < windows; i++)
        if (appended[i].result.count > 0)
            print_appended(session, &appended[i]);
    spill_error_t late;
    spill_code_t flushed = spill_cli_flush(&late);
    if (code == SPILL_OK && flushed != SPILL_OK) {
        *error = late;
        code = flushed;
    }
    bson_free(bases);
    bson_free(appended);
    return code;
}

/* ---- read ------------------------------------------------------------------------------------ */

static spill_code_t set_bound(const spill_cli_session_t *session, const char *option,
                              const char *text, int64_t *time_ms, const char **window,
                              spill_error_t *error)
{
    if (!text)
        return SPILL_OK;
    if (spill_array_get_definition(session->array)->window == SPILL_WINDOW_FIELD) {
        *window = text;
        return SPILL_OK;
    }
    return parse_moment(text, time_ms)
               ? SPILL_OK
               : spill_fail(error, SPILL_INVALID,
                            "%s: '%s' is not a time such as 2026-03 or 2026-03-05T10:20:30", option,
                            text);
}

typedef struct window_element_line {
    const char *window;
    int64_t seq;
    const char *element;
} window_element_line_t;

static const spill_field_t element_fields[] = {
    SPILL_FIELD(TEXT, window_element_line_t, window, "window"),
    SPILL_FIELD(INT64, window_element_line_t, seq, "seq"),
    SPILL_FIELD(JSON, window_element_line_t, element, "element")};
static const spill_record_t element_record =
    SPILL_RECORD("element", window_element_line_t, element_fields);

static void print_slice(const spill_cli_session_t *session, const spill_bucket_slice_t *slice)
{
    for (size_t i = 0; i < slice->count; i++) {
        const spill_bucket_element_t *element = &slice->elements[i];
        char *json = spill_cli_json(&element->value, false);
        if (!json) {
            spill_cli_leave_out(session->owner, element->seq);
            continue;
        }
        if (session->invocation->json) {
            const window_element_line_t line = {element->window, element->seq, json};
            spill_cli_print_record(&element_record, &line);
        } else {
            printf("%s:%" PRId64 "\t%s\n", element->window, element->seq, json);
        }
        bson_free(json);
    }
}

/* Print it as a shell word. */
static void print_bound(const char *option, const char *text)
{
    if (text)
        fprintf(stderr, " --%s '%s'", option, text);
}

static void free_slice(spill_bucket_slice_t **slice)
{
    spill_bucket_slice_free(*slice);
}

/* As print_next of read_export.c. */
static void print_next(const spill_cli_session_t *session, const spill_cli_bucket_read_t *read,
                       spill_bucket_read_options_t options, const spill_bucket_slice_t *slice)
{
    spill_error_t ignored;
    if (!slice->more || !spill_cli_prints_tables(session->invocation) || session->invocation->quiet)
        return;
    options.limit = 1;
    options.cursor_window = slice->cursor_window;
    options.cursor_seq = slice->cursor_seq;
    SPILL_SCOPED(free_slice) spill_bucket_slice_t *following = NULL;
    spill_code_t code =
        spill_bucket_read(session->array, session->owner, &options, &following, &ignored);
    if (code == SPILL_OK && following->count == 0)
        return;
    fprintf(stderr, "next:%s --limit %" PRId64, read->oldest ? " --oldest" : "", read->limit);
    print_bound("from", read->from);
    print_bound("to", read->to);
    fprintf(stderr, " --cursor '%s:%" PRId64 "'\n", slice->cursor_window, slice->cursor_seq);
}

spill_code_t spill_cli_bucket_read(const spill_cli_session_t *session,
                                   const spill_cli_bucket_read_t *read, spill_error_t *error)
{
    spill_bucket_read_options_t options;
    spill_cli_address_t cursor;
    spill_bucket_read_options_init(&options);
    options.order = read->oldest ? SPILL_OLDEST_FIRST : SPILL_NEWEST_FIRST;
    options.limit = read->limit;
    if (read->cursor && (!split_address(read->cursor, &cursor) || cursor.window[0] == '\0'))
        return spill_fail(error, SPILL_INVALID, "--cursor: '%s' is not WINDOW:SEQ", read->cursor);
    if (read->cursor) {
        options.cursor_window = cursor.window;
        options.cursor_seq = cursor.seq;
    }
    SPILL_SCOPED(free_slice) spill_bucket_slice_t *slice = NULL;
    SPILL_TRY(set_bound(session, "--from", read->from, &options.from_ms, &options.from, error));
    SPILL_TRY(set_bound(session, "--to", read->to, &options.to_ms, &options.to, error));
    SPILL_TRY(spill_bucket_read(session->array, session->owner, &options, &slice, error));
    print_slice(session, slice);
    SPILL_TRY(spill_cli_flush(error));
    if (slice->count == 0)
        SPILL_TRY(spill_cli_bucket_exists(session, error));
    print_next(session, read, options, slice);
    return SPILL_OK;
}

spill_code_t spill_cli_bucket_oldest(const spill_cli_session_t *session, spill_error_t *error)
{
    spill_bucket_read_options_t options;
    SPILL_SCOPED(free_slice) spill_bucket_slice_t *slice = NULL;
    spill_bucket_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    options.limit = 1;
    SPILL_TRY(spill_bucket_read(session->array, session->owner, &options, &slice, error));
    bool any = slice->count > 0;
    spill_cli_print_done(session, any ? slice->elements[0].window : NULL, "oldest",
                         any ? slice->elements[0].seq : -1);
    if (any && !session->invocation->json)
        printf("%s:%" PRId64 "\n", slice->elements[0].window, slice->elements[0].seq);
    return SPILL_OK;
}

static bool note_window(void *context, const spill_bucket_window_t *window)
{
    (void)window;
    *(bool *)context = true;
    return false;
}

spill_code_t spill_cli_bucket_exists(const spill_cli_session_t *session, spill_error_t *error)
{
    bool any = false;
    spill_code_t code = spill_bucket_windows(session->array, session->owner, NULL, NULL,
                                             SPILL_NEWEST_FIRST, note_window, &any, error);
    if (any)
        return SPILL_OK;
    return code == SPILL_OK ? spill_cli_no_owner(session, error) : code;
}

/* ---- statistics ------------------------------------------------------------------------------ */

typedef struct amount_text {
    char text[32];
} amount_text_t;

static amount_text_t amount_text(const spill_amount_t *amount)
{
    amount_text_t shown;
    if (amount->real)
        snprintf(shown.text, sizeof shown.text, "%.17g", amount->value);
    else
        snprintf(shown.text, sizeof shown.text, "%" PRId64, amount->whole);
    return shown;
}

/* The statistics of a window, or of all windows of an owner. */
typedef struct statistics_line {
    const char *window;
    int64_t parts;
    const spill_value_t *owner;
    int64_t windows;
    spill_statistics_t statistics;
    const char *sum, *min, *max;
} statistics_line_t;

static bool is_window(const void *record)
{
    return ((const statistics_line_t *)record)->window != NULL;
}

static bool is_owner(const void *record)
{
    return !is_window(record);
}

static bool has_values(const void *record)
{
    return ((const statistics_line_t *)record)->statistics.values > 0;
}

#define LINE(type, member, ...) SPILL_FIELD(type, statistics_line_t, member, __VA_ARGS__)
static const spill_field_t statistics_fields[] = {
    LINE(TEXT, window, "window", .when = is_window),
    LINE(INT64, parts, "parts", .when = is_window),
    LINE(POINTER, owner, "owner", .when = is_owner),
    LINE(INT64, windows, "windows", .when = is_owner),
    LINE(INT64, statistics.count, "count"),
    LINE(INT64, statistics.values, "values"),
    LINE(JSON, sum, "sum"),
    LINE(DOUBLE, statistics.average, "average", .when = has_values),
    LINE(JSON, min, "min", .when = has_values),
    LINE(JSON, max, "max", .when = has_values)};
static const spill_record_t statistics_record =
    SPILL_RECORD("statistics", statistics_line_t, statistics_fields);

static void print_statistics(statistics_line_t line, bool json)
{
    const spill_statistics_t *statistics = &line.statistics;
    amount_text_t sum = amount_text(&statistics->sum), min = amount_text(&statistics->min),
                  max = amount_text(&statistics->max);
    line.sum = sum.text;
    line.min = min.text;
    line.max = max.text;
    if (json) {
        spill_cli_print_record(&statistics_record, &line);
        return;
    }
    if (line.window)
        printf("%s: ", line.window);
    else
        printf("in all %" PRId64 " %s: ", line.windows,
               spill_cli_plural(line.windows, "window", "windows"));
    printf("%" PRId64 " %s, %" PRId64 " %s, sum %s", statistics->count,
           spill_cli_plural(statistics->count, "element", "elements"), statistics->values,
           spill_cli_plural(statistics->values, "value", "values"), sum.text);
    if (statistics->values > 0)
        printf(", average %.6g, min %s, max %s", statistics->average, min.text, max.text);
    if (line.parts > 1)
        printf(", in %" PRId64 " parts", line.parts);
    putchar('\n');
}

static bool print_window(void *context, const spill_bucket_window_t *window)
{
    const spill_cli_session_t *session = context;
    print_statistics((statistics_line_t){.window = window->window,
                                         .parts = window->parts,
                                         .statistics = window->statistics},
                     session->invocation->json);
    return !ferror(stdout);
}

spill_code_t spill_cli_bucket_stats(const spill_cli_session_t *session, spill_error_t *error)
{
    statistics_line_t all = {.owner = session->owner};
    SPILL_TRY(spill_cli_bucket_exists(session, error));
    spill_code_t code =
        spill_bucket_windows(session->array, session->owner, NULL, NULL, SPILL_OLDEST_FIRST,
                             print_window, (void *)(uintptr_t)session, error);
    if (code == SPILL_CANCELLED)
        return spill_cli_flush(error);
    SPILL_TRY(code);
    SPILL_TRY(spill_bucket_statistics(session->array, session->owner, NULL, NULL, &all.statistics,
                                      &all.windows, error));
    print_statistics(all, session->invocation->json);
    return SPILL_OK;
}

static const spill_field_t count_fields[] = {LINE(POINTER, owner, "owner"),
                                             LINE(INT64, statistics.count, "count"),
                                             LINE(INT64, windows, "windows")};
static const spill_record_t count_record = SPILL_RECORD("count", statistics_line_t, count_fields);

spill_code_t spill_cli_bucket_count(const spill_cli_session_t *session, spill_error_t *error)
{
    statistics_line_t all = {.owner = session->owner};
    SPILL_TRY(spill_bucket_statistics(session->array, session->owner, NULL, NULL, &all.statistics,
                                      &all.windows, error));
    if (all.windows == 0)
        return spill_cli_no_owner(session, error);
    spill_cli_print_result(session->invocation, &count_record, &all);
    return SPILL_OK;
}

/* ---- each window ----------------------------------------------------------------------------- */

typedef struct walk {
    const spill_cli_session_t *session;
    spill_cli_work_fn work;
    bool any;
    bool damaged; /* with --partial: a window was SPILL_CORRUPT */
    spill_error_t damage;
} walk_t;

static spill_code_t work_on(void *context, const spill_value_t *name, const char *window, bool last,
                            bool *stop, spill_error_t *error)
{
    (void)window;
    (void)last;
    walk_t *walk = context;
    spill_cli_session_t own = *walk->session;
    own.owner = name;
    walk->any = true;
    spill_code_t code = walk->work(&own, error);
    if (code == SPILL_CORRUPT && walk->session->invocation->partial) {
        spill_cli_say("incomplete: %s", error->message);
        if (!walk->damaged)
            walk->damage = *error;
        walk->damaged = true;
        code = SPILL_OK;
    }
    *stop = ferror(stdout) != 0;
    return code;
}

spill_code_t spill_cli_each_window(const spill_cli_session_t *session, spill_cli_work_fn work,
                                   spill_error_t *error)
{
    walk_t walk = {.session = session, .work = work};
    const spill_window_range_t all = {.from = NULL};
    SPILL_TRY(spill_each_window(session->array, session->owner, &all, work_on, &walk, error));
    if (ferror(stdout))
        return spill_cli_flush(error);
    if (!walk.any)
        return spill_cli_no_owner(session, error);
    if (walk.damaged)
        *error = walk.damage;
    return walk.damaged ? SPILL_CORRUPT : SPILL_OK;
}
