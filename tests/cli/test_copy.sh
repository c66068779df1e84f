#!/usr/bin/env bash
# copy between two stores: its output, what it refuses, and copies that are killed and restarted. If
# SPILLWAY_TEST_STORE is "server", the second store is a database of the test server; the first and the
# last are folders.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

seed_random

new_target() {
    new_store
    target=$db
    on_server || { rm -rf target && target=target; }
}

# same STORE STORE NAME...: each array has the same elements and numbers in both stores.
same() {
    local one=$1 other=$2
    shift 2
    for name in "$@"; do
        expect 0 export "$one" "$name"
        sort out >one
        expect 0 export "$other" "$name"
        sort out | cmp -s - one || fail "$name of $one and $other differ"
    done
}

for i in {1..9000}; do
    echo "{\"_id\": $i, \"by\": \"u$((i % 7 * (i % 2)))\"}"
done >events.ndjson
expect 0 define source new --preset feed-recent --threshold 50 --page 40
expect 0 define source old --preset feed --threshold 50 --page 40 --collection o --page-collection p
for name in new old; do
    expect 0 import source "$name" events.ndjson --owner by --as "$name"
    expect 0 trim source "$name" u1 --below 123
    expect 0 trim source "$name" u2 --keep 0
    for seq in 0 40 41 599; do expect 0 remove source "$name" u3 "$seq"; done
done

# ---- its output ----------------------------------------------------------------------------------

new_target
expect 0 copy source "$target" new --threshold 30 --page 30 --quiet
is err ""
elements=$(sed 's/.*"elements":\([0-9]*\),.*/\1/' out)
is out "{\"owners\":7,\"elements\":$elements,\"before\":0,\"verified\":$elements,\"differences\":0}"
expect 0 define "$target" --json
has out '"threshold" : 30'
[ "$(wc -l <out)" = 1 ] || fail "more was copied than requested"
same source "$target" new
expect 0 append source new u1 '{"more": 1}'
expect 0 copy source "$target"
has out "\"before\":$elements,"
same source "$target" new old
clean "$target"
counts "$target" old u2 0

# The next number is the source's, even if no elements are left.
expect 0 append source new u2 1
mv out one
expect 0 copy source "$target" --quiet
expect 0 export "$target" new u2
has out "\"seq\":$(cut -d ' ' -f 1 one | tr -cd 0-9),"

# ---- differences and refusals --------------------------------------------------------------------

expect 0 edit "$target" new u1 200 '{"edited": true}'
expect 1 copy source "$target" new --quiet
has out 'new: owner "u1", element 200: the target has another element of this number'
has out '"differences":1}'
expect 1 copy source "$target" new --quiet --json
has out '{"definition":"new","owner":"u1","seq":200,"differences":1,"text":"the target'
expect 1 copy source "$target" new --no-verify --quiet # the last elements are compared anyway
has out '"verified":0,'
expect 0 drop "$target" new u1 --yes
expect 0 copy source "$target" new --quiet
same source "$target" new old

expect 0 define other new --preset feed-recent --keep oldest
expect 0 append other new u1 1
expect 4 copy source other new
has err "target: "
has err "keep"
expect 3 copy source nowhere none
has err "source: there is no definition 'none'"
[ ! -e nowhere ] || fail "a target was made although the copy failed"
expect 3 copy nowhere other
has err "source: "
expect 2 copy source source
has err "same store"
expect 2 copy source

# A store under another path is the same store; a copy of the folder is another store.
another=$PWD/source
if on_server; then
    new_target
    expect 0 copy source "$target" new --quiet
    another=$uri$([[ $uri == *\?* ]] && echo '&' || echo '?')appName=another
    expect 2 copy "$target" "$another"
    has err "same store"
    expect 2 copy "$another" "$target" new --threshold 20
    has err "same store"
    same source "$target" new
else
    expect 2 copy source rocksdb:source
    has err "same store"
    expect 2 copy source "$another" new --threshold 20
    has err "same store"
fi
expect 0 define source --json
has out '"threshold" : 50'
cp -r source twin
expect 0 copy source twin --quiet

# ---- killed --------------------------------------------------------------------------------------

new_target
until_done copy source "$target"
same source "$target" new old
clean "$target"
rm -rf back
until_done copy "$target" back
same source back new old
clean back

# ---- capped arrays -------------------------------------------------------------------------------

# Dropped elements leave gaps in the numbers. Filling the gaps must not drop elements from the target.
expect 0 define capped last --layout capped --threshold 6 --collection l
seq 2500 | "$SPILLWAY" append capped last ada - --quiet >out
expect 0 remove capped last ada 2497
expect 0 append capped last ada '"a"' '"b"'
expect 0 remove capped last ada 2496
expect 0 remove capped last ada 2501
seq 3 | "$SPILLWAY" append capped last bob - --quiet >out
expect 0 remove capped last bob 1
expect 0 remove capped last bob 2
new_target
expect 0 copy capped "$target" --quiet
same capped "$target" last
expect 0 append capped last ada '"c"' '"d"' '"e"'
expect 0 append capped last bob 7
expect 0 copy capped "$target" --quiet
same capped "$target" last
expect 0 append "$target" last ada 1
is out 2505
clean "$target"

# ---- buckets -------------------------------------------------------------------------------------

# An owner with several windows is counted once.
at() {
    echo "{\"n\": $1, \"createdAt\": {\"\$date\": \"$2T10:00:00Z\"}}"
}
expect 0 define buckets r --preset reviews-bucket --page 2
expect 0 append buckets r ada "$(at 1 2026-01-01)" "$(at 2 2026-02-01)" "$(at 3 2026-02-02)"
expect 0 append buckets r bob "$(at 4 2026-02-01)" "$(at 5 2026-03-01)"
new_target
expect 0 copy buckets "$target" r --quiet
is out '{"owners":2,"windows":4,"elements":5,"before":0,"verified":5,"differences":0}'
expect 0 edit "$target" r ada 2026-01:0 "$(at 9 2026-01-01)"
expect 0 edit "$target" r ada 2026-02:1 "$(at 9 2026-02-02)"
expect 1 copy buckets "$target" r --quiet
has out 'r: owner "ada", window 2026-02, element 1: the target has another element of this number'
has out '"owners":2,"windows":4,"elements":0,"before":5,"verified":3,"differences":1}'
expect 1 copy buckets "$target" r --quiet --json
has out '"owner":"ada","window":"2026-01","seq":0,'

# ---- two at once ---------------------------------------------------------------------------------

if on_server; then
    new_target
    "$SPILLWAY" copy source "$target" --quiet >out.other 2>err.other &
    pid=$!
    expect 0 copy source "$target" --quiet
    has out '"differences":0}'
    wait "$pid" || fail "of two copies one ended with $?: $(cat err.other)"
    has out.other '"differences":0}'
    same source "$target" new old
    clean "$target"
fi
