/*
 * One random program against a served collection, through the translation, and against a plain one,
 * directly. After each step the replies are the same, and after a write all documents. A step that
 * the gateway refuses changes nothing, and is left out of the other program. SPILLWAY_SEED repeats
 * a program.
 */
#include "mongo/gateway_client.h"
#include "mongo/random_commands.h"
#include "mongo/relocated.h"
#include "mongo/reply_text.h"

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

/* A program in which more is refused, or less is written, would hide differences. */
enum {
    STATEMENTS_MAX = 32,
    REFUSED_PERCENT_MAX = 30,
    WRITTEN_PERCENT_MIN = 20,
    STEPS_JUDGED_MIN = 500
};

typedef struct program {
    random_program_t random;
    gateway_client_t *served;
    gateway_client_t *plain;
    bool counts; /* the definition has a count field */
    int64_t steps;
    int64_t statements; /* of all commands; a command other than a write is one */
    int64_t refusals;   /* of them */
    int64_t written;    /* steps that changed a document */
    char *command;      /* of this step, for messages */
} program_t;

/* ---- comparison ------------------------------------------------------------------------------ */

static int64_t number_of(const bson_t *document, const char *name)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, name) ? bson_iter_as_int64(&iter) : 0;
}

static void read_document(const bson_iter_t *iter, bson_t *document)
{
    const uint8_t *data;
    uint32_t size;
    assert_true(BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter));
    if (BSON_ITER_HOLDS_ARRAY(iter))
        bson_iter_array(iter, &size, &data);
    else
        bson_iter_document(iter, &size, &data);
    assert_true(bson_init_static(document, data, size));
}

static int64_t last_error_n(const bson_t *reply)
{
    bson_iter_t iter, n;
    return bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, "lastErrorObject.n", &n)
               ? bson_iter_as_int64(&n)
               : 0;
}

/* `places`: the place of each of the command's statements in `rest`, the plain program's command.
 * All three may be NULL. */
static void compare(const program_t *program, const char *what, const bson_t *served,
                    const bson_t *command, const int *places, const bson_t *plain,
                    const bson_t *rest)
{
    char *left = reply_text(served, command, places), *right = reply_text(plain, rest, NULL);
    /* The texts leave out n of a document that was found: an engine says 0 if it stays as it was.
     */
    if (strcmp(left, right) != 0 || last_error_n(served) < last_error_n(plain)) {
        char *reply = bson_as_relaxed_extended_json(served, NULL);
        char *other = bson_as_relaxed_extended_json(plain, NULL);
        fail_msg("step %d: %s\n%s through the gateway:\n%s\ndirectly:\n%s\n(%s,\n%s)",
                 (int)program->steps, program->command, what, left, right, reply, other);
    }
    /* An engine counts some updates that leave the document as it was; the gateway does not. */
    if (number_of(served, "nModified") > number_of(plain, "nModified"))
        fail_msg("step %d: %s\nthe gateway counts %d modified documents, the server %d",
                 (int)program->steps, program->command, (int)number_of(served, "nModified"),
                 (int)number_of(plain, "nModified"));
    bson_free(left);
    bson_free(right);
}

static bool find_batch(const bson_t *reply, bson_iter_t *documents)
{
    bson_iter_t iter, batch;
    return bson_iter_init(&iter, reply) &&
           bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch) &&
           bson_iter_recurse(&batch, documents);
}

