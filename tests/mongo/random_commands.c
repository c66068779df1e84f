#include "mongo/random_commands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 5, TEXT_SIZE = RANDOM_COMMAND_SIZE };

uint32_t random_roll(random_program_t *program, uint32_t sides)
{
    program->state = program->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(program->state >> 33) % sides;
}

#define PICK(program, texts)                                                                       \
    ((texts)[random_roll(program, (uint32_t)(sizeof(texts) / sizeof *(texts)))])

/* Print to the end of a text of TEXT_SIZE bytes. */
static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *format, ...)
{
    size_t at = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text + at, TEXT_SIZE - at, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && (size_t)length < TEXT_SIZE - at);
}

/* Begin another text. */
#define print(text, ...) ((text)[0] = '\0', add(text, __VA_ARGS__))

/* ---- texts ----------------------------------------------------------------------------------- */

/* An array of 1 to `most` new elements. (An engine counts a push of none as a change.) */
static void make_elements(random_program_t *program, uint32_t most, char *text)
{
    uint32_t count = 1 + random_roll(program, most);
    print(text, "[");
    for (uint32_t i = 0; i < count; i++) {
        int element = (int)program->next_element++;
        add(text, element % 3 == 0 ? "%s{\"v\":%d}" : "%s%d", i > 0 ? "," : "", element);
    }
    add(text, "]");
}

/* A filter that finds at most one document. */
static void make_filter(random_program_t *program, char *text)
{
    int owner = (int)random_roll(program, OWNERS), a = (int)random_roll(program, 3);
    switch (random_roll(program, 8)) {
    case 0:
        print(text, "{\"_id\":%d,\"a\":%d}", owner, a);
        break;
    case 1:
        print(text, "{\"k\":%d}", owner);
        break;
    case 2:
        print(text, "{\"_id\":%d,\"f\":%d}", owner, (int)random_roll(program, 40));
        break;
    case 3:
        print(text, "{\"_id\":%d,\"f\":{\"$ne\":%d}}", owner, (int)random_roll(program, 40));
        break;
    case 4:
        print(text, "{\"_id\":{\"$eq\":%d}}", owner);
        break;
    default:
        print(text, "{\"_id\":%d}", owner);
        break;
    }
}

/* Operators on other fields, perhaps none; each begins with a comma. */
static const char *make_others(random_program_t *program)
{
    static const char *const texts[] = {"",
                                        "",
                                        ",\"$set\":{\"a\":1}",
                                        ",\"$inc\":{\"a\":1}",
                                        ",\"$set\":{\"b\":{\"c\":2}},\"$inc\":{\"n\":3}",
                                        ",\"$unset\":{\"b\":1},\"$max\":{\"m\":7}",
                                        ",\"$setOnInsert\":{\"s\":1}",
                                        ",\"$min\":{\"m\":2},\"$set\":{\"d.e\":5}"};
    return PICK(program, texts);
}

/* Updates of the document around F, and of a field beside it. */
static void make_around(random_program_t *program, char *text)
{
    static const char *const updates[] = {"{\"$set\":{\"h\":{\"f\":[1,2],\"z\":1}}}",
                                          "{\"$set\":{\"h\":{\"z\":2}},\"$inc\":{\"n\":1}}",
                                          "{\"$set\":{\"h\":5}}",
                                          "{\"$unset\":{\"h\":1}}",
                                          "{\"$rename\":{\"h\":\"g\"}}",
                                          "{\"$rename\":{\"g\":\"h\"}}",
                                          "{\"$set\":{\"h.z\":3}}",
                                          "{\"$inc\":{\"h.z\":1,\"a\":1}}",
                                          "[{\"$set\":{\"h\":{\"f\":[4]}}}]",
                                          "[{\"$set\":{\"h.z\":{\"$literal\":7}}}]",
                                          "[{\"$unset\":\"h\"}]",
                                          "[{\"$set\":{\"h\":[{\"f\":[1]}]}}]"};
    print(text, "%s", PICK(program, updates));
}

