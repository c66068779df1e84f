#!/usr/bin/env bash
# plan: the layout for each finding, from a scan's JSON or from the documents. Definitions in a plan are
# like those that `define' makes. A file that is not a scan is refused with the reason.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

python3 - <<'EOF' || fail "making documents"
import datetime, json

def date(minutes):
    time = datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc)
    return {"$date": (time + datetime.timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")}

with open("users.ndjson", "w") as out:
    for user in range(60):
        count = 3000 if user == 7 else 20 + user
        posts = [{"at": date(10 * i), "text": "x" * 170} for i in range(count)]
        views = [{"at": date(10 * i), "page": "y" * 170} for i in range(count)][::-1]
        files = [{"at": date(i), "data": "z" * 30000} for i in range(10 if user == 7 else 1)]
        prices = {f"2025-{i}": {"cents": i} for i in range(9000 if user == 7 else 70)}
        groups = [{"members": [{"name": "m" * 90} for i in range(3000 if user == 7 else 3)]}]
        out.write(json.dumps({"_id": user, "name": "u", "posts": posts, "views": views,
                              "files": files, "prices": prices, "groups": groups}) + "\n")
EOF

expect 0 scan users.ndjson --json --quiet
mv out scan.json
expect 0 plan scan.json --output plan.json --quiet
is err ''
expect 0 plan scan.json --output plan.json
is err 'spillway: wrote plan.json'
has out 'users: posts -> layout outlier, threshold'
has out 'users: views -> layout outlier, threshold'
has out ', newest first'
has out 'users: files -> layout reference'
has out 'users: prices.* -> not in this form'
has out 'users: groups[].members -> not in this form'
has out 'db.getCollection("users").aggregate('
[ "$(grep -c 'newest first' out)" = 1 ] || fail "newest first: $(cat out)"

python3 - <<'EOF' || fail "the plan"
import json
plan = json.load(open("plan.json"))
assert plan["spillwayPlan"] == 1
items = {item["path"]: item for item in plan["arrays"]}
assert set(items) == {"posts", "views", "files", "prices.*", "groups[].members"}, set(items)
posts = items["posts"]
assert posts["migrate"] is True
bounds = posts["definition"]["bounds"]
element = 170 + 5 + 8 + 4 + 6 + 5 + 5  # about: a date, a text, two names
assert 600 <= bounds["threshold"] <= 900, bounds
assert bounds["pageCapacity"] == bounds["threshold"] // 4
assert (bounds["threshold"] + bounds["pageCapacity"]) * element < 250000
assert posts["definition"]["collection"] == "users" and posts["definition"]["array"] == "posts"
assert posts["largest"] == {"owner": 7, "length": 3000}
saves = posts["saves"]["appendRewrites"]
assert saves["now"] > 1500000 and saves["then"] < saves["now"]
assert any("bucket by the day" in text for text in posts["alternatives"]), posts["alternatives"]
assert items["views"]["definition"]["order"] == "newest-first"
files = items["files"]["definition"]
assert files["layout"] == "reference" and files["array"] == "filesSummary", files
assert items["files"]["migrate"] is True
original = items["files"]["original"]
assert original["name"] == "users-files.original" and original["array"] == "files", original
assert original["layout"] == "outlier" and original["keep"] == "newest", original
assert "original" not in posts
saves = items["files"]["saves"]
own = saves["appendRewrites"]["then"] - saves["otherFieldsRead"]["then"]
assert own > 20000, saves  # the document of one element
for path, item in items.items():
    assert ("otherWriters" in item) == item["migrate"], path
assert f'{{{posts["definition"]["pagesField"]}: {{$exists: false}}}}' in posts["otherWriters"], posts
assert "pull, and replace" in items["posts"]["otherWriters"]
assert f'{{{original["pagesField"]}: {{$exists: false}}}}' in items["files"]["otherWriters"]
assert files["timeField"] == "at" and files["countField"] == "", files
for path in ("prices.*", "groups[].members"):
    assert items[path]["migrate"] is False and "definition" not in items[path]
    assert "After that, this fits it:" in items[path]["why"], items[path]["why"]
    assert any(text.startswith("Layout ") for text in items[path]["why"]), items[path]["why"]
    # The commands for it, as a person would complete them; and the changes of programs.
    text, = (text for text in items[path]["why"] if text.startswith("Import it into a new"))
    name = path.split(".")[0].strip("[]")
    text = text.split(": ", 1)[1].split(". SOURCE is mongodb://HOST/DATABASE.users,")[0]
    text = text.replace("STORE NAME SOURCE", f"db {name} users.ndjson").replace("STORE NAME", f"db {name}")
    open(f"{name}.commands", "w").write(text.replace("NEW", name).replace("inner=_id", "inner")
                                        .replace("spillway ", '"$SPILLWAY" ') + "\n")
    changes = [text for text in items[path]["why"] if text.startswith(("Programs ", "Then, "))]
    assert len(changes) == 3 and 'db.getCollection("users").updateOne(' in changes[0], changes
assert "$objectToArray" in items["prices.*"]["detect"]
assert '"$groups"' in items["groups[].members"]["detect"]
assert '{$size: {$ifNull: ["$$this.members"' in items["groups[].members"]["detect"]
EOF

# The commands that a plan names for a map and for an array in elements do what it says.
for name in prices groups; do
    bash -e "$name.commands" >out 2>err || fail "$name: $(cat "$name.commands" err)"
done
counts db prices 7 9000
counts db groups '{"_id": 7, "inner": 0}' 3000
has groups.commands "--elements 'groups.\$.members' --owner-inner inner"
expect 0 edit db prices 7 --id '"2025-5"' '{"key": "2025-5", "cents": -1}'
expect 0 read db prices 7 --after 4 --limit 1 --oldest
has out '{ "key" : "2025-5", "cents" : -1 }'

# The documents give the same plan.
expect 0 plan users.ndjson --quiet --json
sed 's/"source": "[^"]*"/"source": "scan.json"/' out | cmp - plan.json || fail "another plan: $(cat out)"
expect 0 plan - --json <scan.json
sed 's/"source": "[^"]*"/"source": "scan.json"/' out | cmp - plan.json || fail "another plan: $(cat out)"
expect 0 plan scan.json --target 2MB --json
grep -q '"path": "posts"' out || fail "no posts: $(cat out)"

# A scan of documents uses the given limits; a scan's JSON has its own.
expect 0 plan users.ndjson --quiet --max-elements 60 --max-bytes 10MB
has out 'users: posts ->'

# plan_has EXPRESSION: the Python expression is true of `arrays' (by path) of the plan in ./out.
plan_has() {
    python3 -c "
import json, sys
items = {item['path']: item for item in json.load(open('out'))['arrays']}
def room(path):
    bounds = items[path]['definition']['bounds']
    return bounds['threshold'] + bounds['pageCapacity']
assert $1, items" || fail "the plan: not $1"
}

# A head has at most the scan's limit of elements; otherwise a scan would report it again.
expect 0 plan users.ndjson --quiet --json --max-elements 60 --max-bytes 10MB
plan_has "room('posts') == 60 and items['posts']['migrate'] is True"
expect 0 plan users.ndjson --quiet --json --max-elements 25 --max-bytes 10MB
plan_has "room('posts') == 25"
expect 0 plan users.ndjson --quiet --json --max-elements 1
plan_has "room('posts') == 2"

# An array is not migrated if that would save nothing.
expect 0 plan users.ndjson --quiet --json --target 2MB
plan_has "items['posts']['migrate'] is False"
plan_has "any(text.startswith('It would save nothing: the longest array has 3000 elements') for text in items['posts']['why'])"
expect 0 plan users.ndjson --quiet --target 2MB
grep -A8 'users: posts' out | grep -q '^  saves:' && fail "it saves nothing: $(cat out)"

# Definition names have only permitted characters, and differ. Names of collections and arrays stay.
mkdir names
python3 - <<'EOF'
import json
for name, fields in {"käufe": ["a", "ö", "ü"], "#c": ["a-b", "aöb"], "d": ["a$b", "spill"]}.items():
    with open(f"names/{name}.ndjson", "w") as out:
        for owner in range(3):
            count = 500 if owner == 1 else 2
            out.write(json.dumps({"_id": owner, **{field: list(range(count)) for field in fields}}) + "\n")
EOF
for name in käufe '#c' d; do
    expect 0 plan "names/$name.ndjson" --quiet --json --max-elements 60
    mv out "names/$name.json"
done
python3 - <<'EOF' || fail "names"
import json
def names(file):
    return sorted((item["definition"]["name"], item["definition"]["collection"],
                   item["definition"]["array"], item["migrate"])
                  for item in json.load(open(file))["arrays"] if "definition" in item)
assert names("names/käufe.json") == [("k-ufe--", "käufe", "ö", True), ("k-ufe---2", "käufe", "ü", True),
                                     ("k-ufe-a", "käufe", "a", True)], names("names/käufe.json")
assert names("names/#c.json") in (
    [("c-a-b", "#c", first, True), ("c-a-b-2", "#c", second, True)]
    for first, second in (("a-b", "aöb"), ("aöb", "a-b"))), names("names/#c.json")
assert names("names/d.json") == [], names("names/d.json")  # a definition cannot have such a field
EOF

# Dates, also dates in strings, show the end at which an array grows. Without dates it is unknown.
python3 - <<'EOF'
import datetime, json
day = datetime.date(2024, 1, 1)
def dated(field, step):
    return [{field: (day + datetime.timedelta(days=step * k)).isoformat()} for k in range(300)]
hours = [f"2026-01-{1 + k // 24:02}T{k % 24:02}:30:00.5+02:00" for k in range(300)]
with open("ends.ndjson", "w") as out:
    for owner in range(3):
        out.write(json.dumps({"_id": owner, "front": dated("date", -1), "back": dated("at", 2),
                              "zoned": [{"t": hour} for hour in hours], "texts": hours[::-1],
                              "mixed": dated("at", 1)[::2] + dated("at", 1)[::-2],
                              "untimed": list(range(300))}) + "\n")
EOF
expect 0 plan ends.ndjson --quiet --json --max-elements 60 --output ends.json
python3 - <<'EOF' || fail "the ends: $(grep -n growsAt out)"
import json
items = {item["path"]: item for item in json.load(open("out"))["arrays"]}
ends = {"front": "front", "back": "end", "zoned": "end", "texts": "front", "mixed": "unknown",
        "untimed": "unknown"}
for path, end in ends.items():
    item = items[path]
    unknown = any("It is not known at which end it grows" in text for text in item["why"])
    assert item["growsAt"] == end, (path, item["growsAt"])
    assert (item["definition"].get("order") == "newest-first") == (end == "front"), path
    assert unknown == (end == "unknown"), path
EOF
expect 0 scan ends.ndjson --quiet --json
has out '"time":{"field":"date","type":"text"}'

# If the end is unknown, a person must write the order into the plan before a migration.
sed 's/"migrate": true/"migrate": true, "mayBeEmpty": true/' ends.json >unordered.json
expect 0 define ends.db other --preset feed-recent --quiet
expect 0 migrate ends.db unordered.json --only ends-front --execute --quiet
expect 0 migrate ends.db unordered.json --only ends-untimed
has err "before --execute: 'ends-untimed': the plan does not know at which end the arrays grow"
expect 4 migrate ends.db unordered.json --only ends-untimed --execute
has err "'ends-untimed': the plan does not know at which end the arrays grow"
has err 'write "order": "oldest-first" into its "definition"'
sed 's/"name": "ends-untimed"/&, "order": "oldest-first"/' unordered.json >ordered.json
expect 0 migrate ends.db ordered.json --only ends-untimed --execute --quiet
sed '/"unique": true,/d; s/"keep": "newest"/"keep": "oldest"/; /^ \{8\}"collection"/s/"ends"/"other.ends"/' \
    unordered.json >staged.json
expect 4 migrate ends.db staged.json --only ends-mixed --execute
has err 'into its "original" or "definition"'

# Characters that change the direction of writing are escaped.
python3 - <<'EOF'
import json
with open("odd.ndjson", "w") as out:
    for owner in range(3):
        out.write(json.dumps({"_id": owner, "a\u202eb": list(range(500 if owner == 1 else 2))}) + "\n")
EOF
expect 0 plan odd.ndjson --quiet --max-elements 60
has out 'see:   db'
LC_ALL=C grep -q $'\xe2\x80\xae' out && fail "a bidi override is printed: $(cat out)"

expect 2 plan scan.json --max-elements 60
has err 'the result of a scan with its own options'

# Nothing to plan.
head -n 3 users.ndjson | sed 's/"files": \[.*"prices"/"prices"/' >few.ndjson
expect 0 plan few.ndjson --quiet
has out 'nothing to plan'

# Files that are not a scan.
printf '{"spillwayScan":2}' >newer.json
expect 3 plan newer.json
has err 'newer.json: a scan of version 2; this program knows 1'
head -c 2000 scan.json >cut.json
expect 3 plan cut.json
has err 'cut.json: '
sed 's/"lengths"/"widths"/' scan.json >other.json
expect 3 plan other.json
has err "field 'collections[0].paths[0].lengths' is missing"
for number in 9223372036854775807 -9223372036854775808 9007199254740994 1e300; do
    sed "s/\"documentMax\":[0-9]*/\"documentMax\":$number/" scan.json >huge.json
    expect 3 plan huge.json
    has err "field 'collections[0].paths[0].documentMax' is out of range"
done
expect 3 plan missing.json
expect 2 plan scan.json --target 10
expect 3 plan scan.json --output no/such/folder/plan.json
has err 'no/such/folder/plan.json'
