#!/usr/bin/env bash
# The server is killed during an import, at random moments. The import must continue by itself if the
# server restarts soon, or else report how many records are imported. A second run continues it. At
# the end every record must be stored once and in order.
# shellcheck disable=SC1091,SC2154 # what is sourced is not followed
source "$(dirname "$0")/own_server.sh"

rounds=${SPILLWAY_KILLS:-4}
records=2000
seed_random

for ((i = 1; i <= records; i++)); do
    echo "{\"_id\": $i, \"by\": \"u$((i % 7 * (i % 2)))\"}"
done >events.ndjson
awk -F '"' '{ print $(NF - 1) }' events.ndjson | sort | uniq -c >owners
start_server

# imported STORE N: the store has at least N records, and each owner has a prefix of its input lines.
imported() {
    expect 0 export "$1" ev --relaxed
    [ "$(wc -l <out)" -ge "$2" ] || fail "$2 records were acknowledged, but the store has $(wc -l <out)"
    sed 's/.*"owner":"\([^"]*\)","seq":\([0-9]*\),.*"_id" : \([0-9]*\).*/\1 \2 \3/' out >elements
    awk '$1 != owner { owner = $1; next_seq = 0; id = 0 }
        $2 != next_seq++ || $3 <= id { exit 1 } { id = $3 }' elements || fail "records are out of order"
    [ "$(cut -d ' ' -f 3 elements | sort -n | uniq -d | wc -l)" = 0 ] || fail "records are doubled"
}

# Print how many records the failed import reported as imported.
acknowledged_records() {
    sed -n 's/^spillway: \(at least \)\?\([0-9]*\) records are imported; .*/\2/p' err
}

# Print the input: one part at once, the rest after the server was killed.
events_around_kill() {
    local before=$((RANDOM % records))
    head -n "$before" events.ndjson
    await "the server was killed" test -e killed
    tail -n +"$((before + 1))" events.ndjson
}

# continue_import STORE ARGUMENT...: import again. If the server was killed after it had stored the last
# record and before the import received the answer, nothing is left to import.
continue_import() {
    local store=$1 status=0
    shift
    "$SPILLWAY" import "$store" ev "$@" --quiet <events.ndjson >out 2>err || status=$?
    case $status in
    0) ;;
    4) { [ "$acknowledged" = "$records" ] && grep -q 'has nothing new' err; } || fail "$(cat err)" ;;
    *) fail "the second import ended with $status: $(cat err)" ;;
    esac
}

# one_round KEEP BOUND AWAY ARGUMENT...: kill the server during an import. If AWAY is "short", restart
# it at once; if "long", after the import ended.
one_round() {
    local keep=$1 bound=$2 away=$3 store pid status
    shift 3
    store=$(database_at "$(cat server.uri)" "killed_$((round))")
    store+="?serverSelectionTimeoutMS=1000"
    expect 0 define "$store" ev --preset feed --keep "$keep" --threshold "$bound" --page "$bound"
    rm -f killed
    "$SPILLWAY" import "$store" ev "$@" --quiet < <(events_around_kill) >out 2>err &
    pid=$!
    sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
    "$test_server" kill "$server"
    if [ "$away" = short ]; then
        start_server
    fi
    touch killed
    wait "$pid"
    status=$?
    case $status in
    0) [ "$away $1" != "long -" ] || fail "an import from stdin succeeded without a server" ;;
    3)
        has err "spillway: "
        mv err first_err
        ;;
    *) fail "the import ended with $status: $(cat err)" ;;
    esac
    [ "$away" = short ] || start_server
    if [ "$status" = 3 ]; then
        cp first_err err
        acknowledged=$(acknowledged_records)
        imported "$store" "${acknowledged:-0}"
        continue_import "$store" "$@"
    fi
    echo "round $round, away $away, ended with $status${acknowledged:+ after $acknowledged}: $*"
    imported "$store" "$records"
    [ "$(wc -l <elements)" = "$records" ] || fail "the store has $(wc -l <elements) of $records records"
    cut -d ' ' -f 1 elements | sort | uniq -c | cmp -s - owners || fail "an owner's count of records is wrong"
    while read -r count owner; do
        counts "$store" ev "$owner" "$count"
    done <owners
    clean "$store"
}

for ((round = 0; round < rounds; round++)); do
    acknowledged=
    keep=newest bound=100 away=long
    [ $((round / 2 % 2)) = 0 ] || keep=oldest
    [ $((round % 3)) != 1 ] || bound=3
    [ $((round % 2)) = 0 ] || away=short
    case $((round % 3)) in
    0) one_round $keep $bound $away - --owner by --as stream ;;
    1) one_round $keep $bound $away events.ndjson --owner by ;;
    2) one_round $keep $bound $away events.ndjson --owner by --id _id ;;
    esac
done