/* Updates of F that a server makes on its own, and that no array with pages accepts. */
static void make_rewrite(random_program_t *program, char *text)
{
    static const char *const updates[] = {
        "{\"$set\":{\"f.1\":\"y\",\"b\":2}}",
        "{\"$set\":{\"f.1.v\":1}}",
        "{\"$set\":{\"f.$[]\":0}}",
        "{\"$unset\":{\"f.0\":1}}",
        "{\"$unset\":{\"f\":1}}",
        "{\"$rename\":{\"f\":\"g\"}}",
        "{\"$rename\":{\"g\":\"f\"}}",
        "{\"$set\":{\"f\":5}}",
        "{\"$max\":{\"f\":5},\"$inc\":{\"n\":1}}",
        "{\"$currentDate\":{\"f.0\":{\"$type\":\"none\"}}}",
        "{\"$inc\":{\"f.0\":1}}",
        "{\"$push\":{\"f\":{\"$each\":[3,1],\"$sort\":-1,\"$slice\":4}},\"$set\":{\"a\":2}}",
        "{\"$push\":{\"f\":{\"$each\":[8],\"$position\":1}}}",
        "{\"$push\":{\"f\":{\"$each\":[9],\"$slice\":3}}}",
        "{\"$pullAll\":{\"f\":[1,2,3,4]}}",
        "{\"$pull\":{\"f\":{\"$gt\":9}}}",
        "{\"$pop\":{\"f\":1},\"$unset\":{\"b\":1}}",
        "{\"$addToSet\":{\"f\":4},\"$set\":{\"a\":0}}",
        "{\"k\":9,\"a\":1}",
        "{\"f\":[],\"a\":2}",
        "{\"f\":\"text\"}",
        "[{\"$set\":{\"f\":{\"$slice\":[{\"$ifNull\":[\"$f\",[]]},2]}}}]",
        "[{\"$set\":{\"f\":{\"$concatArrays\":[{\"$ifNull\":[\"$f\",[]]},[6]]},\"b\":3}}]",
        "[{\"$unset\":\"f\"}]",
        "[{\"$set\":{\"copy\":\"$$ROOT\"}},{\"$set\":{\"copy.copy\":0}}]",
        "[{\"$replaceWith\":{\"a\":1,\"f\":\"$f\"}}]",
        "[{\"$project\":{\"f\":1,\"k\":1}}]",
        "[{\"$set\":{\"f\":null}}]"};
    print(text, "%s", PICK(program, updates));
}

/* Where a push adds its elements, as a program that shows the newest element first says it. */
static const char *make_position(random_program_t *program)
{
    return program->newest_first && random_roll(program, 6) > 0 ? ",\"$position\":0" : "";
}

/* An update of F or of other fields. */
static void make_update(random_program_t *program, char *text)
{
    char elements[TEXT_SIZE];
    make_elements(program, 4, elements);
    if (program->nested && random_roll(program, 8) == 0) {
        make_around(program, text);
        return;
    }
    if (random_roll(program, 4) == 0) {
        make_rewrite(program, text);
        return;
    }
    switch (random_roll(program, 16)) {
    case 0:
        print(text, "{\"$pull\":{\"f\":%d}%s}", (int)random_roll(program, 40),
              make_others(program));
        break;
    case 1:
        print(text, "{\"$pop\":{\"f\":%d}}", random_roll(program, 2) == 0 ? 1 : -1);
        break;
    case 2:
        print(text, "{\"$addToSet\":{\"f\":{\"$each\":%s}}}", elements);
        break;
    case 3:
        print(text, "{\"$set\":{\"f\":%s,\"b\":1}}", elements);
        break;
    case 4:
        print(text, "{\"$set\":{\"f.0\":\"x\"}}");
        break;
    case 5:
        print(text, "{\"k\":9,\"f\":%s}", elements);
        break;
    case 6:
        print(text, "[{\"$set\":{\"b\":{\"$literal\":4}}}]");
        break;
    case 7:
        print(text, "{\"$push\":{\"f\":{\"$each\":%s,\"$slice\":-2}}}", elements);
        break;
    case 8:
        print(text, "{\"$set\":{\"a\":%d},\"$inc\":{\"n\":1}}", (int)random_roll(program, 3));
        break;
    case 9:
    case 10:
        print(text, "{\"$push\":{\"f\":{\"$each\":%s%s}}%s}", elements, make_position(program),
              make_others(program));
        break;
    default:
        if (program->newest_first)
            print(text, "{\"$push\":{\"f\":{\"$each\":[%d]%s}}%s}", (int)program->next_element++,
                  make_position(program), make_others(program));
        else
            print(text, "{\"$push\":{\"f\":%d}%s}", (int)program->next_element++,
                  make_others(program));
        break;
    }
}

