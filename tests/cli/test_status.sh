#!/usr/bin/env bash
# status: what was begun and not ended, until it is ended; each command that it prints is the right one.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; operators have dollars
source "$(dirname "$0")/lib.sh"

new_store
expect 0 define "$db" ev --preset feed-recent --collection people --quiet
expect 0 status "$db"
has out 'no job is unfinished'

# The name needs quotes and does not show the format.
# An import that ends at a wrong line, in its second chunk, is unfinished until it is continued.
python3 - <<'EOF' || fail "making records"
with open("it's records", "w") as out:
    for n in range(30000):
        out.write('{"by": "user-%d", "n": %d}\n' % (n % 7, n))
    out.write("wrong\n")
EOF
expect 3 import "$db" ev "it's records" --format ndjson --owner by --quiet
before=$(date +%s)
expect 1 status "$db"
has out 'import of ev: '
has out ' minutes ago, at 20'
has out "continue with: spillway import $db ev"
expect 1 status "$db" --json
python3 - "$before" <<'EOF' || fail "the line: $(cat out)"
import datetime, json, sys
line = json.loads(open("out").read())
assert line["kind"] == "import" and line["name"] == "ev", line
saved = datetime.datetime.fromisoformat(line["saved"]["$date"].replace("Z", "+00:00"))
assert abs(saved.timestamp() - int(sys.argv[1])) < 3600, line
assert 0 < int(line["state"].split()[0]) < 30001, line
open("finish", "w").write(line["finish"])
EOF
sed -i '$d' "it's records"
eval "$(sed 's/^spillway/expect 0/' finish)"
expect 0 status "$db"
counts "$db" ev user-0 4286

# A migration in two stages.
python3 - <<'EOF' || fail "making a plan"
import json
with open("plan.json", "w") as out:
    json.dump({"spillwayPlan": 1, "arrays": [{"collection": "shops", "path": "sales", "migrate": True,
                                              "mayBeEmpty": True}]}, out)
EOF
expect 0 plan-set plan.json shops.sales --layout reference --order oldest-first
expect 0 migrate "$db" plan.json --execute --quiet
expect 1 status "$db"
has out "migration of shops-sales: arrays of 'shops-sales.original' are copied"
has out "Once they have caught up, stop all programs that write, and add --finish"
has out "continue with: spillway migrate $db PLAN --execute"

# A store whose name needs quotes.
quoted="it's & it"
if on_server; then
    cp db.uri "$quoted"
    named=@$quoted
else
    cp -r "$db" "$quoted"
    named=$quoted
fi
expect 1 status "$named"
has out "continue with: spillway migrate '${named%%it*}it'\\''s & it' PLAN --execute"
expect 1 status "$named" --json
python3 - >finish <<'EOF' || fail "the line: $(cat out)"
import json
finish = json.loads(open("out").read())["finish"]
assert finish.endswith("PLAN --execute"), finish
print(finish.replace("PLAN --execute", "--help"))
EOF
eval "set -- $(sed 's/^spillway migrate//' finish)"
[ "$1" = "$named" ] || fail "the shell reads '$1', not '$named'"
expect 0 migrate "$db" plan.json --execute --undo --yes --quiet
expect 0 status "$db"

# Operations of owners.
expect 0 status "$db" --owners
is out 'no work is unfinished'
expect 3 status missing
expect 2 status
on_server || exit 0

# ---- what killed clients leave on a server ---------------------------------------------------------

# ends WORDS...: run the command that the line with these words in ./out continues with.
ends() {
    grep -F -A 2 "$1" out | sed -n 's/^ *continue with: spillway //p' | head -1 >finish
    [ -s finish ] || fail "no command after '$1'"
    eval "expect 0 $(cat finish) ${*:2}"
}

here=${SPILLWAY_SOURCE:?}/tests/cli
python=$(python_with_pymongo)
# with_database PYTHON: run it with `database'.
with_database() {
    "$python" - "$uri" "$1" <<'END' || fail "the program: $1"
import sys, time, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    database = client.get_default_database()
    exec(sys.argv[2])
END
}

# A removal in a page, of a client that died after its first step: the head has the intent, and counts it. An edit
# of a referenced element likewise.
new_store
expect 0 define "$db" ev --layout outlier --collection people --array events --page-collection pages \
    --threshold 10 --page 5 --quiet