/* A managed array's count field has the number of the elements that a client reads. */
static void check_counts(const program_t *program)
{
    static const char heads[] = "{\"find\": \"c\", \"filter\": {\"spill.f\": {\"$exists\": true}}, "
                                "\"sort\": {\"_id\": 1}, \"projection\": {\"_id\": 1}}";
    static const char whole[] = "{\"find\": \"c\", \"filter\": {}}";
    bson_t *found = gateway_direct_json(program->served, heads), *find, *reply;
    bson_iter_t each, id, at, field;
    assert_true(find_batch(found, &each));
    while (bson_iter_next(&each)) {
        bson_t head, document, array, filter;
        read_document(&each, &head);
        assert_true(bson_iter_init_find(&id, &head, "_id"));
        bson_t *template = document_from_json(whole);
        find = bson_new();
        bson_copy_to_excluding_noinit(template, find, "filter", NULL);
        BSON_APPEND_DOCUMENT_BEGIN(find, "filter", &filter);
        bson_append_iter(&filter, "_id", -1, &id);
        bson_append_document_end(find, &filter);
        reply = gateway_run(program->served, find);
        assert_true(find_batch(reply, &at) && bson_iter_next(&at));
        read_document(&at, &document);
        bool any = bson_iter_init_find(&field, &document, "f"); /* if not, it has no elements */
        if (any)
            read_document(&field, &array);
        if (number_of(&document, REPLY_COUNT_FIELD) != (any ? bson_count_keys(&array) : 0)) {
            char *text = bson_as_relaxed_extended_json(&document, NULL);
            fail_msg("step %d: %s\nthe count is wrong in %s", (int)program->steps, program->command,
                     text);
        }
        bson_destroy(template);
        bson_destroy(find);
        bson_destroy(reply);
    }
    bson_destroy(found);
}

