/* completion: print a script that completes command lines, from the tables of the options. */
#include "cli/cli.h"

#include <string.h>

/* ---- what the tables say --------------------------------------------------------------------- */

/* The values that an option may have, where its argument does not list them itself. */
static const struct {
    const char *option, *values;
} VALUES[] = {
    {"layout", "outlier capped reference subset bucket"},
    {"preset", "feed feed-recent sales reviews-separate reviews-subset reviews-bucket gateway"},
    {"window", "hour day week month year field"},
    {"mode", "0600 0640 0644"},
    {"read-preference", "primary primaryPreferred secondary secondaryPreferred nearest"},
    {"fail-on", "any critical unbounded-array unbounded-map overgrown-index paid-by-array "
                "large-document collection-sprawl"},
    {"format", "ndjson json csv bson ndjson.gz json.gz csv.gz bson.gz ndjson.zst"},
};

/* One option of a command, from its own table or from the table of shared options. */
typedef struct shown_option {
    const char *name, *argument, *help;
    char letter; /* or 0 */
    bool optional;
} shown_option_t;

/* The next option of the command; *at begins at 0. False: there is none. */
static bool next_option(const spill_command_t *command, size_t *at, shown_option_t *shown)
{
    size_t count = 0;
    for (const spill_option_t *own = command->options; own && own->name; own++) {
        if (own->kind == SPILL_OPTION_OLD_NAME || count++ < *at)
            continue;
        ++*at;
        *shown = (shown_option_t){own->name, own->argument, own->help,
                                  (char)(strcmp(own->name, "output") == 0 ? 'o' : 0),
                                  own->kind == SPILL_OPTION_LIMIT};
        return true;
    }
    for (const spill_common_option_t *common = spill_common_options; common->name; common++) {
        if (!spill_common_belongs(common, command) || count++ < *at)
            continue;
        ++*at;
        *shown =
            (shown_option_t){common->name, common->argument, common->help, common->letter, false};
        return true;
    }
    return false;
}

/* The values of an option, separated by blanks; "": any. */
static void values_of(const shown_option_t *option, char values[256])
{
    values[0] = '\0';
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++)
        if (strcmp(VALUES[i].option, option->name) == 0)
            snprintf(values, 256, "%s", VALUES[i].values);
    if (values[0] != '\0' || !option->argument || !strchr(option->argument, '|'))
        return;
    snprintf(values, 256, "%s", option->argument);
    for (char *at = values; (at = strchr(at, '|')) != NULL;)
        *at = ' ';
}

static bool takes_file(const shown_option_t *option)
{
    const char *argument = option->argument;
    return argument && (strcmp(argument, "FILE") == 0 || strcmp(argument, "FOLDER") == 0 ||
                        strcmp(option->name, "control") == 0);
}

/* Is the value the name of a stored definition? */
static bool takes_definition(const shown_option_t *option)
{
    return strcmp(option->name, "like") == 0;
}

/*
 * The next argument of a command, from a text such as "STORE NAME [OWNER]": 'f' for a file, a
 * folder or a store; 'n' for the name of a definition; a capital for one of a list (KINDS); '-' for
 * anything else. 0: there is none.
 */
static const struct {
    char kind;
    const char *argument, *what, *values;
} KINDS[] = {{'S', "bash", "shell", "bash zsh fish"},
             {'C', "COMMAND", "command", "status rate threads max-latency pause resume"}};

enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

static char next_argument(const char **text)
{
    char word[64];
    *text += strspn(*text, " []");
    size_t length = strcspn(*text, " []");
    if (length == 0)
        return 0;
    snprintf(word, sizeof word, "%.*s", (int)length, *text);
    *text += length;
    word[strcspn(word, ".|")] = '\0';
    static const char *const files[] = {"STORE", "FILE",   "PLAN",   "FOLDER", "BACKUP",
                                        "SCAN",  "SOURCE", "SOCKET", "URI",    "PATH"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(word, files[i]) == 0)
            return 'f';
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(word, KINDS[i].argument) == 0)
            return KINDS[i].kind;
    return (char)(strcmp(word, "NAME") == 0 ? 'n' : '-');
}

/* A text within single quotes of a shell; `special` characters get a backslash in front. */
static void print_quoted(const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            printf("%s%c", strchr(special, *text) ? "\\" : "", *text);
    }
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void print_bash_words(const spill_command_t *command)
{
    shown_option_t option;
    size_t at = 0;
    printf("    %s) echo '--help", command->name);
    while (next_option(command, &at, &option))
        printf(" --%s%s", option.name, option.argument && !option.optional ? "=" : "");
    puts("' ;;");
}

static void print_bash_values(void)
{
    char values[256];
    const spill_command_t *command;
    size_t group = 0, next = 0;
    while ((command = spill_command_next(&group, &next)) != NULL) {
        shown_option_t option;
        size_t at = 0;
        while (next_option(command, &at, &option)) {
            values_of(&option, values);
            if (values[0] != '\0')
                printf("    %s:--%s) echo '%s' ;;\n", command->name, option.name, values);
            else if (takes_file(&option))
                printf("    %s:--%s) compgen -f -- \"$3\" ;;\n", command->name, option.name);
            else if (takes_definition(&option))
                printf("    %s:--%s) _spillway_names \"$(cut -d' ' -f3 <<<\"$COMP_LINE\")\" ;;\n",
                       command->name, option.name);
        }
    }
}

static void print_kinds(const spill_command_t *command)
{
    const char *text = command->arguments;
    char kind, last = 0;
    while ((kind = next_argument(&text)) != 0) {
        putchar(kind);
        last = kind;
    }
    for (int i = 0; i < 8 && last && strstr(command->arguments, "..."); i++)
        putchar(last);
}

/* The functions that say what the tables say. */
static void print_bash_tables(void)
{
    const spill_command_t *command;
    size_t group = 0, at = 0;
    puts("# bash completion for spillway, made by `spillway completion bash`.\n\n"
         "_spillway_commands='help");
    while ((command = spill_command_next(&group, &at)) != NULL)
        printf("    %s\n", command->name);
    puts("'\n\n_spillway_options() { # COMMAND\n    case $1 in");
    for (group = at = 0; (command = spill_command_next(&group, &at)) != NULL;)
        print_bash_words(command);
    puts("    esac\n}\n\n_spillway_values() { # COMMAND OPTION WORD\n    case $1:$2 in");
    print_bash_values();
    puts("    esac\n}\n\n"
         "# For each argument: a file or store, a definition's name, a shell, or anything else.\n"
         "_spillway_arguments() { # COMMAND\n    case $1 in");
    for (group = at = 0; (command = spill_command_next(&group, &at)) != NULL;) {
        printf("    %s) echo '", command->name);
        print_kinds(command);
        puts("' ;;");
    }
    puts("    esac\n}\n\n_spillway_list() { # KIND\n    case $1 in");
    for (size_t i = 0; i < KIND_COUNT; i++)
        printf("    %c) echo '%s' ;;\n", KINDS[i].kind, KINDS[i].values);
    puts("    esac\n}\n");
}

