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

# ---- why a watch ended ---------------------------------------------------------------------------

# The driver searches for a server no longer than this.
db="$db?serverSelectionTimeoutMS=1000"

# watch CODE ARGUMENT...: start a watch that must end with CODE, under a service manager that writes what
# it is told to ./notices. Sets `watcher`; `ends` waits for it.
watch() {
    wanted=$1
    shift
    rm -f log notices
    python3 - "$SPILLWAY" sweep "$db" events --watch --interval 1 --log log --metrics 0 "$@" \
        >swept 2>messages <<'END' &
import os, signal, socket, subprocess, sys, threading
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind("manager.sock")
job = subprocess.Popen(sys.argv[1:], env={**os.environ, "NOTIFY_SOCKET": os.path.abspath("manager.sock")})
signal.signal(signal.SIGTERM, lambda *_: job.terminate())
def listen():
    with open("notices", "a", buffering=1) as notices:
        while (notice := manager.recv(4096).decode()) != "end":
            notices.write(repr(notice) + "\n")
listener = threading.Thread(target=listen)
listener.start()
code = job.wait()
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"end", "manager.sock")
listener.join()
os.remove("manager.sock")
sys.exit(code)
END
    watcher=$!
    comes swept '"step":"swept"'
    comes notices 'READY=1.nSTATUS='
}

ends() {
    local status=0
    wait "$watcher" || status=$?
    [ "$status" = "$wanted" ] || fail "the watch ended with $status, not $wanted: $(cat messages)"
    has messages "$1"
    tail -1 log >last
    has last "\"ended\" : \"$1"
    has last "\"code\" : \"$2\""
    tail -1 notices >last
    has last 'STOPPING=1\nSTATUS='
}

# health: the answer of /healthz, with its status.
health() {
    python3 - "$(sed -n 's/^metrics on port //p' messages)" <<'END'
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/healthz")
except urllib.error.HTTPError as error:
    answer = error
print(answer.getcode(), answer.read().decode())
END
}
is_unhealthy() { health 2>/dev/null | grep -q '^503 the last pass failed: [A-Z]*; the log has the reason'; }

watch 0
comes notices 'STATUS=1 passes ended well, 0 owners skipped'
[ "$(health)" = "200 ok" ] || fail "not healthy: $(health)"
kill "$watcher"
ends "stopped by a signal" OK

watch 130
"$test_server" kill "$server" || fail "the server does not end"
await "the sweep is unhealthy" is_unhealthy
comes notices '; again in 1 s'
kill "$watcher"
ends "stopped by a signal, and the last pass failed" CANCELLED
start_server

watch 3 --give-up 0
"$test_server" kill "$server" || fail "the server does not end"
ends "gave up, because no pass ended well for 0 s: " IO
start_server

watch 3
"$(python_with_pymongo)" -c "
import pymongo, sys
with pymongo.MongoClient('$db') as client:
    client.get_default_database()['spillway.definitions'].delete_one({'_id': 'events'})"
ends "stopped, because a retry cannot help: " NOT_FOUND

expect 2 sweep "$db" events --watch --give-up 99999999999
