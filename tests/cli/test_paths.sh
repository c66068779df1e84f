#!/usr/bin/env bash
# Fields of a head at dotted paths: every command works with them, names never collide, and values in the way are refused.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2154,SC2016 # lib.sh is not followed; $set is an operator
source "$(dirname "$0")/lib.sh"

paths=(--array stats.events --count-field stats.count --overflow-field stats.more --pages-field meta.pages)
numbers() { # FROM TO
    for ((i = $1; i <= $2; i++)); do
        echo "{\"n\":$i}"
    done
}

# documents NAME OWNER EXPRESSION: a Python expression about `heads`, the heads that export --documents writes, holds.
documents() {
    "$SPILLWAY" export "$db" "$1" "$2" --documents >out || fail "export --documents of $1"
    python3 - "$3" <<'EOF' || fail "$1: not $3"
import json, sys
found = [json.loads(line) for line in open("out")]
heads = [one["document"] for one in found if one["collection"].startswith("users")]
sys.exit(not eval(sys.argv[1]))
EOF
}

# ---- definitions ---------------------------------------------------------------------------------

new_store
refused() { # TEXT OPTION...
    expect 2 define "$db" bad --preset feed --collection users "${@:2}"
    has err "$1"
}
refused "has a number as a part" --array chats.0.messages
refused "keep each member of that array as an owner" --array chats.0.messages
refused "has an empty part" --array stats..events
refused "has an empty part" --array .events
refused "Spillway uses itself" --array spill.events
refused "Spillway uses itself" --array _id.events
refused "contains '\$'" --array 'stats.$events'
refused "has more than 8 parts" --array a.b.c.d.e.f.g.h.i
refused "one field would be in the other" --array stats --count-field stats.count
refused "only the fields of a head may be paths" --page-array stats.events
# The statistics of a bucket have a name by default.
expect 2 define "$db" bad --layout bucket --time-field at --window month --collection users --array stats.events
has err "array (--array) 'stats.events' and statsField (--stats-field) 'stats'"

# ---- one array -----------------------------------------------------------------------------------

expect 0 define "$db" events --preset feed --keep newest --collection users "${paths[@]}" --page-collection eventPages --threshold 3 --page 3
has out "users.stats.events"
expect 4 define "$db" other --preset feed --keep newest --collection users --array stats.events.more --count-field '' --overflow-field '' --pages-field '' --page-collection otherPages
has err "one of the fields 'stats.events.more' and 'stats.events' would be in the other"
expect 4 define "$db" other --preset feed --keep newest --collection users --array stats --count-field '' --overflow-field '' --pages-field '' --page-collection otherPages
has err "one of the fields 'stats' and 'stats.events' would be in the other"

numbers 1 10 | "$SPILLWAY" append "$db" events ada >out || fail "append"
is out "0..9"
expect 0 update "$db" events ada '{"$set": {"stats.theme": "dark", "name": "Ada"}}'
expect 2 update "$db" events ada '{"$set": {"stats": {"theme": "light"}}}'
has err "would change 'stats.events' in it"
expect 2 update "$db" events ada '{"$unset": {"stats.events": ""}}'
has err "belongs to the array"
numbers 11 12 | "$SPILLWAY" append "$db" events ada >out || fail "append"
counts "$db" events ada 12
expect 0 read "$db" events ada --limit 2
has out '{ "n" : 12 }'
expect 0 read "$db" events ada --oldest --limit 1
has out '{ "n" : 1 }'
documents events ada 'heads[0]["stats"]["theme"] == "dark" and heads[0]["name"] == "Ada"'
documents events ada 'int(heads[0]["stats"]["count"]["$numberInt"]) == 12 and heads[0]["stats"]["more"] is True'
documents events ada 'int(heads[0]["meta"]["pages"]["$numberInt"]) >= 2 and list(heads[0]["spill"]) == ["stats$events"]'
documents events ada 'len(heads[0]["stats"]["events"]) <= 5 and list(heads[0]).count("stats") == 1'
expect 0 explain "$db" events ada
has out "12"
expect 0 explain "$db" events ada --documents
has out "stats"
expect 0 edit "$db" events ada 11 '{"n": 120}'
expect 0 remove "$db" events ada 0
counts "$db" events ada 11
# Behind the last element there is no next page, although number 0 was used.
on_terminal 100 read "$db" events ada --limit 11
! grep 'next:' out || fail "the last page has a next one"
on_terminal 100 read "$db" events ada --limit 10
has out "next: --limit 10 --before 2"
expect 0 verify "$db"
expect 0 repair "$db" events
expect 0 owners "$db" events --json
has out '"elements":11'
expect 0 stats "$db" events
has out "1 owner, 11 elements"

# ---- names that look alike -----------------------------------------------------------------------

defined=0
for array in a.b a_b a%2Eb a%b; do
    expect 0 define "$db" "of${array//[^a-zA-Z0-9_]/-}$((++defined))" --preset feed --keep newest --collection alike --array "$array" \
        --count-field '' --overflow-field '' --pages-field '' --page-collection "alike$defined" --threshold 2 --page 2
done
numbers 1 5 | "$SPILLWAY" append "$db" ofa-b1 ada >out || fail "append to a.b"
numbers 11 14 | "$SPILLWAY" append "$db" ofa_b2 ada >out || fail "append to a_b"
numbers 21 23 | "$SPILLWAY" append "$db" ofa-2Eb3 ada >out || fail "append to a%2Eb"
numbers 31 31 | "$SPILLWAY" append "$db" ofa-b4 ada >out || fail "append to a%b"
counts "$db" ofa-b1 ada 5
counts "$db" ofa_b2 ada 4
counts "$db" ofa-2Eb3 ada 3
counts "$db" ofa-b4 ada 1
expect 0 drop "$db" ofa_b2 ada --yes
counts "$db" ofa-b1 ada 5
expect 0 verify "$db"

# ---- copies and conversions ----------------------------------------------------------------------

# same NAME: the arrays of NAME equal those of events.
same() {
    expect 0 export "$db" "$1"
    sort out | cmp -s - before || fail "the arrays of $1 differ from those of events"
}
expect 0 export "$db" events
sort out >before
expect 0 convert "$db" events --keep oldest --as oldest
same oldest
expect 0 convert "$db" oldest --keep newest --as back
same back
expect 0 convert "$db" events --to reference --as single
same single
expect 0 convert "$db" single --to outlier --as joined
same joined
expect 0 convert "$db" events --to capped --as last --threshold 5
counts "$db" last ada 5
expect 0 verify "$db"
from=$db
expect 0 copy "$from" copied events
db=copied
same events
documents events ada 'heads[0]["stats"]["theme"] == "dark" and heads[0]["name"] == "Ada"'
expect 0 verify copied

if on_server; then
    new_store # and back
    expect 0 copy copied "$db" events
    same events
    documents events ada 'heads[0]["stats"]["theme"] == "dark" and heads[0]["name"] == "Ada"'
    expect 0 verify "$db"
fi

# ---- values in the way ---------------------------------------------------------------------------

# in_way NAME VALUE TEXT: an append to a document with that value in place of stats is refused and changes nothing.
in_way() {
    numbers 1 1 | "$SPILLWAY" append "$db" tags "$1" >out || fail "append to tags"
    expect 0 update "$db" tags "$1" "{\"\$set\": {\"stats\": $2, \"name\": \"Ada\"}}"
    numbers 1 1 | "$SPILLWAY" append "$db" events "$1" >out 2>err
    [ $? = 4 ] || fail "an append beside $2 ended otherwise"
    has err "$3"
    documents tags "$1" "'stats' in heads[0] and list(heads[0]['spill']) == ['tags'] and heads[0]['name'] == 'Ada'"
    expect 0 update "$db" tags "$1" '{"$unset": {"stats": ""}}'
    numbers 1 2 | "$SPILLWAY" append "$db" events "$1" >out || fail "append after $2"
    counts "$db" events "$1" 2
}
new_store
expect 0 define "$db" events --preset feed --keep newest --collection users "${paths[@]}" --page-collection eventPages --threshold 3 --page 3
expect 0 define "$db" tags --preset feed --keep newest --collection users --array tags --count-field '' --overflow-field '' --pages-field '' --page-collection tagPages
in_way ada '[1, 2]' "a path goes through sub-documents only"
in_way bob '[{"events": [1]}]' "a path goes through sub-documents only"
in_way cyd 5 "unset it, or define another path"
in_way dan null "unset it, or define another path"

# An update through another definition of the collection leaves the sub-document around an array that is there.
if ! on_server; then # where other programs can replace it, too
    numbers 1 4 | "$SPILLWAY" append "$db" events fay >out || fail "append"
    numbers 1 1 | "$SPILLWAY" append "$db" tags fay >out || fail "append to tags"
    for update in '{"$set": {"stats": {"theme": "dark"}}}' '{"$unset": {"stats": ""}}' '{"$inc": {"stats.count": 1}}' \
        '{"$set": {"stats.events": []}}'; do
        expect 4 update "$db" tags fay "$update"
        has err "definition 'events': update: "
    done
    counts "$db" events fay 4
    expect 0 update "$db" tags fay '{"$set": {"stats.theme": "dark", "statsother": 1}}'
    documents events fay 'heads[0]["stats"]["theme"] == "dark" and len(heads[0]["stats"]["events"]) > 1'
    expect 0 verify "$db"
fi

# ---- another program replaces the sub-document ---------------------------------------------------

if on_server; then
    replace() { # VALUE: in place of stats of ada, who has elements in pages
        "$(python_with_pymongo)" - "$(cat db.uri)" "$1" <<'EOF' || fail "replacing"
import json, sys, pymongo
heads = pymongo.MongoClient(sys.argv[1]).get_default_database().users
heads.update_one({"_id": "eve"}, {"$set": {"stats": json.loads(sys.argv[2])}})
EOF
    }
    numbers 1 8 | "$SPILLWAY" append "$db" events eve >out || fail "append"
    expect 0 read "$db" events eve --oldest --limit 3 --json
    cp out pages
    replace '{"fresh": 1}'
    numbers 100 100 | "$SPILLWAY" append "$db" events eve >out || fail "append after the sub-document was replaced"
    counts "$db" events eve 4 # the head had the others
    expect 0 read "$db" events eve --oldest --limit 3 --json
    cmp -s <(head -3 out) <(head -3 pages) || fail "elements in pages are lost"
    documents events eve 'heads[0]["stats"]["fresh"] is not None and "events" in heads[0]["stats"]'
    expect 0 verify "$db"
    replace '[1]'
    numbers 101 101 | "$SPILLWAY" append "$db" events eve >out 2>err
    has err "'stats.events' cannot be stored: a field around it is not a document"
    expect 3 read "$db" events eve
    has err "another program has written to it"
    expect 1 verify "$db" events
    replace '{"events": [{"n": 9}]}'
    expect 0 repair "$db" events --yes
    expect 0 verify "$db"
    expect 0 read "$db" events eve --oldest --limit 3 --json
    cmp -s <(head -3 out) <(head -3 pages) || fail "elements in pages are lost"
fi
