#!/usr/bin/env bash
# control: the socket of a running job shows it, changes its rate and threads, pauses and resumes it; a wrong
# command changes nothing; a socket that a killed job left is replaced, and no other file is.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; messages have backticks
source "$(dirname "$0")/lib.sh"

new_store
expect 0 define "$db" ev --preset feed-recent --quiet
expect 0 append "$db" ev alice '{"n": 1}'

# is_json EXPRESSION: it is true of the answer in ./out.
is_json() {
    python3 -c "
import json
answer = json.load(open('out'))
assert $1, answer" || fail "the answer: not $1"
}

answers() {
    "$SPILLWAY" control job.sock status >out 2>err
}

expect 3 control job.sock status
has err 'no job listens there'

"$SPILLWAY" sweep "$db" ev --watch --interval 1 --rate 100 --threads 2 --control job.sock --log job.log \
    --metrics 0 --pause-file "the pause" >sweep.out 2>sweep.err &
job=$!
cleanups+=("kill $job 2>/dev/null")
await "the job answers" answers
[ "$(stat -c %a job.sock)" = 600 ] || fail "mode $(stat -c %a job.sock)"
has out 'sweep, process '
has out '100 a second'
expect 0 control job.sock status --json
is_json "answer['job'] == 'sweep' and answer['pid'] == $job and answer['paused'] is False"
is_json "answer['rate'] == 100 and answer['threads'] == 2 and answer['maxLatencyMs'] == 0"
expect 0 control job.sock rate 5000 --json
is_json "answer['rate'] == 5000"
expect 0 control job.sock threads 3 --json
expect 0 control job.sock max-latency 250 --json
expect 0 control job.sock pause --json
is_json "answer['paused'] is True and answer['threads'] == 3 and answer['maxLatencyMs'] == 250"
for command in "rate" "rate -1" "rate x" "threads 0" "threads 65" "status 1" "stop" "pause 1"; do
    # shellcheck disable=SC2086 # a command and its value
    expect 2 control job.sock $command
done
# waiting N: the metric says whether the job waits.
waiting() {
    python3 - "$(sed -n 's|^metrics on http://127.0.0.1:\([0-9]*\)/metrics$|\1|p' sweep.err)" "$1" <<'END' || fail "spillway_job_waiting is not $1"
import sys, urllib.request
text = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics").read().decode()
assert f'spillway_job_waiting{{command="sweep"}} {sys.argv[2]}\n' in text, text
END
}
waiting 1
expect 0 control job.sock resume --json
is_json "answer['paused'] is False and answer['rate'] == 5000 and answer['threads'] == 3"
is_json "answer['givesUp'] is None and answer['log'] == ''"
waiting 0

# A pause by a file is shown, and `resume' does not end it.
touch "the pause"
expect 0 control job.sock status --json
is_json "answer['paused'] is False and answer['pauseFile'] == 'the pause'"
expect 0 control job.sock resume
has out 'paused; it has run'
has out 'pause file   the pause exists: the job waits until it is deleted'
rm "the pause"
expect 0 control job.sock status
! grep -q pause out || fail "the file is deleted: $(cat out)"

# Clients that send half a line, much, or nothing do not stop the job.
python3 - <<'EOF' || fail "clients that send nonsense"
import socket
for sent in (b"", b"sta", b"x" * 4000, b"\0\n", b"rate 1 2\n", b"\n"):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("job.sock")
        client.sendall(sent)
EOF
expect 0 control job.sock status --json
is_json "answer['rate'] == 5000"

# A second job does not take the socket over.
expect 3 sweep "$db" ev --control job.sock
has err 'another job is controlled there'
kill -INT $job
wait $job
[ ! -e job.sock ] || fail "the socket is still there"

# The sweep was idle all the time, and its log has each change, no command that was refused, and the stop.
python3 - <<'EOF' || fail "the log: $(cat job.log)"
import json
lines = [json.loads(line) for line in open("job.log")]
commands = [(line["command"], line.get("value")) for line in lines if line["event"] == "control"]
given = [("rate", 5000), ("threads", 3), ("max-latency", 250), ("pause", None), ("resume", None), ("resume", None)]
assert commands == given, commands
assert [line["event"] for line in lines if line["event"] in ("stop", "end")] == ["stop", "end"], lines
EOF

# A killed job's socket is replaced, a file is not.
"$SPILLWAY" sweep "$db" ev --watch --control job.sock >sweep.out 2>sweep.err &
job=$!
await "the job answers" answers
kill -KILL $job
wait $job 2>/dev/null
[ -S job.sock ] || fail "no socket is left"
expect 0 sweep "$db" ev --control job.sock
[ ! -e job.sock ] || fail "the socket is still there"
echo text >file
expect 4 sweep "$db" ev --control file
has err 'is not a socket'
is file text
expect 2 sweep "$db" ev --control "$(printf 'x%.0s' {1..200})"
has err "a socket's path has at most"
on_server || exit 0

# ---- effects on a migration and on a consolidation, not only answers -------------------------------

python=$(python_with_pymongo)
"$python" - "$uri" <<'END' || fail "filling the database"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    database = client.get_default_database()
    database.users.insert_many({"_id": owner, "events": [{"n": n} for n in range(200)]} for owner in range(4))
END
expect 0 plan "$uri" --max-elements 50 --output plan.json --quiet
expect 0 plan-set plan.json users.events --order oldest-first --threshold 60 --page 20

job_ended() { ! kill -0 "$job" 2>/dev/null; }
in_job_err() { grep -qF -- "$1" job.err; }
# owners N: the log has N owners.
owners() { [ "$(grep -c '"owner" : ' job.log)" -ge "$1" ]; }

# begin ARGUMENT...: run a job with a control socket in the background.
begin() {
    rm -f job.log
    touch job.log
    "$SPILLWAY" "$@" --control job.sock --log job.log >job.out 2>job.err &
    job=$!
    cleanups+=("kill $job 2>/dev/null")
    await "the job answers" answers
}

# ends_well: the job ends by itself, with exit code 0.
ends_well() {
    await "the job ends" job_ended
    wait $job || fail "the job ended with $?: $(tail -3 job.err)"
}

# An owner that takes long: the status names it, and the metric has its time alone.
"$python" - "$uri" <<'END' || fail "filling the database"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    database = client.get_default_database()
    database.long.insert_one({"_id": "the-long-one", "events": [{"n": n, "text": "x" * 1000} for n in range(5000)]})
END
expect 0 define "$db" long --preset feed-recent --collection long --array events --page-collection longPages \
    --threshold 60 --page 20 --quiet
named() { "$SPILLWAY" control job.sock status >out 2>err && grep -q '^owner .*"the-long-one", for .* s, since 20' out; }
begin sweep "$db" long --rate 500 --metrics 0
await "the status names the owner" named
expect 0 control job.sock status --json
is_json "answer['owner'] == 'the-long-one' and answer['ownerSince']['\$date']"
python3 - "$(sed -n 's|^metrics on http://127.0.0.1:\([0-9]*\)/metrics$|\1|p' job.err)" <<'END' || fail "the metric of the owner in progress"
import re, sys, urllib.request
text = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics").read().decode()
seconds = float(re.search(r'spillway_job_owner_seconds\{command="sweep"\} (\S+)', text)[1])
assert 0 < seconds < 600 and "the-long-one" not in text, text
END
expect 0 control job.sock rate 0 --quiet
ends_well
expect 0 drop "$db" long --yes --quiet

# undo: as before the migration.
undo() {
    expect 0 migrate "$db" plan.json --undo --execute --yes --quiet
}

# The first owner's 140 elements make the second wait for 140 s. A new rate applies to this wait: the job ends before
# `await' gives up. So does `not limited'.
for rate in 100000 0; do
    begin migrate "$db" plan.json --execute --threads 1 --rate 1
    await "an owner is migrated" owners 1
    expect 0 control job.sock status --json
    is_json "answer['rate'] == 1"
    owners 2 && fail "the rate of 1 does not delay the second owner"
    expect 0 control job.sock rate $rate --json
    is_json "answer['rate'] == $rate"
    ends_well
    owners 4 || fail "not all owners are migrated: $(cat job.log)"
    undo
done

# A paused job waits whatever its rate, and continues.
begin migrate "$db" plan.json --execute --threads 1 --rate 1
await "an owner is migrated" owners 1
expect 0 control job.sock pause
expect 0 control job.sock rate 0
await "the job reports that it waits" in_job_err 'paused by `spillway control'
owners 2 && fail "a paused job has migrated an owner"
job_ended && fail "a paused job has ended"
expect 0 control job.sock status
has out 'paused; it has run'
expect 0 control job.sock resume
ends_well
in_job_err 'going on' || fail "no notice: $(cat job.err)"
owners 4 || fail "not all owners are migrated: $(cat job.log)"

# A consolidation of some 700 documents, two a second.
new_store
"$python" "${SPILLWAY_SOURCE:?}/tests/cli/consolidate.py" fill "$uri" 14 || fail "filling collections"
expect 0 plan "$uri" --output rooms.json --quiet
begin consolidate "$db" rooms.json --execute --rate 2
expect 0 control job.sock status --json
is_json "answer['job'] == 'consolidate' and answer['rate'] == 2"
expect 0 control job.sock pause
await "the job reports that it waits" in_job_err 'paused by `spillway control'
expect 0 control job.sock rate 0
job_ended && fail "a paused job has ended"
expect 0 control job.sock resume
ends_well
has job.out '"changing":0'
