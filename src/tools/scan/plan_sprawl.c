/* Collections that differ only by their names: how to merge them into one. */
#include "tools/scan/plan.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

const char *spill_plan_group_member(const spill_plan_group_t *group, size_t member)
{
    return group->result->collections[group->sprawl->members[member]].name + group->database;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* If all members' names begin with the same database, leave that out. Else false. */
static bool find_database(spill_plan_group_t *group)
{
    const char *first = spill_plan_group_member(group, 0);
    const char *dot = group->result->qualified ? strchr(first, '.') : NULL;
    size_t length = dot ? (size_t)(dot - first) + 1 : 0;
    for (size_t i = 1; i < group->sprawl->count; i++)
        if (strncmp(spill_plan_group_member(group, i), first, length) != 0)
            return false;
    group->database = length;
    return true;
}

/* Find the identifier's place in the names, by the pattern. */
static bool find_identifier(spill_plan_group_t *group)
{
    const char *pattern = group->sprawl->pattern;
    const char *star = strchr(pattern, '*');
    if (!star || (size_t)(star - pattern) < group->database)
        return false;
    group->head = (size_t)(star - pattern) - group->database;
    group->tail = strlen(star + 1);
    for (size_t i = 0; i < group->sprawl->count; i++) {
        const char *name = spill_plan_group_member(group, i);
        size_t length = strlen(name);
        if (length <= group->head + group->tail ||
            strncmp(name, pattern + group->database, group->head) != 0 ||
            strcmp(name + length - group->tail, star + 1) != 0)
            return false;
    }
    return true;
}

static bool is_mark(char character)
{
    return !isalnum((unsigned char)character) && (unsigned char)character < 0x80;
}

/* A copy without punctuation at its ends ("_orders" -> "orders"). */
static char *trimmed(const char *text, size_t length)
{
    for (; length > 0 && is_mark(text[length - 1]); length--)
        ;
    for (; length > 0 && is_mark(text[0]); length--)
        text++;
    return bson_strndup(text, length);
}

/* The last word of the text: "customer" in "eu_customer". */
static const char *last_word(const char *text)
{
    const char *word = text + strlen(text);
    while (word > text && !is_mark(word[-1]))
        word--;
    return word;
}

static bool is_taken(const spill_scan_result_t *result, size_t database, const char *name)
{
    for (size_t i = 0; i < result->collection_count; i++)
        if (strlen(result->collections[i].name) > database &&
            strcmp(result->collections[i].name + database, name) == 0)
            return true;
    return false;
}

/* "customer_*_orders" gives orders with customerId; "messages_*" gives messages with tenantId. */
static void choose_names(spill_plan_group_t *group)
{
    const char *pattern = group->sprawl->pattern + group->database;
    char *head = trimmed(pattern, group->head);
    char *tail = trimmed(pattern + group->head + 1, group->tail);
    bool dates = group->sprawl->kind == SPILL_SPRAWL_DATES;
    if (tail[0] != '\0') {
        group->into = bson_strdup(tail);
        group->field = dates || head[0] == '\0' ? bson_strdup(dates ? "period" : "tenantId")
                                                : bson_strdup_printf("%sId", last_word(head));
    } else {
        group->into = bson_strdup(head[0] != '\0' ? head : "consolidated");
        group->field = bson_strdup(dates ? "period" : "tenantId");
    }
    while (is_taken(group->result, group->database, group->into)) {
        char *longer = bson_strdup_printf("%s_all", group->into);
        bson_free(group->into);
        group->into = longer;
    }
    bson_free(head);
    bson_free(tail);
}

/* ---- a group --------------------------------------------------------------------------------- */

spill_plan_group_t spill_plan_make_group(const spill_scan_result_t *result,
                                         const spill_sprawl_group_t *sprawl)
{
    spill_plan_group_t group = {.result = result, .sprawl = sprawl};
    if (!find_database(&group) || !find_identifier(&group)) {
        spill_plan_say(&group.why, "They are in several databases, or their names have no clear "
                                   "identifier: give their names, and a value for each, yourself.");
        return group;
    }
    choose_names(&group);
    group.possible = true;
    spill_plan_say(&group.why,
                   "%zu collections of the same fields (%" PRId64 " documents) differ by an "
                   "identifier in their names. One collection with the identifier in a field, and "
                   "an index on it, can be queried as a whole, and has one set of indexes.",
                   sprawl->count, sprawl->documents);
    spill_plan_say(&group.why,
                   "_id becomes {%s, id}, which is unique for any old _ids. If no two collections "
                   "have the same _id, \"ids\": \"keep\" keeps the old ones.",
                   group.field);
    return group;
}

void spill_plan_release_group(spill_plan_group_t *group)
{
    spill_plan_release_texts(&group->why);
    bson_free(group->into);
    bson_free(group->field);
}
