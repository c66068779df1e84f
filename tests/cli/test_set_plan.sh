#!/usr/bin/env bash
# A set from the scan to the migrated arrays: scan recognizes it, plan proposes --unique, a dry run names arrays
# with an id twice, --execute skips them, and the rest is a set.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

# users FILE EXTRA: four short arrays, and a long one; EXTRA is one more follower of user 2.
users() {
    python3 - "$@" <<'END' || fail "the documents"
import json, sys
with open(sys.argv[1], "w") as out:
    for user in range(5):
        followers = [f"f{n}" for n in range(300 if user == 4 else 20 + user)]
        followers += [sys.argv[2]] if user == 2 else []
        likes = [n % 50 for n in range(300 if user == 4 else 20)]
        out.write(json.dumps({"_id": user, "name": f"u{user}", "followers": followers, "likes": likes}) + "\n")
END
}
users users.ndjson f99
users twice.ndjson f5

# ---- scan and plan ---------------------------------------------------------------------------------

expect 0 scan users.ndjson --max-elements 100 --quiet
has out 'set:     scalars, each once in its array (checked: 5)'
[ "$(grep -c ' set: ' out)" = 1 ] || fail "likes is no set: $(cat out)"
expect 0 scan users.ndjson --max-elements 100 --quiet --json
cp out scan.json
has scan.json '"set":{"arrays":5,"sampled":false}'
expect 0 scan twice.ndjson --max-elements 100 --quiet
grep -q ' set: ' out && fail "an array with a value twice is a set: $(cat out)"
expect 0 report scan.json --output report.html --quiet
has report.html 'The elements are scalars, and each occurs once in its array (5 checked).'

for from in 'users.ndjson --max-elements 100' scan.json; do
    rm -f plan.json
    # shellcheck disable=SC2086
    expect 0 plan $from --quiet --output plan.json
    has plan.json 'It is a set: its elements are scalars'
    python3 - <<'END' || fail "the plan of $from: $(cat plan.json)"
import json
entries = {entry["path"]: entry for entry in json.load(open("plan.json"))["arrays"]}
followers, likes = entries["followers"], entries["likes"]
assert followers["definition"]["unique"] is True and followers["definition"]["idField"] == "."
assert followers["migrate"] is True
assert "if they add with $addToSet" in followers["otherWriters"]
assert "unique" not in likes["definition"] and "idField" not in likes["definition"]
END
done

# A layout that cannot keep each element once is refused, and nothing changes.
cp plan.json before.json
for layout in capped bucket; do
    expect 2 plan-set plan.json users.followers --layout $layout --time-field at
    has err "keeps each id once (unique), and layout '$layout'"
    cmp -s plan.json before.json || fail "plan-set --layout $layout changed the plan"
done
expect 0 plan-set plan.json users.followers --order oldest-first
python3 - <<'END' || fail "editing the plan"
import json
plan = json.load(open("plan.json"))
plan["arrays"] = [entry for entry in plan["arrays"] if entry["path"] == "followers"]
json.dump(plan, open("plan.json", "w"))
entry = plan["arrays"][0]
entry["mayBeEmpty"] = True
json.dump(plan, open("empty.json", "w"))
for field in "unique", "idField":
    del entry["definition"][field]
json.dump(plan, open("any.json", "w"))
END

# ---- migrate ---------------------------------------------------------------------------------------

# unmanaged FILE: a new store in which users.followers are arrays that Spillway does not manage.
unmanaged() {
    new_store
    if on_server; then
        "$(python_with_pymongo)" - "$uri" "$1" <<'END' || fail "the documents of $1"
import json, sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    client.get_default_database().users.insert_many(json.loads(line) for line in open(sys.argv[2]))
END
        return
    fi
    expect 0 define "$db" other --preset feed-recent --collection others --page-collection otherPages --quiet # makes the store
    expect 0 migrate "$db" any.json --execute --quiet
    expect 0 import "$db" users-followers "$1" --elements followers --fields --quiet
    expect 0 migrate "$db" any.json --undo --execute --yes --quiet
    "$SPILLWAY" drop "$db" users-followers --yes >out 2>err
}

# names_twice STATUS TEXT DEFINITION OPTION...: migrate prints TEXT, and names the element that owner 2 has twice.
names_twice() {
    local status=$1 text=$2 definition=$3
    shift 3
    expect "$status" migrate "$db" plan.json "$@"
    has out "$text"
    has err "owner 2 of '$definition': element 22, \"f5\", has the id of an earlier element"
    [ "$(grep -c 'has the id' err)" = 1 ] || fail "migrate $* names more: $(cat err)"
}

unmanaged twice.ndjson
if on_server; then # an embedded store has no arrays of a definition that is not saved
    names_twice 0 '5 arrays to reshape' users-followers
    has out '1 array will be skipped'
fi
names_twice 1 '"owners":5,"adopted":4' users-followers --execute
names_twice 0 '1 array to reshape' users-followers

# is_set NAME: the arrays are sets; a repeated follower is left out, wherever the first one is.
is_set() {
    expect 0 append "$db" "$1" 4 --if-absent '"f0"' '"f299"' '"new"' --quiet
    is out 300
    expect 0 count "$db" "$1" 4
    has out '"count":301,'
    expect 1 contains "$db" "$1" 4 '"f0"' '"new"' '"f300"'
    is out $'0 "f0"\n300 "new"\nabsent "f300"'
    expect 0 remove "$db" "$1" 4 --id '"f0"'
    expect 0 append "$db" "$1" 4 --if-absent '"f0"' --quiet
    is out 301
    expect 0 verify "$db" "$1"
    has out '{"owners":5,'
    has out '"elements":388,"findings":0}'
}

unmanaged users.ndjson
expect 0 migrate "$db" plan.json
if on_server; then
    has out '5 arrays to reshape'
fi
expect 0 migrate "$db" plan.json --execute --quiet
has out '"step":"reshaped","owners":5,"adopted":5'
is_set users-followers

# The same to layout reference, in two stages.
expect 0 plan-set plan.json users.followers --layout reference
python3 - <<'END' || fail "the plan of layout reference: $(cat plan.json)"
import json
entry = json.load(open("plan.json"))["arrays"][0]
assert entry["definition"]["unique"] is True and entry["definition"]["layout"] == "reference"
assert entry["original"]["unique"] is True and entry["original"]["idField"] == "."
END
unmanaged twice.ndjson
if on_server; then
    names_twice 0 '5 arrays to reshape' users-followers.original
fi
names_twice 1 '"owners":5,"adopted":4' users-followers.original --execute
unmanaged users.ndjson
expect 0 migrate "$db" plan.json --execute --quiet
expect 0 migrate "$db" plan.json --finish --execute --yes --quiet
is_set users-followers
