/* Write a plan as a JSON document for an editor (docs/reference/plan-file.md has the schema). */
#include "tools/scan/json_put.h"
#include "tools/scan/plan.h"

#include <inttypes.h>
#include <string.h>

#define SCHEMA_VERSION 1

void spill_plan_write_texts(FILE *to, const char *field, const spill_plan_texts_t *texts)
{
    fprintf(to, ",\n     \"%s\": [", field);
    for (size_t i = 0; i < texts->count; i++) {
        fputs(i ? ",\n       " : "\n       ", to);
        spill_json_put_text(to, texts->at[i]);
    }
    fputs("]", to);
}

/* One field per line. */
static void put_definition(FILE *to, const char *name, const spill_definition_t *definition)
{
    bson_t document;
    bson_iter_t iter;
    const char *before = "\n       ";
    spill_definition_to_bson(definition, &document);
    fprintf(to, ",\n     \"%s\": {", name);
    bson_iter_init(&iter, &document);
    while (bson_iter_next(&iter)) {
        spill_value_t value = spill_value_from_iter(&iter);
        fputs(before, to);
        spill_json_put_text(to, bson_iter_key(&iter));
        fputs(": ", to);
        spill_json_put_value(to, &value);
        before = ",\n       ";
    }
    fputs("}", to);
    bson_destroy(&document);
}

/* In a qualified name, the database's name is in front of the first dot. */
static void put_database(FILE *to, const char *qualified_name)
{
    char *database = bson_strndup(qualified_name, strcspn(qualified_name, "."));
    fputs(", \"database\": ", to);
    spill_json_put_text(to, database);
    bson_free(database);
}

static void put_item(FILE *to, const spill_plan_item_t *item)
{
    static const char *const ends[] = {[SPILL_PLAN_END_UNKNOWN] = "unknown",
                                       [SPILL_PLAN_END_BACK] = "end",
                                       [SPILL_PLAN_END_FRONT] = "front"};
    const spill_owner_t *largest = &item->path->owners.items[0];
    fputs("\n    {\"collection\": ", to);
    spill_json_put_text(to, item->collection->name);
    fputs(", \"path\": ", to);
    spill_json_put_text(to, item->path->path);
    if (item->qualified)
        put_database(to, item->collection->name);
    fprintf(to, ",\n     \"migrate\": %s", item->migrate ? "true" : "false");
    spill_plan_write_texts(to, "why", &item->why);
    if (item->possible) {
        fprintf(to, ",\n     \"growsAt\": \"%s\"", ends[item->grows_at]);
        put_definition(to, "definition", &item->definition);
    }
    if (item->migrate && item->planned.staged)
        put_definition(to, "original", &item->planned.original);
    if (item->alternatives.count > 0)
        spill_plan_write_texts(to, "alternatives", &item->alternatives);
    fputs(",\n     \"largest\": {\"owner\": ", to);
    spill_json_put_value(to, &largest->value);
    fprintf(to, ", \"length\": %" PRId64 "}", largest->length);
    if (item->possible)
        fprintf(to,
                ",\n     \"saves\": {\"appendRewrites\": {\"now\": %" PRId64 ", \"then\": %" PRId64
                "}, \"otherFieldsRead\": {\"now\": %" PRId64 ", \"then\": %" PRId64 "}}",
                item->bytes_now, item->bytes_then + item->element_then, item->bytes_now,
                item->bytes_then);
    if (item->others) {
        fputs(",\n     \"otherWriters\": ", to);
        spill_json_put_text(to, item->others);
    }
    if (item->detection) {
        fputs(",\n     \"detect\": ", to);
        spill_json_put_text(to, item->detection);
    }
    fputs("}", to);
}

void spill_plan_write_json(const spill_plan_t *plan, const char *source, FILE *to)
{
    fprintf(to, "{\"spillwayPlan\": %d,\n \"source\": ", SCHEMA_VERSION);
    spill_json_put_source(to, source);
    fputs(",\n \"arrays\": [", to);
    for (size_t i = 0; i < plan->count; i++) {
        fputs(i ? "," : "", to);
        put_item(to, &plan->items[i]);
    }
    if (plan->group_count > 0)
        fputs("],\n \"sprawl\": [", to);
    for (size_t i = 0; i < plan->group_count; i++) {
        fputs(i ? "," : "", to);
        spill_plan_write_group(&plan->groups[i], to);
    }
    fputs("]}\n", to);
}
