/* Open a store: its options, and which store a URI names. */
#include "store/store.h"

#include "util/error.h"
#include "util/redact.h"

#include <ctype.h>
#include <string.h>

enum { CACHE_BYTES_DEFAULT = 64 * 1024 * 1024 };

void spill_store_options_init(spill_store_options_t *options)
{
    if (options == NULL)
        return;
    *options = (spill_store_options_t){
        .version = SPILL_STORE_OPTIONS_VERSION,
        .durability = SPILL_DURABILITY_FSYNC,
        .cache_bytes = CACHE_BYTES_DEFAULT,
        .file_mode = 0600,
    };
}

spill_code_t spill_store_options_check(const spill_store_options_t *options, spill_error_t *error)
{
    if (options->version != SPILL_STORE_OPTIONS_VERSION)
        return spill_fail(error, SPILL_INVALID,
                          "store options have version %d, but this library needs version %d: "
                          "initialize them with spill_store_options_init",
                          options->version, SPILL_STORE_OPTIONS_VERSION);
    if (options->durability != SPILL_DURABILITY_FSYNC &&
        options->durability != SPILL_DURABILITY_LOG)
        return spill_fail(error, SPILL_INVALID, "store options: there is no durability %d",
                          (int)options->durability);
    if (options->partial && !options->read_only)
        return spill_fail(error, SPILL_INVALID,
                          "store options: a partial open only reads: set read_only, too");
    if (options->cache_bytes < 0)
        return spill_fail(error, SPILL_INVALID, "store options: cache_bytes is %lld, below 0",
                          (long long)options->cache_bytes);
    if ((options->file_mode & 0600U) != 0600U || (options->file_mode & ~0666U) != 0)
        return spill_fail(error, SPILL_INVALID,
                          "store options: file_mode %#o must include 0600 and no bit outside 0666",
                          options->file_mode);
    return SPILL_OK;
}

/* Length of the scheme at the start of a URI ("memory" in "memory:"), or 0 if it is a path. */
static size_t scheme_length(const char *uri)
{
    if (!isalpha((unsigned char)uri[0]))
        return 0;
    size_t length =
        strspn(uri, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    return uri[length] == ':' ? length : 0;
}

static bool has_scheme(const char *uri, size_t length, const char *scheme)
{
    return length == strlen(scheme) && strncmp(uri, scheme, length) == 0;
}

static spill_code_t open_path(const char *path, const spill_store_options_t *options,
                              spill_store_t **store, spill_error_t *error)
{
    if (path[0] == '\0')
        return spill_fail(error, SPILL_INVALID,
                          "a store needs a name: \"rocksdb:PATH\", a path, or \"memory:\"");
    return spill_embedded_open(path, options, store, error);
}

spill_code_t spill_store_open(const char *uri, const spill_store_options_t *options,
                              spill_store_t **store, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, store);
    *store = NULL;
    SPILL_CHECK_POINTERS(error, uri);
    spill_store_options_t defaults;
    spill_store_options_init(&defaults);
    if (!options)
        options = &defaults;
    spill_code_t code = spill_store_options_check(options, error);
    if (code != SPILL_OK)
        return code;
    size_t length = scheme_length(uri);
    bool on_server = has_scheme(uri, length, "mongodb") || has_scheme(uri, length, "mongodb+srv");
    if (!on_server && uri[0] != '/' && uri[0] != '.' && spill_resembles_secret_uri(uri))
        return spill_fail(error, SPILL_INVALID,
                          "%s resembles a connection string, but does not begin with mongodb:// or "
                          "mongodb+srv:// (a path may begin with \"./\")",
                          uri);
    if (length == 0)
        return open_path(uri, options, store, error);
    if (has_scheme(uri, length, "rocksdb"))
        return open_path(uri + length + 1, options, store, error);
    if (has_scheme(uri, length, "memory") && uri[length + 1] != '\0')
        return spill_fail(error, SPILL_INVALID,
                          "\"%.64s\": a store in memory has no name, and each open makes another "
                          "one: use \"memory:\"",
                          uri);
    if (has_scheme(uri, length, "memory"))
        return spill_memory_open(uri, options, store, error);
    if (on_server)
        return spill_mongo_open(uri, options, store, error);
    return spill_fail(
        error, SPILL_INVALID,
        "stores of scheme \"%.*s:\" are not supported: use \"rocksdb:PATH\", a path, "
        "\"mongodb://HOST/DATABASE\", or \"memory:\" (a path with a colon may begin with \"./\")",
        (int)(length < 64 ? length : 64), uri);
}

spill_code_t spill_store_cut_log(const char *uri, bool look_only, spill_log_loss_fn report,
                                 void *context, spill_log_cut_t *cut, spill_error_t *error)
{
    if (cut)
        *cut = (spill_log_cut_t){.version = SPILL_LOG_CUT_VERSION};
    SPILL_CHECK_POINTERS(error, uri, cut);
    size_t length = scheme_length(uri);
    if (length == 0)
        return spill_embedded_cut_log(uri, look_only, report, context, cut, error);
    if (has_scheme(uri, length, "rocksdb"))
        return spill_embedded_cut_log(uri + length + 1, look_only, report, context, cut, error);
    return SPILL_OK;
}
