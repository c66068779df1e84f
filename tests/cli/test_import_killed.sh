#!/usr/bin/env bash
# An import that is killed at random moments and restarted until it ends must import every record once
# and in order: with split batches, with ids, from a compressed file, and from stdin. Each array uses
# two of these sources. With SPILLWAY_LONG each array uses all of them, with more records, and on a
# server all bounds are used with both keeps.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars in it
source "$(dirname "$0")/lib.sh"

# The kept end, threshold and page.
shapes=("newest 100 100" "newest 3 2" "oldest 3 2" "oldest 100 100")
records=10000 rounds=5
if on_server; then # slower for each record
    records=1000 rounds=3
    [ -n "${SPILLWAY_LONG:-}" ] || shapes=("newest 3 2" "oldest 100 100")
elif [ -n "${SPILLWAY_LONG:-}" ]; then
    records=30000
fi
rounds=${SPILLWAY_KILLS:-$rounds}
seed=${SPILLWAY_SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"

for ((i = 1; i <= records; i++)); do
    echo "{\"_id\": $i, \"by\": \"u$((i % 7 * (i % 2)))\"}"
done >events.ndjson
gzip -k events.ndjson
awk '{ sub(/.*"by": /, ""); sub(/}/, ""); print }' events.ndjson | sort | uniq -c >owners

# import_until_done ARGUMENT...: kill the program after a random time, and restart it until it succeeds.
import_until_done() {
    local kills=0 pid status
    while :; do
        "$SPILLWAY" import "$db" ev "$@" --quiet >out 2>err <events.ndjson &
        pid=$!
        if [ "$kills" -lt "$rounds" ]; then
            if on_server; then
                sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
            else
                sleep "0.0$((RANDOM % 10))$((RANDOM % 10))"
            fi
            kill -9 "$pid" 2>kill.err
        fi
        wait "$pid" 2>wait.err
        status=$?
        case $status in
        137) kills=$((kills + 1)) ;;
        0) break ;;
        4) # the last kill came after the last record, so nothing was left to import
            { [ "$kills" -gt 0 ] && grep -q 'has nothing new' err; } || fail "$(cat err)"
            break
            ;;
        *)
            fail "the import ended with $status: $(cat err)"
            break
            ;;
        esac
    done
    echo "$kills kills: $*"
}

check_all() {
    clean "$db"
    expect 0 export "$db" ev --relaxed
    sed 's/.*"_id" : \([0-9]*\).*/\1/' out | sort -n | cmp -s - <(seq 1 $records) ||
        fail "records are lost or doubled"
    # Within an owner, the sequence numbers follow the order of the file.
    sed 's/.*"owner":"\([^"]*\)","seq":\([0-9]*\),.*"_id" : \([0-9]*\).*/\1 \2 \3/' out |
        awk '$1 == owner && ($2 != seq + 1 || $3 <= id) { exit 1 } { owner = $1; seq = $2; id = $3 }' ||
        fail "records are out of order"
}

sources=("events.ndjson --owner by" "events.ndjson.gz --owner by" "- --owner by --as stream"
    "events.ndjson --owner by --id _id")
turn=0
for shape in "${shapes[@]}"; do
    turn=$((turn + 1))
    read -r keep threshold page <<<"$shape"
    for ((i = 0; i < ${#sources[@]}; i++)); do
        [ $((i % 2)) = $((turn % 2)) ] || [ -n "${SPILLWAY_LONG:-}" ] || continue
        source=${sources[i]}
        new_store
        expect 0 define "$db" ev --preset feed --keep "$keep" --threshold "$threshold" --page "$page"
        # shellcheck disable=SC2086
        import_until_done $source
        check_all
    done
done
