/* Definitions that would share documents, saved at the same moment: at most one is saved. */
#include "support/embedded.h"
#include "support/fault_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 200 };

static void clashing(spill_definition_t *definition, const char *name)
{
    spill_definition_init(definition, name);
    strcpy(definition->collection, "users");
    strcpy(definition->array, "activities");
}

static size_t definitions(spill_store_t *store)
{
    spill_definition_t *all;
    size_t count;
    assert_int_equal(spill_store_definitions(store, &all, &count, NULL), SPILL_OK);
    bson_free(all);
    return count;
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct saver {
    spill_store_t *store;
    pthread_barrier_t *start;
    const char *name;
    spill_code_t code;
} saver_t;

static void *save(void *context)
{
    saver_t *saver = context;
    spill_definition_t definition;
    clashing(&definition, saver->name);
    pthread_barrier_wait(saver->start);
    saver->code = spill_store_define(saver->store, &definition, NULL);
    return NULL;
}

static void save_two(spill_store_t *store)
{
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, 2);
    saver_t savers[2] = {{store, &start, "likes", SPILL_OK}, {store, &start, "views", SPILL_OK}};
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, save, &savers[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        int saved = savers[0].code == SPILL_OK ? 0 : 1;
        assert_int_equal(savers[saved].code, SPILL_OK);
        assert_int_equal(savers[1 - saved].code, SPILL_REFUSED);
        assert_int_equal(definitions(store), 1);
        assert_int_equal(spill_store_drop(store, savers[saved].name, NULL), SPILL_OK);
    }
    pthread_barrier_destroy(&start);
}

static void threads_on_a_memory_store(void **state)
{
    (void)state;
    spill_store_t *store;
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    save_two(store);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
}

static void threads_on_an_embedded_store(void **state)
{
    (void)state;
    disk_t *disk = disk_new();
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_LOG);
    save_two(store);
    embedded_close(store);
    disk_free(disk);
}

/* ---- two handles, like two programs on a server ---------------------------------------------- */

typedef struct other {
    spill_store_t *store;
    int64_t at; /* before this call of the first program, the second one saves its definition */
    spill_code_t code;
} other_t;

static void save_other(void *context, int64_t index, const spill_request_t *request)
{
    (void)request;
    other_t *other = context;
    spill_definition_t definition;
    clashing(&definition, "views");
    if (index == other->at)
        other->code = spill_store_define(other->store, &definition, NULL);
}

/* "likes" is new, or changes so that it clashes. */
static void save_beside_another(bool is_new)
{
    for (int64_t call = 0, calls = 1; call < calls; call++) {
        other_t other = {.at = call, .code = SPILL_OK};
        fault_hooks_t hooks = {.context = &other, .before = save_other};
        spill_definition_t definition, before;
        spill_store_t *first;
        clashing(&definition, "likes");
        before = definition;
        strcpy(before.array, "likes");
        assert_int_equal(spill_store_open("memory:", NULL, &other.store, NULL), SPILL_OK);
        if (!is_new)
            assert_int_equal(spill_store_define(other.store, &before, NULL), SPILL_OK);
        fault_wrap(other.store, &hooks, &first);
        spill_code_t code = spill_store_define(first, &definition, NULL);
        calls = fault_calls(first);
        assert_true((code == SPILL_OK) != (other.code == SPILL_OK));
        assert_int_equal(code == SPILL_OK ? other.code : code, SPILL_REFUSED);
        assert_int_equal(definitions(other.store), is_new || code == SPILL_OK ? 1 : 2);
        if (!is_new && code != SPILL_OK) {
            assert_int_equal(spill_store_definition(other.store, "likes", &definition, NULL),
                             SPILL_OK);
            assert_string_equal(definition.array, "likes");
        }
        spill_store_close(first, NULL);
        spill_store_close(other.store, NULL);
    }
}

static void two_handles(void **state)
{
    (void)state;
    save_beside_another(true);
    save_beside_another(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_on_a_memory_store),
        cmocka_unit_test(threads_on_an_embedded_store),
        cmocka_unit_test(two_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
