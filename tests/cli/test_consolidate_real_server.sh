#!/usr/bin/env bash
# consolidate of real chat rooms, one collection each: killed and resumed until it ends, then compared.
# Runs if SPILLWAY_DATA names a folder of data sets. With SPILLWAY_LONG it uses all 525 rooms with all
# messages, and also finishes.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
SPILLWAY_TEST_STORE=server source "$(dirname "$0")/lib.sh"

here=${SPILLWAY_SOURCE:?}/tests/cli
data=${SPILLWAY_DATA:-}/gitter_chat
[ -r "$data/events.ndjson.gz" ] || skip "SPILLWAY_DATA has no gitter_chat/events.ndjson.gz"
python=$(python_with_pymongo)
new_database "$SPILLWAY_TEST_URI"
echo "$uri" >uri
documents=2000 rooms=70 most=3 rate=300
[ -z "${SPILLWAY_LONG:-}" ] || documents=0 rooms=525 most=20 rate=20000
"$python" "$here/consolidate.py" real "$uri" "$data" $documents $rooms || fail "filling"
seed_random
kills=0
while :; do # run slowly until it was killed often enough
    [ $kills -lt $most ] || rate=1000000
    "$SPILLWAY" consolidate @uri plan.json --execute --quiet --log log --rate $rate >out 2>err &
    pid=$!
    if [ $kills -lt $most ]; then
        sleep "0.$((1 + RANDOM % 3))$((RANDOM % 10))"
        kill -9 "$pid" 2>kill.err
    fi
    wait "$pid" 2>wait.err
    status=$?
    [ "$status" = 137 ] || break
    kills=$((kills + 1))
done
[ "$status" = 0 ] || fail "it ended with $status: $(cat err)"
has out '"changing":0}'
echo "$kills kills"
[ $kills = $most ] || fail "it was killed $kills of $most times"
[ "$(grep -c '"equal" : true' log)" -ge $rooms ] || fail "the log lacks elements that did not change"
"$python" "$here/consolidate.py" check "$uri" plan.json || fail "they differ"
if [ -n "${SPILLWAY_LONG:-}" ]; then
    expect 0 consolidate @uri plan.json --execute --finish --yes
fi
:
