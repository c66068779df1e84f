#!/usr/bin/env bash
# consolidate on a server: a plan from a scan, the dry run, a copy that is killed repeatedly while an
# application writes, the cut-over, one aggregation over all rooms, undo, and finish.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
SPILLWAY_TEST_STORE=server source "$(dirname "$0")/lib.sh"

here=${SPILLWAY_SOURCE:?}/tests/cli
python=$(python_with_pymongo)
collections() { "$python" "$here/consolidate.py" "$@" || fail "consolidate.py $*"; }
new_database "$SPILLWAY_TEST_URI"
echo "$uri" >uri
rooms=14
[ -z "${SPILLWAY_LONG:-}" ] || rooms=100
collections fill "$uri" $rooms

# ---- a plan and its dry run
expect 0 plan "$uri" --output plan.json
has out "messages_room*: $rooms collections -> one, messages_room, with the field tenantId"
sed -i 's/"messages_room"/"messages"/; s/"tenantId"/"room"/' plan.json
sed -i 's/"indexes": \[\]/"indexes": [{"key": {"room": 1, "at": -1, "text": 1}}]/' plan.json
expect 0 consolidate @uri plan.json
has out "messages: $rooms collections, "
has out '"name" : "room_1_number_1", "unique" : true, "partialFilterExpression" : { "number" : '
has out '"name" : "room_1_at_-1" }'
has out '"name" : "room_1_at_-1_text_1" }'
has err 'nothing was changed: act with --execute'
expect 4 consolidate @uri plan.json --execute --cut-over
has err 'copy first'
expect 0 consolidate @uri plan.json --json
has out '"phase" : "not begun"'
sed 's/"messages_room003", "value"/"messages_none", "value"/' plan.json >wrong.json
expect 3 consolidate @uri wrong.json
has out 'missing: messages_none'
has out 'not in the plan: messages_room003'
expect 3 consolidate @uri wrong.json --execute
has err 'the plan names a collection that does not exist: messages_none'
mkdir embedded
expect 2 consolidate embedded plan.json
has err 'an embedded store has only the collections of its definitions'
expect 2 consolidate @uri plan.json --views
expect 2 consolidate @uri plan.json --finish --undo
expect 2 consolidate @uri plan.json --threads 65

# ---- killed repeatedly, while an application writes
seed_random
kills=0
writer_seconds=2
[ -z "${SPILLWAY_LONG:-}" ] || writer_seconds=20
"$python" "$here/consolidate.py" write "$uri" written.json $writer_seconds >writer.out 2>&1 &
writer=$!
most=5
[ -z "${SPILLWAY_LONG:-}" ] || most=20
while [ $kills -lt $most ]; do
    "$SPILLWAY" consolidate @uri plan.json --execute --quiet --chunk-time 5 --passes 100 >out 2>err &
    pid=$!
    sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
    kill -9 "$pid" 2>kill.err
    wait "$pid" 2>wait.err
    kills=$((kills + 1))
done
touch pause
"$SPILLWAY" consolidate @uri plan.json --execute --pause-file pause --passes 100 >paused.out 2>paused.err &
pid=$!
for _ in $(seq 100); do grep -q 'paused: pause exists' paused.err && break; sleep 0.1; done
has paused.err 'paused: pause exists'
rm pause
wait "$pid" || fail "the paused copy ended with $?: $(cat paused.err)"
has paused.err 'going on'
touch pause # and Ctrl-C while it waits
"$SPILLWAY" consolidate @uri plan.json --execute --pause-file pause >paused.out 2>paused.err &
pid=$!
for _ in $(seq 100); do grep -q 'paused: pause exists' paused.err && break; sleep 0.1; done
kill -INT "$pid"
wait "$pid"
[ $? = 130 ] || fail "interrupted, it did not end with 130: $(cat paused.err)"
rm pause
wait "$writer" || fail "the writer: $(cat writer.out)"
echo "$kills kills, $(cat writer.out)"
expect 0 consolidate @uri plan.json --execute --log log --max-latency 5000 --rate 100000
has out '"changing":0}'
[ "$(grep -c '"equal" : true' log)" -ge $rooms ] || fail "the log: $(head -3 log)"
head -n 1 log >line
has line '"event" : "start", "version" : '
tail -n 1 log >line
has line '"event" : "end", "ended" : "done", "code" : "OK", "passes" : 1'
expect 3 consolidate @uri plan.json --execute --log /dev/full
has out '"changing":0}'
has err 'the job continues without its log'
collections check "$uri" plan.json written.json