for owner in alice 7 quiet; do
    seq -f '{"n": %.0f}' 0 29 | "$SPILLWAY" append "$db" ev $owner - >out 2>err || fail "$(cat err)"
done
expect 0 status "$db" --owners
is out 'no work is unfinished'
with_database 'for owner in "alice", 7:
    changed = database.people.update_one({"_id": owner}, {"$set": {"spill.events.intent": {"seq": 3, "page": 0}},
        "$inc": {"spill.events.removed": 1, "spill.events.rev": 1}})
    assert changed.modified_count == 1'
expect 1 status "$db" --owners
has out 'removal of ev, owner "alice": a removal of element 3 in page 0 was not finished'
has out 'removal of ev, owner 7: '
has out 'operations of ev: 2 that killed programs left half done'
! grep -q 'unknown time\|quiet' out || fail "the lines: $(cat out)"
expect 1 status "$db" --owners --json
has out '"kind":"removal","name":"ev","owner":"\"alice\""'
expect 1 status "$db" --owners
ends 'owner "alice"'
expect 1 status "$db" --owners
! grep -q alice out || fail "alice is repaired: $(cat out)"
ends 'owner 7'
expect 0 status "$db" --owners
counts "$db" ev alice 29
clean "$db"

# A migration of a full document that died after it copied a page: the lease has a time.
with_database 'database.people.insert_one({"_id": "full", "events": [{"n": n} for n in range(30)]})
page = database.pages.find_one({"_id.page": 0})
owner_field = next(name for name, value in page.items() if value == page["_id"][next(iter(page["_id"]))])
page["_id"][next(iter(page["_id"]))] = page[owner_field] = "full"
now_us = int(time.time() * 1000000)
page["spill"].update({"epoch": now_us, "src": now_us, "rev": now_us, "lease": now_us - 3600000000})
database.pages.insert_one(page)'
expect 1 status "$db" --owners
has out 'lease of ev, owner "full": its document is full, and a migration has copied pages from it and not ended'
has out 'last changed '
has out "continue with: spillway migrate $db ev --execute"

# More owners than are listed.
with_database 'page = database.pages.find_one({"_id.page": 0})
owner_field = next(name for name, value in page.items() if value == page["_id"][next(iter(page["_id"]))])
for number in range(100, 125):
    page["_id"][next(iter(page["_id"]))] = page[owner_field] = number
    database.pages.insert_one(page)'
expect 1 status "$db" --owners
[ "$(grep -c ', owner ' out)" = 20 ] || fail "$(grep -c ', owner ' out) owners are listed, not 20"
has out 'operations of ev: 1 that killed programs left half done; 25 owners have pages without a head: another'

# A conversion whose end was killed. It drops the old arrays, and has begun.
new_store
expect 0 define "$db" old --preset feed-recent --collection old --quiet
for number in $(seq 3000); do echo "{\"by\": $number, \"n\": 1}"; done >many.ndjson
expect 0 import "$db" old many.ndjson --owner by --quiet
expect 0 convert "$db" old --as new --keep oldest --quiet
"$SPILLWAY" convert "$db" old --as new --finish --yes --quiet >convert.out 2>&1 &
job=$!
begun() { "$SPILLWAY" status "$db" >out 2>err; [ $? = 1 ]; }
await "the conversion is being finished" begun
kill -KILL $job
wait $job 2>/dev/null
expect 1 status "$db"
has out "conversion of old: 'old' is being dropped: 'new' has its arrays"
has out 'last changed 0 minutes ago'
ends 'conversion of old' --yes --quiet
expect 0 status "$db"

# A conversion that was killed after its last step, before it deleted the empty definition. Of a definition of the
# old name that has owners, nothing is said.
with_database 'copy = database["spillway.definitions"].find_one({"_id": "new"})
old = dict(copy, _id="old")
old["entry"] = dict(copy["entry"], name="old", collection="old", pageCollection="old_pages")
database["spillway.definitions"].insert_one(old)'
expect 1 status "$db"
has out "conversion of old: 'old' is being dropped: 'new' has its arrays. 'old' is empty"
echo 1 | "$SPILLWAY" append "$db" old owner - --quiet >out 2>err || fail "$(cat err)"
expect 0 status "$db"
expect 0 drop "$db" old owner --yes
expect 1 status "$db"
ends 'conversion of old' --yes --quiet
expect 0 status "$db"
expect 3 verify "$db" old

