/* The command line: values of arguments, and options from a command's table to an invocation. */
#include "cli/cli.h"
#include "cli/fold.h"
#include "cli/hint.h"

#include "bson/value.h"
#include "definition/schema.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/estimate.h"
#include "util/redact.h"

#include <argp.h>
#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NUMBER_MAX (INT64_C(1) << 53)

static const struct {
    const char *suffix;
    int64_t factor;
} UNITS[] = {{"", 1},
             {"B", 1},
             {"KB", 1000},
             {"MB", 1000 * 1000},
             {"GB", 1000 * 1000 * 1000},
             {"KiB", 1 << 10},
             {"MiB", 1 << 20},
             {"GiB", 1 << 30}};

/* Parse digits only; *rest is what follows them. */
static bool parse_digits(const char *text, int64_t *number, const char **rest)
{
    *number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        *number = *number * 10 + (*at - '0');
        if (*number > NUMBER_MAX)
            return false;
    }
    *rest = at;
    return at != text;
}

bool spill_cli_parse_number(const char *text, int64_t *number)
{
    const char *rest = NULL;
    return parse_digits(text, number, &rest) && *rest == '\0';
}

bool spill_cli_parse_size(const char *text, int64_t *size)
{
    const char *rest = NULL;
    if (!parse_digits(text, size, &rest))
        return false;
    rest += *rest == ' ';
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++)
        if (strcasecmp(rest, UNITS[i].suffix) == 0)
            return !__builtin_mul_overflow(*size, UNITS[i].factor, size) && *size <= NUMBER_MAX;
    return false;
}

/* The reason if the digits of `text`, which no number of JSON has, are no plain word; else NULL. */
static const char *no_integer(const char *text)
{
    size_t sign = text[0] == '-';
    size_t digits = strspn(text + sign, "0123456789");
    if (digits == 0 || text[sign + digits] != '\0')
        return NULL;
    return text[sign] == '0' ? "is not a number, because it begins with 0"
                             : "does not fit into 64 bits";
}

bool spill_cli_parse_owner(const spill_invocation_t *invocation, const char *text, bson_t *storage,
                           spill_value_t *owner)
{
    spill_error_t error;
    if (spill_value_from_json(text, strlen(text), storage, owner, &error) == SPILL_OK)
        return true;
    const char *reason = no_integer(text);
    if (reason) {
        spill_cli_usage(invocation,
                        "OWNER: %s %s; if it is meant as text, write it in quotes: '\"%s\"'", text,
                        reason, text);
        return false;
    }
    if (text[0] == '{' || text[0] == '[' || text[0] == '"') {
        spill_cli_usage(invocation, "OWNER: %s", error.message);
        return false;
    }
    if (!bson_utf8_validate(text, strlen(text), false)) {
        spill_cli_usage(invocation, "OWNER is not UTF-8");
        return false;
    }
    bson_reinit(storage);
    *owner = spill_value_from_utf8(storage, text);
    return true;
}

bool spill_cli_parse_element(const spill_invocation_t *invocation, const char *text,
                             bson_t *storage, spill_value_t *element)
{
    spill_error_t error;
    if (spill_value_from_json(text, strlen(text), storage, element, &error) == SPILL_OK)
        return true;
    char *shown = spill_redact(text); /* redact before cutting */
    spill_cli_usage(invocation,
                    "'%.60s%s' is not Extended JSON: %s; a string needs quotes: '\"text\"'", shown,
                    strlen(shown) > 60 ? "..." : "", error.message);
    bson_free(shown);
    return false;
}

bool spill_cli_parse_id(const spill_invocation_t *invocation, const char *text)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t id;
    bool good = spill_cli_parse_element(invocation, text, &storage, &id);
    bson_destroy(&storage);
    return good;
}

/* ---- times and durations --------------------------------------------------------------------- */

bool spill_cli_parse_duration(const char *text, int64_t *seconds)
{
    static const struct {
        const char *unit;
        int64_t seconds;
    } units[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 7 * 86400}};
    size_t digits = strspn(text, "0123456789");
    char number[20];
    if (digits == 0 || digits >= sizeof number)
        return false;
    memcpy(number, text, digits);
    number[digits] = '\0';
    if (!spill_cli_parse_number(number, seconds))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(text + digits, units[i].unit) == 0)
            return !__builtin_mul_overflow(*seconds, units[i].seconds, seconds);
    return false;
}

