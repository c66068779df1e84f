#!/usr/bin/env bash
# Progress on a terminal: lines fit 80 and 40 columns, each erases the one before it and the last one is
# erased, and the time left changes by at most half between two lines. Ctrl-C says what was done, and how
# to go on.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

terminal() { # COLUMNS check|show|lines|stop ARGUMENT... : the program on a terminal; see terminal.py
    python3 "$(dirname "$0")/terminal.py" "$1" "$2" "$SPILLWAY" "${@:3}" >out 2>err
}

# shown COLUMNS ARGUMENT...: the command shows progress with totals, and its lines fit.
shown() {
    terminal "$1" check "${@:2}" || fail "spillway ${*:2} at $1 columns: $(cat out err)"
    echo "${*:2}: $(tail -1 out)"
}

# documents N: N documents, each with an array.
documents() {
    seq "$1" | sed -E 's/.*/{"by": "owner-&", "list": [1, 2, {"text": "some text of &"}]}/'
}

documents 25000 >many.ndjson
documents 5000 >some.ndjson
expect 0 define db events --preset feed-recent
expect 0 import db events many.ndjson --elements list --owner by --quiet
expect 0 define few events --preset feed-recent
expect 0 import few events some.ndjson --elements list --owner by --quiet
shown 40 verify db
shown 80 stats db events
shown 80 convert few events --to outlier --keep oldest --as old
shown 40 copy few copy.db events

# Neither --quiet nor a pipe gets the rewritten line.
terminal 80 show stats db --quiet
grep -q 'owners read' out && fail "--quiet shows progress: $(cat out)"
expect 0 verify db
grep -q $'\r' err && fail "a pipe gets a line for terminals: $(cat -v err)"

# ---- Ctrl-C --------------------------------------------------------------------------------------

# stopped TEXT ARGUMENT...
stopped() {
    terminal 200 stop "${@:2}"
    status=$?
    [ "$status" = 130 ] || fail "spillway ${*:2} ended with $status after Ctrl-C: $(cat out err)"
    grep -qE "interrupted after [0-9]+ (owners?|elements?).*: .*$1" out ||
        fail "spillway ${*:2} does not say what was done and how to go on: $(cat out)"
}

stopped 'starts again' verify db
stopped 'starts again' stats db
stopped 'starts again' threshold db events
stopped 'same command' repair db events
stopped 'run the same command to continue' convert few events --to outlier --keep oldest --as new
stopped 'run the same command to continue' copy few another.db events
stopped 'run the same command to continue' drop db events --yes
expect 0 drop db events --yes

# ---- an undo -------------------------------------------------------------------------------------

# Its progress has a total. The result of an interrupted one says so before its numbers.
expect 0 define undo events --preset feed-recent --quiet
expect 0 import undo events some.ndjson --elements list --owner by --quiet
expect 0 define undo events --json
cat >plan.json <<EOF
{"spillwayPlan": 1, "source": "test", "arrays": [{"collection": "events", "path": "events",
  "migrate": true, "definition": $(cat out)}]}
EOF
undo=(migrate undo plan.json --undo --execute --yes)
stopped 'run the same command to continue' "${undo[@]}" --rate 3000
has out 'events: undone: interrupted'
grep -q moved out && fail "an undo moves nothing: $(cat out)"
terminal 200 stop "${undo[@]}" --rate 3000 --json
[ "$(grep -c '"step":"undone","interrupted":true,"owners":[1-9]' out)" = 1 ] || fail "--json: $(cat out)"
terminal 200 lines "${undo[@]}" --rate 8000 || fail "the undo: $(cat out err)"
grep -qE '[0-9] of [0-9]+ owners, .* elements unmanaged, [0-9]+ %, [0-9.]+ s left' out || fail "no total: $(cat out)"

# ---- a migration ---------------------------------------------------------------------------------

head -1200 some.ndjson >few.ndjson
expect 0 define live events --preset feed-recent --quiet
expect 0 import live events few.ndjson --elements list --owner by --quiet
live=(migrate live plan.json --execute --yes --durability log)
expect 0 "${live[@]}" --undo
for columns in 80 40; do
    terminal "$columns" follow "${live[@]}" --rate 1000 || fail "migrate at $columns columns: $(cat out err)"
    echo "migrate: $(tail -1 out)"
    expect 0 "${live[@]}" --undo
    has out '"owners":1200'
done
