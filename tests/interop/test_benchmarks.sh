#!/usr/bin/env bash
# Each program of bench/ that the build has runs with its smallest work. It must measure: print a row,
# and end with 0 or, if a figure missed its bar, with 1. Its times say nothing here.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/../cli/lib.sh"
needs SPILLWAY_TEST_URI
export SPILLWAY_BENCH_SMALLEST=1 TMPDIR=$work
programs=$SPILLWAY_BUILD/bench
ran=()

# measures ROWS PROGRAM ARGUMENT...: the program prints at least ROWS lines, and measures.
measures() {
    local rows=$1 program=$2 status=0 began=$SECONDS
    ran+=("$program")
    "$programs/$program" "${@:3}" >out 2>err || status=$?
    echo "$program ${*:3}: $(wc -l <out) lines, exit code $status, $((SECONDS - began)) s"
    [ "$status" -le 1 ] || fail "$program ${*:3} ended with $status: $(tail -3 err)"
    [ "$(wc -l <out)" -ge "$rows" ] || fail "$program ${*:3} printed fewer than $rows lines: $(cat out)"
    grep -q '^benchmark:' err && fail "$program ${*:3}: $(cat err)"
}

# The exit code of an error is neither 0 nor that of a missed bar.
status=0
"$programs/bench_engine" --nonsense >out 2>err || status=$?
[ "$status" = 2 ] || fail "a wrong option ends with $status"
grep -q '^benchmark: usage' err || fail "a wrong option: $(cat err)"

events() { # LINES: events of three owners, a minute apart
    awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "{\"project\":\"p%d\",\"by\":\"b%d\",\"room\":\"r%d\",\"user\":\"u%d\"," \
        "\"product\":\"p%d\",\"op\":\"add\",\"channel\":\"c%d\",\"namespace\":\"n%d\",\"id\":%d," \
        "\"at\":{\"$date\":{\"$numberLong\":\"%d\"}}}\n", \
        i % 3, i % 3, i % 3, i % 3, i % 3, i % 3, i % 3, i, 1700000000000 + i * 60000 }'
}

for stream in openstack_updates gitter_chat eol_releases wiki_edits; do
    mkdir -p "streams/$stream"
    events 600 | gzip >"streams/$stream/events.ndjson.gz"
done
events 1000 >events.ndjson

measures 6 bench_damage 1 1
measures 3 bench_engine --quick
measures 20 bench_forecast streams
measures 3 bench_import events.ndjson by 1 id
measures 20 bench_length --quick
measures 4 bench_owners --quick --rounds 1 --program "$SPILLWAY"
measures 6 bench_path --quick folder
measures 3 bench_scan file.bson 1 1
measures 4 bench_start --program "$SPILLWAY"

if [ -x "$programs/bench_peers" ]; then # the build has the peers' libraries
    measures 5 bench_peers --works ids --peers ours-embedded,rocksdb,sqlite --not-durable --appends 50
fi

server=${SPILLWAY_TEST_URI%/*}/
measures 3 bench_consolidate --quick --collections 2 --documents 10 "$server"
measures 3 bench_feed --quick "$server"
measures 4 bench_length --quick --layout newest "$server"
measures 10 bench_migrate --quick --owners 1 --length 1500 "$server"
new_database "$SPILLWAY_TEST_URI"
measures 2 bench_scan "$uri" 1 1
measures 9 bench_server --quick "$server"

status=0
"$SPILLWAY_SOURCE/bench/gateway" 1 2000 >out 2>err || status=$?
[ "$(grep -cE 'direct.*: (met|MISSED)' out)" = 12 ] || fail "bench/gateway ended with $status and printed no 12 bars: $(cat out err)"
[ "$status" = "$(grep -q MISSED out && echo 1 || echo 0)" ] || fail "bench/gateway ended with $status: $(cat out err)"
status=0
"$programs/bench_gateway_push" 1 1 >out 2>err || status=$?
[ "$status" = 2 ] || fail "a benchmark without a server ends with $status"
ran+=(bench_gateway bench_gateway_push)

for program in "$programs"/bench_*; do
    [[ " ${ran[*]} " == *" ${program##*/} "* ]] ||
        fail "this test does not run ${program##*/}"
done
