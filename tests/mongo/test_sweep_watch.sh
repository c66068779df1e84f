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

# check_log: the log alone tells what a watch did. Each line has a time and an event. A failure has its
# reason and, unless the watch ends, the next try.
check_log() {
    python3 - <<'END' || fail "the log: $(cat log)"
import json
lines = [json.loads(line) for line in open("log")]
events = [line["event"] for line in lines]
assert all("$date" in line["time"] for line in lines), lines
assert events[:2] == ["start", "watch"] and "pass" in events, events
assert events.count("start") == 1 and [i for i, event in enumerate(events) if event == "end"] == [len(events) - 1]
start, watch, end = lines[0], lines[1], lines[-1]
assert start["version"] and start["pid"] > 0 and start["command"][0] == "sweep", start
assert watch["name"] == "events" and watch["intervalSeconds"] == 1 and watch["giveUpSeconds"] >= 0, watch
assert end["passes"] >= events.count("pass") >= 1, end
for i, line in enumerate(lines):
    if line["event"] != "failure":
        continue
    assert line["code"] and line["message"] and line["inARow"] >= 1, line
    assert ("nextTry" in line) or lines[i + 1]["event"] == "end", line
if end["code"] not in ("OK", "CANCELLED"):
    assert events[-2] == "failure" and lines[-2]["message"] in end["ended"], lines[-2:]
END
}

# The driver searches for a server no longer than this.
db="$db?serverSelectionTimeoutMS=1000"

# watch CODE ARGUMENT...: start a watch that must end with CODE, under a service manager that writes what
# it is told to ./notices. Sets `watcher`; `ends` waits for it.
watch() {
    wanted=$1
    shift
    rm -f log notices
    python3 - "$SPILLWAY" sweep "$db" events --watch --interval 1 --log log --metrics 0 \
        --control control.sock "$@" \
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
    check_log
}

# health: the answer of /healthz, with its status.
health() {
    python3 - "$(sed -n 's|^metrics on http://127.0.0.1:\([0-9]*\)/metrics$|\1|p' messages)" <<'END'
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/healthz")
except urllib.error.HTTPError as error:
    answer = error
print(answer.getcode(), answer.read().decode())
END
}
# shows TEXT: the status that a watch's socket shows has the text.
shows() {
    "$SPILLWAY" control control.sock status >shown 2>&1 && grep -q -- "$1" shown
}
is_unhealthy() { health 2>/dev/null | grep -q '^503 the last pass failed: [A-Z]*; the log has the reason'; }

watch 0
comes notices 'STATUS=1 pass ended well, 0 owners skipped'
[ "$(health)" = "200 ok" ] || fail "not healthy: $(health)"
await "control shows the next pass" shows '^next pass    20'
grep -q '^last error' shown && fail "control shows an error: $(cat shown)"
kill "$watcher"
ends "stopped by a signal" OK

watch 130
"$test_server" kill "$server" || fail "the server does not end"
await "the sweep is unhealthy" is_unhealthy
comes notices '; again in 1 s'
await "control shows the failure" shows '^last error   20.*No suitable servers found'
await "control shows the next pass" shows '^next pass    20'
has shown ' in a row'
grep -qE '^gives up     20.* 1[45] min left, if each pass fails until then$' shown || fail "no time left: $(cat shown)"
grep -q '^passes  *[1-9][0-9]* ended well, [1-9][0-9]* failed' shown || fail "$(cat shown)"
expect 0 control control.sock status --json
has out '"failuresInARow":'
has out '"lastErrorTime":{ '
has out '"givesUp":{ '
comes log '"event" : "failure"'
kill "$watcher"
ends "stopped by a signal" CANCELLED
start_server

watch 3 --give-up 0
"$test_server" kill "$server" || fail "the server does not end"
ends "gave up, because every pass failed for 0 s: " IO
start_server

# The last good pass is longer ago than the time to give up. The first failure does not end the watch.
watch 3 --give-up 2
await "control shows the next pass" shows '^next pass    20'
grep -q '^gives up' shown && fail "a sweep that works will give up: $(cat shown)"
sleep 3
"$test_server" kill "$server" || fail "the server does not end"
ends "gave up, because every pass failed for 2 s: " IO
python3 - <<'END' || fail "the failures: $(cat log)"
import json
failures = [line for line in map(json.loads, open("log")) if line["event"] == "failure"]
assert len(failures) >= 2 and len({line["givesUp"]["$date"] for line in failures[:-1]}) == 1, failures
END
start_server

