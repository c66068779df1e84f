#!/usr/bin/env bash
# migrate and sweep on an embedded store, in which an unmanaged array is a field of a head's document:
# the dry run, the migration, what is refused, and undo.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

new_store
expect 0 define "$db" other --preset feed-recent --collection users --array other \
    --page-collection otherPages --count-field otherCount --overflow-field otherOverflow \
    --pages-field otherPages --quiet

expect 0 define "$db" events --preset feed-recent --collection users --array events \
    --page-collection users_events --threshold 10 --page 4 --quiet
expect 0 define "$db" events --json
cat >plan.json <<EOF
{"spillwayPlan": 1, "source": "test", "arrays": [{"collection": "users", "path": "events",
  "migrate": true, "definition": $(cat out)}]}
EOF
expect 0 drop "$db" events --yes

# ---- nothing to do, and refused plans ------------------------------------------------------------

expect 0 migrate "$db" plan.json
has out 'events: users.events, 0 arrays to reshape'
has err 'nothing was changed: act with --execute'
expect 3 migrate "$db" absent.json
has err 'absent.json'
echo '{"spillwayPlan": 1, "arrays": [{"collection": "users", "path": "events", "migrate": true}]}' >bad.json
expect 2 migrate "$db" bad.json
has err 'users.events has "migrate": true, but no "definition"'
echo '{"spillwayPlan": 1, "arrays": []}' >bad.json
expect 2 migrate "$db" bad.json
has err 'nothing to migrate'
expect 2 migrate "$db" plan.json --only nobody
has err "no definition 'nobody'"
sed 's/"keep" : "newest"/"keep" : "oldest"/' plan.json >oldest.json
expect 4 migrate "$db" oldest.json --execute
has err "definition 'events' clashes with 'events.original'"
expect 3 sweep "$db" events
has err "'events'"

echo "only a server has unmanaged arrays written by other programs: see tests/interop and tests/model"
expect 4 migrate "$db" plan.json --execute --json
has out '"step":"reshaped","owners":0'
has err "no document of the collection 'users' has an array 'events'"
sed 's/"migrate": true/"migrate": true, "mayBeEmpty": true/' plan.json >empty.json
expect 0 migrate "$db" empty.json --execute --json
has out '"step":"reshaped","owners":0'
expect 0 define "$db" events
for i in {1..40}; do echo "$i"; done >numbers
expect 0 append "$db" events ada - <numbers
expect 0 sweep "$db" events
has out '"step":"swept"'
expect 0 read "$db" events ada --limit 1000 --oldest --json
cp out before

# ---- undo ----------------------------------------------------------------------------------------

expect 0 migrate "$db" plan.json --undo
has out '"step":"can be undone","owners":1,"adopted":0,"full":0,"elements":40'
has err 'events: --execute would put 40 elements of 1 owner back into the documents of users, and delete the pages'
has err 'nothing was changed: act with --execute'
expect 0 migrate "$db" plan.json --undo --execute --yes --log moved.ndjson
has out '"step":"undone","owners":1,"adopted":0,"full":0,"elements":40'
has moved.ndjson '"unmanaged" : true'
expect 3 count "$db" events ada
expect 4 append "$db" events ada 1
has err '40 elements that were not put there by Spillway'

# ---- migrated again ------------------------------------------------------------------------------

expect 0 migrate "$db" plan.json
has out '1 array to reshape, of which 1 is unmanaged'
expect 0 migrate "$db" plan.json --execute --log moved.ndjson
has out '"step":"reshaped","owners":1,"adopted":1,"full":0,"elements":40,"moved":30,"pages":8'
has moved.ndjson '"adopted" : true, "moved" : 30, "pages" : 8, "hash" : '
expect 0 read "$db" events ada --limit 1000 --oldest --json
cmp -s out before || fail "the array has changed"
clean "$db"

# A log that cannot be written does not keep the migration from its work.
if [ -e /dev/full ]; then
    expect 3 migrate "$db" plan.json --execute --log /dev/full
    has out '"step":"reshaped"'
    has err '/dev/full cannot be written (No space left on device): the job continues without its log'
    has err '/dev/full lacks 3 lines'
    expect 3 migrate "$db" plan.json --execute --log .
    has err 'Is a directory'
