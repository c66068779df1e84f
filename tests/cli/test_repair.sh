#!/usr/bin/env bash
# A killed program leaves unfinished operations; repair finds and completes them.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars in it
source "$(dirname "$0")/lib.sh"

for i in {1..3000}; do echo "$i"; done >lines

# ---- a drop --------------------------------------------------------------------------------------

expect 0 define db ev --preset feed-recent --threshold 1 --page 1
expect 0 append db ev bob 1 2 3

# A drop deletes the head first, and then one page at a time. Killed early, it leaves pages.
half_dropped() {
    expect 0 append db ev alice - --durability log <lines
    "$SPILLWAY" drop db ev alice --yes >out 2>err &
    local dropping=$! count=3000
    while [ "$count" != 0 ] && kill -0 "$dropping" 2>/dev/null; do
        "$SPILLWAY" count db ev alice >out 2>err
        [ $? = 3 ] && break # the head no longer exists: the drop has begun
        count=$(sed -n 's/.*"count":\([0-9]*\),.*/\1/p' out)
    done
    kill -9 "$dropping" 2>/dev/null
    wait "$dropping" 2>/dev/null
    "$SPILLWAY" repair db ev alice --dry-run --json >out 2>err
    [ $? = 1 ]
}

tries=0
until half_dropped; do
    tries=$((tries + 1))
    if [ "$tries" -ge 20 ]; then
        fail "no kill interrupted a drop: $(cat out err)"
        break
    fi
done
has out '"owner":"alice","page":-1,"invariant":7,"text":"'
grep -qE '("1 page is|[0-9]+ pages are) left of an owner that was dropped"' out || fail "no pages are left: $(cat out)"
has out '{"owners":1,"findings":1,"finished":0,"left":0}'
expect 1 verify db ev # reports pages of an owner without a head
has out 'ev: owner "alice", head, I7: '
grep -qE '^\{"owners":2,"pages":[0-9]+,"elements":3,"findings":1,"ownersWithFindings":1\}$' out || fail "the owner is not counted: $(cat out)"
expect 1 repair db ev --dry-run
has out 'ev: owner "alice", head, I7: '
has out '{"owners":1,"findings":1,"finished":0,"left":0}'
expect 0 repair db ev
has out 'ev: owner "alice", head, I7: '
has out '{"owners":1,"findings":1,"finished":1,"left":0}'
expect 3 repair db ev alice --dry-run
has err "'ev' has no owner \"alice\""
expect 3 drop db ev alice --yes
counts db ev bob 3
clean db

# ---- a whole store -------------------------------------------------------------------------------

expect 0 define db reviews --preset reviews-bucket
expect 0 append db reviews bike-7 '{"rating": 4, "createdAt": {"$date": "2026-03-05T10:00:00Z"}}'
expect 0 define db log --preset feed --layout capped --collection logs
expect 0 append db log web 1
expect 0 repair db
has out '{"owners":3,"findings":0,"finished":0,"left":0}'
expect 0 repair db reviews bike-7
has out '{"owners":1,"findings":0,"finished":0,"left":0}'
expect 3 repair db reviews nobody
expect 3 repair db nothing
has err "nothing"
expect 2 repair db ev alice more