watch 3
"$(python_with_pymongo)" -c "
import pymongo, sys
with pymongo.MongoClient('$db') as client:
    client.get_default_database()['spillway.definitions'].delete_one({'_id': 'events'})"
ends "stopped, because a retry cannot help: " NOT_FOUND

expect 2 sweep "$db" events --watch --give-up 99999999999

# ---- owners that are skipped ---------------------------------------------------------------------

# document OPERATION: change the document that a sweep skips.
document() {
    "$(python_with_pymongo)" - "$db" "$1" <<'END' || fail "the document is not changed"
import pymongo, sys
with pymongo.MongoClient(sys.argv[1]) as client:
    users = client.get_default_database()["users"]
    if sys.argv[2] == "break":
        users.update_one({"_id": "odd"}, {"$set": {"activities": list(range(12)), "overflowPages": "none"}}, upsert=True)
    elif sys.argv[2] == "grow":
        users.insert_one({"_id": "grown", "activities": list(range(12))})
    else:
        users.delete_one({"_id": "odd"})
END
}
passes() { [ "$(grep -c '"event" : "pass"' log)" -ge "$1" ]; }

expect 0 define "$db" events --preset feed-recent --threshold 4 --page 4 --quiet

# Passes that have nothing to do are reported once, until there was something to do; with -v, each.
watch 0
await "control shows passes" shows '^passes       [4-9] ended well'
[ "$(grep -c '"event" : "pass"' log)" = 1 ] || fail "idle passes are logged: $(cat log)"
[ "$(grep -c '"step":"swept"' swept)" = 1 ] || fail "idle passes are printed: $(cat swept)"
document grow
is_swept() { [ "$(grep -c '"event" : "pass"' log)" = 3 ]; }
await "a pass that moves elements, and an idle one, are logged" is_swept
grep '"event" : "pass"' log | sed -n 2p >last
has last '"owners" : 1,'
kill "$watcher"
ends "stopped by a signal" OK
watch 0 -v
await "each pass is logged" passes 4
kill "$watcher"
ends "stopped by a signal" OK

# An owner that each pass skips is reported once, and again only after a pass that did not skip it.
document break
watch 1
await "three passes" passes 3
[ "$(grep -c 'spillway: skipped: owner "odd"' messages)" = 1 ] || fail "not once: $(cat messages)"
[ "$(grep -c '"failed" : "' log)" = 1 ] || fail "not once in the log: $(cat log)"
[ "$(grep -c '"event" : "pass".*"failed" : 1 }' log)" -ge 3 ] || fail "the passes do not count it: $(cat log)"
comes notices ' ended well, 1 owner skipped'
document delete
comes log '"event" : "recovered", "name" : "events", "owner" : "odd" }'
document break
is_reported_again() { [ "$(grep -c '"failed" : "' log)" = 2 ]; }
await "another report" is_reported_again
kill "$watcher"
ends "stopped by a signal" OK
document delete

# A sweep that could not begin has a log, too.
expect 0 define "$db" events --preset feed-recent --threshold 4 --page 4 --quiet
rm -f log
expect 3 sweep "$db" nobody --log log
tail -1 log >last
has last '"event" : "end", "ended" : "there is no definition '
"$test_server" kill "$server" || fail "the server does not end"
expect 3 sweep "$db" events --log log --max-lag 5
tail -1 log >last
has last 'No suitable servers found'
start_server

# ---- a log that cannot be written ----------------------------------------------------------------

# The watch reports it once and continues. If there is room again, the log says how much is missing.
head -c 700 /dev/zero | tr '\0' '\n' >log
(ulimit -f 1 && exec "$SPILLWAY" sweep "$db" events --watch --interval 1 --log log --metrics 0 -v \
    --control control.sock) >swept 2>messages &
watcher=$!
comes messages 'log cannot be written (File too large): the job continues without its log'
: >swept
comes swept '"step":"swept"'
[[ "$(health)" == "200 ok"*"the log: log cannot be written, and lacks "*" (File too large)" ]] || fail "$(health)"
shows '^log          log cannot be written, and lacks .* lines* (File too large)$' || fail "$(cat shown)"
expect 0 control control.sock status --json
has out '"log":"log cannot be written'
: >log
comes log '"event" : "gap", "missing" : '
shows '^log          log lacks .* lines* (File too large)$' || fail "$(cat shown)"
kill "$watcher"
wait "$watcher"
[ $? = 3 ] || fail "a watch without parts of its log did not end with 3: $(cat messages)"
[ "$(grep -c 'cannot be written' messages)" = 1 ] || fail "it is not said once: $(cat messages)"
has messages 'log lacks '
has log '"event" : "end", "ended" : "stopped by a signal"'
