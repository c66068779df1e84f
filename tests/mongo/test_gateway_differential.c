/*
 * One random program against a served collection, through the translation, and against a plain one,
 * directly. After each step the replies are the same, and after a write all documents. A step that
 * the gateway refuses changes nothing, and is left out of the other program. SPILLWAY_SEED repeats
 * a program.
 */
#include "mongo/gateway_client.h"
#include "mongo/relocated.h"

#include "support/document.h"
#include "support/effort.h"
#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { OWNERS = 5, TEXT_SIZE = 8192 };

typedef struct program {
    gateway_client_t *served;
    gateway_client_t *plain;
    uint64_t state;
    bool nested; /* the array is at the path h.f */
    int64_t steps, refusals, next_element;
    const char *command; /* of this step, for messages */
} program_t;

static uint32_t roll(program_t *program, uint32_t sides)
{
    program->state = program->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(program->state >> 33) % sides;
}

#define PICK(program, texts) ((texts)[roll(program, (uint32_t)(sizeof(texts) / sizeof *(texts)))])

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

/* Begin a text anew. */
#define print(text, ...) ((text)[0] = '\0', add(text, __VA_ARGS__))

/* ---- texts ----------------------------------------------------------------------------------- */

/* An array of 1 to `most` new elements. (An engine counts a push of none as a change.) */
static void make_elements(program_t *program, uint32_t most, char *text)
{
    uint32_t count = 1 + roll(program, most);
    print(text, "[");
    for (uint32_t i = 0; i < count; i++) {
        int element = (int)program->next_element++;
        add(text, element % 3 == 0 ? "%s{\"v\":%d}" : "%s%d", i > 0 ? "," : "", element);
    }
    add(text, "]");
}

/* A filter that finds at most one document. */
static void make_filter(program_t *program, char *text)
{
    int owner = (int)roll(program, OWNERS), a = (int)roll(program, 3);
    switch (roll(program, 8)) {
    case 0:
        print(text, "{\"_id\":%d,\"a\":%d}", owner, a);
        break;
    case 1:
        print(text, "{\"k\":%d}", owner);
        break;
    case 2:
        print(text, "{\"_id\":%d,\"f\":%d}", owner, (int)roll(program, 40));
        break;
    case 3:
        print(text, "{\"_id\":%d,\"f\":{\"$ne\":%d}}", owner, (int)roll(program, 40));
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
static const char *make_others(program_t *program)
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
static void make_around(program_t *program, char *text)
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
static void make_rewrite(program_t *program, char *text)
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

/* An update of F or of other fields. */
static void make_update(program_t *program, char *text)
{
    char elements[TEXT_SIZE];
    make_elements(program, 4, elements);
    if (program->nested && roll(program, 8) == 0) {
        make_around(program, text);
        return;
    }
    if (roll(program, 4) == 0) {
        make_rewrite(program, text);
        return;
    }
    switch (roll(program, 16)) {
    case 0:
        print(text, "{\"$pull\":{\"f\":%d}%s}", (int)roll(program, 40), make_others(program));
        break;
    case 1:
        print(text, "{\"$pop\":{\"f\":%d}}", roll(program, 2) == 0 ? 1 : -1);
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
        print(text, "{\"$set\":{\"a\":%d},\"$inc\":{\"n\":1}}", (int)roll(program, 3));
        break;
    case 9:
    case 10:
        print(text, "{\"$push\":{\"f\":{\"$each\":%s}}%s}", elements, make_others(program));
        break;
    default:
        print(text, "{\"$push\":{\"f\":%d}%s}", (int)program->next_element++, make_others(program));
        break;
    }
}

/* The field `name` of a command, or nothing. */
static void add_projection(program_t *program, const char *name, char *text)
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
                                        "{\"size\":{\"$size\":{\"$ifNull\":[\"$f\",[]]}}}"};
    static const char *const around[] = {"{\"h\":1}", "{\"h\":0}", "{\"h.z\":1}", "{\"h.z\":0}"};
    const char *projection =
        program->nested && roll(program, 4) == 0 ? PICK(program, around) : PICK(program, texts);
    if (projection[0] != '\0')
        add(text, ",\"%s\":%s", name, projection);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void make_insert(program_t *program, char *text)
{
    char elements[TEXT_SIZE];
    int owner = (int)roll(program, OWNERS);
    make_elements(program, 7, elements);
    if (roll(program, 4) == 0)
        print(text, "{\"insert\":\"c\",\"documents\":[{\"_id\":%d,\"k\":%d,\"a\":1}]}", owner,
              owner);
    else
        print(text, "{\"insert\":\"c\",\"documents\":[{\"_id\":%d,\"k\":%d,\"f\":%s,\"a\":%d}]}",
              owner, owner, elements, (int)roll(program, 3));
}

/* An update of the element that the filter finds, or of those that arrayFilters find. */
static void make_positional(program_t *program, char *filter, char *update)
{
    int owner = (int)roll(program, OWNERS), value = (int)roll(program, 40);
    print(filter, "{\"_id\":%d,\"f\":{\"$gte\":%d}}", owner, value);
    if (roll(program, 2) == 0) {
        print(update, "{\"$set\":{\"f.$\":%d}}", value / 2);
        return;
    }
    print(filter, "{\"_id\":%d}", owner);
    print(update, "{\"$set\":{\"f.$[e]\":1}},\"arrayFilters\":[{\"e\":{\"$gt\":%d}}]", value);
}

static void add_statement(program_t *program, char *text)
{
    char filter[TEXT_SIZE], update[TEXT_SIZE];
    make_filter(program, filter);
    make_update(program, update);
    /* A path in F may fail for one of many documents; some servers then change none of them. */
    bool many = roll(program, 8) == 0 && update[2] == '$' && strstr(update, "\"f.") == NULL;
    bool upsert = roll(program, 5) == 0 && strstr(filter, "\"f\"") == NULL &&
                  strstr(filter, "\"k\"") == NULL && strncmp(update, "{\"k\"", 4) != 0;
    if (many)
        print(filter, "{\"a\":%d}", (int)roll(program, 3));
    else if (!upsert && roll(program, 10) == 0)
        make_positional(program, filter, update);
    add(text, "{\"q\":%s,\"u\":%s%s%s}", filter, update, many ? ",\"multi\":true" : "",
        upsert && !many ? ",\"upsert\":true" : "");
}

static void make_updates(program_t *program, char *text)
{
    uint32_t count = roll(program, 3) == 0 ? 1 + roll(program, 4) : 1;
    print(text, "{\"update\":\"c\",\"updates\":[");
    for (uint32_t i = 0; i < count; i++) {
        add(text, i > 0 ? "," : "");
        add_statement(program, text);
    }
    add(text, "],\"ordered\":%s}", roll(program, 2) == 0 ? "true" : "false");
}

static void make_modify(program_t *program, char *text)
{
    char filter[TEXT_SIZE], update[TEXT_SIZE];
    make_filter(program, filter);
    make_update(program, update);
    if (roll(program, 4) == 0)
        print(filter, "{\"a\":%d},\"sort\":{\"_id\":-1}", (int)roll(program, 3));
    if (roll(program, 5) == 0)
        print(text, "{\"findAndModify\":\"c\",\"query\":%s,\"remove\":true", filter);
    else
        print(text, "{\"findAndModify\":\"c\",\"query\":%s,\"update\":%s,\"new\":%s", filter,
              update, roll(program, 2) == 0 ? "true" : "false");
    add_projection(program, "fields", text);
    add(text, "}");
}

static void make_delete(program_t *program, char *text)
{
    char filter[TEXT_SIZE];
    make_filter(program, filter);
    if (roll(program, 4) == 0)
        print(text, "{\"delete\":\"c\",\"deletes\":[{\"q\":{\"a\":%d},\"limit\":0}]}",
              (int)roll(program, 3));
    else
        print(text, "{\"delete\":\"c\",\"deletes\":[{\"q\":%s,\"limit\":1}]}", filter);
}

static void make_find(program_t *program, char *text)
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
    "{\"count\":\"c\",\"query\":{\"a\":1}}",
    "{\"count\":\"c\",\"query\":{\"f\":5}}",
    "{\"count\":\"c\",\"query\":{\"f\":5,\"_id\":1}}",
    "{\"distinct\":\"c\",\"key\":\"a\"}",
    "{\"distinct\":\"c\",\"key\":\"f\",\"query\":{\"_id\":1}}"};

static void make_command(program_t *program, char *text)
{
    uint32_t kind = roll(program, 100);
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

/* ---- comparison ------------------------------------------------------------------------------ */

static void sort_fields(const bson_t *document, bson_t *sorted);

static void append_sorted(const bson_iter_t *field, bson_t *sorted)
{
    const char *key = bson_iter_key(field);
    const uint8_t *data;
    uint32_t size;
    bson_t document, inner, array;
    bson_iter_t each;
    if (BSON_ITER_HOLDS_DOCUMENT(field)) {
        bson_iter_document(field, &size, &data);
        bson_init_static(&document, data, size);
        bson_init(&inner);
        sort_fields(&document, &inner);
        BSON_APPEND_DOCUMENT(sorted, key, &inner);
        bson_destroy(&inner);
    } else if (BSON_ITER_HOLDS_ARRAY(field) && bson_iter_recurse(field, &each)) {
        BSON_APPEND_ARRAY_BEGIN(sorted, key, &array);
        while (bson_iter_next(&each))
            append_sorted(&each, &array);
        bson_append_array_end(sorted, &array);
    } else {
        bson_append_iter(sorted, NULL, -1, field);
    }
}

/* Copy the fields, sorted by name: updates may add them in another order. */
static void sort_fields(const bson_t *document, bson_t *sorted)
{
    bson_iter_t field;
    for (const char *last = "";;) {
        const char *next = NULL;
        bson_iter_t at = {0};
        bson_iter_init(&field, document);
        while (bson_iter_next(&field))
            if (strcmp(bson_iter_key(&field), last) > 0 &&
                (next == NULL || strcmp(bson_iter_key(&field), next) < 0)) {
                next = bson_iter_key(&field);
                at = field;
            }
        if (next == NULL) {
            assert_int_equal(bson_count_keys(sorted), bson_count_keys(document)); /* none twice */
            return;
        }
        append_sorted(&at, sorted);
        last = next;
    }
}

static char *document_text(const bson_iter_t *iter)
{
    const uint8_t *data;
    uint32_t size;
    bson_t document, sorted;
    bson_iter_document(iter, &size, &data);
    bson_init_static(&document, data, size);
    bson_init(&sorted);
    sort_fields(&document, &sorted);
    char *text = bson_as_canonical_extended_json(&sorted, NULL);
    bson_destroy(&sorted);
    return text;
}

/* What a client sees of a reply, as a text. Free it with bson_free. */
static char *normalize(const bson_t *reply)
{
    static const char *const numbers[] = {"n", "ok", "code", NULL};
    bson_string_t *text = bson_string_new("");
    bson_iter_t iter, found, each;
    for (size_t i = 0; numbers[i] != NULL; i++)
        if (bson_iter_init_find(&iter, reply, numbers[i]))
            bson_string_append_printf(text, "%s %d\n", numbers[i], (int)bson_iter_as_int64(&iter));
    if (bson_iter_init_find(&iter, reply, "value") && BSON_ITER_HOLDS_DOCUMENT(&iter)) {
        char *value = document_text(&iter);
        bson_string_append_printf(text, "value %s\n", value);
        bson_free(value);
    }
    if (bson_iter_init_find(&iter, reply, "upserted") && bson_iter_recurse(&iter, &each))
        while (bson_iter_next(&each)) {
            char *value = document_text(&each);
            bson_string_append_printf(text, "upserted %s\n", value);
            bson_free(value);
        }
    if (bson_iter_init_find(&iter, reply, "values") && bson_iter_recurse(&iter, &each)) {
        int count = 0;
        while (bson_iter_next(&each))
            count++;
        bson_string_append_printf(text, "values %d\n", count);
    }
    if (bson_iter_init(&iter, reply) &&
        bson_iter_find_descendant(&iter, "cursor.firstBatch", &found) &&
        bson_iter_recurse(&found, &each))
        while (bson_iter_next(&each)) {
            char *value = document_text(&each);
            bson_string_append_printf(text, "%s\n", value);
            bson_free(value);
        }
    return bson_string_free(text, false);
}

static bson_t *find_all(gateway_client_t *client, bool served)
{
    static const char all[] = "{\"find\":\"c\",\"sort\":{\"_id\":1}}";
    return served ? gateway_run_json(client, all) : gateway_direct_json(client, all);
}

static int64_t modified_of(const bson_t *reply)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, reply, "nModified") ? bson_iter_as_int64(&iter) : 0;
}

static void compare(const program_t *program, const char *what, const bson_t *served,
                    const bson_t *plain)
{
    char *left = normalize(served), *right = normalize(plain);
    if (strcmp(left, right) != 0) {
        char *reply = bson_as_relaxed_extended_json(served, NULL);
        fail_msg("step %d: %s\n%s through the gateway:\n%s\ndirectly:\n%s\n(%s)",
                 (int)program->steps, program->command, what, left, right, reply);
    }
    /* An engine counts some updates that leave the document as it was; the gateway does not. */
    if (modified_of(served) > modified_of(plain))
        fail_msg("step %d: %s\nthe gateway counts %d modified documents, the server %d",
                 (int)program->steps, program->command, (int)modified_of(served),
                 (int)modified_of(plain));
    bson_free(left);
    bson_free(right);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static int code_of(const bson_t *error)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, error, "code") ? (int)bson_iter_as_int64(&iter) : 0;
}

/* Is the reply a refusal of the whole command? It has to give a reason. */
static bool is_refused(const bson_t *reply)
{
    bson_iter_t iter, reason;
    if (code_of(reply) != 115)
        return false;
    assert_true(bson_iter_init(&iter, reply) &&
                bson_iter_find_descendant(&iter, "spillway.reason", &reason));
    return true;
}

