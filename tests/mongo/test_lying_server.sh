#!/usr/bin/env bash
# A server that sends wrong answers: no command may crash, leak, or wait longer than its time-outs.
# shellcheck disable=SC1091,SC2016,SC2034,SC2094,SC2154 # lib.sh is not followed, and runs the cleanups
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"

command -v python3 >/dev/null || skip "python3 is not installed"
PYTHONDONTWRITEBYTECODE=1 python3 "$here/lying_server.py" port 2>server.err &
server=$!
cleanups+=('kill "$server"')
for _ in {1..100}; do
    [ -s port ] && break
    sleep 0.1
done
read -r port modes <port
[ -n "$modes" ] || fail "the lying server did not start: $(cat server.err)"

bounds='{"threshold":5,"pageCapacity":5,"headBytesMax":1048576,"pageBytesMax":1048576}'
cat >plan.json <<END
{"spillwayPlan": 1, "source": "test", "arrays": [{"collection": "users", "path": "activities",
 "migrate": true, "definition": {"name": "feed", "collection": "users", "array": "activities",
 "countField": "activityCount", "overflowField": "hasOverflow", "pagesField": "overflowPages",
 "pageCollection": "overflowActivities", "pageOwner": "userId", "pageNumber": "page",
 "pageArray": "activities", "pageCount": "count", "layout": "outlier", "keep": "newest",
 "opWindow": 64, "bounds": $bounds, "largest": $bounds}}],
 "sprawl": [{"pattern": "u*", "consolidate": true, "into": "all", "field": "kind", "ids": "compound",
  "collections": [{"collection": "users", "value": "u"}], "indexes": [], "leaveOut": []}]}
END
seconds_max=20 # twice the time-outs below, plus time for a busy machine

# attempt MODE COMMAND...: run the command, with URI replaced by the lying server's URI. Prints what is
# wrong, and sets no variables.
attempt() {
    local mode=$1 began=$SECONDS out=$BASHPID code
    local uri="mongodb://127.0.0.1:$port/$mode?socketTimeoutMS=300&serverSelectionTimeoutMS=1000"
    shift
    timeout -k 5 60 "$SPILLWAY" "${@/#URI/"$uri"}" </dev/null >"$out.out" 2>"$out.err"
    code=$?
    ((code <= 4)) || echo "$mode: $*: exit code $code: $(tail -2 "$out.err")"
    ((code == 0)) || [ -s "$out.err" ] || grep -q findings "$out.out" ||
        echo "$mode: $*: exit code $code without a message"
    ((SECONDS - began <= seconds_max)) || echo "$mode: $*: $((SECONDS - began)) s"
    grep -aE "Sanitizer|runtime error|ssertion" "$out.err" | sed "s/^/$mode: $*: /"
    [ -z "${SHOW:-}" ] || echo "   $mode: $*: $code, $((SECONDS - began)) s: $(tail -1 "$out.err")" >&2
}

# all MODE: attempt every command.
all() {
    attempt "$1" scan URI --json
    attempt "$1" scan URI --sample 3
    attempt "$1" plan URI
    attempt "$1" define URI
    attempt "$1" define URI feed --preset feed-recent
    attempt "$1" verify URI
    attempt "$1" repair URI
    attempt "$1" read URI feed '"ada"'
    attempt "$1" append URI feed '"ada"' 1
    attempt "$1" export URI feed
    attempt "$1" stats URI
    attempt "$1" migrate URI plan.json
    attempt "$1" migrate URI plan.json --execute
    attempt "$1" consolidate URI plan.json
    attempt "$1" sweep URI feed
}

# says MODE TEXT COMMAND...: the command exits with $expected (default 3), and its message has TEXT.
says() {
    local mode=$1 text=$2 code
    shift 2
    timeout -k 5 60 "$SPILLWAY" "${@/#URI/"mongodb://127.0.0.1:$port/$mode"}" >says.out 2>says.err
    code=$?
    ((code == ${expected:-3})) || fail "$mode: $*: exit code $code: $(cat says.err)"
    grep -q "$text" says.err || fail "$mode: $*: no '$text': $(cat says.err)"
}

# at_most N: at most N jobs of this shell run.
at_most() {
    (($(jobs -rp | wc -l) <= $1))
}

began=$SECONDS
for mode in ${MODES:-$modes}; do
    all "$mode" >"$mode.wrong" &
    SPILLWAY_WAIT_SECONDS=300 await "one of four modes ends" at_most 4 # the server and three modes
done
SPILLWAY_WAIT_SECONDS=300 await "the last modes end" at_most 1 # the server
for mode in ${MODES:-$modes}; do
    [ ! -s "$mode.wrong" ] || fail "$(cat "$mode.wrong")"
done
echo "$((SECONDS - began)) s"

says elsewhere "namespace 'elsewhere.users'" define URI
says nameless "not a string" define URI
says endless "lists 'feed' after 'feed'" define URI
says batches "empty batches" define URI
says malformed "not valid BSON" define URI
says old "older than MongoDB 4.4.2" define URI
says unordered "order of their _id" verify URI
expected=4 says collated "'users' has a collation of its own" define URI feed --threshold 9
expected=4 says collated "'users' has a collation of its own" migrate URI plan.json --execute
