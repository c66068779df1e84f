/*
 * Threads update other fields of owners while another thread saves definitions of the same
 * collection. As soon as an owner has a head of such a definition, an update of its field is
 * refused, also if the call that saved the definition has not returned.
 */
#include "support/effort.h"
#include "support/embedded.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 3 };

typedef struct race {
    spill_store_t *store;
    spill_array_t *feed;
    int64_t rounds;
    atomic_int problems;
} race_t;

typedef struct worker {
    race_t *race;
    int number;
} worker_t;

static void name_array(char name[16], int64_t round)
{
    snprintf(name, 16, "likes%d", (int)round);
}

static void define_array(spill_store_t *store, const char *name)
{
    spill_definition_t definition;
    spill_error_t error;
    spill_definition_init(&definition, name);
    strcpy(definition.collection, "users");
    snprintf(definition.array, sizeof definition.array, "%s", name);
    snprintf(definition.page_collection, sizeof definition.page_collection, "%sPages", name);
    snprintf(definition.count_field, sizeof definition.count_field, "%sCount", name);
    snprintf(definition.overflow_field, sizeof definition.overflow_field, "%sMore", name);
    snprintf(definition.pages_field, sizeof definition.pages_field, "%sPageCount", name);
    if (spill_store_define(store, &definition, &error) != SPILL_OK)
        fail_msg("%s", error.message);
}

static spill_code_t set_field(const race_t *race, const char *owner, const char *field)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    bson_t *update = BCON_NEW("$set", "{", field, BCON_INT32(1), "}");
    spill_code_t code = spill_array_update(race->feed, &name, update, NULL);
    bson_destroy(update);
    bson_destroy(&storage);
    return code;
}

static void expect(race_t *race, spill_code_t code, spill_code_t expected)
{
    if (code != expected)
        atomic_fetch_add(&race->problems, 1);
}

/* Wait for each definition, make a head of it, and update its field in the same document. */
static void *update_heads(void *context)
{
    const worker_t *worker = context;
    race_t *race = worker->race;
    char owner[16], name[16];
    snprintf(owner, sizeof owner, "owner%d", worker->number);
    for (int64_t round = 0; round < race->rounds; round++) {
        spill_array_t *likes;
        name_array(name, round);
        while (spill_array_open(race->store, name, &likes, NULL) != SPILL_OK)
            expect(race, set_field(race, owner, "name"), SPILL_OK);
        expect(race, set_field(race, owner, "name"), SPILL_OK);
        expect(race, embedded_append(likes, owner, 0, 1, NULL), SPILL_OK);
        expect(race, set_field(race, owner, name), SPILL_REFUSED);
        spill_array_close(likes);
    }
    return NULL;
}

static void *save_definitions(void *context)
{
    race_t *race = context;
    for (int64_t round = 0; round < race->rounds; round++) {
        char name[16];
        name_array(name, round);
        define_array(race->store, name);
        expect(race, set_field(race, "writer", "name"), SPILL_OK);
    }
    return NULL;
}

static void update_respects_definitions_saved_meanwhile(void **state)
{
    (void)state;
    race_t race = {.rounds = effort(200, 60, 20)};
    pthread_t threads[THREADS + 1];
    worker_t workers[THREADS];
    assert_int_equal(spill_store_open("memory:", NULL, &race.store, NULL), SPILL_OK);
    define_array(race.store, "feed");
    assert_int_equal(spill_array_open(race.store, "feed", &race.feed, NULL), SPILL_OK);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){&race, i};
        assert_int_equal(pthread_create(&threads[i], NULL, update_heads, &workers[i]), 0);
    }
    assert_int_equal(pthread_create(&threads[THREADS], NULL, save_definitions, &race), 0);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(race.problems, 0);
    spill_array_close(race.feed);
    assert_int_equal(spill_store_close(race.store, NULL), SPILL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(update_respects_definitions_saved_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
