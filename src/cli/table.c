/* Results for people: the fields of a record as a table, where scripts get JSON. */
#include "cli/cli.h"

#include "bson/value.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Words for fields that have shorter names in JSON; docs/reference/terminal.md has them. */
static const char *word_for_people(const char *name)
{
    static const struct {
        const char *name, *word;
    } words[] = {{"before", "done before"},
                 {"full", "full documents"},
                 {"head", "in the head"},
                 {"verified", "compared"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].name, name) == 0)
            return words[i].word;
    return NULL;
}

/* "pauseSeconds" is "pause seconds". */
static void label_of(const char *name, char *label, size_t size)
{
    const char *word = word_for_people(name);
    size_t used = 0;
    for (const char *at = word ? word : name; *at != '\0' && used + 3 < size; at++) {
        if (isupper((unsigned char)*at))
            label[used++] = ' ';
        label[used++] = (char)tolower((unsigned char)*at);
    }
    label[used] = '\0';
}

/* Is a number above 0 in this field a reason to look? */
static bool is_alarming(const char *name)
{
    static const char *const names[] = {"findings", "differences", "failed", "left", "changing"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* The field stands in the heading: "events: reshaped". */
static bool is_heading(const char *name)
{
    return strcmp(name, "name") == 0 || strcmp(name, "step") == 0 || strcmp(name, "into") == 0 ||
           strcmp(name, "interrupted") == 0;
}

/* What a field adds to the heading: its text or, if it is a true flag, its name; else NULL. */
static const char *heading_of(const bson_iter_t *iter)
{
    if (!is_heading(bson_iter_key(iter)))
        return NULL;
    if (BSON_ITER_HOLDS_BOOL(iter))
        return bson_iter_bool(iter) ? bson_iter_key(iter) : NULL;
    return BSON_ITER_HOLDS_UTF8(iter) ? bson_iter_utf8(iter, NULL) : NULL;
}

static void print_heading(const bson_t *document)
{
    bson_iter_t iter;
    bool any = false;
    for (bson_iter_init(&iter, document); bson_iter_next(&iter);) {
        const char *text = heading_of(&iter), *word = text ? word_for_people(text) : NULL;
        if (!text)
            continue;
        fputs(any ? ": " : spill_cli_color(SPILL_CLI_BOLD), stdout);
        spill_cli_print_name(word ? word : text);
        any = true;
    }
    if (any)
        printf("%s\n", spill_cli_color(SPILL_CLI_PLAIN));
}

static size_t label_width(const bson_t *document)
{
    bson_iter_t iter;
    char label[64];
    size_t width = 0;
    for (bson_iter_init(&iter, document); bson_iter_next(&iter);) {
        label_of(bson_iter_key(&iter), label, sizeof label);
        if (!is_heading(bson_iter_key(&iter)) && strlen(label) > width)
            width = strlen(label);
    }
    return width;
}

static void print_field(const bson_iter_t *iter, size_t width)
{
    const char *name = bson_iter_key(iter);
    char label[64];
    label_of(name, label, sizeof label);
    printf("%-*s  ", (int)width, label);
    if (is_alarming(name))
        fputs(spill_cli_color(bson_iter_as_int64(iter) > 0 ? SPILL_CLI_RED : SPILL_CLI_GREEN),
              stdout);
    if (BSON_ITER_HOLDS_BOOL(iter)) {
        fputs(bson_iter_bool(iter) ? "yes" : "no", stdout);
    } else if (BSON_ITER_HOLDS_NULL(iter)) {
        fputs("none", stdout);
    } else if (BSON_ITER_HOLDS_DOUBLE(iter)) {
        printf("%.15g", bson_iter_double(iter));
    } else {
        spill_value_t value = spill_value_from_iter(iter);
        spill_cli_print_value(&value, false);
    }
    printf("%s\n", is_alarming(name) ? spill_cli_color(SPILL_CLI_PLAIN) : "");
}

static void print_table(const bson_t *document)
{
    size_t width = label_width(document);
    bson_iter_t iter;
    spill_cli_progress_erase();
    print_heading(document);
    for (bson_iter_init(&iter, document); bson_iter_next(&iter);)
        if (!is_heading(bson_iter_key(&iter)))
            print_field(&iter, width);
}

bool spill_cli_prints_tables(const spill_invocation_t *invocation)
{
    return !invocation->json && spill_cli_on_terminal();
}

void spill_cli_print_result(const spill_invocation_t *invocation, const spill_record_t *type,
                            const void *record)
{
    char *json = NULL;
    size_t size = 0;
    FILE *memory = spill_cli_prints_tables(invocation) ? open_memstream(&json, &size) : NULL;
    bson_t *document = NULL;
    if (memory) {
        int64_t left_out = spill_record_print(type, record, false, memory);
        bool written = fclose(memory) == 0 && left_out == 0;
        document = written ? bson_new_from_json((const uint8_t *)json, (ssize_t)size, NULL) : NULL;
    }
    free(json);
    if (document)
        print_table(document);
    else
        spill_cli_print_record(type, record);
    bson_destroy(document);
}

void spill_cli_print_result_document(const spill_invocation_t *invocation, const bson_t *document)
{
    char *json = spill_cli_prints_tables(invocation) ? NULL : spill_cli_plain_json(document);
    if (spill_cli_prints_tables(invocation))
        print_table(document);
    else if (json)
        spill_cli_print("%s\n", json);
    else
        spill_cli_print_document(document, false);
    bson_free(json);
}

void spill_cli_print_done(const spill_cli_session_t *session, const char *window, const char *name,
                          int64_t number)
{
    bson_t line = BSON_INITIALIZER;
    if (session->owner)
        spill_value_append(session->owner, &line, "owner");
    if (window && window[0] != '\0')
        BSON_APPEND_UTF8(&line, "window", window);
    if (number < 0)
        BSON_APPEND_NULL(&line, name);
    else
        BSON_APPEND_INT64(&line, name, number);
    if (session->invocation->json)
        spill_cli_print_document(&line, false);
    bson_destroy(&line);
}
