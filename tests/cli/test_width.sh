#!/usr/bin/env bash
# Lines for people fit their terminal, of 80 columns and of 60: scan, plan, plan-set, migrate, verify,
# repair, status, stats, explain and messages. Only what a person copies may be longer: a command, JSON,
# one word.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

# too_wide COLUMNS FILE: the lines that are wider, and could be folded.
too_wide() {
    sed 's/\x1b\[[0-9;]*m//g' "$2" | awk -v columns="$1" '
        /^ *([a-z ]+: +)?(spillway|db\.)/ || /^ *[{[]/ || /: spillway / { next }
        /^ *([-+] )?"[^"]*",?$/ || /^ *[-+] ["{[]/ { next }
        length > columns && $0 ~ /[^ ] +[^ ]/ { print }'
}

# fits CODE ARGUMENT...: the command ends with the code, prints something, and each line fits.
fits() {
    local code=$1 columns status
    shift
    for columns in 80 60; do
        on_terminal "$columns" "$@"
        status=$?
        [ "$status" = "$code" ] || fail "spillway $* ended with $status, not $code: $(cat out)"
        [ -s out ] || fail "spillway $* prints nothing"
        too_wide "$columns" out >wide
        [ ! -s wide ] || fail "wider than $columns columns: spillway $*: $(cat wide)"
    done
}

# ---- scan, plan ----------------------------------------------------------------------------------

python3 - <<'END' || fail "making documents"
import json
def at(minutes):
    return {"$date": {"$numberLong": str(1767225600000 + 60000 * minutes)}}
with open("activities.ndjson", "w") as out:
    for owner in range(30):
        events = [{"at": at(37 * i), "kind": "like", "text": "x" * 600} for i in range(20 + 40 * owner)]
        print(json.dumps({"_id": f"a customer with a rather long name, number {owner}", "statistics": {"theLastActivitiesOfThisCustomer": events},
                          "theSettingsOfTheirClients": {f"client{i}": i for i in range(owner * 9)}}), file=out)
    events = [{"at": at(27 * i), "text": "x" * 600} for i in range(1580)]
    print(json.dumps({"_id": "the full one", "statistics": {"theLastActivitiesOfThisCustomer": events}}), file=out)
END
limits=(--max-elements 100 --document-limit 1001KB)
fits 0 scan activities.ndjson "${limits[@]}"
has out 'full:    "the full one" has no room for one more element'
has out "\`spillway plan'"
grep -q '0 more elements' out && fail "a full document gets no more elements, and the scan counts them"
has out 'limit:   "a customer with a rather long name, number 29"'
grep -q '^  statistics.theLastActivitiesOfThisCustomer$' out || fail "a long name has no line of its own: $(cat out)"
fits 0 plan activities.ndjson "${limits[@]}" --output plan.json
grep -q '^  see:   db\..\{80\}' out || fail "a command to copy was folded: $(cat out)"
fits 0 plan-set plan.json activities.statistics.theLastActivitiesOfThisCustomer --threshold 900 --dry-run

# ---- migrate, and what follows -------------------------------------------------------------------

# A document is a head without an array, and then its elements are an unmanaged array.
python3 - <<'END' || fail "editing the plan"
import json
plan = json.load(open("plan.json"))
plan["arrays"] = plan["arrays"][:1]
definition = plan["arrays"][0]["definition"]
definition["bounds"] = definition["largest"] = {"threshold": 90, "pageCapacity": 20, "headBytesMax": 100000, "pageBytesMax": 100000}
json.dump(plan, open("plan.json", "w"))
json.dump(definition, open("definition.json", "w"))
plan["arrays"][0] = {**plan["arrays"][0], "mayBeEmpty": True}
json.dump(plan, open("empty.json", "w"))
plan["arrays"][0]["definition"] = {**definition, "pageCollection": definition["pageCollection"] + "-other"}
json.dump(plan, open("other.json", "w"))
END
name=activities-statistics.theLastActivitiesOfThisCustomer
expect 0 define db other --preset feed-recent
expect 0 migrate db empty.json --execute
expect 0 import db "$name" activities.ndjson --elements statistics.theLastActivitiesOfThisCustomer --owner _id
expect 0 sweep db "$name"
owner='a customer with a rather long name, number 29'
fits 0 migrate db plan.json --undo
fits 4 migrate db other.json
fits 0 verify db
fits 0 stats db
fits 0 stats db "$name"
fits 0 status db
fits 0 explain db "$name" "$owner"
fits 0 explain db "$name" "$owner" --all
fits 3 explain db "$name" 'an owner who is not there, and has a long name'
fits 0 threshold db "$name"
fits 0 define db "$name"
fits 0 sweep db "$name"
expect 0 migrate db plan.json --undo --execute --yes
fits 0 migrate db plan.json
expect 0 migrate db plan.json --execute
fits 0 migrate db plan.json --execute
fits 2 migrate db plan.json --only a-definition-that-is-not-in-the-plan --execute

# ---- other layouts -------------------------------------------------------------------------------

at=0
for preset in reviews-separate reviews-subset reviews-bucket sales; do
    store=db.$((at++))
    expect 0 define "$store" "$preset" --preset "$preset"
    for i in {1..150}; do
        echo "{\"_id\": $i, \"rating\": 3, \"createdAt\": {\"\$date\": \"2026-0$((i / 30 + 1))-01T00:00:00Z\"}}"
    done | "$SPILLWAY" append "$store" "$preset" alice - --quiet >out 2>err || fail "append to $preset: $(cat err)"
    fits 0 explain "$store" "$preset" alice
    fits 0 stats "$store" "$preset"
done
fits 0 convert db.3 sales --layout reference --as sales-with-a-document-for-each-of-its-elements --dry-run
fits 0 copy db copy.db
fits 0 repair db
