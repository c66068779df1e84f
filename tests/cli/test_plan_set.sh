#!/usr/bin/env bash
# plan-set: every layout becomes complete, all else in the file stays, and a wrong entry changes nothing.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

python3 - <<'EOF' || fail "making documents"
import json
with open("users.ndjson", "w") as out:
    for user in range(50):
        count = 20000 if user == 7 else 20 + user
        out.write(json.dumps({"_id": user, "events": [{"n": i} for i in range(count)],
                              "likes": [{"n": i} for i in range(count)]}) + "\n")
EOF
expect 0 plan users.ndjson --quiet --output made.json

# An edited plan: keys of a later version, an order of keys of its own, a database in front.
python3 - <<'EOF' || fail "editing the plan"
import json
plan = json.load(open("made.json"))
plan = {"later": {"z": 1, "a": [1, {"b": None}]}, **plan}
for entry in plan["arrays"]:
    entry["collection"] = "shop.users"
    entry["database"] = "shop"
first = plan["arrays"][0]
definition = first.pop("definition")
plan["arrays"][0] = {"note": "ask Ann", "definition": dict(reversed(definition.items())), **first}
json.dump(plan, open("edited.json", "w"))
EOF

# same_but_for PATH KEY...: plan.json is edited.json, except these keys of the entry with that path.
same_but_for() {
    python3 - "$@" <<'EOF' || fail "plan-set changed something else, for $*"
import json, sys
path, keys = sys.argv[1], set(sys.argv[2:])
def pairs(file):
    return json.load(open(file), object_pairs_hook=lambda items: items)
was, now = pairs("edited.json"), pairs("plan.json")
def kept(plan):
    result = []
    for key, value in plan:
        if key != "arrays":
            result.append((key, value))
            continue
        for entry in value:
            mine = dict(entry)["path"] == path
            result.append([pair for pair in entry if not (mine and pair[0] in keys)])
    return result
assert kept(was) == kept(now), (kept(was), kept(now))
changed = [dict(entry) for entry in dict(now)["arrays"] if dict(entry)["path"] == path]
assert len(changed) == 1 and all(key in changed[0] for key in keys - {"saves"}), changed
EOF
}

# has_definition EXPRESSION: it is true of the entry of `events' in plan.json.
has_definition() {
    python3 - "$1" <<'EOF' || fail "the entry: not $1"
import json, sys
entry = [entry for entry in json.load(open("plan.json"))["arrays"] if entry["path"] == "events"][0]
definition, original = entry["definition"], entry.get("original")
assert eval(sys.argv[1]), entry
EOF
}

again() {
    cp edited.json plan.json
}

# The order of the array as it is.
again
expect 0 plan-set plan.json users.events --order oldest-first
has out 'definition.order: (none) -> "oldest-first"'
[ "$(wc -l <out)" = 1 ] || fail "more than the order: $(cat out)"
same_but_for events definition
has_definition 'definition["order"] == "oldest-first" and original is None'
has_definition 'list(definition)[0] == "largest"'
expect 0 plan-set plan.json users.events --order oldest-first
has out 'nothing changes'

# Each layout, with the database's name in front or not. Whatever `migrate' reads must be complete.
for layout in reference subset capped bucket; do
    again
    time=()
    [ "$layout" != bucket ] || time=(--time-field n)
    expect 0 plan-set plan.json shop.users.events --layout "$layout" "${time[@]}" --order oldest-first
    has out "definition.layout: \"outlier\" -> \"$layout\""
    # Objects and lists are printed in full: the old value, then the new one.
    python3 - <<'EOF' || fail "the printed changes: $(cat out)"
import json
lines = open("out").read().split("\n")
was, now = [[entry for entry in json.load(open(file))["arrays"] if entry["path"] == "events"][0]
            for file in ("edited.json", "plan.json")]
for field in "original", "saves", "why":
    at = lines.index(field + ":")
    for line, sign, entry in (lines[at + 1], "-", was), (lines[at + 2], "+", now):
        assert line.startswith(f"  {sign} "), line
        shown = line[4:]
        assert (None if shown == "(none)" else json.loads(shown)) == entry.get(field), line