bool spill_cli_parse_time(const char *text, int64_t now_ms, int64_t *time_ms)
{
    int64_t seconds;
    if (spill_cli_parse_duration(text, &seconds))
        return !__builtin_mul_overflow(seconds, 1000, time_ms) &&
               !__builtin_sub_overflow(now_ms, *time_ms, time_ms);
    if (strspn(text, "0123456789-+:.TZ") != strlen(text))
        return false;
    bool day = strlen(text) == strlen("2025-01-31");
    char *json = bson_strdup_printf("{\"$date\": \"%s%s\"}", text, day ? "T00:00:00Z" : "");
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    bool good = spill_value_from_json(json, strlen(json), &storage, &value, NULL) == SPILL_OK &&
                value.type == BSON_TYPE_DATE_TIME;
    if (good)
        *time_ms = spill_value_int64(&value);
    bson_destroy(&storage);
    bson_free(json);
    return good;
}

/* ---- options of a definition ----------------------------------------------------------------- */

spill_code_t spill_cli_layout(const char *name, spill_layout_t *layout, spill_error_t *error)
{
    if (!name || spill_layout_of_name(name, layout))
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "there is no layout '%s'; the layouts are: outlier, capped, reference, "
                      "subset, bucket",
                      name);
}

spill_code_t spill_cli_keep(const char *name, spill_keep_t *keep, spill_error_t *error)
{
    if (!name || spill_keep_of_name(name, keep))
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID, "--keep must be 'newest' or 'oldest', not '%s'", name);
}

/* ---- options --------------------------------------------------------------------------------- */

#define OPTION_KEY_FIRST 0x100 /* above every character: these options have no short form */
#define OPTIONS_MAX 64

/* Keys of options that several commands share: this, and their place in the table. */
#define COMMON_KEY_FIRST 0x200

enum { AT_JSON, AT_QUIET, AT_VERBOSE, AT_COLOR, AT_DRY_RUN, AT_DURABILITY, AT_PARTIAL, AT_MODE };

const spill_common_option_t spill_common_options[] = {
    [AT_JSON] = {0, 0, "json", NULL, "Print JSON, one document per line"},
    [AT_QUIET] = {0, 'q', "quiet", NULL, "Print no progress and no remarks"},
    [AT_VERBOSE] = {0, 'v', "verbose", NULL,
                    "Also print which store is opened, what it reports, and the time taken"},
    [AT_COLOR] = {0, 0, "color", "auto|always|never",
                  "Colours in text: on a terminal unless NO_COLOR is set (auto)"},
    [AT_DRY_RUN] = {SPILL_COMMON_DRY_RUN, 'n', "dry-run", NULL,
                    "Change nothing: check, and print what would be done"},
    [AT_DURABILITY] = {SPILL_COMMON_DURABILITY, 0, "durability", "fsync|log",
                       "What a write survives once it is acknowledged: a power loss (fsync) or "
                       "the death of the process (log)"},
    [AT_PARTIAL] = {SPILL_COMMON_PARTIAL, 0, "partial", NULL,
                    "If files of an embedded store are damaged, warn and use what can be read; "
                    "without this option the command fails (exit code 3)"},
    [AT_MODE] = {SPILL_COMMON_MODE, 0, "mode", "MODE",
                 "Permissions of created files, in octal (0600); folders also get x where files "
                 "have r"},
    {0}};

bool spill_common_belongs(const spill_common_option_t *option, const spill_command_t *command)
{
    if (option == &spill_common_options[AT_JSON])
        return !(command->common & SPILL_COMMON_NO_JSON);
    return option->flag == 0 || (command->common & option->flag) != 0;
}

enum { COMMON_COUNT = sizeof spill_common_options / sizeof *spill_common_options - 1 };

typedef struct parse {
    spill_invocation_t *invocation;
    char *options;                  /* the command's struct, being filled */
    const spill_command_t *advised; /* NULL: the advice was printed */
} parse_t;

/* Report a wrong command line, and end the program. */
__attribute__((format(printf, 2, 3))) static void usage_error(const struct argp_state *state,
                                                              const char *format, ...)
{
    const parse_t *parse = state->input;
    va_list arguments;
    va_start(arguments, format);
    char *text = bson_strdupv_printf(format, arguments);
    va_end(arguments);
    const spill_exit_t status = spill_cli_usage(parse->invocation, "%s", text);
    bson_free(text);
    exit((int)status);
}

