#!/usr/bin/env bash
# migrate --undo --owner: one array becomes a plain one again, killed at any moment; the other owners and the
# definition stay. The next sweep or migration adopts it again, with the same elements.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

new_store
expect 0 define "$db" events --preset feed-recent --collection users --array events \
    --page-collection users_events --threshold 10 --page 4 --quiet
expect 0 define "$db" events --json
definition=$(cat out)
# plan NAME FIELDS...: write NAME with one array for each list of fields.
plan() {
    local name=$1 arrays=$2
    echo "{\"spillwayPlan\": 1, \"source\": \"test\", \"arrays\": [$arrays]}" >"$name"
}
entry="{\"collection\": \"users\", \"path\": \"events\", \"migrate\": true, \"definition\": $definition}"
plan plan.json "$entry"
plan two.json "$entry, ${entry//events/logins}"
plan staged.json "${entry/\"keep\" : \"newest\"/\"keep\" : \"oldest\"}"
for owner in ada bob cid; do
    for i in {1..200}; do echo "{\"$owner\": $i}"; done | "$SPILLWAY" append "$db" events "$owner" - --quiet >out 2>err ||
        fail "append to $owner: $(cat err)"
done

# all_of OWNER: the elements of the owner, in ./out.
all_of() {
    expect 0 read "$db" events "$1" --limit 1000 --oldest --json
}
all_of ada
cp out ada
all_of bob
cp out bob

# ---- refused, and the dry run --------------------------------------------------------------------

expect 2 migrate "$db" plan.json --owner ada --execute
has err '--owner is for --undo'
expect 2 migrate "$db" plan.json --undo --owner '{"broken'
expect 2 migrate "$db" two.json --undo --owner ada
has err 'choose one with --only'
sed -i 's/"name" : "events"/"name" : "other"/; s/"collection" : "users"/"collection" : "other"/' staged.json
expect 2 migrate "$db" staged.json --undo --owner ada
has err "'other' is not migrated in place"
expect 3 migrate "$db" plan.json --undo --owner nobody --execute --yes
has err "'events' has no owner \"nobody\""
expect 0 migrate "$db" plan.json --undo --owner ada
has out '"step":"can be undone","owners":1,"adopted":0,"full":0,"elements":200'
has err 'events: --execute would put 200 elements of 1 owner back into the documents of users'
counts "$db" events ada 200

# ---- undone, and killed --------------------------------------------------------------------------

# undone: ada's array is a plain one, bob's is managed, and nothing is left half done.
undone() {
    expect 4 append "$db" events ada 1
    has err '200 elements'
    all_of bob
    cmp -s out bob || fail "another owner has changed"
    clean "$db"
    expect 0 status "$db" --owners
    has out 'no work is unfinished'
    expect 0 migrate "$db" plan.json
    has out '1 array to reshape'
    has out '200 elements'
}

rounds=4
! on_server || rounds=2
for ((round = 0; round < rounds; round++)); do
    kill_and_repeat 3 0 60 migrate "$db" plan.json --undo --owner ada --execute --yes
    [ "$status" = 0 ] || fail "the undo ended with $status after $killed kills: $(cat err)"
    has out '"step":"undone","owners":1'
    undone
    # Again: it is a plain array already.
    expect 0 migrate "$db" plan.json --undo --owner ada --execute --yes
    has out '"step":"undone","owners":1,"adopted":0,"full":0,"elements":0'
    if [ $((round % 2)) = 0 ]; then
        expect 0 sweep "$db" events
    else
        expect 0 migrate "$db" plan.json --execute
    fi
    has out '"adopted":1,'
    all_of ada
    cmp -s out ada || fail "the array has changed"
    clean "$db"
done

# ---- the rest ------------------------------------------------------------------------------------

expect 0 migrate "$db" plan.json --undo --owner cid --execute --yes --quiet
expect 0 migrate "$db" plan.json --undo --execute --yes
has out '"step":"undone","owners":2,'
