#!/usr/bin/env bash
# The man page has exactly the commands and options of the program, with their arguments, and is well
# formed. The completions of bash, zsh and fish complete them. --help fits 80 columns, and its examples
# can be copied.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

: "${SPILLWAY_SOURCE:?must be the folder of the sources}"
sed 's/\\-/-/g' "$SPILLWAY_SOURCE/man/spillway.1" >manual
manual=manual
for shell in bash zsh fish; do
    expect 0 completion $shell
    mv out "spillway.$shell"
done
# shellcheck source=/dev/null
source ./spillway.bash

expect 0 --help
mapfile -t commands < <(grep -E '^  [a-z-]+ +[A-Z]' out | awk '{ print $1 }')
[ "$(grep -cE '^[A-Z][a-z, -]+:$' out)" -ge 5 ] || fail "--help has no groups: $(cat out)"
awk 'length > 80' out | grep . >wide && fail "--help is wider than 80 columns: $(cat wide)"
[ "${#commands[@]}" -ge 12 ] || fail "--help lists ${#commands[@]} commands"

options_of() { # from the help
    expect 0 "$1" --help
    sed '/^Examples\?:/,$d' out | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | grep -vx -- --usage | sort -u
}

arguments_of() { # from the help of the last options_of: --name=ARGUMENT
    sed '/^Examples\?:/,$d' out | grep -oE '^ +(-., )?--[a-z-]+\[?=[^ ]+' | grep -oE -- '--[a-z-]+\[?=.*' | tr -d '[]' | sort -u
}

arguments_in_manual() { # of a section
    sed -n "/^\.S[SH] \"\?$1\([ \"]\|\$\)/,/^\.S[SH]/p" "$manual" | grep -E '^\.(BI|BR) .*--[a-z-]+' |
        sed -E 's/\\f.//g; s/^\.(BI|BR) //; s/"//g; s/^-. ?, ?//; s/^-. , //' | tr -d '[] ' | grep -E '^--[a-z-]+=' | sort -u
}

in_manual() { # the options of a section
    sed -n "/^\.S[SH] \"\?$1\([ \"]\|\$\)/,/^\.S[SH]/p" "$manual" | sed 's/\\f.//g' |
        grep -E '^\.(TP|B|BI|BR) ' | grep -oE -- '--[a-z-]+' | sort -u
}

# Each example in ./out is a command line for a shell; a line that another one continues ends with \.
check_examples() { # COMMAND
    sed -n '/^Examples\?:/,$p' out | grep -vE '^(Examples?:|  |$|[A-Z].*\.$)' >wrapped
    [ -s wrapped ] && fail "$1: an example is wrapped: $(cat wrapped)"
    sed -n '/^Examples\?:/,$p' out | grep '^  ' | sed 's/^  //' >examples
    [ -s examples ] || fail "$1 --help has no example"
    grep -vE '^(spillway|zcat|source) |^  ' examples >strange
    [ -s strange ] && fail "$1: examples that are no commands: $(cat strange)"
    awk '/^  / && before !~ /[\\|]$/ { print } { before = $0 }' examples >loose
    [ -s loose ] && fail "$1: an example is broken without \\: $(cat loose)"
    bash -n examples 2>wrong || fail "$1: $(cat wrong)"
}

# Words of tables for names in JSON: the man page and docs/reference/terminal.md have each.
sed -n '/word_for_people/,/^}/p' "$SPILLWAY_SOURCE/src/cli/table.c" | grep -oE '\{"[^"]+", +"[^"]+"\}' |
    sed 's/{"\(.*\)", *"\(.*\)"}/\1\t\2/' >words
[ "$(wc -l <words)" -ge 4 ] || fail "table.c has only these words: $(cat words)"
while IFS=$'\t' read -r name word; do
    grep -qE "\`$name\`.* \| $word \|\$" "$SPILLWAY_SOURCE/docs/reference/terminal.md" || fail "terminal.md does not say that $name is $word"
    grep -A3 -xF ".I $name" manual | tr '\n' ' ' | grep -qF "$word" || fail "the man page does not say that $name is $word"
done <words

in_manual 'COMMON OPTIONS' >common
for command in "${commands[@]}"; do
    options_of "$command" >options
    grep -q "^\.SS \"\?${command}[ \"]" "$manual" || fail "$command is not in the man page"
    comm -23 options common | comm -3 - <(in_manual "$command" | comm -23 - common) >differ
    [ -s differ ] && fail "$command: man page and help differ in $(tr -d '\t' <differ | tr '\n' ' ')"
    [ "$command" = serve ] || arguments_of |
        comm -23 - <({ arguments_in_manual "$command"; arguments_in_manual 'COMMON OPTIONS'; } | sort -u) >differ
    [ -s differ ] && fail "$command: the man page has other arguments than $(tr '\n' ' ' <differ)"
    awk 'length > 80' out | grep . >wide && fail "$command --help is wider than 80 columns: $(cat wide)"
    check_examples "$command"
    _spillway_options "$command" | tr -s ' \n' '\n' | sed 's/=$//' | grep . | sort -u |
        comm -3 options - >differ
    [ -s differ ] && fail "$command: completion and help differ in $(tr -d '\t' <differ | tr '\n' ' ')"