/* getopt reports its own findings. argp then writes its own advice: write ours instead. */
static ssize_t write_advice(void *context, const char *text, size_t size)
{
    const spill_command_t **command = context;
    (void)text;
    if (*command)
        fprintf(stderr, "Try 'spillway %s --help'.\n", (*command)->name);
    *command = NULL; /* once */
    return (ssize_t)size;
}

static FILE *open_advice(const spill_command_t **command)
{
    const cookie_io_functions_t functions = {.write = write_advice};
    FILE *stream = fopencookie(command, "w", functions);
    return stream ? stream : stderr;
}

static error_t store_option(const spill_option_t *option, char *argument, char *options,
                            struct argp_state *state)
{
    void *place = options + option->offset;
    int64_t number = INT64_MAX;
    switch (option->kind) {
    case SPILL_OPTION_FLAG:
        *(bool *)place = true;
        return 0;
    case SPILL_OPTION_TEXT:
        *(const char **)place = argument;
        return 0;
    case SPILL_OPTION_OLD_NAME: /* option_of returns the row of the new name */
        return 0;
    case SPILL_OPTION_SIZE:
        if (!spill_cli_parse_size(argument, &number))
            usage_error(state, "--%s: '%s' is not a size such as 200000, 200KB or 16MiB",
                        option->name, argument);
        break;
    case SPILL_OPTION_LIMIT:
    case SPILL_OPTION_NUMBER:
        if (argument && !spill_cli_parse_number(argument, &number))
            usage_error(state, "--%s: '%s' is not " SPILL_CLI_NUMBER, option->name, argument);
        break;
    }
    *(int64_t *)place = number;
    return 0;
}

/*
 * No option begins with a digit, so "-5" is a number. A blank in front prevents argp from parsing
 * it as an option; show_number removes the blank.
 */
static char *hide_number(const char *argument)
{
    bool number = argument[0] == '-' && isdigit((unsigned char)argument[1]);
    return bson_strdup_printf("%s%s", number ? " " : "", argument);
}

static char *show_number(char *argument)
{
    bool hidden =
        argument && argument[0] == ' ' && argument[1] == '-' && isdigit((unsigned char)argument[2]);
    return hidden ? argument + 1 : argument;
}

static void set_durability(const char *argument, spill_invocation_t *invocation,
                           struct argp_state *state)
{
    if (strcmp(argument, "fsync") == 0)
        invocation->durability = SPILL_DURABILITY_FSYNC;
    else if (strcmp(argument, "log") == 0)
        invocation->durability = SPILL_DURABILITY_LOG;
    else
        usage_error(state, "--durability is 'fsync' or 'log', not '%s'", argument);
}

/* The engine creates its files without write permission for other users. */
static void set_mode(const char *argument, spill_invocation_t *invocation, struct argp_state *state)
{
    char *end;
    unsigned long mode = strtoul(argument, &end, 8);
    size_t digits = strspn(argument, "01234567");
    if (digits < 3 || digits > 4 || *end || (mode & 0600) != 0600 || (mode & ~0644UL) != 0)
        usage_error(state,
                    "--mode '%s' must be 0600, 0640, 0604 or 0644: the owner reads and writes, "
                    "others may only read",
                    argument);
    invocation->mode = (unsigned)mode;
    invocation->mode_given = true;
}

/* The only short form is the one that every tool has. An old name has the key of the new one. */
static int key_of(const spill_command_t *command, const spill_option_t *option)
{
    const char *name = option->kind == SPILL_OPTION_OLD_NAME ? option->argument : option->name;
    int index = 0;
    while (strcmp(command->options[index].name, name) != 0)
        index++;
    return strcmp(name, "output") == 0 ? 'o' : OPTION_KEY_FIRST + index;
}

static const spill_option_t *option_of(const spill_command_t *command, int key)
{
    for (const spill_option_t *option = command->options; option && option->name; option++)
        if (key_of(command, option) == key && option->kind != SPILL_OPTION_OLD_NAME)
            return option;
    return NULL;
}

static int common_key(size_t at)
{
    char letter = spill_common_options[at].letter;
    return letter ? letter : COMMON_KEY_FIRST + (int)at;
}

