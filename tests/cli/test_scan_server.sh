#!/usr/bin/env bash
# scan of a server's database: for each collection it reports what scan_figures.py computes from the
# documents. Also samples, rates and read preferences.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
SPILLWAY_TEST_STORE=server source "$(dirname "$0")/lib.sh"

here=${SPILLWAY_SOURCE:?}/tests/cli
python3 "$here/scan_figures.py" make . >/dev/null || fail "scan_figures.py make"
new_database "$SPILLWAY_TEST_URI"
"$(python_with_pymongo)" - "$uri" <<'END' || fail "the database cannot be filled"
import sys, pymongo
from bson import json_util
with pymongo.MongoClient(sys.argv[1]) as client:
    database = client.get_default_database()
    for name in "grown", "constant", "small":
        with open(f"{name}.ndjson", encoding="utf-8") as lines:
            options = json_util.JSONOptions(datetime_representation=
                                            json_util.DatetimeRepresentation.LEGACY)
            documents = [json_util.loads(line, json_options=options) for line in lines]
        for at in range(0, len(documents), 100): # use a command: older drivers refuse dots in keys
            database.command("insert", name, documents=documents[at:at + 100])
    database.create_collection("empty")
    database["indexed"].insert_many(
        [{"_id": i, "tags": [{"name": f"{i}-{j}"} for j in range(1500 if i == 3 else 5)], "vector": [1] * 1200}
         for i in range(20)])
    database["indexed"].create_index([("at", 1), ("tags.name", -1)], name="by tag")
    database["indexed"].create_index([("vector", 1)])
END
expect 0 scan "$uri" --json --quiet
for set in grown constant small; do
    python3 "$here/scan_figures.py" check $set.ndjson out || fail "$set differs"
done
has out 'empty","input"'
grep -q 'mongodb://' out && fail "the connection string is shown"

python3 - <<'END' || fail "indexes"
import json
scan = json.load(open("out"))
[indexed] = [one for one in scan["collections"] if one["collection"].endswith(".indexed")]
indexes = {index["name"]: index for index in indexed["indexes"]}
assert set(indexes) == {"_id_", "by tag", "vector_1"}, indexes
assert indexes["by tag"]["key"] == {"at": 1, "tags.name": -1}
assert all(index["bytes"] > 0 for index in indexes.values()), indexes
[finding] = [finding for finding in scan["findings"] if finding["finding"] == "overgrown-index"]
assert finding["index"] == "by tag" and finding["path"] == "tags", finding
END
mv out scan.json
expect 1 scan "$uri" --collections indexed --fail-on overgrown-index
has out 'index by tag: an entry for each element, up to 1500 of a document and 1595 in all; it has '
expect 0 plan scan.json
has out '.indexed: tags ->'
expect 0 scan "$uri" --collections small,constant
has out ' in 2 collections, 515 documents'
expect 0 scan "$uri" --collections small --sample 40 --json
has out '"documents":40,"bytes"'
expect 0 scan "$uri" --collections small --read-preference nearest --threads 1
has out '500 documents'
began=$SECONDS
expect 0 scan "$uri" --collections small --rate 250 --quiet
[ $((SECONDS - began)) -ge 1 ] || fail "500 documents at 250 a second took less than a second"
echo "$uri" >uri
expect 0 scan @uri --collections empty
has out '0 findings in 1 collection, 0 documents'
expect 3 scan "$uri" --collections nothing
has err 'has no such collection'
expect 0 plan "$uri" --json
grep -q 'mongodb://' out && fail "the connection string is shown"

# Spillway's own arrays are bounded on a server too: heads, pages, operation ids and their indexes. The
# database has a definition of each layout, and one unmanaged array.
new_database "$SPILLWAY_TEST_URI"
export SPILLWAY_URI=$uri
expect 0 define - posts --preset feed-recent --collection users --array posts --threshold 50 --page 40 --id-field id
expect 0 define - old --preset feed --collection olds --array olds --threshold 30 --page 30 --page-collection oldPages
expect 0 define - hours --layout bucket --collection hours --array events --window day --time-field at --threshold 50
expect 0 define - last --layout capped --collection lasts --array lasts --threshold 60
python3 - >events.ndjson <<'END' || fail "making events"
import json
for i in range(300):
    print(json.dumps({"user": 1 if i % 3 else i, "id": i, "at": {"$date": f"2025-01-01T00:{i % 60:02}:00Z"}}))
END
for name in posts old hours last; do
    expect 0 import - $name events.ndjson --owner user --quiet
done
for i in $(seq 12); do
    "$SPILLWAY" append - posts 1 "{\"id\": \"op$i\"}" --op "op$i" --quiet >/dev/null 2>err || fail "append: $(cat err)"
done
expect 0 scan "$uri" --max-elements 10 --quiet
has out '0 findings in '
for path in posts spill.posts.ops activities olds events lasts; do
    grep -q " $path  " out || fail "$path is not reported: $(cat out)"
done
"$(python_with_pymongo)" - "$uri" <<'END' || fail "adding an unmanaged array"
import sys, pymongo
users = pymongo.MongoClient(sys.argv[1]).get_default_database().users
users.update_many({}, {"$set": {"others": [1]}})
users.update_one({"_id": 1}, {"$set": {"others": list(range(11))}})
END
expect 0 scan "$uri" --max-elements 10 --quiet
has out 'users: others'
has out '1 finding in '
:
