/* What is looked for before anything is changed, beside names and indexes. */
#include "tools/consolidate/run.h"

#include "util/error.h"

#include <inttypes.h>
#include <string.h>

spill_code_t spill_consolidate_refuse_first(const bson_t *texts, const char *before,
                                            spill_error_t *error)
{
    bson_iter_t iter;
    int64_t more = (int64_t)bson_count_keys(texts) - 1;
    char others[48] = "";
    if (!bson_iter_init(&iter, texts) || !bson_iter_next(&iter))
        return SPILL_OK;
    if (more > 0)
        snprintf(others, sizeof others, " (and %" PRId64 " more)", more);
    return spill_fail(error, SPILL_REFUSED, "%s%s%s", before, bson_iter_utf8(&iter, NULL), others);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static const char *text_in(const bson_t *document, const char *field)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, field) && BSON_ITER_HOLDS_UTF8(&iter)
               ? bson_iter_utf8(&iter, NULL)
               : "";
}

static void say_if_named(bson_t *refused, const char *name, const bson_t *definition,
                         const char *collection)
{
    bool heads = strcmp(text_in(definition, "collection"), collection) == 0;
    if (heads || strcmp(text_in(definition, "pageCollection"), collection) == 0)
        spill_consolidate_say(refused,
                              "'%s' has %s of the definition '%s', which would not find them any "
                              "more: consolidating comes before a definition; leave it out of the "
                              "plan",
                              collection, heads ? "the documents" : "the pages", name);
}

static void check_definition(const spill_consolidation_t *group, const char *name,
                             const bson_t *definition, bson_t *refused)
{
    say_if_named(refused, name, definition, group->into);
    for (size_t i = 0; i < group->count; i++)
        say_if_named(refused, name, definition, group->members[i].collection);
}

spill_code_t spill_consolidate_check_definitions(spill_consolidate_run_t *run, bson_t *refused,
                                                 spill_error_t *error)
{
    bson_t definitions, stored, definition;
    bson_iter_t iter, entry;
    spill_code_t code = run->foreign->ops->definitions(run->foreign, &definitions, error);
    bson_iter_init(&iter, &definitions);
    while (code == SPILL_OK && bson_iter_next(&iter)) {
        const uint8_t *data;
        uint32_t size;
        bson_iter_document(&iter, &size, &data);
        if (!bson_init_static(&stored, data, size) ||
            !bson_iter_init_find(&entry, &stored, "entry") || !BSON_ITER_HOLDS_DOCUMENT(&entry))
            continue;
        bson_iter_document(&entry, &size, &data);
        if (bson_init_static(&definition, data, size))
            check_definition(run->group, text_in(&stored, "_id"), &definition, refused);
    }
    bson_destroy(&definitions);
    return code;
}
