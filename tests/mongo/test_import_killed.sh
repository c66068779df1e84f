#!/usr/bin/env bash
# The server dies in mid-import, at random points: the import says how far it is, or goes on by itself
# where the server is back soon. Run again it goes on, and every record is there once and in order.
# shellcheck disable=SC1091,SC2154 # what is sourced is not followed
source "$(dirname "$0")/own_server.sh"

rounds=${SPILLWAY_KILLS:-6}
records=2000
seed_random

for ((i = 1; i <= records; i++)); do
    echo "{\"_id\": $i, \"by\": \"u$((i % 7 * (i % 2)))\"}"
done >events.ndjson
awk -F '"' '{ print $(NF - 1) }' events.ndjson | sort | uniq -c >owners
start_server

# imported N FILE : at least N records are there, and each owner's are the first of its lines.
imported() {
    expect 0 export "$1" ev --relaxed
    [ "$(wc -l <out)" -ge "$2" ] || fail "$2 records were acknowledged, and $(wc -l <out) are there"
    sed 's/.*"owner":"\([^"]*\)","seq":\([0-9]*\),.*"_id" : \([0-9]*\).*/\1 \2 \3/' out >elements
    awk '$1 != owner { owner = $1; next_seq = 0; id = 0 }
        $2 != next_seq++ || $3 <= id { exit 1 } { id = $3 }' elements || fail "records are out of order"
    [ "$(cut -d ' ' -f 3 elements | sort -n | uniq -d | wc -l)" = 0 ] || fail "records are doubled"
}

# said : how many records the import that failed says are there.
said() {
    sed -n 's/^spillway: \(at least \)\?\([0-9]*\) records are imported; .*/\2/p' err
}

# The input, of which a part comes after the server died.
events_around_kill() {
    local before=$((RANDOM % records))
    head -n "$before" events.ndjson
    await "the server was killed" test -e killed
    tail -n +"$((before + 1))" events.ndjson
}

# one_round KEEP BOUND AWAY ARGUMENT... : the server is away for a while, or until the import ended.
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
    0) [ "$away $1" != "long -" ] || fail "an import from stdin ended well without a server" ;;
    3)
        has err "spillway: "
        mv err first_err
        ;;
    *) fail "the import ended with $status: $(cat err)" ;;
    esac
    [ "$away" = short ] || start_server
    if [ "$status" = 3 ]; then
        cp first_err err
        acknowledged=$(said)
        imported "$store" "${acknowledged:-0}"
        expect 0 import "$store" ev "$@" --quiet <events.ndjson
    fi
    echo "round $round, away $away, ended with $status${acknowledged:+ after $acknowledged}: $*"
    imported "$store" "$records"
    [ "$(wc -l <elements)" = "$records" ] || fail "$(wc -l <elements) records are there, of $records"
    cut -d ' ' -f 1 elements | sort | uniq -c | cmp -s - owners || fail "an owner has not its records"
    while read -r count owner; do
        counts "$store" ev "$owner" "$count"
    done <owners
    clean "$store"
}

for ((round = 0; round < rounds; round++)); do
    acknowledged=
    keep=newest bound=100 away=long
    [ $((round / 2 % 2)) = 0 ] || keep=oldest
    [ $((round / 4 % 2)) = 0 ] || bound=3
    [ $((round % 2)) = 0 ] || away=short
    case $((round % 3)) in
    0) one_round $keep $bound $away - --owner by --as stream ;;
    1) one_round $keep $bound $away events.ndjson --owner by ;;
    2) one_round $keep $bound $away events.ndjson --owner by --id _id ;;
    esac
done