EOF
    same_but_for events definition original why alternatives saves otherWriters detect
    has_definition '"saves" not in entry and len(entry["why"]) == 1'
    has_definition "entry['why'][0].startswith('\`spillway plan-set\' chose layout $layout, threshold ')"
    has_definition "not any(text.startswith('$layout') for text in entry['alternatives'])"
    has_definition "entry['alternatives'][-1] == 'outlier, which the plan had before.'"
    has_definition "('{\$gt: ' + str(definition['bounds']['threshold']) + '}' in entry['detect']) == ('$layout' == 'capped')"
    has_definition "definition['layout'] == '$layout' and definition['name'] == 'users-events'"
    has_definition "original['layout'] == 'outlier' and original['array'] == 'events'"
    has_definition "original['order'] == 'oldest-first' and original['collection'] == 'users'"
    has_definition "definition['collection'] == ('users' if '$layout' in ('reference', 'subset') else 'users_events')"
    expect 0 define store.db other --layout outlier --quiet
    expect 0 migrate store.db plan.json # the store has no such arrays, but the plan is complete
    has out "from there they are copied to layout $layout"
    rm -rf store.db
    expect 0 plan-set plan.json users.events --layout outlier --leave
    has_definition 'definition["layout"] == "outlier" and original is None and entry["migrate"] is False'
done
again
expect 0 plan-set plan.json users.events --threshold 777 --pages-field eventPages
has out 'definition.bounds.threshold: '
has_definition "'threshold 777.' in entry['why'][0] and '{\$gt: 777}' in entry['detect'] and 'saves' not in entry"
has_definition "'the field eventPages' in entry['otherWriters']"
again
expect 0 plan-set plan.json users.events --layout capped
has_definition 'definition["bounds"]["threshold"] > 4000'
has_definition "'deletes all elements but the newest' in entry['otherWriters'] and 'unchanged' not in entry['otherWriters']"
again
expect 0 plan-set plan.json users.events --layout subset --top 5 --sort-by n --json
python3 -c '
import json
line = json.load(open("out"))
fields = {change["field"]: change for change in line["changes"]}
assert line["entry"] == "users.events" and line["written"] is True, line
assert fields["definition.topCount"] == {"field": "definition.topCount", "before": None, "after": 5}, fields
assert fields["definition.sortField"]["after"] == "n", fields
assert not any(field.startswith("definition.largest") for field in fields), fields
' || fail "the changes: $(cat out)"

# Nothing is written.
unchanged() {
    cmp -s edited.json plan.json || fail "the file changed"
}
again
expect 0 plan-set plan.json users.events --layout reference --dry-run
has out 'nothing was written (--dry-run)'
unchanged
expect 2 plan-set plan.json users.events --layout bucket
has err 'timeField (--time-field) is missing'
unchanged
expect 4 plan-set plan.json users.events --keep oldest
has err "give it another --array or --collection"
unchanged
expect 3 plan-set plan.json users.event --order oldest-first
has err "it has no entry 'users.event'; it has shop.users.events, shop.users.likes"
expect 2 plan-set plan.json users.events --layout tree
expect 2 plan-set plan.json users.events --order up
expect 2 plan-set plan.json users.events --threshold 0
expect 2 plan-set plan.json users.events
has err 'nothing to set'
expect 2 plan-set plan.json users.events --migrate --leave
expect 3 plan-set missing.json users.events --migrate
has err 'missing.json'
unchanged
echo '{"spillwayPlan": 1, "arrays": [' >broken.json
expect 3 plan-set broken.json users.events --migrate
has err 'broken.json'
# Text behind the plan, a number beyond 64 bits, bytes that are no text, a folder.
cp plan.json tail.json
echo '{}' >>tail.json
expect 3 plan-set tail.json users.events --migrate
has err 'tail.json: malformed JSON at offset'
echo '{"spillwayPlan": 1, "arrays": [], "n": 99999999999999999999}' >wide.json
expect 3 plan-set wide.json users.events --migrate
has err 'wide.json: malformed JSON at offset'
printf '\0\1{' >binary.json
expect 3 plan-set binary.json users.events --migrate
has err 'binary.json: malformed JSON at offset 0'
expect 3 plan-set /dev/null users.events --migrate
has err '/dev/null: it is empty'
mkdir folder.json
expect 3 plan-set folder.json users.events --migrate
has err 'folder.json is a folder; a plan is a file'
echo '{"a": 1}' >other.json
expect 2 plan-set other.json users.events --migrate
has err 'this is no plan of version 1'

# An array inside a map cannot be defined, and the plan says what to do first.
python3 - <<'EOF' || fail "a nested entry"
import json
plan = json.load(open("edited.json"))
plan["arrays"].append({"collection": "users", "path": "rooms.*.messages", "migrate": False, "why": []})
plan["arrays"].append(dict(plan["arrays"][1]))
json.dump(plan, open("plan.json", "w"))
EOF
expect 2 plan-set plan.json 'users.rooms.*.messages' --layout reference
has err 'must be a field of the document'
expect 2 plan-set plan.json 'users.rooms.*.messages' --threshold 5
has err 'give --layout or --preset'
expect 2 plan-set plan.json users.likes --migrate
has err "two entries are named 'users.likes'"
