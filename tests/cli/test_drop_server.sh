#!/usr/bin/env bash
# drop and convert --finish leave nothing of a definition on a server: neither documents of dropped owners,
# nor an empty collection of its pages. Documents of other programs stay.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"
needs SPILLWAY_TEST_URI
export SPILLWAY_TEST_STORE=server
python=$(python_with_pymongo)

# collections: print the collections with their numbers of documents, without Spillway's own.
collections() {
    "$python" - "$uri" <<'END'
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    database = client.get_default_database()
    print(" ".join(f"{name}={database[name].count_documents({})}"
                   for name in sorted(database.list_collection_names()) if not name.startswith("spillway.")))
END
}

# insert COLLECTION: another program stores a document there.
insert() {
    "$python" - "$uri" "$1" <<'END'
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    client.get_default_database()[sys.argv[2]].insert_one({"_id": "other", "text": "x"})
END
}

elements() {
    for ((i = 1; i <= 30; i++)); do
        # shellcheck disable=SC2016 # JSON has dollars in it
        printf '{"n": %d, "t": {"$date": "2026-01-0%dT00:00:00Z"}}\n' "$i" $((i % 9 + 1))
    done
}

made() {
    new_store
    # shellcheck disable=SC2086 # several options
    expect 0 define "$db" a --layout $1 --collection users --array acts --threshold 4 --page 4 --quiet
    for owner in ann ben; do
        elements | "$SPILLWAY" append "$db" a "$owner" - --quiet >out 2>err || fail "append: $(cat err)"
    done
}

for layout in 'outlier --keep oldest' outlier reference 'bucket --time-field t'; do
    # An owner that is dropped alone leaves tombstones, which the drop of the definition deletes.
    made "$layout"
    expect 0 drop "$db" a ann --yes
    expect 0 drop "$db" a --yes
    [[ " $(collections)" =~ =[1-9] ]] && fail "$layout: after the drop: $(collections)"
    expect 3 define "$db" a

    # The pages of a conversion's original, and then those of its target.
    [ "$layout" = reference ] && to='outlier --keep oldest' || to=reference
    made "$layout"
    # shellcheck disable=SC2086 # several options
    expect 0 convert "$db" a --layout $to --as b --quiet
    # shellcheck disable=SC2086 # several options
    expect 0 convert "$db" a --layout $to --as b --finish --yes --quiet
    [[ " $(collections)" =~ \ b=2\ b.pages=[0-9]+( users=0)?$ ]] || fail "$layout: after --finish: $(collections)"
    counts "$db" b ann 30
    clean "$db"
    expect 0 drop "$db" b --yes
    [[ " $(collections)" =~ =[1-9] ]] && fail "$layout: after the conversion and the drop: $(collections)"
done

# Documents of another program stay, and so does their collection; so do pages that another definition has.
made 'outlier --keep oldest'
insert overflowActivities
expect 0 drop "$db" a --yes
[ "$(collections)" = 'overflowActivities=1 users=0' ] || fail "another program's document: $(collections)"

# Two stages of a migration leave nothing of the original.
new_store
"$python" - "$uri" <<'END'
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    things = client.get_default_database().things
    things.insert_many([{"_id": n, "likes": [{"n": i} for i in range(400 * (n == 3) + 3)]} for n in range(6)])
END
expect 0 plan "$uri" --max-elements 100 --quiet --output plan.json
expect 0 plan-set plan.json things.likes --layout reference --migrate --order oldest-first
expect 0 migrate "$db" plan.json --execute --quiet
before=$(collections)
expect 0 migrate "$db" plan.json --execute --finish --yes --quiet
after=$(collections)
[[ "$after" == *original* || "$after" == *=0* ]] && fail "--finish leaves a collection: $before, then $after"

# The other way: an undo of two stages deletes many documents at a time, and shows how far it is.
new_store
"$python" - "$uri" <<'END'
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    things = client.get_default_database().things
    things.insert_many([{"_id": n, "likes": [{"n": i} for i in range(700 if n < 4 else 3)]} for n in range(40)])
END
expect 0 plan "$uri" --max-elements 100 --quiet --output plan.json
expect 0 plan-set plan.json things.likes --layout reference --migrate --order oldest-first
expect 0 migrate "$db" plan.json --execute --quiet
python3 "$(dirname "${BASH_SOURCE[0]}")/terminal.py" 100 lines "$SPILLWAY" migrate "$db" plan.json --undo --execute --yes \
    >out 2>err || fail "undo: $(cat out err)"
grep -qE '^ *[0-9]+ of [0-9]+ owners dropped' out || fail "no progress of the drop: $(cat out)"
[[ "$(collections)" == *'things=40'* ]] || fail "after the undo: $(collections)"
expect 0 migrate "$db" plan.json --undo --execute --yes
