#!/usr/bin/env bash
# A signal ends a command while its server is away or does not answer, although the driver would wait for
# ten minutes. The command says that the outcome of its last requests is unknown, and its log has an end.
# shellcheck disable=SC1091,SC2154 # what is sourced is not followed
source "$(dirname "$0")/own_server.sh"

start_server
db=$(cat server.uri)
db="${db%/}/away?serverSelectionTimeoutMS=600000&socketTimeoutMS=600000"
expect 0 define "$db" events --preset feed-recent --threshold 4 --page 4 --quiet
expect 0 append "$db" events ada 1 2 3

# comes FILE TEXT: the text appears in the file.
comes() {
    await "'$2' in $1" grep -qs -- "$2" "$1"
}

# ends COMMAND: the process $job, which was asked to end, ends because of its server.
ends() {
    kill "$job"
    wait "$job"
    local status=$?
    [ "$status" = 130 ] || fail "$1 ended with $status: $(cat messages)"
    has messages 'stopped by a signal, without waiting for the server'
    has messages 'the outcome of requests on their way is unknown; run the same command to continue'
    [ "$(grep -c 'stopped by a signal' messages)" = 1 ] || fail "$1 says it more than once: $(cat messages)"
}

has_ended() {
    tail -1 log >last
    has last '"event" : "end", "ended" : "stopped by a signal, without waiting for the server'
    has last '"code" : "CANCELLED"'
}

# signal_server SIGNAL: to all processes of the server.
signal_server() {
    for file in "$server"/spillway-test-server/*.pid; do
        kill "-$1" "$(head -n 1 "$file")"
    done
}

# ---- the server is stopped while a watch runs ----------------------------------------------------

"$SPILLWAY" sweep "$db" events --watch --interval 1 --log log --control control.sock >swept 2>messages &
job=$!
cleanups+=("kill -9 $job 2>/dev/null")
comes swept '"step":"swept"'
"$test_server" kill "$server" || fail "the server does not end"
sleep 1.5 # a pass begins, and waits for the server
ends sweep
has_ended
[ ! -e control.sock ] || fail "the socket is still there"

# ---- it is away from the start -------------------------------------------------------------------

for command in migrate consolidate; do
    rm -f log
    "$SPILLWAY" "$command" "$db" plan.json --execute --log log >out 2>messages &
    job=$!
    comes log '"event" : "start"'
    ends "$command"
    has_ended
done

# ---- a server that accepts connections and does not answer ---------------------------------------

start_server
cleanups=("signal_server CONT 2>/dev/null" "${cleanups[@]}")
rm -f log swept
"$SPILLWAY" sweep "$db" events --watch --interval 1 --log log >swept 2>messages &
job=$!
comes swept '"step":"swept"'
signal_server STOP
sleep 1.5 # a pass begins, and waits for an answer
ends "sweep, with a frozen server,"
has_ended
signal_server CONT

mkfifo lines
"$SPILLWAY" append "$db" events ada - <lines >acknowledged 2>messages &
job=$!
exec 3>lines
echo '{"n": 4}' >&3
comes acknowledged 3
signal_server STOP
echo '{"n": 5}' >&3
sleep 0.5 # it waits for the answer
ends append
exec 3>&-
signal_server CONT
expect 0 count "$db" events ada
grep -qE '"count":[45],' out || fail "4 elements were acknowledged, and a fifth may be there: $(cat out)"

# ---- the server answers: the command ends by itself ----------------------------------------------

"$SPILLWAY" sweep "$db" events --watch --interval 1 --log log >swept 2>messages &
job=$!
comes swept '"step":"swept"'
kill "$job"
wait "$job" || fail "a watch with its server did not end well: $(cat messages)"
has messages 'stopped by a signal'
grep -q 'without waiting' messages && fail "the server was there: $(cat messages)"
expect 0 verify "$db"

# ---- the gateway ---------------------------------------------------------------------------------

# It first lets commands end, and then does not wait for the server. A log that is lost does not end it.
"$SPILLWAY" serve "$db" --listen 127.0.0.1:0 >gateway.out 2>gateway.log &
job=$!
comes gateway.log '"start"'
"$test_server" kill "$server" || fail "the server does not end"
sleep 2 # it searches for a primary
kill "$job"
wait "$job" || fail "the gateway did not end well without its server: $(cat gateway.log)"
tail -1 gateway.log >last
has last '"event" : "end"'
start_server
if [ -e /dev/full ]; then
    "$SPILLWAY" serve "$db" --listen 127.0.0.1:0 >gateway.out 2>/dev/full &
    job=$!
    comes gateway.out 'listening on'
    kill "$job"
    wait "$job"
    [ $? = 3 ] || fail "a gateway without its log did not end with 3"
fi

# /healthz names a log that cannot be written, and the gateway stays healthy. If there is room again, the log
# says how much is missing.
http() {
    python3 -c "
import sys, urllib.request
answer = urllib.request.urlopen('http://127.0.0.1:$(sed -n 's|.*metrics on http://127.0.0.1:\([0-9]*\)/metrics$|\1|p' gateway.out)$1')
print(answer.getcode(), answer.read().decode())"
}
head -c 1000 /dev/zero | tr '\0' '\n' >gateway.log
(ulimit -f 1 && exec "$SPILLWAY" serve "$db" --listen 127.0.0.1:0 --metrics 0) >gateway.out 2>>gateway.log &
job=$!
comes gateway.out 'listening on'
names_log() { http /healthz >out && grep -q 'the log: stderr cannot be written, and lacks [1-9] lines* (File too large)' out; }
await "/healthz names the log" names_log
grep -q '^200 ok' out || fail "not healthy: $(cat out)"
http /metrics >out
grep -q '^spillway_log_lines_lost_total{command="serve"} [1-9]$' out || fail "no lines are lost: $(cat out)"
has out 'spillway_log_failing{command="serve"} 1'
http / >out
has out '</b>lines missing in the log'
: >gateway.log
kill -HUP "$job"
comes gateway.log '"event" : "gap", "missing" : [1-9] }'
comes gateway.log '"event" : "reload"'
http /metrics >out
has out 'spillway_log_failing{command="serve"} 0'
kill "$job"
wait "$job"
[ $? = 3 ] || fail "a gateway without a part of its log did not end with 3"
grep -q 'the log: stderr lacks [1-9] lines* (File too large)' gateway.log || fail "it ends silently: $(cat gateway.log)"

