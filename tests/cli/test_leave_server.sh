#!/usr/bin/env bash
# Leave Spillway on a server: `export', `stats' and `owners' count arrays that are not managed yet too; an undo
# takes a definition's name, leaves only those arrays managed that do not fit one document, and names the ways on.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
SPILLWAY_TEST_STORE=server source "$(dirname "$0")/lib.sh"

python=$(python_with_pymongo)
new_database "$SPILLWAY_TEST_URI"
echo "$uri" >db.uri
db=@db.uri
cat >posts.py <<'EOF'
"""posts.py URI insert | show: what the application does, and what it sees."""
import sys

import bson
import pymongo

posts = pymongo.MongoClient(sys.argv[1]).get_default_database().posts
if sys.argv[2] == "insert":
    posts.insert_many([
        {"_id": "short", "comments": [{"n": 1}, {"n": 2}, {"n": 3}]},
        {"_id": bson.ObjectId("65f0c0ffee0123456789abcd"), "comments": [{"n": 4}, {"n": 5}]},
        {"_id": "one", "comments": [{"n": 6}]},
        {"_id": "empty", "comments": []},
        {"_id": "none"},
        {"_id": "text", "comments": "closed"}])
for post in posts.find().sort("_id"):
    if isinstance(post.get("comments"), list):
        print(post["_id"], len(post["comments"]), "managed" if "spill" in post else "plain")
EOF
expect 0 define "$db" posts.comments --preset gateway --collection posts --array comments --quiet
for i in {1..2500}; do echo "{\"n\": $i}"; done | "$SPILLWAY" append "$db" posts.comments long - --quiet >out 2>err ||
    fail "append to long: $(cat err)"
"$python" - <<'EOF' >elements.ndjson
for n in range(20):
    print('{"n": %d, "text": "%s"}' % (n, "x" * 1_000_000))
EOF
"$SPILLWAY" append "$db" posts.comments large - --quiet <elements.ndjson >out 2>err || fail "append to large: $(cat err)"
"$python" posts.py "$uri" insert >out

# ---- all arrays are counted ----------------------------------------------------------------------

# exported N: `export' writes N elements, each array's numbered from 0 on.
exported() {
    expect 0 export "$db" posts.comments
    "$python" - "$1" <<'EOF' || fail "export is wrong"
import collections, json, sys
owners = collections.defaultdict(list)
for line in open("out"):
    line = json.loads(line)
    owners[json.dumps(line["owner"])].append(line["seq"])
assert sum(map(len, owners.values())) == int(sys.argv[1]), {name: len(seqs) for name, seqs in owners.items()}
assert all(seqs == list(range(len(seqs))) for seqs in owners.values())
EOF
}

exported 2526
expect 0 export "$db" posts.comments short --relaxed
is out '{"owner":"short","seq":0,"element":{ "n" : 1 }}
{"owner":"short","seq":1,"element":{ "n" : 2 }}
{"owner":"short","seq":2,"element":{ "n" : 3 }}'
expect 0 export "$db" posts.comments short --partial
[ "$(wc -l <out)" = 3 ] || fail "export --partial of an array that is not managed"
expect 3 export "$db" posts.comments none

