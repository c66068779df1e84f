#!/usr/bin/env bash
# The man page and the completion have exactly the commands and options of the program, and the man
# page is well formed.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

: "${SPILLWAY_SOURCE:?must be the folder of the sources}"
sed 's/\\-/-/g' "$SPILLWAY_SOURCE/man/spillway.1" >manual
manual=manual
# shellcheck disable=SC1090
source "$SPILLWAY_SOURCE/completions/spillway.bash"

expect 0 --help
mapfile -t commands < <(sed -n '/^Commands:/,/^$/p' out | awk 'NR > 1 && NF { print $1 }')
[ "${#commands[@]}" -ge 12 ] || fail "--help lists ${#commands[@]} commands"

options_of() { # from the help
    expect 0 "$1" --help
    grep -oE '^ +(-., )?--[a-z-]+' out | grep -oE -- '--[a-z-]+' | grep -vx -- --usage | sort -u
}

in_manual() { # the options of a section
    sed -n "/^\.S[SH] \"\?$1\([ \"]\|\$\)/,/^\.S[SH]/p" "$manual" | sed 's/\\f.//g' |
        grep -E '^\.(TP|B|BI|BR) ' | grep -oE -- '--[a-z-]+' | sort -u
}

in_manual 'COMMON OPTIONS' >common
for command in "${commands[@]}"; do
    options_of "$command" >options
    grep -q "^\.SS \"\?${command}[ \"]" "$manual" || fail "$command is not in the man page"
    comm -23 options common | comm -3 - <(in_manual "$command" | comm -23 - common) >differ
    [ -s differ ] && fail "$command: man page and help differ in $(tr -d '\t' <differ | tr '\n' ' ')"
    _spillway_options "$command" | tr -s ' \n' '\n' | sed 's/=$//' | grep . | sort -u |
        comm -3 options - >differ
    [ -s differ ] && fail "$command: completion and help differ in $(tr -d '\t' <differ | tr '\n' ' ')"
done
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

if command -v man >/dev/null; then
    man --warnings -l "$manual" 2>warnings >page
    [ -s page ] || fail "man shows nothing"
    [ -s warnings ] && fail "man warns: $(cat warnings)"
fi
if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning "$manual" >warnings 2>&1 || fail "mandoc warns: $(cat warnings)"
fi
