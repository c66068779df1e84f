/* The texts of a plan: its sentences, and the names of its definitions and their fields. */
#include "tools/scan/plan.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

/* ---- sentences ------------------------------------------------------------------------------- */

void spill_plan_say(spill_plan_texts_t *texts, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    texts->at = bson_realloc(texts->at, (texts->count + 1) * sizeof *texts->at);
    texts->at[texts->count++] = bson_strdupv_printf(format, arguments);
    va_end(arguments);
}

void spill_plan_release_texts(spill_plan_texts_t *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        bson_free(texts->at[i]);
    bson_free(texts->at);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Format the name; false if it does not fit. */
static bool format_name(char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool format_name(char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(name, SPILL_NAME_SIZE, format, arguments);
    va_end(arguments);
    return length >= 0 && length < SPILL_NAME_SIZE;
}

static bool is_plain(char character)
{
    return (unsigned char)character < 0x80 && isalnum((unsigned char)character);
}

/* Replace each character that a definition's name cannot have with '-', and drop leading ones. */
static void make_allowed(char *name)
{
    char *to = name;
    for (const char *from = name; *from != '\0'; from++) {
        bool continues = ((unsigned char)*from & 0xc0) == 0x80;
        if (is_plain(*from) || (to > name && strchr("-_.", *from)))
            *to++ = *from;
        else if (to > name && !continues)
            *to++ = '-';
    }
    *to = '\0';
}

static bool is_taken(const spill_plan_t *plan, const char *name)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->items[i].possible && strcmp(plan->items[i].definition.name, name) == 0)
            return true;
    return false;
}

/* "COLLECTION-ARRAY", with a number if that name is in use. */
static bool put_definition_name(const spill_plan_t *plan, char *name, const char *collection,
                                const char *array)
{
    char first[SPILL_NAME_SIZE];
    bool fits = format_name(first, "%s-%s", collection, array);
    make_allowed(first);
    if (first[0] == '\0')
        fits = format_name(first, "array");
    fits = fits && format_name(name, "%s", first);
    for (size_t number = 2; fits && is_taken(plan, name); number++)
        fits = format_name(name, "%s-%zu", first, number);
    return fits;
}

bool spill_plan_put_names(const spill_plan_t *plan, spill_definition_t *definition,
                          const char *collection, const char *path)
{
    bool has_pages = definition->layout == SPILL_LAYOUT_OUTLIER;
    bool fits = put_definition_name(plan, definition->name, collection, path) &&
                format_name(definition->collection, "%s", collection) &&
                format_name(definition->array, "%s%s", path, has_pages ? "" : "Summary") &&
                format_name(definition->page_collection, "%s_%s", collection, path) &&
                format_name(definition->page_owner, "owner");
    if (has_pages)
        fits = fits && format_name(definition->page_array, "%s", path) &&
               format_name(definition->count_field, "%sCount", path) &&
               format_name(definition->overflow_field, "%sHasPages", path) &&
               format_name(definition->pages_field, "%sPages", path);
    return fits;
}