# `read' reads the document's array. Its elements have the numbers from 0 on.
reads() {
    local seqs=$1
    shift
    expect 0 read "$db" posts.comments short "$@"
    [ "$(cut -f1 out | paste -sd' ')" = "$seqs" ] || fail "read $*: $(cat out)"
}
reads '2 1 0'
has out '{ "n" : 3 }'
reads '2 1' --limit 2
reads '0' --before 1
reads '2' --after 1
reads '1 0' --skip 1
reads '1 2' --oldest --after 0
reads '0' --oldest --limit 1
reads '' --after 7
reads '' --skip 3
expect 0 read "$db" posts.comments short --limit 1 --json
is out '{"seq":2,"element":{ "n" : 3 }}'
on_terminal 100 read "$db" posts.comments short --limit 2
has out 'next: --limit 2 --before 1'
on_terminal 100 read "$db" posts.comments short --limit 3
grep -q 'next:' out && fail "nothing follows"
expect 3 read "$db" posts.comments none
expect 0 export "$db" posts.comments --documents
has err "3 documents of 'posts' with arrays that Spillway does not manage yet are not written"
expect 0 stats "$db" posts.comments --json
has out '"owners":5,"unmanaged":3,"elements":2526'
expect 0 stats "$db" posts.comments
has out '3 arrays are not managed yet'
expect 0 owners "$db" posts.comments --json
[ "$(wc -l <out)" = 5 ] || fail "owners lists $(cat out)"
has out '{"owner":"one","elements":1,'
expect 0 owners "$db" posts.comments --prefix 65f0
has out '65f0c0ffee0123456789abcd'
expect 1 copy "$db" ./copied
has err "posts.comments: 3 arrays that Spillway does not manage are left out"
has out '"owners":2,"unmanaged":3,"elements":2520'
expect 1 convert "$db" posts.comments --layout reference --as posts.apart --dry-run --json
has err "posts.comments: 3 arrays that Spillway does not manage are left out"
has out '"owners":2,"unmanaged":3,"elements":2520'
clean "$db"

# ---- messages ------------------------------------------------------------------------------------

# shellcheck disable=SC2016 # $pull is an operator
{
    expect 0 count "$db" posts.comments short --json
    has out '{"owner":"short","count":3,"head":3,"pages":0}'
    expect 4 trim "$db" posts.comments short --keep 1
    has err 'also through a gateway'
    expect 4 remove "$db" posts.comments short 1
    has err '$pull'
    expect 3 count "$db" posts.comments 65f0c0ffee0123456789abce
    has err '{"$oid": "65f0c0ffee0123456789abce"}'
    expect 3 migrate "$db" posts.comments --undo --owner 65f0c0ffee0123456789abce
    has err '{"$oid": "65f0c0ffee0123456789abce"}'
}

# ---- an id field is added later ------------------------------------------------------------------

expect 4 define "$db" posts.comments --id-field n --unique
has err 'uniqueness (--unique) cannot be added'
expect 0 define "$db" posts.comments --id-field n --quiet
expect 0 remove "$db" posts.comments long --id 7
expect 0 remove "$db" posts.comments long --id 1190
expect 0 define "$db" posts.comments --preset gateway --collection posts --array comments
has out 'ids at n'
expect 4 define "$db" posts.comments --id-field other
has err "idField cannot change from 'n' to 'other'"
clean "$db"

# ---- undo what fits ------------------------------------------------------------------------------

expect 3 migrate "$db" no.such --undo
has err "there is no plan (file) and no definition 'no.such'"
expect 3 migrate "$db" no.such --execute
has err "there is no plan (file) and no definition 'no.such'"
expect 1 migrate "$db" posts.comments --undo
has err 'owner "large" of'
has err '1 owner would stay managed'
has err 'would put 2498 elements of 1 owner back'
"$python" posts.py "$uri" show >before
has before 'long 1499 managed'
expect 1 migrate "$db" posts.comments --undo --execute --yes
has out '"step":"undone","owners":1,"adopted":0,"full":0,"elements":2498,"moved":0,"pages":0,"changed":0,"failed":1}'
has err 'the undo is incomplete: 1 owner could not be undone and stays managed'
has err '--layout reference'
"$python" posts.py "$uri" show >after
has after 'long 2498 plain'
counts "$db" posts.comments large 20
expect 0 export "$db" posts.comments
[ "$(wc -l <out)" = 2524 ] || fail "after the undo there are $(wc -l <out) elements"
clean "$db"
expect 1 status "$db"
has out 'it is being undone'
has out "continue with: spillway migrate $db posts.comments --execute --undo"
expect 0 serve "$uri" --check
has out "posts: note: an undo of 'posts.comments' has begun and not ended, so no array is adopted"
# No sweep adopts what was undone. The array that stays accepts appends.
expect 4 sweep "$db" posts.comments
expect 0 append "$db" posts.comments large '{"n": 20}'
"$python" posts.py "$uri" show >after
has after 'long 2498 plain'

# Again: no array is left that fits.
expect 4 migrate "$db" posts.comments --undo --execute --yes
has err "1 owner of 'posts.comments' cannot be undone; this run has changed nothing"
has err '--layout reference'

# The definition's name is enough to cancel the undo, and to migrate what is long before a gateway starts.
expect 0 migrate "$db" posts.comments
has err 'an undo of this migration has begun and not ended'
has out '4 arrays to reshape'
expect 0 migrate "$db" posts.comments --execute
has err "an undo had begun and not ended; it is cancelled"
"$python" posts.py "$uri" show >after
has after 'long 1000 managed'
expect 0 status "$db"
expect 1 migrate "$db" posts.comments --undo --execute --yes
has err "To go back: \`spillway migrate STORE posts.comments --execute'"

# ---- the ways on ---------------------------------------------------------------------------------

# A document for each element.
expect 0 convert "$db" posts.comments --layout reference --as comments.apart
expect 0 convert "$db" posts.comments --layout reference --as comments.apart --finish --yes
counts "$db" comments.apart large 21
expect 3 define "$db" posts.comments
"$python" posts.py "$uri" show >after
has after 'long 2498 plain'
has after 'short 3 plain'
# The name of a definition that arrays cannot be migrated to in place.
expect 4 migrate "$db" comments.apart --execute
has err "arrays get it with a plan only"
expect 0 drop "$db" comments.apart --yes

# A shorter array.
expect 0 define "$db" posts.comments --preset gateway --collection posts --array comments --quiet
"$SPILLWAY" append "$db" posts.comments large - --quiet <elements.ndjson >out 2>err || fail "append to large: $(cat err)"
expect 4 migrate "$db" posts.comments --undo --execute --yes
expect 0 trim "$db" posts.comments large --keep 5
expect 0 migrate "$db" posts.comments --undo --execute --yes
"$python" posts.py "$uri" show >after
has after 'large 5 plain'
expect 3 define "$db" posts.comments

# ---- a trim that ends in the middle of a page ----------------------------------------------------

expect 0 define "$db" trimmed --preset gateway --collection trimmed --array rows --threshold 4 --page 4 --quiet
seq 13 | "$SPILLWAY" append "$db" trimmed one - --quiet >out 2>err || fail "append to one: $(cat err)"
expect 0 trim "$db" trimmed one --keep 6
expect 0 migrate "$db" trimmed --undo --json
has out '"elements":6'
expect 0 migrate "$db" trimmed --undo --execute --yes --json
has out '"elements":6'

# ---- many arrays that cannot be adopted ----------------------------------------------------------

"$python" - "$uri" <<'EOF'
import sys, pymongo
people = pymongo.MongoClient(sys.argv[1]).get_default_database().people
people.insert_many([{"_id": n, "activities": list(range(12)), "overflowPages": "none"} for n in range(13)])
EOF
expect 0 define "$db" activities --preset feed-recent --collection people --array activities --threshold 4 --page 4 --quiet
expect 1 migrate "$db" activities --execute
[ "$(grep -c 'spillway: skipped: owner' err)" = 10 ] || fail "not ten owners are printed: $(cat err)"
has err "activities: 3 more owners were skipped (--log FILE lists all)"

# ---- documents in which the path of the array leads through an array -----------------------------

"$python" - "$uri" <<'EOF'
import sys, pymongo
teams = pymongo.MongoClient(sys.argv[1]).get_default_database().teams
teams.insert_many([{"_id": 1, "stats": {"events": [1, 2]}}, {"_id": 2, "stats": [{"events": [1]}]}, {"_id": 3, "stats": {"events": [3]}}])
EOF
expect 0 define "$db" events --preset gateway --collection teams --array stats.events --quiet
for command in stats owners export; do
    expect 1 "$command" "$db" events
    has err "skipped: owner 2 of 'events'"
done
has out '"3" },"seq":0,'
expect 1 stats "$db" --json
has out '"owners":2,"unmanaged":2,"elements":3'
