#!/usr/bin/env bash
# Import many elements of one owner, then many owners, then many documents with arrays (--elements): neither the program's memory nor the
# server's may grow with their number. The test prints the figures. It imports 50 000 elements and
# 1000 owners, or with SPILLWAY_LONG 1 000 000 elements and 100 000 owners of 50 elements each. The
# documents have 500 elements each, as many in all as the one owner.
# SPILLWAY_ELEMENTS and SPILLWAY_OWNERS set other numbers.
# shellcheck disable=SC1091,SC2154 # what is sourced is not followed
source "$(dirname "$0")/own_server.sh"

elements=50000 owners=1000
[ -z "${SPILLWAY_LONG:-}" ] || elements=1000000 owners=100000
elements=${SPILLWAY_ELEMENTS:-$elements} owners=${SPILLWAY_OWNERS:-$owners}
allowed_kb=$((64 * 1024)) # allowed difference between the last and the first quarter

start_server
uri=$(cat server.uri)

# Print the anonymous memory of processes in kB. A server's buffers are shared memory, which its
# settings limit.
anonymous() {
    local pid sum=0 kb
    for pid in "$@"; do
        kb=$(awk '/^RssAnon/ { print $2 }' "/proc/$pid/status" 2>/dev/null)
        sum=$((sum + ${kb:-0}))
    done
    echo "$sum"
}

# Print the ids of all processes of the server, of either kind: those in NAME.pid, and their children.
server_processes() {
    local pid
    cat "$server"/spillway-test-server/*.pid | while read -r pid; do
        echo "$pid"
        ps -o pid= --ppid "$pid"
    done
}

# watch PROGRAM FILE: write lines "SECOND PROGRAM SERVER" (memory in kB) until the program ends.
watch() {
    local program
    while kill -0 "$1" 2>/dev/null; do
        program=$(anonymous "$1")
        # shellcheck disable=SC2046 # numbers
        [ "$program" = 0 ] || echo "$SECONDS $program $(anonymous $(server_processes))" >>"$2"
        sleep 0.1
    done
}

# peak FILE COLUMN FROM TO: print the maximum of a column between FROM and TO percent of the lines.
peak() {
    local lines
    lines=$(wc -l <"$1")
    awk -v c="$2" -v from=$((lines * $3 / 100)) -v to=$((lines * $4 / 100)) \
        'NR > from && NR <= to && $c > most { most = $c } END { print most + 0 }' "$1"
}

# load NAME ELEMENTS COMMAND...: import the command's output with the options, and compare the memory of first
# and last quarter. The import must print `said'.
load() {
    local name=$1 records=$2 store pid
    shift 2
    store=$(database_at "$uri" "memory_$name")
    expect 0 define "$store" ev --preset feed-recent --threshold 50 --page 50
    : >"$name.memory"
    SECONDS=0
    "$SPILLWAY" import "$store" ev - "${options[@]}" --quiet < <("$@") >out 2>err &
    pid=$!
    watch "$pid" "$name.memory"
    wait "$pid" || fail "the import of $name failed: $(cat err)"
    is out "$said"
    local what column=2
    for what in program server; do
        local early late
        early=$(peak "$name.memory" $column 0 25)
        late=$(peak "$name.memory" $column 75 100)
        echo "$name, $records records in $SECONDS s: $what, peak in the first quarter $early kB," \
            "in the last $late kB"
        [ "$late" -le $((early + allowed_kb)) ] || fail "$name: the $what's memory grows with the data"
        column=3
    done
    expect 0 stats "$store" ev --json
    has out "\"elements\":$records,"
}

one_owner() {
    seq -f '{"by": "hot", "n": %.0f, "text": "an element of some hundred bytes, as an activity in a stream may have them"}' "$elements"
}

# Each owner occurs five times, with ten elements each time, so that no client can cache all owners.
many_owners() {
    awk -v owners="$owners" 'BEGIN { for (n = 0; n < 50; n += 10) for (i = 0; i < owners; i++)
        for (k = n; k < n + 10; k++)
            printf "{\"by\": %d, \"n\": %d, \"text\": \"an element of some eighty bytes\"}\n", i, k }'
}

# Documents of 500 elements: the whole file is far larger than a chunk of the import.
documents() {
    awk -v documents=$((elements / 500)) 'BEGIN { for (i = 0; i < documents; i++) {
        printf "{\"_id\": %d, \"name\": \"document %d\", \"events\": [", i, i
        for (k = 0; k < 500; k++)
            printf "%s{\"n\": %d, \"text\": \"an element of some hundred bytes, as an activity in a stream may have them\"}", k ? ", " : "", k
        print "]}" } }'
}

options=(--owner by)
said="$elements records imported"
load one-owner "$elements" one_owner
said="$((owners * 50)) records imported"
load many-owners $((owners * 50)) many_owners
options=(--elements events)
said="$elements elements of $((elements / 500)) documents imported"
load documents "$elements" documents