fi

# ---- another layout, in two stages ---------------------------------------------------------------

# plan_of NAME FILE OPTION...: write a plan that migrates users.events to a definition with the options.
plan_of() {
    local name=$1 file=$2
    shift 2
    expect 0 define "$db" "$name" --collection "$name" --array events "$@" --quiet
    expect 0 define "$db" "$name" --json
    cat >"$file" <<EOF
{"spillwayPlan": 1, "source": "test", "arrays": [{"collection": "users", "path": "events",
  "migrate": true, "definition": $(cat out)}]}
EOF
    expect 0 drop "$db" "$name" --yes
}
plan_of oldest oldest.json --preset feed --threshold 5 --page 10 --page-collection oldest.pages
expect 0 append "$db" events bob 1
expect 0 migrate "$db" plan.json --undo --execute --yes
expect 4 migrate "$db" oldest.json --execute
has err "definition 'oldest.original' clashes with 'events'"

expect 0 drop "$db" events --yes

expect 0 migrate "$db" oldest.json
has out 'oldest: users.events, 0 arrays to reshape' # although the definition is not saved
has out 'oldest: from there they are copied to layout outlier, keep oldest, in oldest.pages'
has err 'nothing was changed: act with --execute'
expect 4 migrate "$db" oldest.json --finish
has err "no migration to 'oldest' was begun"
expect 0 migrate "$db" oldest.json --execute --log moved.ndjson
has out '"step":"reshaped","owners":2,"adopted":2'
has out '"step":"caught up","owners":2,"elements":41,"before":0,"verified":41'
has moved.ndjson '"owner" : "ada", "elements" : 40, "caughtUp" : true, "recopied" : false, "hash" : '
has err "the originals still exist"
expect 4 append "$db" oldest ada 1
has err "'oldest' is still being made by"
expect 4 trim "$db" oldest ada --keep 1
expect 4 drop "$db" oldest.original --yes
has err "'oldest.original' has the arrays that"
sed 's/"collection" : "oldest"/"collection" : "orders"/' oldest.json >another.json
expect 4 migrate "$db" another.json --undo --execute --yes
has err "the migration was begun with another plan"
expect 0 append "$db" oldest.original ada 41
expect 0 sweep "$db" oldest
has out '"step":"caught up","owners":2,"elements":1,"before":41,"verified":42'
expect 0 read "$db" oldest ada --limit 1000 --oldest --json
cp out before
expect 0 migrate "$db" oldest.json --undo
has out '"step":"can be undone","owners":2'
expect 0 migrate "$db" oldest.json --undo --execute --yes
has out '"step":"undone","owners":2'
expect 3 read "$db" oldest ada
expect 2 migrate "$db" oldest.json --undo --finish
has err 'cannot be combined with'

expect 0 migrate "$db" oldest.json --execute
expect 0 migrate "$db" oldest.json --execute --finish --yes
has out '"step":"finished","owners":2,"verified":42,"dropped":0'
expect 0 read "$db" oldest ada --limit 1000 --oldest --json
cmp -s out before || fail "the array has changed"
expect 0 append "$db" oldest ada 42
expect 3 read "$db" oldest.original ada
expect 0 migrate "$db" oldest.json --execute --finish --yes
has out '"step":"finished","owners":0'
expect 4 migrate "$db" oldest.json --execute --undo --yes
has err "the migration to 'oldest' was finished"
clean "$db"

echo "existing documents are named, and nothing is begun"
expect 0 define "$db" capped --preset feed-recent --collection mine --page-collection mine.pages
plan_of capped2 capped.json --layout capped --threshold 10
expect 0 migrate "$db" capped.json
has out "capped2: after --finish the array is in 'capped2', no longer in 'users': programs need the library"
sed -i 's/capped2/capped/g' capped.json
expect 4 migrate "$db" capped.json --execute
has err "there is a definition 'capped' already"
