#!/usr/bin/env bash
# An array in a sub-document (`stats.events') from scan to undo, while another program pushes to it.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; operators have dollars
SPILLWAY_TEST_STORE=server source "$(dirname "$0")/lib.sh"

python=$(python_with_pymongo)
new_database "$SPILLWAY_TEST_URI"
echo "$uri" >uri

# with_users PYTHON: run the lines with `users' as the collection.
with_users() {
    "$python" - "$uri" "$1" <<'END' || fail "the program: $1"
import datetime, sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    database = client.get_default_database()
    users, day = database.users, datetime.datetime(2026, 1, 1)
    def events(first, count):
        return [{"n": n, "at": day + datetime.timedelta(hours=n)} for n in range(first, first + count)]
    exec(sys.argv[2])
END
}
with_users 'users.insert_many({"_id": owner, "name": f"u{owner}", "stats":
    {"visits": owner, "events": events(0, 300 if owner == 3 else 5), "last": 7}} for owner in range(6))'

expect 0 plan @uri --max-elements 100 --quiet --output plan.json
has out 'stats.events -> layout outlier'
has out '{"stats.eventsPages": {$exists: false}}'
tr -d '\n' <plan.json | sed 's/,  */, /g' >joined.json
has joined.json '"array": "stats.events"'
has joined.json '"pageArray": "events"'
has joined.json '"migrate": true'
expect 0 plan-set plan.json users.stats.events --threshold 20 --page 10
expect 0 migrate @uri plan.json --quiet
name=users-stats.events

# It is migrated while another program pushes with its own driver; a later sweep spills what is due.
with_users '
import threading
stop = threading.Event()
def push():
    n = 300
    while not stop.is_set() or n < 330:
        users.update_one({"_id": 3}, {"$push": {"stats.events": events(n, 1)[0]}})
        n += 1
    open("pushed", "w").write(str(n))
thread = threading.Thread(target=push)
thread.start()
import os, subprocess
code = subprocess.run([os.environ["SPILLWAY"], "migrate", "@uri", "plan.json", "--execute", "--quiet"]).returncode
stop.set()
thread.join()
assert code == 0, code'
expect 0 sweep @uri "$name" --quiet
expect 0 verify @uri "$name"
pushed=$(cat pushed)
expect 0 count @uri "$name" 3
has out "$pushed"
with_users 'head = users.find_one({"_id": 3})
assert list(head["stats"])[0] == "visits" and head["stats"]["last"] == 7 and head["name"] == "u3", head["stats"]
assert len(head["stats"]["events"]) < 40 and head["stats"]["eventsPages"] > 20, head["stats"].keys()
assert "stats$events" in head["spill"], head["spill"].keys()
elements = [e["n"] for p in database["users_stats.events"].find().sort("_id.page") for e in p["events"]]
elements += [e["n"] for e in head["stats"]["events"]]
assert elements == list(range(len(elements))), elements[:50]
short = users.find_one({"_id": 1})
assert len(short["stats"]["events"]) == 5'
expect 0 explain @uri "$name" 3 --documents
has out ' more ...'

# stored NAME SEQ N: the element of this number is {"n": N}.
stored() {
    local after=()
    [ "$2" = 0 ] || after=(--after $(($2 - 1)))
    expect 0 read @uri "$1" 3 --oldest "${after[@]}" --limit 1
    has out "$2	{ \"n\" : $3 }"
}

# append_one NAME N: append {"n": N}; `seq' becomes its number, and the element is stored under it.
append_one() {
    expect 0 append @uri "$1" 3 "{\"n\": $2}"
    seq=$(cat out)
    stored "$1" "$seq" "$2"
}

# Another program replaces the sub-document. The bookkeeping and the pages stay. The new elements have the
# numbers of the lost ones, and the next append continues behind them.
with_users 'users.update_one({"_id": 3}, {"$set": {"stats": {"visits": 0, "events": events(1000, 2)}}})
print(users.find_one({"_id": 3})["spill"]["stats$events"]["first"])' >first
append_one "$name" 1002
[ "$seq" = $(($(cat first) + 2)) ] || fail "the append got number $seq, not $(cat first) + 2"
expect 0 verify @uri "$name"
with_users 'stats = users.find_one({"_id": 3})["stats"]
assert [e["n"] for e in stats["events"]] == [1000, 1001, 1002], stats
assert stats["visits"] == 0, stats'

