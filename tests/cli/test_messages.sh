#!/usr/bin/env bash
# Messages name the place of an error and the way on: wrong command lines, missing files, JSON that cannot be
# read, numbers that need an explanation, and the next command.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars in it
source "$(dirname "$0")/lib.sh"

# ---- wrong command lines have one style ----------------------------------------------------------

# usage TEXT ARGUMENT...: ./err is a line with the text, and the advice.
usage() {
    local text=$1
    shift
    expect 2 "$@"
    is err "spillway $1: $text
Try 'spillway $1 --help'."
}

usage 'arguments are missing: STORE NAME OWNER' read
usage "'e' is one argument too many: STORE NAME OWNER" read a b c e
usage "there is no option '--nope'" read a b c --nope
usage "--limit: '-3' is not a number from 0 to 9007199254740992" read a b c --limit -3
usage "option '--limit' requires an argument" read a b c --limit
usage "option '--oldest' doesn't allow an argument" read a b c --oldest=3
usage '--limit must be at least 1' owners a b --limit 0
expect 0 read --usage
has out 'Usage: spillway read'
is err ''

# ---- files that are missing ----------------------------------------------------------------------

expect 0 define db ev --preset feed-recent --threshold 150 --page 100 --quiet
expect 3 stats @nothing
has err 'cannot open the file nothing, whose first line should be the store'
has err 'a store whose own name begins with @ is ./@nothing'
expect 0 define ./@odd ev --preset feed-recent --quiet
expect 0 stats ./@odd

# A server that does not answer is not asked.
server='mongodb://127.0.0.1:1/shop?serverSelectionTimeoutMS=200'
expect 3 import "$server" ev missing.ndjson --owner by
is err 'spillway: cannot open missing.ndjson, which should be imported: No such file or directory'
expect 3 import nostore ev missing.ndjson --owner by
has err 'cannot open missing.ndjson'

for option in tls-cert tls-key tls-ca; do
    touch there.pem
    files=(--tls-cert there.pem)
    [ "$option" = tls-cert ] && files=()
    expect 2 serve "$server" --listen 127.0.0.1:0 "${files[@]}" "--$option" missing.pem
    has err "--$option: cannot open missing.pem: No such file or directory"
done

expect 3 stats "$server"
has err 'No suitable servers found'
has err 'is the server running, is its address in the connection string right, and does a firewall'

# ---- JSON ----------------------------------------------------------------------------------------

# No text of a library: the offset and the notation.
wrong() {
    expect "$1" "${@:3}"
    has err "$2"
    grep -qiE 'invalid input string|could not|got parse error|failed to|looking for' err &&
        fail "the text is not ours: $(cat err)"
}
wrong 2 'malformed Extended JSON at offset 13: {"$numberLong": "x"} is not a value of the type that $numberLong names' \
    append db ev alice '{"a": 1, "b":{"$numberLong": "x"}}'
wrong 2 'malformed Extended JSON at offset 0: {"$date": "soon"} is not a value of the type that $date names' \
    append db ev alice '{"$date": "soon"}'
echo '{"by": "alice", "at": {"$date": {"$numberLong": "never"}}}' >bad.ndjson
wrong 3 'bad.ndjson:1: malformed Extended JSON at offset 32: {"$numberLong": "never"}' \
    import db ev bad.ndjson --owner by
printf '{"spillwayPlan": 1,\n "arrays": [\n  {"a" 1}]}' >plan.json
wrong 3 'plan.json: malformed JSON at offset 40 (line 3, column 8 of the text): ' plan-set plan.json a.b --leave
printf '{"spillwayScan": 1, "x": {"$oid": "12"}}' >scan.json
wrong 3 'scan.json: malformed Extended JSON at offset 25: {"$oid": "12"}' plan scan.json
printf '{"spillwayScan": 1,\n}' >scan.json
wrong 3 'scan.json: malformed JSON at offset 20 (line 2, column 1 of the text): ' plan scan.json

# ---- numbers and next commands -------------------------------------------------------------------

expect 0 append db ev alice 1
expect 0 explain db ev alice
has out ' of 263 '
has out 'head: at most 263 elements: 150 (--threshold), a page of 100 that the next spill moves, and 13 more'

# A layout without elements in the head refuses --keep oldest, with the reason.
python3 - <<'END'
import json
with open("users.ndjson", "w") as out:
    out.write(json.dumps({"_id": 1, "events": [{"n": n, "text": "x" * 50} for n in range(12000)]}) + "\n")
END
expect 0 scan users.ndjson
has out "next: \`spillway plan' proposes a layout for each of these arrays."
has out "application: the gateway \`spillway serve' (docs/how-to/run-gateway.md)"
expect 0 scan users.ndjson --quiet
grep -q 'next: `' out && fail "a remark with --quiet"
expect 0 scan users.ndjson --max-elements 50000 --max-bytes 10MB
grep -q 'next:' out && fail "a next command without a finding"
expect 0 report users.ndjson --quiet -o users.html
has users.html 'the gateway <code>spillway serve</code> (docs/how-to/run-gateway.md)'
expect 0 plan users.ndjson --quiet --output plan.json
expect 0 plan-set plan.json users.events --layout reference
for options in '--keep oldest' '--layout reference --keep oldest' '--layout subset --keep oldest'; do
    cp plan.json before.json
    # shellcheck disable=SC2086 # several options
    expect 2 plan-set plan.json users.events $options
    has err 'has no --keep oldest: each of its elements has a document of its own'
    cmp -s plan.json before.json || fail "plan-set $options changed the plan"
done

# A forecast without a date says why, and what is needed.
python3 - <<'END'
import datetime, json
start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
with open("young.ndjson", "w") as out:
    for user in range(20):
        out.write(json.dumps({"_id": user, "events": [
            {"at": {"$date": (start + datetime.timedelta(minutes=10 * n + user)).isoformat().replace("+00:00", "Z")},
             "text": "x" * 400} for n in range(20 * user, 6 * 24 * 4)]}) + "\n")
END
expect 0 scan young.ndjson --max-elements 100
has out 'later than can be foreseen'
[[ "$(cat out)" =~ the\ past\ of\ 4\ days\ is\ too\ short:\ a\ date\ needs\ ([0-9]+)\ more\ days\ of\ data ]] || fail "$(cat out)"
# 16 MiB are about 260 days of this pace: half of what is beyond the past.
days=${BASH_REMATCH[1]:-0}
[[ $days -gt 90 && $days -lt 160 ]] || fail "$days days"

# ---- quickstart keeps the store of the last run --------------------------------------------------

mkdir -p runs/quickstart
echo 1 >runs/quickstart/trial
keep() { "${SPILLWAY_SOURCE:?}/tools/quickstart_input" keep runs/quickstart >out 2>err || fail "keep: $(cat err)"; }
keep
has out 'The store of the last run is now runs/quickstart-before; the next run deletes it.'
is runs/quickstart-before/trial 1
keep
is out ''
is runs/quickstart-before/trial 1
