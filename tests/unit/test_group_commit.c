/* The commits of the embedded store, with one thread; tests/race has many. */
#include "store/embedded/group_commit.h"
#include "store/embedded/kv.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Put the key "k", and end with the code that the context has. */
static spill_code_t put_and_end(void *context, spill_batch_t *batch, spill_error_t *error)
{
    const spill_code_t *code = context;
    (void)error;
    spill_batch_put(batch, (const uint8_t *)"k", 1, "v", 1);
    return *code;
}

static bool has_key(spill_kv_t *kv)
{
    spill_buffer_t value = SPILL_BUFFER_INIT;
    bool found = false;
    assert_int_equal(kv->ops->get(kv, (const uint8_t *)"k", 1, &value, &found, NULL), SPILL_OK);
    spill_buffer_release(&value);
    return found;
}

static void failed_job_changes_nothing(void **state)
{
    (void)state;
    spill_group_commit_t writer;
    atomic_llong commits = 0, syncs = 0;
    spill_code_t fails = SPILL_IO, passes = SPILL_OK;
    spill_kv_t *kv = spill_kv_memory_new();
    spill_group_commit_init(&writer, kv, false, &commits, &syncs);
    assert_int_equal(spill_group_commit_run(&writer, put_and_end, &fails, false, NULL), SPILL_IO);
    assert_false(has_key(kv));
    assert_int_equal(spill_group_commit_run(&writer, put_and_end, &passes, false, NULL), SPILL_OK);
    assert_true(has_key(kv));
    spill_group_commit_release(&writer);
    assert_int_equal(kv->ops->close(kv, NULL), SPILL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_job_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
