/* Output on stdout; errors and exit codes, and the only way for messages out of the program. */
#include "cli/cli.h"
#include "cli/fold.h"
#include "cli/process.h"
#include "store/server_code.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/file.h"
#include "util/redact.h"
#include "util/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- stderr ---------------------------------------------------------------------------------- */

/* One message must fit, so that no secret in it is cut in two. An argument has at most 128 KiB. */
enum { STDERR_BUFFER_BYTES = 512 * 1024 };

static _Atomic(spill_cli_wrap_fn) wrap_line;

void spill_cli_wrap_messages(spill_cli_wrap_fn wrap)
{
    atomic_store(&wrap_line, wrap);
}

/* Append a piece without line ends in visible form. */
static void put_visible(spill_buffer_t *to, const char *piece, size_t size)
{
    spill_cli_wrap_fn wrap = atomic_load(&wrap_line);
    char *text = bson_strndup(piece, size);
    char *wrapped = wrap && size > 0 ? wrap(text) : NULL;
    char *redacted = spill_redact(wrapped ? wrapped : text);
    char *visible = spill_visible_text(redacted);
    spill_buffer_append(to, visible, strlen(visible));
    bson_free(visible);
    bson_free(redacted);
    bson_free(wrapped);
    bson_free(text);
}

/*
 * Fold messages on a terminal. A progress line, which begins with a carriage return, fits it.
 * Returns 0 or the error number.
 */
static int put_messages(const spill_buffer_t *visible)
{
    spill_buffer_t folded = SPILL_BUFFER_INIT;
    const spill_buffer_t *written = visible;
    if (visible->size > 0 && visible->data[0] != '\r' && isatty(STDERR_FILENO)) {
        spill_cli_fold_text((const char *)visible->data, visible->size,
                            (size_t)spill_cli_terminal_columns(), &folded);
        written = &folded;
    }
    int problem = spill_write_all(STDERR_FILENO, written->data, written->size);
    spill_buffer_release(&folded);
    return problem;
}

/* A progress line begins with a carriage return; only one at the start of a write passes. */
static ssize_t write_message(void *cookie, const char *data, size_t size)
{
    (void)cookie;
    spill_buffer_t visible = SPILL_BUFFER_INIT;
    const char *end = data + size, *at = data;
    if (at < end && *at == '\r')
        spill_buffer_append_byte(&visible, (uint8_t)*at++);
    while (at < end) {
        const char *stop = at;
        while (stop < end && *stop != '\n' && *stop != '\t')
            stop++;
        put_visible(&visible, at, (size_t)(stop - at));
        if (stop < end)
            spill_buffer_append_byte(&visible, (uint8_t)*stop++);
        at = stop;
    }
    int problem = put_messages(&visible);
    spill_buffer_release(&visible);
    errno = problem;
    return problem == 0 ? (ssize_t)size : 0;
}

void spill_cli_filter_messages(void)
{
    static char buffer[STDERR_BUFFER_BYTES];
    cookie_io_functions_t functions = {.write = write_message};
    FILE *filtered = fopencookie(NULL, "w", functions);
    if (!filtered)
        abort();
    setvbuf(filtered, buffer, _IOLBF, sizeof buffer);
    stderr = filtered; /* glibc permits that; argp and perror print there too */
}

/* ---- messages -------------------------------------------------------------------------------- */

static void print_message(const char *before, const char *format, va_list arguments,
                          const char *after) __attribute__((format(printf, 2, 0)));

/* A line end inside the message comes from an argument or from data: write it out too. */
static void print_message(const char *before, const char *format, va_list arguments,
                          const char *after)
{
    char *text = bson_strdupv_printf(format, arguments);
    char *redacted = spill_redact(text);
    char *visible = spill_visible_text(redacted);
    fflush(stdout);
    spill_cli_progress_erase();
    fprintf(stderr, "%s%s%s", before, visible, after);
    bson_free(visible);
    bson_free(redacted);
    bson_free(text);
}

void spill_cli_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message("spillway: ", format, arguments, "\n");
    va_end(arguments);
}