/* Store an option that several commands share. False: the key is of another one. */
static bool store_common(int key, char *argument, spill_invocation_t *invocation,
                         struct argp_state *state)
{
    size_t at = 0;
    while (at < COMMON_COUNT && common_key(at) != key)
        at++;
    switch (at) {
    case AT_JSON:
        invocation->json = true;
        break;
    case AT_QUIET:
        invocation->quiet = true;
        break;
    case AT_VERBOSE:
        invocation->verbose = true;
        break;
    case AT_COLOR:
        if (!spill_cli_choose_color(argument))
            usage_error(state, "--color is auto, always or never, not '%s'", argument);
        break;
    case AT_DRY_RUN:
        invocation->dry_run = true;
        break;
    case AT_DURABILITY:
        set_durability(argument, invocation, state);
        break;
    case AT_PARTIAL:
        invocation->partial = true;
        break;
    case AT_MODE:
        set_mode(argument, invocation, state);
        break;
    default:
        return false;
    }
    return true;
}

/* May the word be the value of the option? */
static bool is_value_of(const spill_option_t *option, const char *word)
{
    int64_t number;
    const char *argument = option->argument ? option->argument : "";
    bool takes_time = strcmp(argument, "TIME") == 0 || strcmp(argument, "DURATION") == 0;
    bool is_number = spill_cli_parse_number(word, &number);
    switch (option->kind) {
    case SPILL_OPTION_NUMBER:
    case SPILL_OPTION_LIMIT:
        return is_number;
    case SPILL_OPTION_SIZE:
        return !is_number && spill_cli_parse_size(word, &number);
    case SPILL_OPTION_TEXT:
        return takes_time && !is_number && spill_cli_parse_time(word, 0, &number);
    default:
        return false;
    }
}

static error_t parse_key(int key, char *argument, struct argp_state *state)
{
    parse_t *parse = state->input;
    spill_invocation_t *invocation = parse->invocation;
    const spill_command_t *command = invocation->command;
    const spill_option_t *option;
    char hint[SPILL_CLI_HINT_SIZE];
    argument = show_number(argument);
    switch (key) {
    case ARGP_KEY_INIT:
        parse->advised = command;
        state->err_stream = open_advice(&parse->advised);
        return 0;
    case ARGP_KEY_FINI:
        if (state->err_stream != stderr)
            fclose(state->err_stream);
        return 0;
    case 'h':
        argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
        return 0;
    case ARGP_KEY_ARG:
        if (invocation->argument_count == command->arguments_max) {
            spill_cli_hint_argument(command, argument, is_value_of, hint);
            usage_error(state, "'%s' is one argument too many: %s%s", argument, command->arguments,
                        hint);
        }
        invocation->arguments[invocation->argument_count++] = argument;
        return 0;
    case ARGP_KEY_END:
        if (invocation->argument_count < command->arguments_min)
            usage_error(state, "arguments are missing: %s", command->arguments);
        return 0;
    default:
        if (store_common(key, argument, invocation, state))
            return 0;
        option = option_of(command, key);
        return option ? store_option(option, argument, parse->options, state) : ARGP_ERR_UNKNOWN;
    }
}

static size_t add_common(const spill_command_t *command, struct argp_option *rows, size_t count)
{
    for (size_t at = 0; at < COMMON_COUNT; at++) {
        const spill_common_option_t *common = &spill_common_options[at];
        if (spill_common_belongs(common, command))
            rows[count++] = (struct argp_option){.name = common->name,
                                                 .key = common_key(at),
                                                 .arg = common->argument,
                                                 .doc = common->help};
    }
    return count;
}

static void fill_rows(const spill_command_t *command, struct argp_option *rows)
{
    size_t count = 0;
    for (const spill_option_t *option = command->options; option && option->name; option++) {
        int key = key_of(command, option);
        bool old = option->kind == SPILL_OPTION_OLD_NAME;
        const spill_option_t *shown = old ? option_of(command, key) : option;
        rows[count++] = (struct argp_option){
            .name = option->name,
            .key = key,
            .arg = shown->argument,
            .flags = (shown->kind == SPILL_OPTION_LIMIT ? OPTION_ARG_OPTIONAL : 0) |
                     (old ? OPTION_HIDDEN : 0),
            .doc = shown->help};
    }
    count = add_common(command, rows, count);
    rows[count++] = (struct argp_option){.key = 'h', .flags = OPTION_HIDDEN, .doc = "help"};
    rows[count] = (struct argp_option){0};
}

/* ---- examples in the help -------------------------------------------------------------------- */

/* argp breaks lines that are longer than this, and knows nothing of a shell's lines. */
enum { HELP_COLUMNS = 78 };

/*
 * The last blank of a line of shell at which it can be continued on the next line, so that the line
 * with " \\" is at most HELP_COLUMNS long; if possible, before an option. 0: there is none. Blanks
 * in quotes are no such places.
 */
static size_t find_break(const char *line, size_t length)
{
    size_t at = 0, before_option = 0;
    char quote = 0;
    for (size_t i = 0; i < length && i <= HELP_COLUMNS - 2; i++) {
        if (quote)
            quote = line[i] == quote ? 0 : quote;
        else if (line[i] == '\'' || line[i] == '"')
            quote = line[i];
        else if (line[i] == ' ' && i > 2 && line[i - 1] != ' ')
            at = i;
        if (at == i && line[i + 1] == '-')
            before_option = at;
    }
    return before_option > 0 ? before_option : at;
}

/* A copy of the text in which long lines of examples, which are indented, are continued by "\". */
static char *fold_examples(const char *text)
{
    bson_string_t *folded = bson_string_new(NULL);
    while (*text != '\0') {
        size_t length = strcspn(text, "\n"), at = 0;
        if (strncmp(text, "  ", 2) == 0 && length > HELP_COLUMNS)
            at = find_break(text, length);
        size_t piece = at > 0 ? at : length;
        bson_string_append_printf(folded, "%.*s%s", (int)piece, text,
                                  at > 0                 ? " \\\n    "
                                  : text[length] == '\n' ? "\n"
                                                         : "");
        text += piece + (text[piece] != '\0');
    }
    return bson_string_free(folded, false);
}

/* Report an option that the command does not have, with a hint. Returns whether there is one. */
static bool report_unknown_option(const spill_invocation_t *invocation,
                                  const struct argp_option *rows, char *const *words)
{
    char hint[SPILL_CLI_HINT_SIZE];
    const char *unknown = spill_cli_unknown_option(rows, words);
    if (!unknown)
        return false;
    spill_cli_hint_option(invocation->command, unknown, hint);
    spill_cli_usage(invocation, "there is no option '%.*s'%s", (int)strcspn(unknown, "="), unknown,
                    hint);
    return true;
}

spill_exit_t spill_command_run(const spill_command_t *command, int argc, char **argv)
{
    struct argp_option rows[OPTIONS_MAX + COMMON_COUNT + 2];
    fill_rows(command, rows);
    char *text = fold_examples(command->text);
    char *doc = bson_strdup_printf("%s.\v%s", command->summary, text);
    struct argp argp = {
        .options = rows, .parser = parse_key, .args_doc = command->arguments, .doc = doc};
    _Alignas(max_align_t) char options[SPILL_OPTIONS_BYTES_MAX] = {0};
    if (command->options_bytes > 0)
        memcpy(options, command->defaults, command->options_bytes);
    spill_invocation_t invocation = {.command = command,
                                     .words = argv,
                                     .arguments = bson_malloc0((size_t)argc * sizeof(char *)),
                                     .options = options,
                                     .durability = command->durability,
                                     .mode = 0600};
    parse_t parse = {.invocation = &invocation, .options = options};
    char **words = bson_malloc0(((size_t)argc + 1) * sizeof(char *));
    words[0] = bson_strdup_printf("spillway %s", command->name); /* the name that argp prints */
    for (int i = 1; i < argc; i++)
        words[i] = hide_number(argv[i]);
    int64_t began_us = spill_clock_monotonic_us(NULL);
    argp_err_exit_status = SPILL_EXIT_USAGE;
    if (report_unknown_option(&invocation, rows, words))
        exit(SPILL_EXIT_USAGE);
    argp_parse(&argp, argc, words, 0, NULL, &parse);
    spill_cli_set_mode(invocation.mode);
    if ((command->common & SPILL_COMMON_FOLDS) != 0 && spill_cli_prints_tables(&invocation))
        spill_cli_fold_stdout();
    spill_exit_t result = command->run(&invocation);
    double seconds = (double)(spill_clock_monotonic_us(NULL) - began_us) / 1e6;
    bson_free(invocation.arguments);
    bson_strfreev(words);
    bson_free(doc);
    bson_free(text);
    if (invocation.verbose)
        spill_cli_say("%s took %s", command->name, spill_duration_text(seconds).text);
    return result;
}
