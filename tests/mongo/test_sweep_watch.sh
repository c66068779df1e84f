#!/usr/bin/env bash
# sweep --watch survives a restart of its server: it reports the failure, retries, and sweeps the
# elements that were pushed.
# shellcheck disable=SC1091,SC2154 # what is sourced is not followed
source "$(dirname "$0")/own_server.sh"

start_server
db=$(cat server.uri)
db=${db%/}/sweep
expect 0 define "$db" events --preset feed-recent --threshold 4 --page 4 --quiet
expect 0 append "$db" events ada 1 2 3

SPILLWAY_URI=$db "$SPILLWAY" sweep "$db" events --watch --interval 1 --quiet >swept 2>messages &
watcher=$!
cleanups+=("kill $watcher 2>/dev/null")

# comes FILE TEXT: the text appears in the file within a minute.
comes() {
    for _ in {1..600}; do
        grep -q -- "$2" "$1" && return
        sleep 0.1
    done
    fail "'$2' did not appear: $(cat "$1")"
}

comes swept '"step":"swept"'
"$test_server" kill "$server" || fail "the server does not end"
comes messages '; again in 1 s'
kill -0 "$watcher" || fail "the watch has ended: $(cat messages)"
start_server
: >swept
comes swept '"step":"swept"'
kill -INT "$watcher"
wait "$watcher"
status=$?
[ "$status" = 0 ] || [ "$status" = 130 ] || fail "ended with $status: $(cat messages)"

expect 3 sweep "$db" nobody --watch
has err "'nobody'"