spill_exit_t spill_cli_exit_code(spill_code_t code)
{
    static const spill_exit_t EXITS[] = {
        [SPILL_OK] = SPILL_EXIT_DONE,          [SPILL_NOT_FOUND] = SPILL_EXIT_FAILED,
        [SPILL_INVALID] = SPILL_EXIT_USAGE,    [SPILL_PARSE] = SPILL_EXIT_FAILED,
        [SPILL_TOO_BIG] = SPILL_EXIT_REFUSED,  [SPILL_CONFLICT] = SPILL_EXIT_REFUSED,
        [SPILL_REFUSED] = SPILL_EXIT_REFUSED,  [SPILL_UNKNOWN] = SPILL_EXIT_FAILED,
        [SPILL_CORRUPT] = SPILL_EXIT_FAILED,   [SPILL_BUSY] = SPILL_EXIT_FAILED,
        [SPILL_READ_ONLY] = SPILL_EXIT_FAILED, [SPILL_DENIED] = SPILL_EXIT_FAILED,
        [SPILL_NO_SPACE] = SPILL_EXIT_FAILED,  [SPILL_IO] = SPILL_EXIT_FAILED,
        [SPILL_FORMAT] = SPILL_EXIT_FAILED,    [SPILL_CANCELLED] = SPILL_EXIT_FAILED,
        [SPILL_NO_MEMORY] = SPILL_EXIT_FAILED, [SPILL_TIMED_OUT] = SPILL_EXIT_FAILED,
    };
#define COUNT_CODE(name, text) +1
    _Static_assert(sizeof EXITS / sizeof EXITS[0] == 0 SPILL_CODES(COUNT_CODE),
                   "every code needs an exit code");
#undef COUNT_CODE
    return EXITS[code];
}

spill_exit_t spill_cli_fail(const spill_error_t *error)
{
    spill_cli_say("%s", error->message);
    if (error->code == SPILL_CANCELLED && spill_cli_interrupted())
        return SPILL_EXIT_INTERRUPTED;
    /* A service that starts again with a wrong password could lock the user out. */
    if (error->code == SPILL_DENIED && error->native == SPILL_SERVER_AUTHENTICATION_FAILED)
        return SPILL_EXIT_REFUSED;
    return spill_cli_exit_code(error->code);
}

spill_exit_t spill_cli_usage(const spill_invocation_t *invocation, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "spillway %s: ", invocation->command->name);
    va_start(arguments, format);
    print_message("", format, arguments, "\n");
    fprintf(stderr, "Try 'spillway %s --help'.\n", invocation->command->name);
    va_end(arguments);
    return SPILL_EXIT_USAGE;
}

spill_exit_t spill_cli_confirm(const spill_invocation_t *invocation, const char *format, ...)
{
    char answer[16] = "";
    bool terminal = isatty(STDIN_FILENO);
    va_list arguments;
    va_start(arguments, format);
    print_message("", format, arguments, terminal ? " Type yes: " : "\n");
    va_end(arguments);
    if (!terminal)
        return spill_cli_usage(invocation, "no terminal to ask on: give --yes");
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) && strcmp(answer, "yes\n") == 0)
        return SPILL_EXIT_DONE;
    fputs("spillway: nothing was changed: the answer was not yes (--yes acts without a question)\n",
          stderr);
    return SPILL_EXIT_REFUSED;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* The state of this process's output. */
static int64_t left_out; /* values that JSON cannot express */
static bool broken;      /* a failed write was reported */

char *spill_cli_json(const spill_value_t *value, bool canonical)
{
    char *json = spill_value_to_json(value, canonical);
    if (!json || spill_text_is_visible(json))
        return json;
    char *visible = spill_visible_text(json);
    bson_free(json);
    return visible;
}

void spill_cli_print_value(const spill_value_t *value, bool canonical)
{
    spill_cli_progress_erase();
    char *json = spill_cli_json(value, canonical);
    fputs(json ? json : "null", stdout);
    left_out += json == NULL;
    bson_free(json);
}

char *spill_cli_plain_json(const bson_t *document)
{
    bson_iter_t iter;
    bson_string_t *text = bson_string_new("{ ");
    bool first = true, good = true;
    for (good = bson_iter_init(&iter, document); good && bson_iter_next(&iter); first = false) {
        spill_value_t value = spill_value_from_iter(&iter);
        bool is_double = BSON_ITER_HOLDS_DOUBLE(&iter) && isfinite(bson_iter_double(&iter));
        char *json = is_double ? bson_strdup_printf("%.15g", bson_iter_double(&iter))
                               : spill_value_to_json(&value, false);
        good = json != NULL;
        if (good)
            bson_string_append_printf(text, "%s\"%s\" : ", first ? "" : ", ", bson_iter_key(&iter));
        if (good)
            bson_string_append(text, json);
        bson_free(json);
    }
    bson_string_append(text, first ? "}" : " }");
    return bson_string_free(text, !good);
}

