#!/usr/bin/env bash
# What a person at a terminal gets: tables instead of JSON, colours, the hint for the next page, and a
# scan with its findings first. What a script gets: the same as ever, and JSON with --json from every
# command. Also -q, -v, env:, and the old names of options.
# shellcheck disable=SC1091,SC2154,SC2016 # lib.sh is not followed; documents have $ signs
source "$(dirname "$0")/lib.sh"

esc=$'\e'
colored() { grep -qF "${esc}[" out; }

expect 0 define db events --preset feed-recent --json --quiet
for i in $(seq 1 30); do echo "{\"n\": $i}"; done | "$SPILLWAY" append db events alice - --quiet >out 2>err

# ---- tables and JSON -----------------------------------------------------------------------------

# table ARGUMENT...: a table on a terminal, a line of JSON in a pipe and with --json.
table() {
    on_terminal 80 "$@"
    grep -q '^ *[{]' out && fail "$*: a person gets JSON: $(cat out)"
    [ -s out ] || fail "$*: a person gets nothing"
    awk 'length > 80' out | grep . >wide && fail "$*: wider than 80 columns: $(cat wide)"
    expect 0 "$@" --json
    python3 -c 'import json, sys
text = sys.stdin.read()
try: json.loads(text)
except ValueError: [json.loads(line) for line in text.splitlines()]' <out || fail "$* --json is no JSON: $(cat out)"
    [ -s out ] || fail "$* --json prints nothing"
}

table verify db
table count db events alice
table repair db
table stats db
table owners db events
table read db events alice --limit 3
table explain db events alice
table define db
table convert db events --keep oldest --as old
table copy db copy.db events
table threshold db events
table scan db --max-elements 5
table plan db --max-elements 5
expect 0 count db events alice
has out '{"owner":"alice","count":30,'
on_terminal 80 count db events alice
has out 'owner        "alice"'
on_terminal 80 count db events alice --json
has out '"count":30,'

# prints TEXT ARGUMENT...: with --json the command prints this.
prints() {
    expect 0 "${@:2}" --json
    has out "$1"
}

prints '"updated" : 1' update db events alice '{"$set": {"name": "Alice"}}'
prints '"edited" : 7' edit db events alice 7 '{"n": 70}'
prints '"removed" : 8' remove db events alice 8
prints '"count" : 1' remove db events alice --where '{"n": 70}'
prints '"oldest" : 10' trim db events alice --below 10
prints '"oldest" : null' trim db events alice --keep 0
prints '"folder":"backup"' backup db backup
prints '"findings":0' restore backup restored
prints '"dropped" : 1' drop db old --yes
prints '"findings"' report db --max-elements 5
for i in $(seq 1 30); do echo "$i"; done | "$SPILLWAY" append db events alice - --quiet >out 2>err

# ---- the hint ------------------------------------------------------------------------------------

on_terminal 80 read db events alice --limit 3
has out 'next: --limit 3 --before'
on_terminal 80 read db events alice --limit 3 -q
grep -q 'next:' out && fail "-q prints the hint"
expect 0 read db events alice --limit 3
is err ''

# ---- colours -------------------------------------------------------------------------------------

on_terminal 80 verify db
colored || fail "no colours on a terminal: $(cat out)"
NO_COLOR=1 on_terminal 80 verify db
colored && fail "NO_COLOR is ignored"
NO_COLOR='' on_terminal 80 verify db
colored || fail "an empty NO_COLOR is no NO_COLOR"
SPILLWAY_TERM=dumb on_terminal 80 verify db
colored && fail "a dumb terminal gets colours"
on_terminal 80 verify db --color never
colored && fail "--color=never is ignored"
NO_COLOR=1 on_terminal 80 verify db --color always
colored || fail "--color=always is ignored"
expect 0 scan db --max-elements 5
colored && fail "a pipe gets colours"
expect 0 scan db --max-elements 5 --color=always
colored || fail "--color=always has no colours in a pipe"
expect 2 scan db --color sometimes
has err 'auto, always or never'

# ---- -q, -v, old names ---------------------------------------------------------------------------

expect 0 count db events alice -v
has err 'opening db to read'
has err 'count took'
expect 0 convert db events --keep oldest --as last -q
is err ''
expect 0 convert db events --to capped --as cap --threshold 5 -n
expect 0 convert db events --layout capped --as cap --threshold 5 --dry-run
expect 3 count db cap alice
expect 0 stats db --top 1
expect 0 stats db --limit 1
for command in repair convert plan-set migrate consolidate; do
    expect 0 "$command" --help
    has out '-n, --dry-run              Change nothing: check, and print what would be'
done
echo '{"spillwayPlan": 1, "arrays": [], "sprawl": []}' >plan.json
expect 2 migrate db plan.json --dry-run --execute
has err '--dry-run cannot be combined with --execute'

# ---- env: and - ----------------------------------------------------------------------------------

SPILLWAY_URI=db expect 0 count env: events alice
is err ''
SPILLWAY_URI=db expect 0 count - events alice
has err "write 'env:'"
[ "$(wc -l <err)" = 1 ] || fail "the warning is repeated: $(cat err)"
expect 2 count env: events alice
has err SPILLWAY_URI
SPILLWAY_URI=db expect 0 scan env: --max-elements 5

# ---- a scan --------------------------------------------------------------------------------------

seq 1 5 | sed 's/.*/{"_id": &, "list": [1]}/' >short.ndjson
echo '{"_id": 6, "list": [1, 2, 3, 4, 5, 6, 7, 8, 9]}' >>short.ndjson
expect 0 scan short.ndjson --max-elements 1 --quiet
has out 'more than 1 element or'
plain_numbers out
python3 - >grown.ndjson <<'END'
import json
for owner, minutes in (("a", 400), ("b", 1), ("c", 2)):
    events = [{"at": {"$date": {"$numberLong": str(1767225600000 + 60000 * i)}}, "n": i} for i in range(minutes)]
    print(json.dumps({"_id": owner, "events": events, "only": [1]}))
END
expect 0 scan grown.ndjson --max-elements 1 --quiet
has out ' at 1440 a day'
plain_numbers out
expect 0 report grown.ndjson --max-elements 1 --quiet -o report.html
plain_numbers report.html
grep -qE '4[34][0-9] elements a day' report.html || fail "the report has no pace: $(grep -o '.\{40\}a day' report.html)"