/* The field `name` of a command, or nothing. */
static void add_projection(random_program_t *program, const char *name, char *text)
{
    static const char *const texts[] = {"",
                                        "{\"a\":1}",
                                        "{\"f\":0}",
                                        "{\"f\":1}",
                                        "{\"f\":1,\"_id\":0}",
                                        "{\"a\":0}",
                                        "{\"f\":{\"$slice\":-2}}",
                                        "{\"f\":{\"$slice\":-5}}",
                                        "{\"f\":{\"$slice\":2}}",
                                        "{\"f\":{\"$slice\":[1,3]}}",
                                        "{\"f\":{\"$slice\":[-3,2]},\"a\":1}",
                                        "{\"f\":{\"$elemMatch\":{\"$gt\":3}}}",
                                        "{\"f.v\":1}",
                                        "{\"b\":{\"c\":0}}",
                                        "{\"a\":{\"$numberDecimal\":\"0\"}}",
                                        "{\"a\":0,\"t\":{\"$elemMatch\":{\"$gt\":1}}}",
                                        "{\"_id\":1,\"f\":{\"$slice\":-3}}",
                                        "{\"size\":{\"$size\":{\"$ifNull\":[\"$f\",[]]}}}"};
    static const char *const around[] = {"{\"h\":1}", "{\"h\":0}", "{\"h.z\":1}", "{\"h.z\":0}"};
    const char *projection = program->nested && random_roll(program, 4) == 0 ? PICK(program, around)
                                                                             : PICK(program, texts);
    if (projection[0] != '\0')
        add(text, ",\"%s\":%s", name, projection);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void make_insert(random_program_t *program, char *text)
{
    char elements[TEXT_SIZE];
    int owner = (int)random_roll(program, OWNERS);
    make_elements(program, 7, elements);
    if (random_roll(program, 4) == 0)
        print(text, "{\"insert\":\"c\",\"documents\":[{\"_id\":%d,\"k\":%d,\"a\":1}]}", owner,
              owner);
    else
        print(text, "{\"insert\":\"c\",\"documents\":[{\"_id\":%d,\"k\":%d,\"f\":%s,\"a\":%d}]}",
              owner, owner, elements, (int)random_roll(program, 3));
}

/* An update of the element that the filter finds, or of the elements that arrayFilters find. */
static void make_positional(random_program_t *program, char *filter, char *update)
{
    int owner = (int)random_roll(program, OWNERS), value = (int)random_roll(program, 40);
    print(filter, "{\"_id\":%d,\"f\":{\"$gte\":%d}}", owner, value);
    if (random_roll(program, 2) == 0) {
        print(update, "{\"$set\":{\"f.$\":%d}}", value / 2);
        return;
    }
    print(filter, "{\"_id\":%d}", owner);
    print(update, "{\"$set\":{\"f.$[e]\":1}},\"arrayFilters\":[{\"e\":{\"$gt\":%d}}]", value);
}

/* Would both servers insert the same document? */
static bool may_upsert(const char *filter, const char *update)
{
    return strstr(filter, "\"f\"") == NULL && strstr(filter, "\"k\"") == NULL &&
           strncmp(update, "{\"k\"", 4) != 0;
}

static void add_statement(random_program_t *program, char *text)
{
    char filter[TEXT_SIZE], update[TEXT_SIZE];
    make_filter(program, filter);
    make_update(program, update);
    /* A path in F may fail for one of many documents; some servers then change none of them. */
    bool many = random_roll(program, 8) == 0 && update[2] == '$' && strstr(update, "\"f.") == NULL;
    bool upsert = random_roll(program, 5) == 0 && may_upsert(filter, update);
    if (many)
        print(filter, "{\"a\":%d}", (int)random_roll(program, 3));
    else if (!upsert && random_roll(program, 10) == 0)
        make_positional(program, filter, update);
    add(text, "{\"q\":%s,\"u\":%s%s%s}", filter, update, many ? ",\"multi\":true" : "",
        upsert && !many ? ",\"upsert\":true" : "");
}

static void make_updates(random_program_t *program, char *text)
{
    uint32_t count = random_roll(program, 3) == 0 ? 1 + random_roll(program, 4) : 1;
    print(text, "{\"update\":\"c\",\"updates\":[");
    for (uint32_t i = 0; i < count; i++) {
        add(text, i > 0 ? "," : "");
        add_statement(program, text);
    }
    add(text, "],\"ordered\":%s}", random_roll(program, 2) == 0 ? "true" : "false");
}

static void make_modify(random_program_t *program, char *text)
{
    char filter[TEXT_SIZE], update[TEXT_SIZE];
    make_filter(program, filter);
    make_update(program, update);
    bool upsert = random_roll(program, 2) == 0 && may_upsert(filter, update);
    if (upsert && random_roll(program, 4) == 0)
        add(filter, ",\"sort\":{\"a\":1}");
    else if (!upsert && random_roll(program, 4) == 0)
        print(filter, "{\"a\":%d},\"sort\":{\"_id\":-1}", (int)random_roll(program, 3));
    if (random_roll(program, 5) == 0)
        print(text, "{\"findAndModify\":\"c\",\"query\":%s,\"remove\":true", filter);
    else
        print(text, "{\"findAndModify\":\"c\",\"query\":%s,\"update\":%s,\"new\":%s%s", filter,
              update, random_roll(program, 2) == 0 ? "true" : "false",
              upsert ? ",\"upsert\":true" : "");
    add_projection(program, "fields", text);
    add(text, "}");
}

static void make_delete(random_program_t *program, char *text)
{
    char filter[TEXT_SIZE];
    make_filter(program, filter);
    if (random_roll(program, 4) == 0)
        print(text, "{\"delete\":\"c\",\"deletes\":[{\"q\":{\"a\":%d},\"limit\":0}]}",
              (int)random_roll(program, 3));
    else
        print(text, "{\"delete\":\"c\",\"deletes\":[{\"q\":%s,\"limit\":1}]}", filter);
}

static void make_find(random_program_t *program, char *text)
{
    static const char *const filters[] = {"{}",
                                          "{\"a\":1}",
                                          "{\"f\":7}",
                                          "{\"f.v\":{\"$gt\":9}}",
                                          "{\"f\":{\"$size\":2}}",
                                          "{\"_id\":2,\"f\":{\"$exists\":true}}",
                                          "{\"_id\":{\"$in\":[1,3]}}"};
    print(text, "{\"find\":\"c\",\"filter\":%s,\"sort\":{\"_id\":1}", PICK(program, filters));
    add_projection(program, "projection", text);
    add(text, "}");
}

static const char *const aggregations[] = {
    "{\"aggregate\":\"c\",\"pipeline\":[{\"$match\":{\"a\":1}},{\"$sort\":{\"_id\":1}}],"
    "\"cursor\":{}}",
    "{\"aggregate\":\"c\",\"pipeline\":[{\"$sort\":{\"_id\":1}},{\"$unset\":\"f\"}],\"cursor\":{}}",
    "{\"aggregate\":\"c\",\"pipeline\":[{\"$sort\":{\"_id\":1}},{\"$set\":{\"z\":1}}],\"cursor\":{}"
    "}",
    "{\"aggregate\":\"c\",\"pipeline\":[{\"$sort\":{\"_id\":1}},{\"$project\":{\"a\":1}}],"
    "\"cursor\":{}}",
    "{\"aggregate\":\"c\",\"pipeline\":[{\"$group\":{\"_id\":null,\"n\":{\"$sum\":\"$a\"}}}],"
    "\"cursor\":{}}",
    "{\"aggregate\":\"c\",\"pipeline\":[{\"$unwind\":\"$f\"},{\"$count\":\"n\"}],\"cursor\":{}}",
    "{\"aggregate\":\"c\",\"pipeline\":[{\"$sort\":{\"_id\":1}},{\"$group\":{\"_id\":null,\"d\":"
    "{\"$push\":\"$$ROOT\"}}}],\"cursor\":{}}",
    "{\"aggregate\":\"c\",\"pipeline\":[{\"$sort\":{\"_id\":1}},{\"$project\":{\"b\":{\"c\":0}}}],"
    "\"cursor\":{}}",
    "{\"aggregate\":\"c\",\"pipeline\":[{\"$sort\":{\"_id\":1}},{\"$unset\":\"f\"},{\"$group\":{\"_"
    "id\":"
    "null,\"d\":{\"$push\":\"$$ROOT\"}}}],\"cursor\":{}}",
    "{\"aggregate\":\"c\",\"pipeline\":[{\"$sort\":{\"_id\":1}},{\"$project\":{\"f\":0}},{\"$"
    "facet\":{"
    "\"d\":[{\"$limit\":9}]}}],\"cursor\":{}}",
    "{\"count\":\"c\",\"query\":{\"a\":1}}",
    "{\"count\":\"c\",\"query\":{\"f\":5}}",
    "{\"count\":\"c\",\"query\":{\"f\":5,\"_id\":1}}",
    "{\"distinct\":\"c\",\"key\":\"a\"}",
    "{\"distinct\":\"c\",\"key\":\"f\",\"query\":{\"_id\":1}}"};

void random_command(random_program_t *program, char *text)
{
    uint32_t kind = random_roll(program, 100);
    if (kind < 12)
        make_insert(program, text);
    else if (kind < 60)
        make_updates(program, text);
    else if (kind < 74)
        make_modify(program, text);
    else if (kind < 80)
        make_delete(program, text);
    else if (kind < 92)
        make_find(program, text);
    else
        strcpy(text, PICK(program, aggregations));
}

void random_write(random_program_t *program, char *text)
{
    uint32_t kind = random_roll(program, 10);
    if (kind < 2)
        make_insert(program, text);
    else if (kind < 9)
        make_updates(program, text);
    else
        make_delete(program, text);
}
