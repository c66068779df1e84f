/* Every operation on a server that refuses one command (support/interrupted.h). */
#include "support/effort.h"
#include "support/interrupted.h"
#include "support/proxy.h"
#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int64_t now_us(void *context)
{
    int64_t *clock_us = context;
    return *clock_us += 1000;
}

static void sleep_us(void *context, int64_t duration_us)
{
    int64_t *clock_us = context;
    *clock_us += duration_us;
}

static void arm(void *context, int way, int64_t at)
{
    proxy_answer(context, at, way == 0 ? PROXY_NOT_DONE : PROXY_PERHAPS);
}

static bool disarm(void *context)
{
    return proxy_cancel_answer(context);
}

static void every_command_fails(void **state)
{
    (void)state;
    static const char *const ways[] = {"not done", "perhaps", NULL};
    int64_t clock_us = INT64_C(1767225600000000);
    spill_store_options_t options;
    spill_error_t error;
    char *direct = server_new_database("retryReads=false&retryWrites=false");
    proxy_t *proxy = proxy_start(server_uri());
    char *uri = proxy_uri(proxy, direct);
    interrupted_t interrupted = {.context = proxy,
                                 .ways = ways,
                                 .way_of_writes = -1,
                                 .arm = arm,
                                 .disarm = disarm,
                                 .slow = true};
    spill_store_options_init(&options);
    options.clock = (spill_clock_t){.context = &clock_us, .now_us = now_us, .sleep_us = sleep_us};
    if (spill_store_open(uri, &options, &interrupted.store, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    assert_true(interrupted_play(&interrupted) > effort(200, 60, 60));
    server_close(interrupted.store);
    bson_free(uri);
    proxy_stop(proxy);
    server_drop(direct);
    bson_free(direct);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_command_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
