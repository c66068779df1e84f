#include "tools/import/import_given.h"

#include "util/text.h"

#include <stddef.h>
#include <string.h>

/* In the order in which a command has them. */
static const struct {
    const char *option;
    size_t offset;
    bool is_flag;
} options[] = {
    {"--elements", offsetof(spill_import_given_t, elements), false},
    {"--collection", offsetof(spill_import_given_t, collection), false},
    {"--entries-as", offsetof(spill_import_given_t, entries_as), false},
    {"--owner-inner", offsetof(spill_import_given_t, inner), false},
    {"--owner", offsetof(spill_import_given_t, owner), false},
    {"--new-numbers", offsetof(spill_import_given_t, new_numbers), true},
    {"--id", offsetof(spill_import_given_t, id), false},
    {"--fields", offsetof(spill_import_given_t, fields), true},
    {"--strings", offsetof(spill_import_given_t, strings), true},
};
enum { OPTIONS = sizeof options / sizeof *options };

spill_import_given_t spill_import_given_none(void)
{
    return (spill_import_given_t){
        .owner = "", .id = "", .elements = "", .entries_as = "", .inner = "", .collection = ""};
}

static const void *member(const spill_import_given_t *given, size_t index)
{
    return (const char *)given + options[index].offset;
}

static bool flag_of(const spill_import_given_t *given, size_t index)
{
    return options[index].is_flag && *(const bool *)member(given, index);
}

static const char *text_of(const spill_import_given_t *given, size_t index)
{
    const char *text = "";
    if (!options[index].is_flag)
        text = *(const char *const *)member(given, index);
    return text ? text : "";
}

void spill_import_given_append(const spill_import_given_t *given, bool quotes,
                               bson_string_t *command)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        const char *text = text_of(given, i);
        if (flag_of(given, i))
            bson_string_append_printf(command, " %s", options[i].option);
        if (text[0] == '\0')
            continue;
        char *word = quotes ? spill_shell_quoted(text) : spill_shell_word(text);
        bson_string_append_printf(command, " %s %s", options[i].option, word);
        bson_free(word);
    }
}

bool spill_import_given_equal(const spill_import_given_t *left, const spill_import_given_t *right)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (flag_of(left, i) != flag_of(right, i) ||
            strcmp(text_of(left, i), text_of(right, i)) != 0)
            return false;
    return true;
}