static void print_bash(void)
{
    print_bash_tables();
    puts("_spillway_names() { # STORE\n"
         "    spillway define \"$1\" --color=never 2>/dev/null | cut -d: -f1\n"
         "}\n\n"
         "# Is the value of this option the next word?\n"
         "_spillway_takes_value() { # COMMAND OPTION\n"
         "    [[ $2 == -o || ($2 == --* && \" $(_spillway_options \"$1\") \" == *\" $2= \"*) ]]\n"
         "}\n\n"
         "_spillway() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "    local command=${COMP_WORDS[1]:-} position=0 i store='' words kinds\n"
         "    COMPREPLY=()\n"
         "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "        mapfile -t COMPREPLY < <(\n"
         "            compgen -W \"$_spillway_commands --help --version\" -- \"$word\")\n"
         "        return\n"
         "    fi\n"
         "    if [ \"$command\" = help ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$_spillway_commands\" -- \"$word\")\n"
         "        return\n"
         "    fi\n"
         "    # --option=value comes as three words, since = breaks words.\n"
         "    i=$((COMP_CWORD - 1))\n"
         "    [ \"$before\" = = ] && i=$((COMP_CWORD - 2))\n"
         "    if [ \"$word\" = = ] || [ \"$before\" = = ] ||\n"
         "        _spillway_takes_value \"$command\" \"$before\"; then\n"
         "        [ \"$word\" = = ] && word=\n"
         "        compopt -o filenames 2>/dev/null\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$(\n"
         "            _spillway_values \"$command\" \"${COMP_WORDS[i]}\" \"$word\")\" -- "
         "\"$word\")\n"
         "        return\n"
         "    fi\n"
         "    if [[ $word == -* ]]; then\n"
         "        mapfile -t COMPREPLY < <(\n"
         "            compgen -W \"$(_spillway_options \"$command\")\" -- \"$word\")\n"
         "        [[ ${COMPREPLY[0]:-} == *= ]] && compopt -o nospace 2>/dev/null\n"
         "        return\n"
         "    fi\n"
         "    # A STORE such as mongodb://HOST:PORT/DATABASE is one word, though : and @ break "
         "words.\n"
         "    read -ra words <<<\"${COMP_LINE:0:COMP_POINT}x\"\n"
         "    for ((i = 2; i < ${#words[@]} - 1; i++)); do\n"
         "        case ${words[i]} in\n"
         "        -?*) _spillway_takes_value \"$command\" \"${words[i]}\" && i=$((i + 1)) ;;\n"
         "        *)\n"
         "            position=$((position + 1))\n"
         "            [ \"$position\" = 1 ] && store=${words[i]}\n"
         "            ;;\n"
         "        esac\n"
         "    done\n"
         "    kinds=$(_spillway_arguments \"$command\")\n"
         "    case ${kinds:position:1} in\n"
         "    f)\n"
         "        compopt -o filenames 2>/dev/null\n"
         "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
         "        ;;\n"
         "    n) mapfile -t COMPREPLY < <(compgen -W \"$(_spillway_names \"$store\")\" -- "
         "\"$word\") ;;\n"
         "    [A-Z])\n"
         "        mapfile -t COMPREPLY < <(\n"
         "            compgen -W \"$(_spillway_list \"${kinds:position:1}\")\" -- \"$word\")\n"
         "        ;;\n"
         "    esac\n"
         "}\n\n"
         "complete -F _spillway spillway");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

static void print_zsh_option(const shown_option_t *option)
{
    char values[256];
    if (option->letter)
        printf("        '-%c[", option->letter), print_quoted(option->help, "[]:\\"),
            printf("]%s%s'%s\n", option->argument ? ":" : "",
                   option->argument ? option->argument : "",
                   option->argument ? ":_files \\" : " \\");
    printf("        '--%s%s[", option->name, option->argument ? "=" : "");
    print_quoted(option->help, "[]:\\");
    putchar(']');
    if (option->argument) {
        values_of(option, values);
        printf("%s:", option->optional ? "::" : ":");
        print_quoted(option->argument, "[]:\\");
        if (values[0] != '\0')
            printf(":(%s)", values);
        else
            printf(":%s", takes_file(option)         ? "_files"
                          : takes_definition(option) ? "_spillway_names"
                                                     : "");
    }
    puts("' \\");
}

static void print_zsh_command(const spill_command_t *command)
{
    static const struct {
        char kind;
        const char *action;
    } actions[] = {
        {'f', "file or store:_files"}, {'n', "definition:_spillway_names"}, {'-', "argument:"}};
    const char *text = command->arguments;
    shown_option_t option;
    size_t at = 0;
    char kind;
    printf("    %s) _arguments -s \\\n", command->name);
    while (next_option(command, &at, &option))
        print_zsh_option(&option);
    for (int place = 1; (kind = next_argument(&text)) != 0; place++) {
        bool repeats =
            *text == '\0' || *text == ']' ? strstr(command->arguments, "...") != NULL : false;
        for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
            if (actions[i].kind == kind && repeats)
                printf("        '*:%s' \\\n", actions[i].action);
            else if (actions[i].kind == kind)
                printf("        '%d:%s' \\\n", place, actions[i].action);
        for (size_t i = 0; i < KIND_COUNT; i++)
            if (KINDS[i].kind == kind)
                printf("        '%d:%s:(%s)' \\\n", place, KINDS[i].what, KINDS[i].values);
    }
    puts("        '--help[Show the options and examples]' ;;");
}

static void print_zsh(void)
{
    const spill_command_t *command;
    size_t group = 0, at = 0;
    puts("#compdef spillway\n"
         "# zsh completion for spillway, made by `spillway completion zsh`.\n\n"
         "_spillway_names() {\n"
         "    local -a names\n"
         "    # _arguments sets line to the words that are neither options nor their values.\n"
         "    names=(${(f)\"$(spillway define \"${(Q)line[1]}\" --color=never 2>/dev/null |\n"
         "        cut -d: -f1)\"})\n"
         "    compadd -a names\n"
         "}\n\n"
         "_spillway_command() {\n"
         "    case $1 in");
    while ((command = spill_command_next(&group, &at)) != NULL)
        print_zsh_command(command);
    puts("    esac\n}\n\n"
         "_spillway() {\n"
         "    local command\n"
         "    local -a commands\n"
         "    commands=(\n"
         "        'help:Show the commands, or the options of one'");
    for (group = at = 0; (command = spill_command_next(&group, &at)) != NULL;) {
        printf("        '%s:", command->name);
        print_quoted(command->summary, ":\\");
        puts("'");
    }
    puts("    )\n"
         "    if ((CURRENT == 2)); then\n"
         "        _describe 'command' commands\n"
         "        return\n"
         "    fi\n"
         "    command=${words[2]}\n"
         "    shift words\n"
         "    ((CURRENT--))\n"
         "    if [[ $command == help ]]; then\n"
         "        _describe 'command' commands\n"
         "    else\n"
         "        _spillway_command \"$command\"\n"
         "    fi\n"
         "}\n\n"
         "if [[ $funcstack[1] == _spillway ]]; then\n"
         "    _spillway \"$@\"\n"
         "else\n"
         "    compdef _spillway spillway\n"
         "fi");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void print_fish_option(const spill_command_t *command, const shown_option_t *option)
{
    char values[256];
    printf("complete -c spillway -n '__spillway_is %s' -l %s", command->name, option->name);
    if (option->letter)
        printf(" -s %c", option->letter);
    if (option->argument) {
        values_of(option, values);
        if (values[0] != '\0')
            printf(" -x -a '%s'", values);
        else if (takes_definition(option))
            fputs(" -x -a '(__spillway_names)'", stdout);
        else if (!option->optional)
            fputs(takes_file(option) ? " -r -F" : " -x", stdout);
    }
    fputs(" -d '", stdout);
    for (const char *at = option->help; *at != '\0'; at++)
        printf("%s%c", strchr("'\\", *at) ? "\\" : "", *at);
    puts("'");
}

static const char *values_of_kind(char kind)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (KINDS[i].kind == kind)
            return KINDS[i].values;
    return "";
}

/* COMMAND:--OPTION for each option whose value may be the next word. */
static void print_fish_valued(void)
{
    const spill_command_t *command;
    size_t group = 0, next = 0;
    printf("set -g __spillway_valued");
    while ((command = spill_command_next(&group, &next)) != NULL) {
        shown_option_t option;
        size_t at = 0;
        while (next_option(command, &at, &option))
            if (option.argument && !option.optional)
                printf(" %s:--%s", command->name, option.name);
    }
    puts("\n");
}

static void print_fish_command(const spill_command_t *command)
{
    const char *text = command->arguments;
    shown_option_t option;
    size_t at = 0;
    char kind;
    printf("complete -c spillway -n __spillway_none -a %s -d '", command->name);
    for (const char *sign = command->summary; *sign != '\0'; sign++)
        printf("%s%c", strchr("'\\", *sign) ? "\\" : "", *sign);
    puts("'");
    while (next_option(command, &at, &option))
        print_fish_option(command, &option);
    for (int place = 1; (kind = next_argument(&text)) != 0; place++) {
        if (kind == 'f')
            printf("complete -c spillway -n '__spillway_at %s %d' -F\n", command->name, place);
        else if (kind != '-')
            printf("complete -c spillway -n '__spillway_at %s %d' -a '%s'\n", command->name, place,
                   kind == 'n' ? "(__spillway_names)" : values_of_kind(kind));
    }
}

static void print_fish(void)
{
    const spill_command_t *command;
    size_t group = 0, at = 0;
    puts("# fish completion for spillway, made by `spillway completion fish`.\n\n"
         "# The words before the cursor that are neither options nor their values.\n"
         "function __spillway_words\n"
         "    set -l tokens (commandline -opc)\n"
         "    set -l skip 0\n"
         "    for token in $tokens\n"
         "        if test $skip = 1\n"
         "            set skip 0\n"
         "        else if not string match -q -r -- '^-.' $token\n"
         "            echo $token\n"
         "        else if contains -- $token -o; or contains -- \"$tokens[2]:$token\" "
         "$__spillway_valued\n"
         "            set skip 1\n"
         "        end\n"
         "    end\n"
         "end\n\n"
         "function __spillway_none\n"
         "    test (count (__spillway_words)) -eq 1\n"
         "end\n\n"
         "function __spillway_is\n"
         "    set -l words (__spillway_words)\n"
         "    test (count $words) -gt 1; and test $words[2] = $argv[1]\n"
         "end\n\n"
         "function __spillway_at\n"
         "    __spillway_is $argv[1]; and test (count (__spillway_words)) -eq (math $argv[2] + 1)\n"
         "end\n\n"
         "function __spillway_names\n"
         "    set -l words (__spillway_words)\n"
         "    spillway define $words[3] --color=never 2>/dev/null | string replace -r ':.*' ''\n"
         "end\n\n"
         "complete -c spillway -f\n"
         "complete -c spillway -l help -s h -d 'Show the options and examples'\n"
         "complete -c spillway -n __spillway_none -l version -s V -d 'Show the version'\n"
         "complete -c spillway -n __spillway_none -a help -d 'Show the commands'");
    print_fish_valued();
    while ((command = spill_command_next(&group, &at)) != NULL)
        print_fish_command(command);
}

/* ---- the command ----------------------------------------------------------------------------- */

static spill_exit_t run_completion(const spill_invocation_t *invocation)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    spill_error_t error;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(invocation->arguments[0], shells[i].shell) == 0) {
            shells[i].print();
            return spill_cli_close(NULL, NULL, SPILL_OK, &error);
        }
    return spill_cli_usage(invocation, "there is no script for '%s': bash, zsh and fish have one",
                           invocation->arguments[0]);
}

const spill_command_t spill_command_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Print a script that completes command lines in a shell",
    .text = "The script completes commands, options and their values, and the names of a store's "
            "definitions. An installed Spillway has it in the shell's folder already.\n"
            "\n"
            "Examples:\n"
            "  source <(spillway completion bash)\n"
            "  spillway completion zsh > ~/.zfunc/_spillway\n"
            "  spillway completion fish > ~/.config/fish/completions/spillway.fish",
    .common = SPILL_COMMON_NO_JSON,
    .run = run_completion};