done
# The scripts for the other shells have every option, too.
for command in "${commands[@]}"; do
    options_of "$command" | grep -vx -- --help >options
    sed -n "/^    $command) _arguments/,/;;\$/p" spillway.zsh | grep -oE "^ +'--[a-z-]+" |
        grep -oE -- '--[a-z-]+' | grep -vx -- --help | sort -u | comm -3 options - >differ
    [ -s differ ] && fail "$command: zsh and help differ in $(tr -d '\t' <differ | tr '\n' ' ')"
    grep -F -- "-n '__spillway_is $command' -l " spillway.fish | sed -E 's/.* -l ([a-z-]+) .*/--\1/' |
        sort -u | comm -3 options - >differ
    [ -s differ ] && fail "$command: fish and help differ in $(tr -d '\t' <differ | tr '\n' ' ')"
done
if command -v zsh >/dev/null; then
    zsh -n spillway.zsh 2>wrong || fail "zsh: $(cat wrong)"
fi
if command -v fish >/dev/null; then
    PATH=$(dirname "$SPILLWAY"):$PATH fish -c 'source spillway.fish
        complete -C "spillway exp"; complete -C "spillway read db x --li"' >completed 2>wrong </dev/null
    has completed explain
    has completed --limit
fi
printf '%s\n' "${commands[@]}" help | sort >expected
tr -s ' \n' '\n' <<<"$_spillway_commands" | grep . | sort | cmp -s - expected ||
    fail "the completion has other commands"
grep -oE '^\.SS "?[a-z-]+' "$manual" | grep -oE '[a-z-]+$' | sort | cmp -s - <(printf '%s\n' "${commands[@]}" | sort) ||
    fail "the man page has other commands"

# The completions that a user gets.
complete_line() { # WORD... : the completions of the last word
    COMP_LINE=${line:-$*}
    COMP_POINT=${#COMP_LINE}
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _spillway 2>/dev/null
    printf '%s\n' "${COMPREPLY[@]}"
}
spillway() { "$SPILLWAY" "$@"; }
[ "$(complete_line spillway exp)" = "$(printf 'export\nexplain')" ] || fail "commands are not completed"
[ "$(complete_line spillway read db x --li)" = --limit= ] || fail "options are not completed"
[ "$(complete_line spillway define db --keep = n)" = newest ] || fail "values are not completed"
expect 0 define db events --preset feed
expect 0 define db other --preset sales
[ "$(complete_line spillway count db ev)" = events ] || fail "definitions are not completed"
[ "$(line='spillway count rocksdb:db ev' complete_line spillway count rocksdb : db ev)" = events ] ||
    fail "definitions of a store with a colon are not completed"
[ "$(complete_line spillway sweep --rate 100 db ev)" = events ] || fail "definitions after an option's value"
[ "$(complete_line spillway sweep --quiet db ev)" = events ] || fail "definitions after an option"
touch jobs.sock
[ "$(complete_line spillway define db new --like = ev)" = events ] || fail "--like completes no definition"
[ "$(complete_line spillway migrate --control jobs)" = jobs.sock ] || fail "a socket is not completed"
[ "$(complete_line spillway migrate db plan.json --log = jobs)" = jobs.sock ] || fail "a log is not completed"
[ "$(complete_line spillway migrate --log jobs)" = jobs.sock ] || fail "a log without = is not completed"
[ "$(complete_line spillway control jobs)" = jobs.sock ] || fail "control does not complete its socket"
[ "$(complete_line spillway control jobs.sock st)" = status ] || fail "control does not complete its commands"

# The same, in zsh and fish: each line, and what its last word becomes.
cat >lines <<'END'
spillway count db ev=events
spillway sweep --rate 100 db ev=events
spillway sweep --quiet db ev=events
spillway migrate --control jobs=jobs.sock
spillway migrate --log jobs=jobs.sock
spillway control jobs=jobs.sock
spillway control jobs.sock st=status
END
if command -v zsh >/dev/null; then
    mapfile -t typed < <(cut -d= -f1 lines)
    PATH=$(dirname "$SPILLWAY"):$PATH zsh -f "${BASH_SOURCE[0]%/*}/complete.zsh" ./spillway.zsh "${typed[@]}" >completed
    sed -E 's/[a-z.]+=(.*)/\1 /' lines | cmp -s - completed || fail "zsh completes: $(cat completed)"
fi
if command -v fish >/dev/null; then
    while IFS='=' read -r line word; do
        PATH=$(dirname "$SPILLWAY"):$PATH fish -c "source spillway.fish; complete -C '$line'" >completed 2>wrong </dev/null
        [ "$(cut -f1 completed)" = "$word" ] || fail "fish: $line: $(cat completed wrong)"
    done <lines
fi

if command -v man >/dev/null; then
    man --warnings -l "$manual" 2>warnings >page
    [ -s page ] || fail "man shows nothing"
    [ -s warnings ] && fail "man warns: $(cat warnings)"
fi
if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning "$manual" >warnings 2>&1 || fail "mandoc warns: $(cat warnings)"
fi
