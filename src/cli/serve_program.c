/* The program spillway-serve, which `spillway serve` starts with its own command line. */
#include "cli/cli.h"
#include "cli/process.h"
#include "cli/serve.h"
#include "gateway/gateway.h"
#include "gateway/gateway_log.h"
#include "store/raw_reader.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Find the text in a list that ends with NULL. */
static spill_code_t choose(const char *option, const char *text, const char *const *names,
                           int *choice, spill_error_t *error)
{
    for (*choice = 0; names[*choice]; ++*choice)
        if (strcmp(text, names[*choice]) == 0)
            return SPILL_OK;
    return spill_fail(error, SPILL_INVALID, "--%s is %s, %s or %s, not '%s'", option, names[0],
                      names[1], names[2], text);
}

static spill_code_t check_range(const char *option, int64_t value, int64_t least, int64_t most,
                                spill_error_t *error)
{
    if (value >= least && value <= most)
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID, "--%s must be from %" PRId64 " to %" PRId64, option,
                      least, most);
}

/* The option has its own default if it is not given: no range has -1. */
static spill_code_t check_given(const char *option, int64_t value, int64_t least, int64_t most,
                                spill_error_t *error)
{
    return value == SPILL_CLI_NOT_GIVEN ? SPILL_OK : check_range(option, value, least, most, error);
}

static int64_t value_or_zero(int64_t value)
{
    return value == SPILL_CLI_NOT_GIVEN ? 0 : value;
}

static spill_code_t check_ranges(const spill_gateway_options_t *given, spill_error_t *error)
{
    enum {
        CONNECTIONS_MAX = 1000000,
        WORKERS_MAX = 1024,
        LOOPS_MAX = 64,
        SECONDS_MAX = 86400,
        SLOW_MS_MAX = 86400000
    };
    const int64_t memory_least = 1 << 20, reply_least = 1 << 20, reply_most = 1 << 30;
    SPILL_TRY(check_given("max-connections", given->connections_max, 1, CONNECTIONS_MAX, error));
    SPILL_TRY(
        check_range("max-per-address", given->address_connections_max, 1, CONNECTIONS_MAX, error));
    SPILL_TRY(check_range("max-workers", given->workers_max, 1, WORKERS_MAX, error));
    SPILL_TRY(check_given("loops", given->loops, 1, LOOPS_MAX, error));
    SPILL_TRY(check_range("memory", given->memory_bytes, memory_least, INT64_MAX, error));
    SPILL_TRY(check_given("max-reply", given->reply_bytes_max, reply_least, reply_most, error));
    SPILL_TRY(check_range("header-timeout", given->header_seconds, 1, SECONDS_MAX, error));
    SPILL_TRY(check_range("drain", given->drain_seconds, 0, SECONDS_MAX, error));
    return check_range("slow-ms", given->slow_ms, 0, SLOW_MS_MAX, error);
}

static spill_code_t read_options(const spill_invocation_t *invocation, char uri[SPILL_CLI_URI],
                                 spill_gateway_options_t *options, spill_error_t *error)
{
    static const char *const presents[] = {"auto", "mongos", "standalone", NULL};
    static const char *const clients[] = {"none", "ask", "require", NULL};
    const spill_cli_serve_options_t *given = invocation->options;
    int present, client;
    SPILL_TRY(spill_cli_store_uri(invocation->arguments[0], uri, error));
    if (!spill_raw_reader_serves(uri))
        return spill_fail(error, SPILL_INVALID,
                          "serve needs a server's URI, such as mongodb://127.0.0.1:27017/shop");
    if (invocation->json && !given->check)
        return spill_fail(error, SPILL_INVALID, "--json needs --check; the log is always JSON");
    SPILL_TRY(choose("present", given->present, presents, &present, error));
    SPILL_TRY(choose("tls-client", given->tls_client, clients, &client, error));
    SPILL_TRY(check_ranges(&given->gateway, error));
    *options = given->gateway;
    options->connections_max = value_or_zero(options->connections_max);
    options->loops = value_or_zero(options->loops);
    options->reply_bytes_max = value_or_zero(options->reply_bytes_max);
    options->uri = uri;
    options->tls_client = (spill_tls_client_t)client;
    options->present = (spill_present_t)present;
    return SPILL_OK;
}

/* While it runs, stderr is its log, and has nothing but JSON. */
static spill_code_t run_gateway(const spill_gateway_options_t *options, spill_error_t *error)
{
    spill_cli_wrap_messages(spill_gateway_log_message);
    spill_code_t code = spill_gateway_run(options, stdout, error);
    spill_cli_wrap_messages(NULL);
    return code;
}

spill_exit_t spill_cli_serve(const spill_invocation_t *invocation)
{
    char uri[SPILL_CLI_URI];
    const spill_cli_serve_options_t *given = invocation->options;
    spill_gateway_options_t options;
    spill_error_t error;
    spill_code_t code = read_options(invocation, uri, &options, &error);
    bool found = false;
    if (code == SPILL_OK && given->check)
        code = spill_gateway_check(&options, stdout, invocation->json, &found, &error);
    else if (code == SPILL_OK)
        code = run_gateway(&options, &error);
    if (code != SPILL_OK)
        return spill_cli_fail(&error);
    char losses[SPILL_LOST_LINES_TEXT];
    if (spill_lost_lines_text(spill_gateway_lost_lines(), losses)) {
        spill_cli_say("the log: %s", losses);
        return SPILL_EXIT_FAILED;
    }
    return found ? SPILL_EXIT_FOUND : SPILL_EXIT_DONE;
}

int main(int argc, char **argv)
{
    spill_cli_prepare_process();
    spill_cli_report_lost_memory();
    spill_cli_filter_messages();
    atexit(spill_cli_check_output);
    if (argc < 2) /* argv[1] is "serve" */
        return SPILL_EXIT_USAGE;
    return (int)spill_command_run(&spill_command_serve, argc - 1, argv + 1);
}
