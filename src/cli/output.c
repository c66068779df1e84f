/* Output on stdout. */
#include "cli/cli.h"

#include "util/error.h"
#include "util/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* The state of this process's output. */
static int64_t left_out; /* values that JSON cannot express */
static bool broken;      /* a failed write was reported */

char *spill_cli_json(const spill_value_t *value, bool canonical)
{
    char *json = spill_value_to_json(value, canonical);
    char *visible = json ? spill_visible_text(json) : NULL;
    bson_free(json);
    return visible;
}

void spill_cli_print_value(const spill_value_t *value, bool canonical)
{
    char *json = spill_cli_json(value, canonical);
    fputs(json ? json : "null", stdout);
    left_out += json == NULL;
    bson_free(json);
}

void spill_cli_print_document(const bson_t *document, bool canonical)
{
    spill_value_t value = spill_value_from_document(document);
    spill_cli_print_value(&value, canonical);
    putchar('\n');
}

void spill_cli_print_name(const char *name)
{
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
    return count == 1 ? one : many;
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
    left_out += spill_record_print(type, record, false, stdout);
    putchar('\n');
}

void spill_cli_print_canonical(const spill_record_t *type, const void *record)
{
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
