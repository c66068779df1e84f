/* Which command or option a wrong word probably means. */
#include "cli/hint.h"

#include <stdio.h>
#include <string.h>

/* ---- similar words --------------------------------------------------------------------------- */

enum { WORD_SIZE = 32, HINTS_MAX = 3 };

/* Levenshtein's distance, with one row of the table. */
size_t spill_cli_word_distance(const char *left, const char *right)
{
    size_t row[WORD_SIZE + 1];
    size_t columns = strlen(right);
    if (columns > WORD_SIZE || strlen(left) > WORD_SIZE)
        return SIZE_MAX;
    for (size_t j = 0; j <= columns; j++)
        row[j] = j;
    for (size_t i = 0; left[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < columns; j++) {
            size_t replaced = diagonal + (left[i] != right[j]);
            size_t moved = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = replaced < moved ? replaced : moved;
        }
    }
    return row[columns];
}

static const char HOW_MANY[] = " limit count number num n max size top last first head tail length "
                               "lines max-count keep sample threshold page retain-elements rounds ";

/* Words that programs use for one thing, ours among them. */
static const char *const ALIKE[] = {
    HOW_MANY,
    " size bytes max-size max-bytes page-bytes page-size document-limit memory element target ",
    " skip offset start from since after before cursor below begin ",
    " to until end before older-than max-age age ttl expire retain-age ",
    " output out file o write save ",
    " yes y force f confirm assume-yes no-confirm ",
    " dry-run simulate check what-if noop test preview ",
    " threads jobs j parallel workers concurrency max-workers ",
    " rate speed throttle max-rate qps limit-rate ",
    " interval every period seconds sleep poll ",
    " watch follow daemon continuous loop forever ",
    " listen bind host port address ",
    " as name rename new-name id ",
    " oldest reverse asc ascending first order sort ",
    " quiet silent s no-progress ",
    " metrics prometheus metrics-port ",
    " prefix filter match grep pattern ",
    " owner user key owner-field ",
};

static bool has_word(const char *line, const char *word, size_t length)
{
    for (const char *at = line; (at = strchr(at, ' ')) != NULL && *++at != '\0';)
        if (strncmp(at, word, length) == 0 && at[length] == ' ')
            return true;
    return false;
}

/* Is the option a number, with a name of the first line? */
static bool is_how_many(const spill_option_t *option)
{
    return has_word(ALIKE[0], option->name, strlen(option->name)) &&
           (option->kind == SPILL_OPTION_NUMBER || option->kind == SPILL_OPTION_LIMIT);
}

static bool are_alike(const char *word, const spill_option_t *option)
{
    const char *name = option->name;
    if (has_word(ALIKE[0], word, strlen(word)) && is_how_many(option))
        return true;
    for (size_t i = 1; i < sizeof ALIKE / sizeof *ALIKE; i++)
        if (has_word(ALIKE[i], word, strlen(word)) && has_word(ALIKE[i], name, strlen(name)))
            return true;
    return false;
}

/* Is one a part of the other between hyphens, as "bytes" of "page-bytes"? */
static bool has_part(const char *whole, const char *part)
{
    size_t length = strlen(part);
    const char *at = strstr(whole, part);
    return length > 2 && at && (at == whole || at[-1] == '-') &&
           (at[length] == '\0' || at[length] == '-');
}

/* ---- hints ----------------------------------------------------------------------------------- */

/* Options that a word may mean. */
typedef struct hints {
    const spill_option_t *options[HINTS_MAX];
    size_t count; /* may be more than HINTS_MAX: only the first have a place */
} hints_t;

static void add_hint(hints_t *hints, const spill_option_t *option)
{
    for (size_t i = 0; i < hints->count && i < HINTS_MAX; i++)
        if (hints->options[i] == option)
            return;
    if (hints->count < HINTS_MAX)
        hints->options[hints->count] = option;
    hints->count++;
}

/* `value` stands behind each option; NULL: the name of its argument does. */
static void print_hints(const hints_t *hints, const char *value, char hint[SPILL_CLI_HINT_SIZE])
{
    size_t count = hints->count < HINTS_MAX ? hints->count : HINTS_MAX, used = 0;
    hint[0] = '\0';
    for (size_t i = 0; i < count && used < SPILL_CLI_HINT_SIZE; i++) {
        const spill_option_t *option = hints->options[i];
        const char *before = i == 0 ? "; did you mean " : i + 1 == count ? " or " : ", ";
        const char *shown = value ? value : option->argument ? option->argument : "";
        used += (size_t)snprintf(hint + used, SPILL_CLI_HINT_SIZE - used, "%s--%s%s%.40s%s", before,
                                 option->name, shown[0] != '\0' ? " " : "", shown,
                                 i + 1 == count ? "?" : "");
    }
}