void spill_cli_print_document(const bson_t *document, bool canonical)
{
    spill_value_t value = spill_value_from_document(document);
    spill_cli_print_value(&value, canonical);
    putchar('\n');
}

void spill_cli_print_name(const char *name)
{
    spill_cli_progress_erase();
    char *visible = spill_visible_text(name);
    fputs(visible, stdout);
    bson_free(visible);
}

void spill_cli_print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = bson_strdupv_printf(format, arguments);
    va_end(arguments);
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        spill_cli_print_name(line);
        if (end)
            putchar('\n');
        line = end ? end + 1 : NULL;
    }
    bson_free(text);
}

const char *spill_cli_plural(int64_t count, const char *one, const char *many)
{
    return spill_plural(count, one, many);
}

void spill_cli_leave_out(const spill_value_t *owner, int64_t seq)
{
    char *json = spill_value_to_json(owner, false);
    spill_cli_say("owner %s, element %" PRId64
                  " is left out: a string in it is not UTF-8, so JSON cannot express it",
                  json ? json : "(not UTF-8 either)", seq);
    left_out++;
    bson_free(json);
}

void spill_cli_leave_out_document(const char *collection, const bson_t *document)
{
    bson_iter_t iter;
    char *json = NULL;
    const char *field = "";
    if (bson_iter_init(&iter, document) && bson_iter_next(&iter)) {
        spill_value_t value = spill_value_from_iter(&iter);
        json = spill_value_to_json(&value, false);
        field = bson_iter_key(&iter);
    }
    spill_cli_say("a document of %s, with %s %s, is left out: a string in it is not UTF-8, so JSON "
                  "cannot express it",
                  collection, field, json ? json : "(not UTF-8 either)");
    left_out++;
    bson_free(json);
}

void spill_cli_print_record(const spill_record_t *type, const void *record)
{
    spill_cli_progress_erase();
    left_out += spill_record_print(type, record, false, stdout);
    putchar('\n');
}

void spill_cli_print_canonical(const spill_record_t *type, const void *record)
{
    spill_cli_progress_erase();
    left_out += spill_record_print(type, record, true, stdout);
    putchar('\n');
}

spill_code_t spill_cli_flush(spill_error_t *error)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        broken = true;
        return spill_fail_errno(error, errno ? errno : EIO, "cannot write the output");
    }
    if (left_out > 0)
        return spill_fail(
            error, SPILL_PARSE,
            "the output is incomplete: %" PRId64
            " values in it have strings that are not UTF-8, which JSON cannot express",
            left_out);
    return SPILL_OK;
}

void spill_cli_check_output(void)
{
    bool failed = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout) != 0) /* some file systems report a failed write only now */
        failed = true;
    if (failed && !broken) {
        errno = errno ? errno : EIO;
        perror("spillway: cannot write the output");
        _exit(SPILL_EXIT_FAILED);
    }
}

/* ---- findings -------------------------------------------------------------------------------- */

typedef struct finding_line {
    const char *definition;
    const spill_value_t *owner;
    int64_t page;
    int64_t invariant;
    const char *text;
} finding_line_t;

static const spill_field_t finding_fields[] = {
    SPILL_FIELD(TEXT, finding_line_t, definition, "definition"),
    SPILL_FIELD(POINTER, finding_line_t, owner, "owner"),
    SPILL_FIELD(INT64, finding_line_t, page, "page"),
    SPILL_FIELD(INT64, finding_line_t, invariant, "invariant"),
    SPILL_FIELD(TEXT, finding_line_t, text, "text")};
static const spill_record_t finding_record =
    SPILL_RECORD("finding", finding_line_t, finding_fields);

void spill_cli_print_store_finding(const spill_invocation_t *invocation, const char *text)
{
    const finding_line_t line = {.page = -1, .text = text};
    if (invocation->json)
        spill_cli_print_record(&finding_record, &line);
    else
        printf("store: %s\n", text);
}

void spill_cli_print_finding(void *context, const spill_finding_t *finding)
{
    const spill_invocation_t *invocation = context;
    if (invocation->json) {
        const finding_line_t line = {finding->definition, finding->owner, finding->page,
                                     finding->invariant, finding->text};
        spill_cli_print_record(&finding_record, &line);
        return;
    }
    spill_cli_print("%s: owner ", finding->definition);
    if (finding->owner)
        spill_cli_print_value(finding->owner, false);
    else
        putchar('-');
    if (finding->page < 0)
        fputs(", head", stdout);
    else
        printf(", page %" PRId64, finding->page);
    spill_cli_print(", I%d: %s\n", finding->invariant, finding->text);
}