# A --finish that was killed while it dropped the original: one entry, with the command that continues.
new_store
with_database 'database.shops.insert_many({"_id": n, "sales": [{"n": n}]} for n in range(3))'
expect 0 migrate "$db" plan.json --execute --quiet
with_database 'database["spillway.imports"].insert_one({"_id": "shops-sales.original:convert",
    "entry": {"as": "shops-sales", "emptied": False}})'
expect 1 status "$db"
has out "migration of shops-sales: 'shops-sales.original' is being dropped: 'shops-sales' has its arrays"
[ "$(grep -c 'continue with' out)" = 1 ] || fail "more than one command: $(cat out)"
sed -i 's/ PLAN / plan.json /' out
ends 'migration of shops-sales' --yes --quiet
expect 0 status "$db"

# A migration in place that was killed while it adopted arrays. The next pass removes its entry.
new_store
with_database 'database.users.insert_many({"_id": n, "events": [{"n": n}] * 30} for n in range(400))'
expect 0 define "$db" ev --preset feed-recent --collection users --array events --threshold 10 --page 10 --json
cat >users.json <<END
{"spillwayPlan": 1, "arrays": [{"collection": "users", "path": "events", "migrate": true, "definition": $(cat out)}]}
END
"$SPILLWAY" migrate "$db" users.json --execute --quiet --rate 300 >out 2>err &
job=$!
with_database 'end = time.time() + 60
while database["spillway.imports"].count_documents({"_id": {"$regex": ":adopter$"}}) == 0:
    assert time.time() < end, "no array is adopted"
    time.sleep(0.02)'
expect 1 status "$db"
has out "migration of ev: process $job on $(hostname) adopts arrays of 'ev'; if it was killed, this entry ends at 20"
! grep -q 'adopted arrays' out || fail "a migration that runs is listed as a killed one: $(cat out)"
kill -KILL $job
wait $job 2>/dev/null
expect 1 status "$db"
has out "migration of ev: a pass over the owners of 'ev' was interrupted, or is running. "
has out ". Process $job on $(hostname) was killed while it adopted arrays"
[ "$(grep -c '^migration of ev' out)" = 1 ] || fail "more than one line for one migration: $(cat out)"
[ "$(grep 'continue with' out)" = "  continue with: spillway migrate $db PLAN --execute" ] || fail "other commands: $(cat out)"

# A sweep or a gateway that was killed has no entry of a pass.
with_database 'assert database["spillway.imports"].delete_many({"_id": {"$regex": ":migrate.at$"}}).deleted_count == 1'
expect 1 status "$db"
has out "process $job on $(hostname) was killed while it adopted arrays of 'ev'; a sweep after 20"
has out "continue with: spillway sweep $db ev"
with_database 'database["spillway.imports"].update_many({"_id": {"$regex": ":adopter$"}}, {"$set": {"entry.host": "elsewhere"}})'
expect 1 status "$db"
has out "process $job on elsewhere adopts arrays of 'ev'; if it was killed, this entry ends at 20"
with_database "database['spillway.imports'].update_many({'_id': {'\$regex': ':adopter\$'}}, {'\$set': {'entry.host': '$(hostname)'}})"
with_database 'import datetime
past = datetime.datetime(2020, 1, 1)
changed = database["spillway.imports"].update_many({"_id": {"$regex": ":adopter$"}}, {"$set": {"entry.ends": past}})
assert changed.modified_count == 1'
expect 1 status "$db"
has out "migration of ev: process $job on $(hostname) was killed while it adopted arrays of 'ev'"
ends 'adopted arrays' --quiet
expect 0 status "$db"

# A migration that was killed before its first owner was done: it waited for a file.
with_database 'database.users.insert_many({"_id": n, "events": [{"n": n}] * 3} for n in range(400, 403))'
touch wait
"$SPILLWAY" migrate "$db" users.json --execute --quiet --pause-file wait >job.out 2>job.err &
job=$!
await "the migration begins" begun
kill -KILL $job
wait $job 2>/dev/null
expect 1 status "$db"
has out "migration of ev: a pass over the owners of 'ev' was interrupted, or is running. Its first owners are not done yet"
has out "continue with: spillway migrate $db PLAN --execute"
expect 0 migrate "$db" users.json --execute --quiet
expect 0 status "$db"
with_database 'assert database.users.delete_many({"_id": {"$in": [400, 401, 402]}}).deleted_count == 3'

# An undo that was killed: no array is adopted until it has ended, or is cancelled.
with_database 'from bson import Int64
database["spillway.definitions"].update_one({}, {"$set": {"entry.undoing": Int64(time.time() * 1000000)}})
database.users.insert_one({"_id": "late", "events": [{"n": n} for n in range(30)]})'
expect 1 status "$db"
has out 'migration of ev: it is being undone; until that has ended, no array is adopted'
has out 'last changed 0 minutes ago'
has out "continue with: spillway migrate $db ev --execute --undo"
expect 4 sweep "$db" ev
has err "'ev': an undo of the migration has begun and not ended"
expect 0 migrate "$db" users.json
has err "'ev': an undo of this migration has begun and not ended"
pages='database[next(d["entry"]["pageCollection"] for d in database["spillway.definitions"].find())]'
with_database "$pages.drop_indexes()"
expect 0 migrate "$db" users.json --execute
has err "'ev': an undo had begun and not ended; it is cancelled"
with_database "assert {'spillway_first', 'spillway_page'} <= set($pages.index_information())"
expect 0 status "$db"
expect 0 verify "$db"
expect 0 migrate "$db" users.json --execute --undo --yes --quiet
has out '"step":"undone","owners":401'
with_database 'assert database.users.count_documents({"spill": {"$exists": True}}) == 0
assert database["spillway.definitions"].count_documents({}) == 0
assert database["spillway.imports"].count_documents({}) == 0
assert [name for name in database.list_collection_names() if not name.startswith("spillway.")] == ["users"]'

# An array that is managed without a definition: the dry run says so, and which commands end it.
expect 0 migrate "$db" users.json --execute --quiet
with_database 'database["spillway.definitions"].delete_one({})'
"$SPILLWAY" migrate "$db" users.json >out 2>err
has err "'ev': documents of 'users' have arrays that are managed, but the definition is missing: an undo or a drop"
expect 4 migrate "$db" users.json --execute --undo --yes
has err "'ev': documents of 'users' have arrays that are managed, but the definition is missing. Run migrate with"
expect 0 migrate "$db" users.json --execute --quiet
expect 0 migrate "$db" users.json --execute --undo --yes --quiet

# A consolidation that has copied, and not cut over. The database has no definition.
new_store
"$python" "$here/consolidate.py" fill "$uri" 14 || fail "filling collections"
expect 3 status "$db"
expect 0 plan "$uri" --output rooms.json --quiet
expect 0 consolidate "$db" rooms.json --execute --quiet
expect 1 status "$db"
has out 'consolidation of '
has out "continue with: spillway consolidate $db PLAN --only "
with_database 'jobs = database["spillway.imports"]
changed = jobs.update_one({"_id": {"$regex": ":consolidate$"}}, {"$set": {"entry.phase": "undoing"}})
assert changed.modified_count == 1'
expect 4 consolidate "$db" rooms.json --execute
has err "' is being undone: continue with --undo --execute"
expect 1 status "$db"
has out ' --execute --undo'
with_database 'database["spillway.imports"].update_one({"_id": {"$regex": ":consolidate$"}}, {"$set": {"entry.phase": "copying"}})'
expect 3 count "$db" ev alice
has err "there is no definition 'ev' in the store (there are: none)"
# The progress of a cut-over, which compares collections again and again, names no total that is too small.
python3 "$here/terminal.py" 150 lines "$SPILLWAY" consolidate "$db" rooms.json --execute --cut-over --yes --rate 400 >progress.out
grep -q 'collections, [0-9]* documents, ' progress.out || fail "no progress: $(cat progress.out)"
awk '{ for (i = 2; i < NF; i++) if ($(i + 2) ~ /^documents/ && $i == "of" && $(i - 1) + 0 > $(i + 1) + 0) exit 1 }' progress.out ||
    fail "more documents than there are: $(cat progress.out)"
expect 0 consolidate "$db" rooms.json --execute --undo --yes --quiet
expect 3 status "$db"
has err 'the database has no Spillway definitions'