/* The options of a command, without old names. */
static const spill_option_t *next_option(const spill_command_t *command, size_t *at)
{
    while (command->options && command->options[*at].name) {
        const spill_option_t *option = &command->options[(*at)++];
        if (option->kind != SPILL_OPTION_OLD_NAME)
            return option;
    }
    return NULL;
}

/* The option with the most similar name; NULL: none is similar. */
static const spill_option_t *nearest_option(const spill_command_t *command, const char *name)
{
    const spill_option_t *nearest = NULL, *option;
    size_t best = strlen(name) > 4 ? 3 : 2; /* beyond two letters it is another word */
    for (size_t at = 0; (option = next_option(command, &at)) != NULL;) {
        size_t distance = spill_cli_word_distance(name, option->name);
        if (distance < best) {
            best = distance;
            nearest = option;
        }
    }
    return nearest;
}

void spill_cli_hint_option(const spill_command_t *command, const char *word,
                           char hint[SPILL_CLI_HINT_SIZE])
{
    hints_t hints = {0};
    char name[WORD_SIZE];
    const spill_option_t *option;
    word += strspn(word, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    const spill_option_t *nearest = nearest_option(command, name);
    if (nearest)
        add_hint(&hints, nearest);
    for (size_t at = 0; !nearest && (option = next_option(command, &at)) != NULL;)
        if (are_alike(name, option))
            add_hint(&hints, option);
    for (size_t at = 0; hints.count == 0 && (option = next_option(command, &at)) != NULL;)
        if (has_part(option->name, name) || has_part(name, option->name))
            add_hint(&hints, option);
    print_hints(&hints, NULL, hint);
}

void spill_cli_hint_argument(const spill_command_t *command, const char *word,
                             spill_cli_fits_fn fits, char hint[SPILL_CLI_HINT_SIZE])
{
    hints_t all = {0}, how_many = {0};
    const spill_option_t *option;
    for (size_t at = 0; (option = next_option(command, &at)) != NULL;) {
        if (!fits(option, word))
            continue;
        add_hint(&all, option);
        if (is_how_many(option))
            add_hint(&how_many, option);
    }
    print_hints(all.count <= HINTS_MAX ? &all : &how_many, word, hint);
}

/* ---- unknown options ------------------------------------------------------------------------- */

/* Options that argp adds. */
static const struct argp_option BUILT_IN[] = {
    {.name = "help"}, {.name = "usage"}, {.name = "program-name", .arg = "NAME"},
    {.name = "HANG"}, {.key = '?'},      {0}};

static bool is_row(const struct argp_option *row)
{
    return row->name || row->key;
}

/* The row of a long option, also for an abbreviation; NULL: there is none. */
static const struct argp_option *find_long(const struct argp_option *rows, const char *name,
                                           size_t length)
{
    for (const struct argp_option *row = rows; is_row(row); row++)
        if (row->name && strncmp(row->name, name, length) == 0)
            return row;
    return NULL;
}

static const struct argp_option *find_short(const struct argp_option *rows, char letter)
{
    for (const struct argp_option *row = rows; is_row(row); row++)
        if (row->key == letter)
            return row;
    return NULL;
}

/* Does the option take the next word? */
static bool takes_word(const struct argp_option *row)
{
    return row->arg && !(row->flags & OPTION_ARG_OPTIONAL);
}

/* "--name" or "--name=value". *next: the option takes the next word. */
static bool is_known_long(const struct argp_option *rows, const char *word, bool *next)
{
    const char *name = word + 2;
    size_t length = strcspn(name, "=");
    const struct argp_option *row = find_long(rows, name, length);
    if (!row)
        row = find_long(BUILT_IN, name, length);
    *next = row && takes_word(row) && name[length] == '\0';
    return row != NULL;
}

/* "-q", "-qv" or "-oFILE". */
static bool is_known_short(const struct argp_option *rows, const char *word, bool *next)
{
    *next = false;
    for (const char *at = word + 1; *at != '\0'; at++) {
        const struct argp_option *row = find_short(rows, *at);
        if (!row && !find_short(BUILT_IN, *at))
            return false;
        if (row && row->arg) {
            *next = takes_word(row) && at[1] == '\0';
            return true;
        }
    }
    return true;
}

const char *spill_cli_unknown_option(const struct argp_option *rows, char *const *words)
{
    for (char *const *at = words + 1; *at && strcmp(*at, "--") != 0; at++) {
        const char *word = *at;
        bool next = false;
        if (word[0] != '-' || word[1] == '\0')
            continue;
        if (!(word[1] == '-' ? is_known_long : is_known_short)(rows, word, &next))
            return word;
        if (next && !*++at)
            return NULL; /* argp reports that the value is missing */
    }
    return NULL;
}
