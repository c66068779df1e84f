#!/usr/bin/env bash
# Control characters, characters that change the direction of writing, and bytes that are not UTF-8 never
# reach a terminal, whether they come from stored data or from arguments. Exported JSON stays the same
# data.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"
new_store

# Escape, C1, right-to-left override, isolate, newline.
owner=$'o\e[31m\xc2\x9bx\xe2\x80\xaegpj\xe2\x81\xa6\x7f'
raw=$'[\x01-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xd8\x9c'

visible() {
    for file in out err; do
        if grep -qP "$raw" "$file"; then
            fail "spillway $(printf '%q ' "$@") prints raw characters on $file: $(cat -v "$file")"
        fi
        if ! iconv -f UTF-8 -t UTF-8 "$file" >/dev/null 2>&1; then
            fail "spillway $(printf '%q ' "$@") prints what is not UTF-8 on $file"
        fi
    done
}

# shows CODE ARGUMENT...: the exit code is CODE, and neither output has a raw control character.
shows() {
    expect "$@"
    shift
    visible "$@"
}

shows 0 define "$db" ev --preset reviews-separate --collection $'c\xe2\x80\xae' --array $'a\xc2\x9b' \
    --page-array ''
shows 0 define "$db"
in_json=${owner//$'\e'/\\u001b} # JSON permits the other characters
shows 0 append "$db" ev "$owner" "{\"$in_json\": \"$in_json\"}" --json
shows 0 append "$db" ev "$owner" "{\"n\": \"$in_json\"}" --op "plain"
for option in "" --json; do
    # shellcheck disable=SC2086 # no option at all
    {
        shows 0 read "$db" ev "$owner" $option
        has out '\u202E'
        shows 0 stats "$db" ev $option
        has out '\u001b'
        shows 0 count "$db" ev "$owner" $option
        shows 0 explain "$db" ev "$owner" $option
        shows 0 explain "$db" ev "$owner" --documents $option
        shows 0 verify "$db" $option
    }
done
shows 0 export "$db" ev
has out '\u202E'
cp out exported
shows 0 export "$db" ev --relaxed
shows 0 export "$db" ev --documents
shows 0 copy "$db" other
python3 - "$owner" exported <<'END_PYTHON' || fail "the exported JSON has other data"
import json, sys
owner = sys.argv[1]
lines = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
assert [line["element"] for line in lines] == [{owner: owner}, {"n": owner}], lines
assert {line["owner"] for line in lines} == {owner}, lines
END_PYTHON

# ---- arguments that are quoted -------------------------------------------------------------------

for bad in "$owner" $'two\nspillway: lines' $'not UTF-8 \xff\xc3('; do
    shows 2 "$bad"
    shows 2 help "$bad"
    shows 3 count "$db" "$bad" alice
    shows 3 read "$db.$bad" ev alice
    shows 2 append "$db" ev alice "$bad"
    shows 2 append "$db" ev "[$bad" 1
    shows 2 edit "$db" ev alice "$bad" 1
    shows 2 define "$db" "$bad" --preset feed
    shows 2 define "$db" new --layout "$bad"
    shows 2 trim "$db" ev alice --keep "$bad"
    shows 2 count "$db" ev alice "$bad"
    shows 2 count "--$bad" x
    shows 3 import "$db" ev "$bad" --owner by --format ndjson
    shows 3 scan "$bad"
    [ "$(grep -c '^spillway: lines' err)" = 0 ] || fail "an argument starts a new line of output"
done