static void compare_documents(const program_t *program)
{
    static const char all[] = "{\"find\":\"c\",\"sort\":{\"_id\":1}}";
    bson_t *left = gateway_run_json(program->served, all);
    bson_t *right = gateway_direct_json(program->plain, all);
    compare(program, "the documents", left, NULL, NULL, right, NULL);
    if (program->counts)
        check_counts(program);
    bson_destroy(left);
    bson_destroy(right);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Is the error or the reply a refusal? It has to give a reason. */
static bool is_refused(const bson_t *reply)
{
    bson_iter_t iter, reason;
    if (number_of(reply, "code") != 115)
        return false;
    assert_true(bson_iter_init(&iter, reply) &&
                bson_iter_find_descendant(&iter, "spillway.reason", &reason));
    return true;
}

/* The number of a write's statements; 1 for other commands. */
static int count_statements(const bson_t *command)
{
    static const char *const lists[] = {"updates", "deletes", "documents"};
    bson_iter_t iter;
    bson_t list;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (bson_iter_init_find(&iter, command, lists[i])) {
            read_document(&iter, &list);
            return (int)bson_count_keys(&list);
        }
    return 1;
}

/* Mark the refused statements of a write with -1, the others with 0; return how many there are. */
static int mark_refused(const bson_t *reply, int places[STATEMENTS_MAX])
{
    bson_iter_t iter, errors;
    int refused = 0;
    memset(places, 0, STATEMENTS_MAX * sizeof *places);
    if (!bson_iter_init_find(&iter, reply, "writeErrors") || !bson_iter_recurse(&iter, &errors))
        return 0;
    while (bson_iter_next(&errors)) {
        bson_t error;
        read_document(&errors, &error);
        if (!is_refused(&error))
            continue;
        assert_true(number_of(&error, "index") < STATEMENTS_MAX);
        places[number_of(&error, "index")] = -1;
        refused++;
    }
    return refused;
}

/*
 * The statements of a write that the gateway made or that failed in it, without those that it
 * refused: *refused of them. Of an ordered command, those after the refusal are left out as well.
 * NULL: none is left. `places`: where the others are now.
 */
static bson_t *without_refused(const bson_t *command, const bson_t *reply,
                               int places[STATEMENTS_MAX], int *refused)
{
    bson_t *rest = bson_new(), list;
    bson_iter_t iter, each;
    *refused = mark_refused(reply, places);
    bool ordered = bson_iter_init_find(&iter, command, "ordered") && bson_iter_bool(&iter);
    assert_true(bson_iter_init(&iter, command));
    while (bson_iter_next(&iter)) {
        if (!BSON_ITER_HOLDS_ARRAY(&iter)) {
            bson_append_iter(rest, NULL, -1, &iter);
            continue;
        }
        int at = 0, kept = 0;
        BSON_APPEND_ARRAY_BEGIN(rest, bson_iter_key(&iter), &list);
        bson_iter_recurse(&iter, &each);
        for (bool stopped = false; bson_iter_next(&each); at++) {
            char key[16];
            stopped = stopped || (ordered && places[at] < 0);
            if (places[at] < 0 || stopped)
                continue;
            places[at] = kept;
            snprintf(key, sizeof key, "%d", kept++);
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

/* ---- bulkWrite ------------------------------------------------------------------------------- */

/* A bulkWrite, and each of its operations as a command of one statement. */
typedef struct bulk {
    bson_t *commands[STATEMENTS_MAX];
    int count;
    bson_t ops; /* an array */
} bulk_t;

static void add_operation(bulk_t *bulk, const char *kind, const char *list, const bson_iter_t *item)
{
    static const struct {
        const char *from, *to;
    } names[] = {{"q", "filter"}, {"u", "updateMods"}};
    char key[16];
    bson_t operation, statement, statements;
    bson_iter_t field;
    assert_true(bulk->count < STATEMENTS_MAX);
    bulk->commands[bulk->count] = BCON_NEW(kind, BCON_UTF8("c"));
    BSON_APPEND_ARRAY_BEGIN(bulk->commands[bulk->count], list, &statements);
    bson_append_iter(&statements, "0", -1, item);
    bson_append_array_end(bulk->commands[bulk->count], &statements);
    snprintf(key, sizeof key, "%d", bulk->count++);
    BSON_APPEND_DOCUMENT_BEGIN(&bulk->ops, key, &operation);
    BSON_APPEND_INT32(&operation, kind, 0);
    read_document(item, &statement);
    if (strcmp(kind, "insert") == 0)
        BSON_APPEND_DOCUMENT(&operation, "document", &statement);
    else if (bson_iter_init(&field, &statement))
        while (bson_iter_next(&field)) {
            const char *name = bson_iter_key(&field);
            for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (strcmp(name, names[i].from) == 0)
                    name = names[i].to;
            if (strcmp(name, "limit") == 0)
                BSON_APPEND_BOOL(&operation, "multi", bson_iter_as_int64(&field) == 0);
            else
                bson_append_iter(&operation, name, -1, &field);
        }
    bson_append_document_end(&bulk->ops, &operation);
}

static void add_write(bulk_t *bulk, const bson_t *command)
{
    bson_iter_t iter, item;
    assert_true(bson_iter_init(&iter, command) && bson_iter_next(&iter));
    const char *kind = bson_iter_key(&iter);
    while (bson_iter_next(&iter))
        if (BSON_ITER_HOLDS_ARRAY(&iter) && bson_iter_recurse(&iter, &item)) {
            const char *list = bson_iter_key(&iter);
            while (bson_iter_next(&item))
                add_operation(bulk, kind, list, &item);
        }
}

static bson_t *bulk_command(const program_t *program, const bulk_t *bulk, bool ordered)
{
    char *ns = bson_strdup_printf("%s.c", program->served->database);
    bson_t *command = BCON_NEW("bulkWrite", BCON_INT32(1), "ops", BCON_ARRAY(&bulk->ops), "nsInfo",
                               "[", "{", "ns", BCON_UTF8(ns), "}", "]", "ordered",
                               BCON_BOOL(ordered), "$db", BCON_UTF8("admin"));
    bson_free(ns);
    return command;
}

/* n, the code and the upserted _id of an operation: of bulkWrite's result, or of a reply. */
static char *outcome_text(int64_t n, int64_t code, const bson_t *document, const char *upserted)
{
    bson_iter_t iter, id;
    bson_t value = BSON_INITIALIZER;
    if (bson_iter_init(&iter, document) && bson_iter_find_descendant(&iter, upserted, &id))
        bson_append_iter(&value, "_id", -1, &id);
    char *json = bson_as_canonical_extended_json(&value, NULL);
    char *text = bson_strdup_printf("n %d code %d upserted %s", (int)n, (int)code, json);
    bson_free(json);
    bson_destroy(&value);
    return text;
}

static int64_t error_code_of(const bson_t *reply)
{
    bson_iter_t iter, code;
    return bson_iter_init(&iter, reply) &&
                   bson_iter_find_descendant(&iter, "writeErrors.0.code", &code)
               ? bson_iter_as_int64(&code)
               : number_of(reply, "code");
}

/* Make the operation directly, and compare it with the result in the bulkWrite's reply. */
static void compare_operation(program_t *program, const bulk_t *bulk, const bson_t *result)
{
    int64_t at = number_of(result, "idx");
    assert_in_range(at, 0, bulk->count - 1);
    bson_t *plain = gateway_direct(program->plain, bulk->commands[at]);
    int64_t code = number_of(result, "code"), plain_code = error_code_of(plain);
    if (reply_is_of_many(bulk->commands[at], 0) && code != 0 && plain_code != 0)
        code = plain_code; /* which document fails first is the engine's choice */
    char *left = outcome_text(number_of(result, "n"), code, result, "upserted._id");
    char *right = outcome_text(number_of(plain, "n"), plain_code, plain, "upserted.0._id");
    if (strcmp(left, right) != 0)
        fail_msg("step %d: %s\noperation %d through the gateway: %s\ndirectly: %s",
                 (int)program->steps, program->command, (int)at, left, right);
    if (number_of(result, "nModified") > number_of(plain, "nModified"))
        fail_msg("step %d: %s\noperation %d: the gateway counts a modified document",
                 (int)program->steps, program->command, (int)at);
    assert_int_equal(number_of(result, "ok"), number_of(result, "code") == 0);
    bson_free(left);
    bson_free(right);
    bson_destroy(plain);
}

/* Every operation has a result, up to the first error of an ordered command. */
static void compare_bulk(program_t *program, const bulk_t *bulk, bool ordered, const bson_t *reply)
{
    bson_iter_t results;
    int64_t errors = 0, next = 0, n = 0;
    assert_int_equal(number_of(reply, "ok"), 1);
    assert_true(find_batch(reply, &results));
    while (bson_iter_next(&results)) {
        bson_t result;
        read_document(&results, &result);
        assert_int_equal(number_of(&result, "idx"), next++);
        assert_true(!ordered || errors == 0);
        errors += number_of(&result, "code") != 0;
        n += number_of(&result, "n");
        if (is_refused(&result))
            program->refusals++;
        else
            compare_operation(program, bulk, &result);
    }
    assert_true(next == bulk->count || (ordered && errors == 1));
    assert_int_equal(number_of(reply, "nErrors"), errors);
    assert_int_equal(number_of(reply, "nInserted") + number_of(reply, "nMatched") +
                         number_of(reply, "nUpserted") + number_of(reply, "nDeleted"),
                     n);
    program->written += n > 0;
}

/* ---- the program ----------------------------------------------------------------------------- */

static bson_t *make_command(program_t *program, void (*make)(random_program_t *, char *))
{
    char text[RANDOM_COMMAND_SIZE];
    make(&program->random, text);
    bson_t *made = document_from_json(text);
    if (!program->random.nested)
        return made;
    bson_t *relocated = relocated_command(made);
    bson_destroy(made);
    return relocated;
}

static void note_command(program_t *program, const bson_t *command)
{
    bson_free(program->command);
    program->command = bson_as_relaxed_extended_json(command, NULL);
}

static void bulk_step(program_t *program)
{
    bulk_t bulk = {.ops = BSON_INITIALIZER};
    bool ordered = random_roll(&program->random, 2) == 0;
    for (int writes = 1 + (int)random_roll(&program->random, 3); writes > 0; writes--) {
        bson_t *command = make_command(program, random_write);
        add_write(&bulk, command);
        bson_destroy(command);
    }
    bson_t *command = bulk_command(program, &bulk, ordered);
    note_command(program, command);
    bson_t *reply = gateway_run(program->served, command);
    program->statements += bulk.count;
    compare_bulk(program, &bulk, ordered, reply);
    compare_documents(program);
    for (int i = 0; i < bulk.count; i++)
        bson_destroy(bulk.commands[i]);
    bson_destroy(&bulk.ops);
    bson_destroy(command);
    bson_destroy(reply);
}

static bool is_read(const bson_t *command)
{
    static const char *const reads[] = {"find", "aggregate", "count", "distinct"};
    bson_iter_t iter;
    assert_true(bson_iter_init(&iter, command) && bson_iter_next(&iter));
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        if (strcmp(bson_iter_key(&iter), reads[i]) == 0)
            return true;
    return false;
}

/* Did a write change a document, or find one that it left as it was? */
static bool has_written(const bson_t *reply)
{
    return number_of(reply, "n") > 0 || last_error_n(reply) > 0;
}

static void command_step(program_t *program)
{
    int refused = 0, places[STATEMENTS_MAX];
    bson_t *command = make_command(program, random_command);
    note_command(program, command);
    bson_t *served = gateway_run(program->served, command);
    program->statements += count_statements(command);
    if (is_refused(served)) {
        program->refusals += count_statements(command);
    } else {
        bson_t *rest = without_refused(command, served, places, &refused);
        bson_t *plain = rest != NULL ? gateway_direct(program->plain, rest) : NULL;
        bson_iter_t upserted;
        program->refusals += refused;
        /* Indexes of upserted documents differ if statements are left out. */
        if (plain != NULL && (refused == 0 || !bson_iter_init_find(&upserted, served, "upserted")))
            compare(program, "the reply", served, command, places, plain, rest);
        bson_destroy(plain);
        bson_destroy(rest);
    }
    if (!is_read(command)) {
        program->written += has_written(served);
        compare_documents(program);
    }
    bson_destroy(served);
    bson_destroy(command);
}

/* Too many refusals, or too few changes, would hide differences. A short program may have them by
 * chance. */
static void check_shares(const program_t *program)
{
    print_message("%d steps, %d of them changed documents; %d of %d statements were refused\n",
                  (int)program->steps, (int)program->written, (int)program->refusals,
                  (int)program->statements);
    if (program->steps < STEPS_JUDGED_MIN)
        return;
    assert_true(program->refusals * 100 <= program->statements * REFUSED_PERCENT_MAX);
    assert_true(program->refusals > 0); /* arrays had pages */
    assert_true(program->written * 100 >= program->steps * WRITTEN_PERCENT_MIN);
}

/* Engines read the filters of updates in another way if there is an index. */
static void make_index(gateway_client_t *client)
{
    bson_t *reply = gateway_direct_json(
        client,
        "{\"createIndexes\": \"c\", \"indexes\": [{\"key\": {\"k\": 1}, \"name\": \"k\"}]}");
    gateway_expect(reply, "ok", "1.0");
    bson_destroy(reply);
}

static void play(program_t *program, spill_definition_t definition, int64_t steps)
{
    const char *given = getenv("SPILLWAY_SEED");
    char *uri = server_new_database(NULL), *plain_uri = server_new_database(NULL);
    program->random.state = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("SPILLWAY_SEED=%llu\n", (unsigned long long)program->random.state);
    gateway_define(uri, &definition);
    program->served = gateway_client_new(uri);
    program->plain = gateway_client_new(plain_uri);
    make_index(program->served);
    make_index(program->plain);
    for (; program->steps < steps; program->steps++)
        if (random_roll(&program->random, 10) == 0)
            bulk_step(program);
        else
            command_step(program);
    check_shares(program);
    bson_free(program->command);
    gateway_client_free(program->served);
    gateway_client_free(program->plain);
    server_drop(uri);
    server_drop(plain_uri);
    bson_free(uri);
    bson_free(plain_uri);
}

static void no_difference(void **state)
{
    (void)state;
    program_t program = {0};
    play(&program, gateway_small_definition(), effort(200000, 1500, 150));
}

static void no_difference_at_a_path(void **state)
{
    (void)state;
    program_t program = {.random = {.nested = true}};
    spill_definition_t definition = gateway_small_definition();
    strcpy(definition.array, "h.f");
    play(&program, definition, effort(200000, 1500, 150));
}

static void no_difference_with_the_newest_first_and_a_count(void **state)
{
    (void)state;
    program_t program = {.random = {.newest_first = true}, .counts = true};
    spill_definition_t definition = gateway_small_definition();
    definition.order = SPILL_ARRAY_NEWEST_FIRST;
    strcpy(definition.count_field, REPLY_COUNT_FIELD);
    play(&program, definition, effort(100000, 750, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_difference), cmocka_unit_test(no_difference_at_a_path),
        cmocka_unit_test(no_difference_with_the_newest_first_and_a_count)};
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
