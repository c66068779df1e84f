/* The table of serve's options. */
#include "cli/serve.h"

#define OPTION(kind, member) kind, offsetof(spill_cli_serve_options_t, member)

static const spill_option_t serve_options[] = {
    {"listen", "ADDRESS[:PORT]", OPTION(SPILL_OPTION_TEXT, gateway.listen),
     "Where clients connect (127.0.0.1:27018); gateways of one database may share it"},
    {"check", NULL, OPTION(SPILL_OPTION_FLAG, check),
     "Connect to the server, print what would be served, and end; exit code 1: a definition is not "
     "served"},
    {"metrics", "[ADDRESS:]PORT", OPTION(SPILL_OPTION_TEXT, gateway.metrics),
     "Serve a status page, /metrics (Prometheus) and /healthz by HTTP; without ADDRESS on "
     "127.0.0.1"},
    {"show-owners", NULL, OPTION(SPILL_OPTION_FLAG, gateway.shows_owners),
     "Show the _id of the busiest owners on the status page, instead of a hash"},
    {"tls-cert", "FILE", OPTION(SPILL_OPTION_TEXT, gateway.tls_certificate),
     "Clients connect with TLS, and this is the gateway's certificate (PEM)"},
    {"tls-key", "FILE", OPTION(SPILL_OPTION_TEXT, gateway.tls_key),
     "Its private key (PEM); without it, the file of --tls-cert has both"},
    {"tls-ca", "FILE", OPTION(SPILL_OPTION_TEXT, gateway.tls_authority),
     "The authority that signs clients' certificates (PEM)"},
    {"tls-client", "none|ask|require", OPTION(SPILL_OPTION_TEXT, tls_client),
     "Ask clients for no certificate (none), check it if it comes, or require one"},
    {"present", "auto|mongos|standalone", OPTION(SPILL_OPTION_TEXT, present),
     "What drivers take the gateway for; auto: mongos in front of a replica set or a sharded "
     "cluster, else a standalone server"},
    {"max-connections", "N", OPTION(SPILL_OPTION_NUMBER, gateway.connections_max),
     "Connections of clients (10000, or as many as the limit of open files permits)"},
    {"max-per-address", "N", OPTION(SPILL_OPTION_NUMBER, gateway.address_connections_max),
     "Connections from one address (1000)"},
    {"max-workers", "N", OPTION(SPILL_OPTION_NUMBER, gateway.workers_max),
     "Commands on served collections that run at a time (64)"},
    {"loops", "N", OPTION(SPILL_OPTION_NUMBER, gateway.loops),
     "Threads that relay (one for each core)"},
    {"memory", "SIZE", OPTION(SPILL_OPTION_SIZE, gateway.memory_bytes),
     "Memory for messages that cannot be passed on in pieces (1GiB); above it, clients get a "
     "retryable error"},
    {"max-reply", "SIZE", OPTION(SPILL_OPTION_SIZE, gateway.reply_bytes_max),
     "The longest message, in both directions (the server's maxMessageSizeBytes)"},
    {"header-timeout", "SECONDS", OPTION(SPILL_OPTION_NUMBER, gateway.header_seconds),
     "Close a client that pauses this long within a message (10)"},
    {"drain", "SECONDS", OPTION(SPILL_OPTION_NUMBER, gateway.drain_seconds),
     "After SIGTERM, the time for commands to end (30)"},
    {"slow-ms", "N", OPTION(SPILL_OPTION_NUMBER, gateway.slow_ms),
     "Log commands that take N milliseconds or longer: name, namespace, class, time (0: none)"},
    {0}};

static const spill_cli_serve_options_t serve_defaults = {
    .gateway = {.listen = "127.0.0.1",
                .connections_max = SPILL_CLI_NOT_GIVEN,
                .address_connections_max = 1000,
                .workers_max = 64,
                .loops = SPILL_CLI_NOT_GIVEN,
                .reply_bytes_max = SPILL_CLI_NOT_GIVEN,
                .memory_bytes = 1 << 30,
                .header_seconds = 10,
                .drain_seconds = 30},
    .tls_client = "none",
    .present = "auto",
};

const spill_command_t spill_command_serve = {
    .name = "serve",
    .arguments = "URI",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Serve a database to any MongoDB driver, with arrays past 16 MB",
    .text =
        "URI is the server's: mongodb://HOST:PORT/DATABASE, @FILE or env:. Applications connect "
        "to the gateway with the driver that they have. Collections of DATABASE with a "
        "definition get their arrays served; everything else is relayed unchanged. Users log "
        "in with their own names and passwords, and keep their rights.\n"
        "\n"
        "--json is for --check. The log is always JSON.\n"
        "\n"
        "SIGTERM: stop listening, let commands end, end. SIGHUP: read certificates and "
        "definitions again.\n"
        "\n"
        "Example:\n"
        "  spillway serve mongodb://127.0.0.1:27017/shop --listen 127.0.0.1:27018\n"
        "\n"
        "Then connect the application to mongodb://127.0.0.1:27018/shop.",
    .options = serve_options,
    .defaults = &serve_defaults,
    .options_bytes = sizeof(spill_cli_serve_options_t),
    .run = spill_cli_serve};