# The same after removals from the head: their numbers may lie behind the new array. A top-level array and one in a
# sub-document behave alike, whatever replaces the array. Plain pushes come in between.
replaced() {
    local array=$1 replace=$2 other=replaced$3
    expect 0 define @uri "$other" --preset feed-recent --collection "$other" --array "$array" \
        --page-collection "$other.pages" --threshold 20 --page 10 --quiet
    seq -f '{"n": %.0f}' 0 44 | "$SPILLWAY" append @uri "$other" 3 - >out 2>err || fail "appending: $(cat err)"
    for number in 41 43; do expect 0 remove @uri "$other" 3 $number --quiet; done
    with_users "database['$other'].update_one({'_id': 3}, {$replace})
print(database['$other'].find_one({'_id': 3})['spill']['${array//./$}']['first'])" >first
    append_one "$other" 100
    has first "$((seq - $4))"
    with_users "import threading
def push():
    for n in range(20):
        database['$other'].update_one({'_id': 3}, {'\$push': {'$array': {'n': 200 + n}}})
threading.Thread(target=push).start()
import subprocess
for n in range(101, 106):
    seq = subprocess.run([__import__('os').environ['SPILLWAY'], 'append', '@uri', '$other', '3', '{\"n\": %d}' % n],
                         stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    print(seq, n)" >answers
    [ "$(wc -l <answers)" = 5 ] || fail "the answers: $(cat answers)"
    while read -r seq n; do stored "$other" "$seq" "$n"; done <answers
    expect 0 sweep @uri "$other" --quiet
    expect 0 verify @uri "$other"
}
replaced stats.events '"$set": {"stats": {"fresh": 1}}' 1 0
replaced stats.events '"$set": {"stats": {"events": [{"n": 1}, {"n": 2}]}}' 2 2
replaced events '"$unset": {"events": 1}' 3 0
replaced events '"$set": {"events": [{"n": 1}, {"n": 2}]}' 4 2
replaced events '"$set": {"events": []}' 5 0

# A head that keeps the oldest counts its deleted numbers: they are subtracted no longer.
expect 0 define @uri oldest --layout outlier --keep oldest --collection oldest --array events --threshold 20 --page 10 \
    --page-collection oldest.pages --quiet
seq -f '{"n": %.0f}' 0 2 | "$SPILLWAY" append @uri oldest 3 - >out 2>err || fail "appending: $(cat err)"
for number in 2 1; do expect 0 remove @uri oldest 3 $number --quiet; done
with_users "database.oldest.update_one({'_id': 3}, {'\$set': {'events': []}})"
append_one oldest 100
expect 0 count @uri oldest 3 --json
has out '"count":1'
expect 0 verify @uri oldest

# Undo puts plain arrays back into the sub-documents.
with_users 'users.update_one({"_id": 2}, {"$push": {"stats.events": {"$each": events(5, 100)}}})'
expect 0 sweep @uri "$name" --quiet
expect 0 migrate @uri plan.json --undo --execute --yes --quiet
with_users 'user = users.find_one({"_id": 2})
assert [e["n"] for e in user["stats"]["events"]] == list(range(105)), len(user["stats"]["events"])
assert "spill" not in user and list(user["stats"]) in (["visits", "events", "last"], ["visits", "last", "events"]), user["stats"].keys()
assert user["stats"]["visits"] == 2 and user["stats"]["last"] == 7'

# A path through an array, or with a number, is not planned, and the plan says why.
with_users 'users.drop()
users.insert_many({"_id": o, "chats": [{"messages": events(0, 200 * (o + 1))}]} for o in range(3))'
expect 0 plan @uri --max-elements 100 --quiet
has out 'not in this form'
has out 'inside the elements of another array'
expect 2 define @uri bad --preset feed-recent --collection users --array 'chats.0.messages' --page-collection p
has err 'has a number as a part'
