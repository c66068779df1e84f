/* Opening and closing the store and array of a command. */
#include "cli/cli.h"
#include "cli/server_away.h"

#include "store/raw_reader.h"
#include "tools/definition_jobs.h"
#include "tools/missing_owner.h"
#include "util/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Read the first line of a file, without blanks around it. */
static spill_code_t read_uri_file(const char *path, char uri[SPILL_CLI_URI], spill_error_t *error)
{
    struct stat about;
    FILE *file = fopen(path, "r");
    if (!file)
        return spill_fail_errno(error, errno,
                                "cannot open the file %s, whose first line should be the store (a "
                                "store whose own name begins with @ is ./@%s)",
                                path, path);
    if (fstat(fileno(file), &about) == 0 && S_ISDIR(about.st_mode)) {
        fclose(file);
        return spill_fail(
            error, SPILL_INVALID,
            "%s is a folder: behind @ comes a file whose first line is the store; name "
            "a store's folder without @",
            path);
    }
    bool found = fgets(uri, SPILL_CLI_URI, file) != NULL;
    bool cut = found && strlen(uri) == SPILL_CLI_URI - 1 && uri[SPILL_CLI_URI - 2] != '\n' &&
               !feof(file) && fgetc(file) != EOF;
    fclose(file);
    if (cut)
        return spill_fail(
            error, SPILL_INVALID,
            "%s: the first line, which should name the store, is longer than %d bytes", path,
            SPILL_CLI_URI - 1);
    size_t start = found ? strspn(uri, " \t") : 0;
    size_t length = found ? strcspn(uri + start, "\r\n") : 0;
    while (length > 0 && strchr(" \t", uri[start + length - 1]))
        length--;
    if (length == 0)
        return spill_fail(error, SPILL_INVALID,
                          "%s is empty: its first line should be a store such as rocksdb:PATH or "
                          "mongodb://HOST/DATABASE",
                          path);
    memmove(uri, uri + start, length);
    uri[length] = '\0';
    return SPILL_OK;
}

bool spill_cli_names_uri(const char *text)
{
    return text[0] == '@' || strcmp(text, "env:") == 0;
}

/* Until 0.2, "-" named the variable. Elsewhere it is stdin. */
static void warn_of_dash(void)
{
    static bool warned;
    if (!warned)
        spill_cli_say("'-' as a store will mean nothing in the next release: write 'env:' for the "
                      "environment variable SPILLWAY_URI");
    warned = true;
}

static spill_code_t find_uri(const char *text, char uri[SPILL_CLI_URI], spill_error_t *error)
{
    if (text[0] == '@')
        return read_uri_file(text + 1, uri, error);
    if (strcmp(text, "-") == 0)
        warn_of_dash();
    if (strcmp(text, "-") == 0 || strcmp(text, "env:") == 0) {
        const char *given = text;
        text = getenv("SPILLWAY_URI");
        if (!text || text[0] == '\0')
            return spill_fail(error, SPILL_INVALID,
                              "STORE is %s, but the environment variable SPILLWAY_URI is not set",
                              given);
    }
    if (text[0] == '\0' || strlen(text) >= SPILL_CLI_URI)
        return spill_fail(error, SPILL_INVALID, "STORE is empty or too long");
    strcpy(uri, text);
    return SPILL_OK;
}

spill_code_t spill_cli_store_uri(const char *text, char uri[SPILL_CLI_URI], spill_error_t *error)
{
    SPILL_TRY(find_uri(text, uri, error));
    spill_cli_note_server(uri);
    return SPILL_OK;
}

void spill_cli_print_log(void *context, spill_log_level_t level, const char *message)
{
    const spill_invocation_t *invocation = context;
    if (level <= SPILL_LOG_WARNING || (invocation && invocation->verbose))
        spill_cli_say("%s", message);
}

void spill_cli_set_mode(unsigned file_mode)
{
    umask(~(file_mode | (file_mode & 0444U) >> 2U) & 0777U);
}

/* An existing store keeps its permissions: new files get the mode of its file SPILLWAY. */
static void follow_store(const spill_invocation_t *invocation, const char *uri)
{
    static const char SCHEME[] = "rocksdb:";
    struct stat about;
    const char *path = strncmp(uri, SCHEME, strlen(SCHEME)) == 0 ? uri + strlen(SCHEME) : uri;
    char *mark = bson_strdup_printf("%s/SPILLWAY", path);
    if (!invocation->mode_given && lstat(mark, &about) == 0 && S_ISREG(about.st_mode))
        spill_cli_set_mode(about.st_mode & 0666U);
    bson_free(mark);
}

spill_code_t spill_cli_open_store(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                  spill_store_t **store, spill_error_t *error)
{
    *store = NULL;
    char uri[SPILL_CLI_URI];
    SPILL_TRY(spill_cli_store_uri(invocation->arguments[0], uri, error));
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.read_only = mode == SPILL_CLI_READ;
    options.partial = options.read_only && invocation->partial;
    options.must_exist = mode != SPILL_CLI_CREATE;
    options.durability = invocation->durability;
    options.log = spill_cli_print_log;
    options.log_context = (void *)(uintptr_t)invocation;
    options.file_mode = invocation->mode;
    if (mode != SPILL_CLI_READ)
        follow_store(invocation, uri);
    if (invocation->verbose)
        spill_cli_say("opening %s to %s", uri, mode == SPILL_CLI_READ ? "read" : "write");
    return spill_store_open(uri, &options, store, error);
}

spill_code_t spill_cli_reach_server(const char *uri, const char *preference, spill_error_t *error)
{
    spill_raw_reader_t *reader = NULL;
    char **names = NULL;
    if (!spill_raw_reader_serves(uri))
        return SPILL_OK;
    spill_code_t code = spill_raw_reader_open(uri, preference, &reader, error);
    if (code == SPILL_OK)
        code = spill_raw_reader_collections(reader, &names, error);
    bson_strfreev(names);
    spill_raw_reader_close(reader);
    return code == SPILL_DENIED ? SPILL_OK
                                : code; /* a server that refuses the command is reached */
}

/* STORE NAME: open both. On an error both are NULL. */
static spill_code_t open_array(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                               spill_store_t **store, spill_array_t **array, spill_error_t *error)
{
    *array = NULL;
    spill_code_t code = spill_cli_open_store(invocation, mode, store, error);
    if (code == SPILL_OK)
        code = spill_array_open(*store, invocation->arguments[1], array, error);
    if (code != SPILL_OK) {
        spill_store_close(*store, NULL);
        *store = NULL;
    }
    return code;
}

spill_exit_t spill_cli_close(spill_array_t *array, spill_store_t *store, spill_code_t code,
                             spill_error_t *error)
{
    if (code == SPILL_OK)
        code = spill_cli_flush(error);
    spill_array_close(array);
    spill_error_t closing;
    if (spill_store_close(store, &closing) != SPILL_OK && code == SPILL_OK) {
        code = closing.code;
        *error = closing;
    }
    return code == SPILL_OK ? SPILL_EXIT_DONE : spill_cli_fail(error);
}

static spill_exit_t work_in_session(spill_cli_session_t *session, spill_cli_mode_t mode,
                                    spill_cli_work_fn work)
{
    spill_error_t error;
    spill_code_t code =
        open_array(session->invocation, mode, &session->store, &session->array, &error);
    if (code == SPILL_OK) {
        spill_cli_walk_start(&session->walk, session->invocation, session->store,
                             session->owner ? NULL : session->invocation->command->walked);
        code = work(session, &error);
        code = spill_cli_walk_end(&session->walk, session->store, code, &error);
    }
    spill_exit_t closed = spill_cli_close(session->array, session->store, code, &error);
    return closed == SPILL_EXIT_DONE && session->found ? SPILL_EXIT_FOUND : closed;
}

spill_exit_t spill_cli_with_array(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                  spill_cli_work_fn work)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner;
    spill_cli_session_t session = {.invocation = invocation};
    spill_exit_t result = SPILL_EXIT_USAGE;
    bool has_owner = invocation->argument_count > 2;
    if (!has_owner ||
        spill_cli_parse_owner(invocation, invocation->arguments[2], &storage, &owner)) {
        session.owner = has_owner ? &owner : NULL;
        result = work_in_session(&session, mode, work);
    }
    bson_destroy(&storage);
    return result;
}

static spill_code_t work_on_array(spill_cli_session_t *session, const char *name,
                                  spill_cli_work_fn work, spill_error_t *error)
{
    spill_code_t code = spill_array_open(session->store, name, &session->array, error);
    if (code == SPILL_OK)
        code = work(session, error);
    spill_array_close(session->array);
    return code;
}

static spill_code_t work_on_each(spill_cli_session_t *session, spill_cli_work_fn work,
                                 spill_error_t *error)
{
    spill_definition_t *definitions = NULL;
    size_t count = 0;
    spill_code_t damage = SPILL_OK;
    spill_code_t code = spill_store_definitions(session->store, &definitions, &count, error);
    for (size_t i = 0; code == SPILL_OK && i < count; i++) {
        spill_error_t late;
        code = work_on_array(session, definitions[i].name, work, &late);
        if (code != SPILL_OK)
            *error = late;
        if (code == SPILL_CORRUPT) {
            damage = code;
            code = SPILL_OK;
        }
    }
    bson_free(definitions);
    return code == SPILL_OK ? damage : code;
}

spill_code_t spill_cli_work_on_arrays(spill_cli_session_t *session, spill_cli_work_fn work,
                                      spill_error_t *error)
{
    const spill_invocation_t *invocation = session->invocation;
    spill_cli_walk_start(&session->walk, invocation, session->store, invocation->command->walked);
    spill_code_t code = invocation->argument_count > 1
                            ? work_on_array(session, invocation->arguments[1], work, error)
                            : work_on_each(session, work, error);
    return spill_cli_walk_end(&session->walk, session->store, code, error);
}

spill_exit_t spill_cli_with_arrays(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                   spill_cli_work_fn work, void *context)
{
    spill_error_t error;
    spill_cli_session_t session = {.invocation = invocation, .context = context};
    spill_code_t code = spill_cli_open_store(invocation, mode, &session.store, &error);
    if (code == SPILL_OK)
        code = spill_cli_work_on_arrays(&session, work, &error);
    spill_exit_t closed = spill_cli_close(NULL, session.store, code, &error);
    return closed == SPILL_EXIT_DONE && session.found ? SPILL_EXIT_FOUND : closed;
}

spill_exit_t spill_cli_with_file(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                 spill_cli_work_fn work, void *context)
{
    spill_cli_session_t session = {.invocation = invocation, .context = context};
    return work_in_session(&session, mode, work);
}

spill_code_t spill_cli_no_owner(const spill_cli_session_t *session, spill_error_t *error)
{
    return spill_fail_no_owner(spill_array_get_definition(session->array)->name, session->owner,
                               error);
}

spill_code_t spill_cli_check_owner(const spill_cli_session_t *session, spill_error_t *error)
{
    spill_count_t count;
    SPILL_TRY(spill_array_count(session->array, session->owner, &count, error));
    return count.exists ? SPILL_OK : spill_cli_no_owner(session, error);
}
