#!/usr/bin/env bash
# The server is killed during a copy, at random moments, first as the target and then as the source.
# The copy must report which side failed. A second run continues the copy. At the end the target must
# have every element once, under its own number.
# shellcheck disable=SC1091,SC2154 # what is sourced is not followed
source "$(dirname "$0")/own_server.sh"

rounds=${SPILLWAY_KILLS:-2}
seed_random
start_server

for i in {1..12000}; do
    echo "{\"_id\": $i, \"by\": \"u$((i % 9 * (i % 2)))\", \"text\": \"$RANDOM$RANDOM$RANDOM\"}"
done >events.ndjson
expect 0 define folder new --preset feed-recent --threshold 20 --page 20
expect 0 define folder old --preset feed --threshold 20 --page 20 --collection o --page-collection p
# Small owners, which are copied in groups, in each layout.
for i in {1..1500}; do
    echo "{\"_id\": $i, \"by\": \"s$((RANDOM % 400))\", \"rating\": $((RANDOM % 5)), \"createdAt\": {\"\$date\": $((RANDOM * 300000000))}}"
done >small.ndjson
expect 0 define folder short --preset feed-recent --collection s --page-collection sp
expect 0 define folder separate --preset reviews-separate --collection r --page-collection rp
expect 0 define folder best --preset reviews-subset --collection b --page-collection bp
expect 0 define folder last --preset feed-recent --layout capped --threshold 3 --collection c
expect 0 define folder windows --preset reviews-bucket --collection w
for name in short separate best last windows; do
    expect 0 import folder "$name" small.ndjson --owner by --as "$name" --quiet
    expect 0 export folder "$name"
    sort out >"expected.$name"
done
for name in new old; do
    expect 0 import folder "$name" events.ndjson --owner by --as "$name" --quiet
    expect 0 trim folder "$name" u1 --below 300
    for seq in 7 300 301 500; do expect 0 remove folder "$name" u3 "$seq"; done
    expect 0 export folder "$name"
    sort out >"expected.$name"
done

# copy_until_done SIDE STORE STORE: copy, while the server (SIDE of the copy) is killed and restarted a few
# times.
copy_until_done() {
    local side=$1 kills=0 pid status=3
    shift
    for ((round = 0; round < rounds && status != 0; round++)); do
        "$SPILLWAY" copy "$@" --quiet >out 2>err &
        pid=$!
        sleep "0.$((RANDOM % 6))$((RANDOM % 10))"
        "$test_server" kill "$server"
        wait "$pid"
        status=$?
        case $status in
        0) ;;
        3)
            kills=$((kills + 1))
            has err "spillway: $side: "
            ;;
        *) fail "the copy ended with $status: $(cat err)" ;;
        esac
        start_server
    done
    [ "$status" = 0 ] || expect 0 copy "$@" --quiet
    echo "$kills kills of the $side"
    expect 0 copy "$@" --quiet
    has out '"elements":0,'
    has out '"differences":0}'
}

check() {
    clean "$1"
    for name in new old short separate best last windows; do
        expect 0 export "$1" "$name"
        sort out | cmp -s - "expected.$name" || fail "$name: elements are lost, doubled or changed"
    done
}

store="$(database_at "$(cat server.uri)" copy)?serverSelectionTimeoutMS=1000"
copy_until_done target folder "$store"
check "$store"
copy_until_done source "$store" back
check back