/*
 * The statements of an update or delete that the gateway made or that failed in it, without those
 * that it refused. Of an ordered command, those after the refusal are left out as well.
 */
static bson_t *without_refused(program_t *program, const bson_t *command, const bson_t *reply,
                               int *refused)
{
    bson_t *rest = bson_new(), list;
    bson_iter_t iter, errors, each, error;
    bool skip[16] = {false};
    *refused = 0;
    if (bson_iter_init_find(&iter, reply, "writeErrors") && bson_iter_recurse(&iter, &errors))
        while (bson_iter_next(&errors)) {
            const uint8_t *data;
            uint32_t size;
            bson_t document;
            bson_iter_document(&errors, &size, &data);
            bson_init_static(&document, data, size);
            if (!is_refused(&document))
                continue;
            assert_true(bson_iter_init_find(&error, &document, "index"));
            skip[bson_iter_as_int64(&error)] = true;
            ++*refused;
            program->refusals++;
        }
    bool ordered = bson_iter_init_find(&iter, command, "ordered") && bson_iter_bool(&iter);
    assert_true(bson_iter_init(&iter, command));
    while (bson_iter_next(&iter)) {
        if (!BSON_ITER_HOLDS_ARRAY(&iter)) {
            bson_append_iter(rest, NULL, -1, &iter);
            continue;
        }
        uint32_t at = 0, kept = 0;
        BSON_APPEND_ARRAY_BEGIN(rest, bson_iter_key(&iter), &list);
        bson_iter_recurse(&iter, &each);
        for (bool stopped = false; bson_iter_next(&each); at++) {
            char key[16];
            stopped = stopped || (ordered && skip[at]);
            if (skip[at] || stopped)
                continue;
            snprintf(key, sizeof key, "%u", kept++);
            bson_append_iter(&list, key, -1, &each);
        }
        bson_append_array_end(rest, &list);
        if (kept > 0)
            continue;
        bson_destroy(rest);
        return NULL;
    }
    return rest;
}

/* ---- the program ----------------------------------------------------------------------------- */

static bool writes(const bson_t *command)
{
    static const char *const reads[] = {"find", "aggregate", "count", "distinct"};
    bson_iter_t iter;
    assert_true(bson_iter_init(&iter, command) && bson_iter_next(&iter));
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        if (strcmp(bson_iter_key(&iter), reads[i]) == 0)
            return false;
    return true;
}

static void step(program_t *program)
{
    char text[TEXT_SIZE];
    int refused = 0;
    make_command(program, text);
    program->command = text;
    bson_t *made = document_from_json(text);
    bson_t *command = program->nested ? relocated_command(made) : bson_copy(made);
    bson_destroy(made);
    bson_t *served = gateway_run(program->served, command);
    if (is_refused(served)) {
        program->refusals++;
    } else {
        bson_t *rest = without_refused(program, command, served, &refused);
        bson_t *plain = rest != NULL ? gateway_direct(program->plain, rest) : NULL;
        bson_iter_t upserted;
        /* Indexes of upserted documents differ if statements are left out. */
        if (plain != NULL && (refused == 0 || !bson_iter_init_find(&upserted, served, "upserted")))
            compare(program, "the reply", served, plain);
        bson_destroy(plain);
        bson_destroy(rest);
    }
    if (writes(command)) {
        bson_t *left = find_all(program->served, true), *right = find_all(program->plain, false);
        compare(program, "the documents", left, right);
        bson_destroy(left);
        bson_destroy(right);
    }
    bson_destroy(served);
    bson_destroy(command);
    program->command = NULL;
    program->steps++;
}

static void play(bool nested)
{
    const char *given = getenv("SPILLWAY_SEED");
    char *uri = server_new_database(NULL), *plain_uri = server_new_database(NULL);
    program_t program = {.nested = nested};
    spill_store_t *store = server_open(uri);
    spill_definition_t definition = gateway_small_definition();
    if (nested)
        strcpy(definition.array, "h.f");
    program.state = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("SPILLWAY_SEED=%llu\n", (unsigned long long)program.state);
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    server_close(store);
    program.served = gateway_client_new(uri);
    program.plain = gateway_client_new(plain_uri);
    int64_t steps = effort(200000, 500, 150);
    while (program.steps < steps)
        step(&program);
    print_message("%d steps, %d refused statements\n", (int)program.steps, (int)program.refusals);
    gateway_client_free(program.served);
    gateway_client_free(program.plain);
    server_drop(uri);
    server_drop(plain_uri);
    bson_free(uri);
    bson_free(plain_uri);
}

static void no_difference(void **state)
{
    (void)state;
    play(false);
}

static void no_difference_at_a_path(void **state)
{
    (void)state;
    play(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_difference),
                                       cmocka_unit_test(no_difference_at_a_path)};
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
