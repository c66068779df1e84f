#!/usr/bin/env bash
# bench/results check reports which bars are met and which are missed, for invented results. bench/
# results chart draws the recorded results.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

# row ID RUN REPETITION RATE [BYTES]: print a line of bench/peers/run --results.
row() {
    printf '{"work": "threads", "id": "%s", "peer": "%s", "socket": false, "durable": true,' "$1" "$1"
    printf ' "run": %s, "repetition": %s, "load": 1, "note": "",' "$2" "$3"
    printf ' "options": {"appends": 1000, "threads": 8},'
    printf ' "figures": {"appends": 1000, "perSecond": %s, "bytes": %s}}\n' "$4" "${5:-1}"
}

# judged CODE LINE...: bench/results check of ./rows exits with CODE and prints lines that begin with
# each LINE.
judged() {
    local code=$1 status=0
    shift
    "$SPILLWAY_SOURCE/bench/results" check rows >out 2>err || status=$?
    [ "$status" = "$code" ] || fail "exit code $status instead of $code: $(cat out err)"
    for line in "$@"; do
        grep -qE "^$line" out || fail "no line begins with '$line': $(cat out err)"
    done
}

order="two runs in the same order, threads durable \(1000 appends, 8 threads\), a second:"

# The check uses the medians of repetitions, and our worst run against the other's best run.
{
    for rate in 90 10 80; do row redis-list 1 "$rate" "$rate"; done
    for rate in 110 100 20; do row ours-embedded 1 "$rate" "$rate" 0.5; done
    row redis-list 2 1 85
    row ours-embedded 2 1 101 0.5
} >rows
judged 0 "met .* a second, against redis-list: 100 / 101 against 80.* / 85" \
    "met .* bytes an element, against redis-list: 0.5 / 0.5 against 1 / 1" \
    "met .*$order 0 of 1 pairs of 2 peers apart in both, 0 in neither"
row redis-list 3 1 100.5 >>rows
judged 1 "MISSED .* a second, against redis-list: 100 / 101 against 80 / 85 / 10[01]"

# Two runs disagree on the order if two peers differ in both runs, in opposite directions.
{
    for rate in 1 2 3; do row lmdb 1 "$rate" "$rate"; done
    for rate in 4 5 6; do row sqlite 1 "$rate" "$rate"; done
    for rate in 7 8 9; do row lmdb 2 "$rate" "$rate"; done
    for rate in 4 5 6; do row sqlite 2 "$rate" "$rate"; done
} >rows
judged 1 "MISSED  $order 0 of 1 pairs of 2 peers apart in both, 0 in neither: lmdb 2 / 8, sqlite 5 / 5"
row lmdb 2 4 5.5 >>rows # now the peers do not differ in the second run
judged 0 "met     $order 0 of 1 pairs of 2 peers apart in both, 0 in neither"
row lmdb 1 4 4.5 >>rows # nor in the first run
judged 0 "met     $order 0 of 1 pairs of 2 peers apart in both, 1 in neither: lmdb and sqlite"

# A ratio printed by bench_length, and an append that is 72 times faster.
{
    echo "newest-append         12.40      10.00     1.24  <=  1.25  ok   at 999300, against 100"
    echo "oldest-append         12.60      10.00     1.26  <=  1.25  FAIL at 999300, against 100"
    append='"threads": 1, "length": 10000, "tooLong": false, "append": {"medianUs"'
    printf '{"spillwayBench": 1, "store": "x.db", "durability": "log", "threshold": 9, "page": 9, "rows": ['
    printf '{"layout": "unbounded", %s: 720}}, {"layout": "newest", %s: 10}}, ' "$append" "$append"
    printf '{"layout": "oldest", %s: 10.2}}]}\n' "$append"
} >rows
judged 1 "met     flat, newest-append at 999300, against 100: 1.24" \
    "MISSED  flat, oldest-append at 999300, against 100: 1.26" \
    "met     72 times .*, newest, .*: 72 \(720 and 10.0 us, log\)" \
    "MISSED  72 times .*, oldest, .*: 71 " "- *72 times .*, server: no figures"

# The chart in the documentation shows the recorded results.
"$SPILLWAY_SOURCE/bench/results" chart "$SPILLWAY_SOURCE/docs/internals/benchmarks/lengths.md" >chart.svg
cmp -s chart.svg "$SPILLWAY_SOURCE/docs/explanation/append-by-length.svg" ||
    fail "docs/explanation/append-by-length.svg differs from bench/results chart docs/internals/benchmarks/lengths.md"
grep -q '>100 ms<' chart.svg || fail "the chart has no axis: $(head -c 300 chart.svg)"
printf 'no table\n' >empty.md
"$SPILLWAY_SOURCE/bench/results" chart empty.md >out 2>err && fail "a chart of nothing"
grep -q 'empty.md has no table' err || fail "no reason: $(cat err)"