# ---- cut over, and one query over all rooms
expect 4 consolidate @uri plan.json --execute --cut-over --views
has err 'the server creates no views'
expect 0 consolidate @uri plan.json --execute --cut-over
expect 0 consolidate @uri plan.json --execute --cut-over
has out '"before":true'
collections check "$uri" plan.json written.json
expect 4 consolidate @uri plan.json --execute
has err "past its copy (cut over)"

# ---- undone, with the writes since the cut-over
"$python" - "$uri" <<'END' || fail "writing to the joint collection"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    database = client.get_default_database()
    assert not [name for name in database.list_collection_names() if name.startswith("messages_")]
    database.messages.insert_one({"_id": "own", "room": "000", "text": "since"})
    try: # unique in each slice, as before in each collection
        database.messages.insert_one({"_id": 1, "room": "000", "number": 400})
        database.messages.insert_one({"_id": 2, "room": "000", "number": 400})
        sys.exit("the index is not unique")
    except pymongo.errors.DuplicateKeyError:
        database.messages.delete_one({"_id": 1})
    database.messages_room001.insert_one({"_id": "stray", "text": "late"}) # by the old name
END
expect 0 consolidate @uri plan.json --execute --cut-over
has out '"before":true,"passes":0,"inserted":1,'
expect 0 consolidate @uri plan.json --undo
has out 'goes back: { "collection" : "messages_room000"'
expect 0 consolidate @uri plan.json --undo --execute
expect 0 consolidate @uri plan.json --undo --execute
has out '"before":true'
"$python" - "$uri" <<'END' || fail "after undo"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    database = client.get_default_database()
    assert database.messages_room000.find_one({"_id": "own"}) == {"_id": "own", "text": "since"}
    assert database.messages_room001.find_one({"_id": "stray"}) == {"_id": "stray", "text": "late"}
    assert not {"messages", "spillway_late_messages_room001"} & set(database.list_collection_names())
    database.messages_room000.delete_one({"_id": "own"})
    database.messages_room001.delete_one({"_id": "stray"})
END

# ---- cut over while writers continue
end_if_failed() { # the following steps need all steps so far
    [ "$failures" = 0 ] && return
    touch stop
    wait "$writer"
    exit 1
}
expect 2 consolidate @uri plan.json --execute --max-pause 5
"$python" "$here/consolidate.py" update "$uri" updated.json stop plan.json >writer.out 2>&1 &
writer=$!
await "the writers have read the collections" test -e updated.json.begun
"$SPILLWAY" consolidate @uri plan.json --execute --quiet --passes 2 >out 2>err
[[ $? == [01] ]] || fail "the copy while writers run: $(cat err)"
end_if_failed
expect 0 consolidate @uri plan.json --execute --cut-over --log log
end_if_failed
[ "$(grep -c '"open" : true, "pauseSeconds"' out)" = $rooms ] || fail "not every definition was opened: $(cat out)"
grep -qE '"pauseSeconds" : [0-9]+\.[0-9]{7,}' out log && fail "the pause is not written as people write it: $(cat out)"
[ "$(grep -c '"open" : true, "pauseSeconds"' log)" = $rooms ] || fail "not each is in the log"
sleep 0.2 # some more updates in the joint collection
touch stop
wait "$writer" || fail "the writer: $(cat writer.out)"
cat writer.out
collections check "$uri" plan.json updated.json
expect 0 consolidate @uri plan.json --undo --execute
end_if_failed

# ---- finish
expect 0 consolidate @uri plan.json --execute --quiet
expect 2 consolidate @uri plan.json --execute --finish </dev/null
expect 0 consolidate @uri plan.json --execute --finish --yes
collections check "$uri" plan.json updated.json
expect 0 consolidate @uri plan.json --execute
has out '"before":true'
expect 4 consolidate @uri plan.json --execute --undo
:
