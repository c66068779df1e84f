#!/usr/bin/env bash
# Edit a plan of a server's database as docs/how-to/plan.md describes, and migrate it. An entry that
# matches nothing fails: a missing collection with 3, a collection without the array with 4.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
SPILLWAY_TEST_STORE=server source "$(dirname "$0")/lib.sh"

python=$(python_with_pymongo)
new_database "$SPILLWAY_TEST_URI"
echo "$uri" >uri

"$python" - "$uri" <<'END' || fail "the documents"
import datetime, sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    database = client.get_default_database()
    day = datetime.datetime(2026, 1, 1)
    database.things.insert_many(
        {"_id": owner, "list": [{"n": n, "at": day + datetime.timedelta(hours=n)}
                                for n in range(300 if owner == 3 else 5)]}
        for owner in range(6))
    database.bare.insert_many({"_id": owner, "text": "no array"} for owner in range(3))
END

expect 0 plan @uri --max-elements 100 --quiet --output plan.json
database=$(sed 's/.*[/]\([^/?]*\).*/\1/' uri)
tr -d '\n' <plan.json | sed 's/,  */, /g' >joined.json
has joined.json "\"collection\": \"$database.things\", \"path\": \"list\", \"database\": \"$database\""

# ---- documents without an array ------------------------------------------------------------------

"$python" - "$uri" <<'END' || fail "other types"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    client.get_default_database().things.insert_many(
        [{"_id": 100, "list": None}, {"_id": 101, "list": "text"}, {"_id": 102, "list": []}, {"_id": 103}])
END
expect 0 migrate @uri plan.json
has err "things-list: 2 documents have another value than an array in 'list', and stay unchanged; one of them: {"
expect 0 migrate @uri plan.json --quiet
grep -q 'another value than an array' err && fail 'a remark with --quiet'
"$python" - "$uri" <<'END' || fail "remove other types"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    client.get_default_database().things.delete_many({"_id": {"$gte": 100}})
END

# ---- entries that match nothing ------------------------------------------------------------------

# edited FILE OLD NEW: write the plan to FILE, with OLD replaced by NEW.
edited() {
    "$python" - "$@" <<'END' || fail "edit: $*"
import sys
text = open("plan.json").read()
assert sys.argv[2] in text, text
open(sys.argv[1], "w").write(text.replace(sys.argv[2], sys.argv[3]))
END
}
edited absent.json '"collection": "things"' '"collection": "thing"'
for options in "" --execute "--finish --execute --yes"; do
    # shellcheck disable=SC2086
    expect 3 migrate @uri absent.json $options --quiet
    has err "has no collection 'thing'"
    has err '"mayBeEmpty": true'
done
edited bare.json '"collection": "things"' '"collection": "bare"'
for options in "" --execute "--finish --execute --yes"; do
    # shellcheck disable=SC2086
    expect 4 migrate @uri bare.json $options --quiet
    has err "no document of the collection 'bare' has an array 'list'"
done
expect 3 define @uri
has err 'has no Spillway definitions'
edited empty.json '"migrate": true' '"migrate": true, "mayBeEmpty": true'
sed -i 's/"collection": "things"/"collection": "thing"/' empty.json
expect 0 migrate @uri empty.json --execute --quiet
has out '"step":"reshaped","owners":0'
expect 0 drop @uri things-list --yes
edited wrong.json '"migrate": true' '"migrate": true, "mayBeEmpty": "yes"'
expect 2 migrate @uri wrong.json
has err "field 'mayBeEmpty'"
has err 'must be true or false'
edited wrong.json '"migrate": true' '"migrate": "false"'
expect 2 migrate @uri wrong.json
has err "field 'migrate'"
expect 4 migrate @uri plan.json --finish --execute --yes
has err 'there is nothing to finish'

# ---- to separate collections, without an "original" -----------------------------------------------

edited oldest.json '"keep": "newest"' '"keep": "oldest"'
sed -i 's/"collection": "things"/"collection": "thingsFeed"/
    s/"pageCollection": "things_list"/"pageCollection": "thingsFeedPages"/' oldest.json
grep -q '"original"' oldest.json && fail "the plan has an original"
expect 0 migrate @uri oldest.json
has out "things-list: things.list, 6 arrays to reshape"
expect 0 migrate @uri oldest.json --execute --quiet
has out '"step":"reshaped","owners":6,"adopted":6'
has out '"step":"caught up","owners":6'
expect 0 migrate @uri oldest.json --execute --finish --yes --quiet
has out '"step":"finished","owners":6,"verified":325'
counts @uri things-list 3 300
clean @uri
expect 0 migrate @uri oldest.json --execute --finish --yes --quiet
has out '"step":"finished","owners":0'
has err "an earlier run finished the migration to 'things-list'"
sed 's/\([".]\)things"/\1thing"/' oldest.json >absent.json
sed 's/"pageCollection": "thingsFeedPages"/"pageCollection": "others"/' oldest.json >other.json
for options in "" "--finish --execute --yes"; do
    # shellcheck disable=SC2086
    expect 3 migrate @uri absent.json $options --quiet
    has err "has no collection 'thing'"
    # shellcheck disable=SC2086
    expect 4 migrate @uri other.json $options --quiet
    has err "the migration was begun with another plan"
done

# ---- plans for other databases --------------------------------------------------------------------

new_database "$SPILLWAY_TEST_URI"
echo "$uri" >other
"$python" - "$uri" <<'END' || fail "the documents"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    client.get_default_database().things.insert_one({"_id": 3, "list": list(range(300))})
END
expect 0 migrate @other oldest.json # the entry names the database that was scanned
has out "things-list: things.list, 1 array to reshape"
sed '/"database": "[^"]*",$/d; s/"collection": "[^."]*[.]things"/"collection": "dump.things"/' \
    oldest.json >hand.json
expect 3 migrate @other hand.json
has err "has no collection 'dump.things'"
sed "s/dump[.]things/$(sed 's/.*[/]\([^/?]*\).*/\1/' other).things/" hand.json >named.json
expect 0 migrate @other named.json
has out "things-list: things.list, 1 array to reshape"

# ---- in place -------------------------------------------------------------------------------------

expect 0 migrate @other plan.json --execute --quiet
has out '"step":"reshaped","owners":1,"adopted":1'
expect 0 migrate @other plan.json --execute --quiet
has out '"step":"reshaped","owners":0'
! grep -q differs err || fail "the plan is what is stored: $(cat err)"
expect 0 define @other things-list --threshold 11 --page 12 --quiet
expect 0 migrate @other plan.json
grep -q "'things-list': the plan differs from the stored definition: threshold 11 -> [0-9]*, pageCapacity 12 -> [0-9]*; --execute replaces it with the plan" err ||
    fail "the dry run does not show what changes: $(cat err)"
expect 0 migrate @other plan.json --execute --quiet
grep -q "the stored definition: threshold 11 -> [0-9]*, pageCapacity 12 -> [0-9]*; the plan replaces it" err ||
    fail "the run does not show what changes: $(cat err)"
expect 0 migrate @other plan.json --execute --finish --yes --quiet
has out '"step":"finished","owners":1'
expect 0 sweep @other things-list --quiet

# A sweep prints and logs what has changed in its definition.
"$SPILLWAY" sweep @other things-list --watch --interval 1 --log sweep.ndjson >sweep.out 2>sweep.err &
job=$!
cleanups+=("kill $job 2>/dev/null")
await "the sweep runs" grep -q swept sweep.out
expect 0 define @other things-list --threshold 13 --quiet
await "the sweep prints the change" grep -q "'things-list': the definition has changed: threshold [0-9]* -> 13$" sweep.err
kill -INT $job
wait $job
[ "$(grep -c '"event" : "definition", "name" : "things-list", "change" : "threshold [0-9]* -> 13"' sweep.ndjson)" = 1 ] ||
    fail "the log: $(cat sweep.ndjson)"
"$python" - "$(cat other)" <<'END' || fail "dropping the collection"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    client.get_default_database().things.drop()
END
expect 3 sweep @other things-list --quiet
has err "has no collection 'things'"

# ---- a run that ended after it saved its checkpoint -----------------------------------------------

new_database "$SPILLWAY_TEST_URI"
echo "$uri" >marked
"$python" - "$uri" <<'END' || fail "the mark"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    database = client.get_default_database()
    database.things.insert_one({"_id": 3, "list": list(range(300))})
    database["spillway.imports"].insert_one(
        {"_id": "things-list:migrate", "entry": {
            "definition": "things-list", "original": "things-list.original", "undoing": False}})
END
expect 0 migrate @marked oldest.json --undo --quiet
expect 0 migrate @marked oldest.json --undo --execute --yes
! grep -q "nothing left to undo" err || fail "the mark was not found"
expect 0 migrate @marked oldest.json --undo --execute --yes
has err "nothing left to undo"
"$python" - "$(cat marked)" <<'END' || fail "the mark is left"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    assert client.get_default_database()["spillway.imports"].count_documents({}) == 0
END
expect 0 migrate @marked oldest.json --execute --quiet
