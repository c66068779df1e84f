#!/usr/bin/env bash
# convert to another layout within a store: its output, what it refuses, conversions that are killed
# and restarted, and --finish, which deletes the old documents.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars in it
source "$(dirname "$0")/lib.sh"

seed_random

for i in {1..6000}; do
    echo "{\"_id\": $i, \"by\": \"u$((i % 7 * (i % 2)))\"}"
done >events.ndjson

new_store
expect 0 define "$db" ev --preset feed-recent --threshold 50 --page 40 --quiet
expect 0 import "$db" ev events.ndjson --owner by
expect 0 trim "$db" ev u1 --below 123
expect 0 trim "$db" ev u2 --keep 0
for seq in 0 40 41 399; do expect 0 remove "$db" ev u3 "$seq"; done
expect 0 export "$db" ev
sort out >before

# same NAME: the arrays of NAME equal the arrays before the conversion.
same() {
    expect 0 export "$db" "$1"
    sort out | cmp -s - before || fail "the arrays of $1 differ from those of ev"
}

# ---- a dry run ------------------------------------------------------------------------------------

elements=$(wc -l <before)
expect 0 convert "$db" ev --keep oldest --as old --dry-run
has out "ev: 7 arrays to convert, of $elements elements, as 'old': layout outlier, keep oldest"
has err "nothing was changed"
expect 3 define "$db" old
expect 0 convert "$db" ev --to capped --dry-run --json --quiet
has out '"name":"ev","as":"ev.capped","layout":"capped","owners":7,"elements":'"$elements"
expect 2 convert "$db" ev --to bucket --dry-run # layout bucket needs a time
expect 2 convert "$db" ev --keep oldest --dry-run --finish
same ev

# ---- killed and restarted ------------------------------------------------------------------------

until_done convert "$db" ev --keep oldest --as old
same old
same ev
clean "$db"
expect 0 define "$db" old
has out 'keep oldest, threshold 50, page 40'
has out 'old.activities, pages in old.pages'

# ---- its output, and what it refuses -------------------------------------------------------------

expect 0 convert "$db" ev --keep oldest --as old
has out '"elements":0,'
has err "'ev' is unchanged"
has err "stop the clients, run convert ... --as old --finish, then let them open 'old'"
expect 2 convert "$db" ev
has err "--layout LAYOUT"
expect 2 convert "$db" ev --to tree
has err "there is no layout 'tree'; the layouts are: outlier, capped, reference, subset, bucket"
expect 2 convert "$db" ev --keep both
has err "--keep must be 'newest' or 'oldest'"
expect 2 convert "$db" ev --as ev
has err "cannot be converted into itself"
expect 2 convert "$db" ev --to outlier --as 'a b'
has err "name 'a b' must"
expect 4 convert "$db" ev --keep newest --as old
has err "definition 'old' exists, and keeps the oldest"
expect 3 convert "$db" nothing --keep oldest
has err "there is no definition 'nothing'"
expect 3 convert "$db" ev --keep oldest --as none --finish --yes
has err "there is no definition 'none'"
expect 2 convert "$db" ev --to reference --keep oldest --as none
has err "which elements a head keeps (--keep) can be chosen for layout outlier only"
expect 3 define "$db" none
expect 2 convert "$db" ev --to outlier --as none --threshold 7 --page 9 --max-bytes 17MB
expect 3 define "$db" none
expect 2 convert "$db" ev --as old --finish --no-verify
has err "cannot be combined with --finish"
expect 2 convert "$db" ev --as old --finish
has err "give --yes"
expect 0 convert "$db" ev --to outlier --threshold 7 --page 9 # the name is derived from the layout
expect 0 define "$db" ev.outlier
has out 'keep newest, threshold 7, page 9'
same ev.outlier

# An existing definition, with its own names.
expect 0 define "$db" mine --preset sales --threshold 5 --page 11
expect 0 convert "$db" ev --as mine --quiet
is err ""
same mine
expect 0 export "$db" mine u3 --documents --plain
has out '"customers_purchased_extra"'

# ---- differences ---------------------------------------------------------------------------------

expect 0 edit "$db" ev u4 300 '{"edited": true}'
expect 1 convert "$db" ev --as old --quiet
has out 'ev: owner "u4", element 300: the target has another element of this number'
expect 4 convert "$db" ev --as old --finish --yes
has err "'ev' is kept: 1 of its owners"
has err "if only convert has written to 'old', an owner that is dropped there is copied again"
counts "$db" ev u4 "$(grep -c '"u4"' before)"
expect 0 drop "$db" old u4 --yes
expect 0 convert "$db" ev --as old --quiet
expect 0 export "$db" ev
sort out >before
same old

# ---- deleting the old documents ------------------------------------------------------------------

expect 0 append "$db" ev u5 '{"late": 1}'
expect 0 export "$db" ev
sort out >before
until_done convert "$db" ev --as old --finish --yes
same old
expect 0 convert "$db" ev --as old --finish --yes # with a state that a crash may leave
has err "'ev' no longer exists"
expect 3 convert "$db" typo --as old --finish --yes
has err "there is no definition 'typo'"
expect 3 convert "$db" ev --as old
has err "there is no definition 'ev'"
expect 3 count "$db" ev u5
has err "there is no definition 'ev'"
clean "$db"
expect 0 append "$db" old u5 '{"later": 1}'
has out "$(($(sed -n 's/.*"owner":"u5","seq":\([0-9]*\),.*/\1/p' before | sort -n | tail -1) + 1))"

# ---- a cap, and windows --------------------------------------------------------------------------

export SPILLWAY_KILLS=${SPILLWAY_KILLS:-2} # for each command

for i in {1..3000}; do
    printf '{"n": %d, "by": "u%d", "at": {"$date": {"$numberLong": "%d"}}}\n' \
        "$i" $((i % 3)) $((1767225600000 + i * 1800000))
done >timed.ndjson
new_store
expect 0 define "$db" all --preset feed-recent --threshold 50 --page 40 --id-field n \
    --time-field at --retain-age 90000d --quiet
expect 0 import "$db" all timed.ndjson --owner by
expect 0 remove "$db" all u1 998
expect 0 trim "$db" all u2 --below 900

# elements NAME OWNER: print the owner's elements, in order.
elements() {
    expect 0 export "$db" "$1" "$2"
    sed 's/.*"element"://' out
}

until_done convert "$db" all --to capped --as last --threshold 40 --max-bytes 50KB
expect 0 convert "$db" all --as last
has out '"elements":0,"before":120,"verified":120,"dropped":1979,"differences":0}'
has err "1979 elements are not in 'last', which keeps only the newest"
for owner in u0 u1 u2; do
    expect 0 export "$db" all "$owner"
    tail -40 out >before
    expect 0 export "$db" last "$owner"
    cmp -s out before || fail "layout capped does not have the newest 40 of $owner"
done
expect 0 define "$db" last
has out 'capped, keep newest, threshold 40, head 50000 bytes'
has out 'ids at n; times at at; keeps the last 7776000000 seconds'
expect 0 convert "$db" all --to capped --as small --threshold 900 --max-bytes 20KB --quiet
expect 0 convert "$db" all --as small --quiet # the bound in bytes allows no more elements
has out '"elements":0,'
expect 0 export "$db" small u1
mv out one
expect 0 export "$db" all u1
tail -"$(wc -l <one)" out | cmp -s - one || fail "u1 of small does not have the last elements of all"
[ "$(wc -l <one)" -lt 700 ] || fail "$(wc -l <one) elements fit in 20KB"
[ "$(wc -l <one)" -gt 50 ] || fail "only $(wc -l <one) elements fit in 20KB"
expect 0 append "$db" last u0 '{"n": 3001}'
is out 1000
expect 1 convert "$db" all --as last # another program has appended to it

until_done convert "$db" all --to bucket --as windows --page 70
until_done convert "$db" windows --to outlier --as back
until_done convert "$db" windows --to capped --as end --threshold 30
for owner in u0 u1 u2; do
    elements all "$owner" >before
    for name in windows back; do
        elements "$name" "$owner" | cmp -s - before || fail "$owner of $name differs from $owner of all"
    done
    elements end "$owner" | cmp -s - <(tail -30 before) || fail "$owner of end has other elements"
done
expect 0 stats "$db" windows u0
has out "in all 3 windows: 1000 elements"
expect 0 count "$db" back u2
has out '"count":100,'
expect 0 edit "$db" windows u1 2026-01:3 '{"at": {"$date": "2026-01-01T00:00:00Z"}}'
expect 1 convert "$db" all --as windows --quiet
has out 'all: owner "u1", element 3: the target has another element of this number'
expect 1 convert "$db" windows --as back --quiet
has out 'windows: owner "u1", element 3: the target has another element of this number'
expect 0 define "$db" untimed --preset feed --collection untimed --page-collection untimed.pages
expect 2 convert "$db" untimed --to bucket
has err "timeField (--time-field) is missing"
expect 0 drop "$db" windows u1 --yes
until_done convert "$db" all --as windows --finish --yes
elements windows u1 >before
[ "$(wc -l <before)" = 999 ] || fail "windows lacks elements of u1: $(wc -l <before)"
clean "$db"

# ---- removed from the old windows, after they were converted -------------------------------------

new_store
expect 0 define "$db" b --preset reviews-bucket --id-field id --time-field at --value-field "" --quiet
for i in 1 2 3; do
    expect 0 append "$db" b p1 "{\"id\": $i, \"at\": {\"\$date\": \"2026-0$i-01T00:00:00Z\"}}"
done
expect 0 convert "$db" b --to outlier --quiet
expect 0 remove "$db" b p1 --id 1
expect 1 convert "$db" b --to outlier
has err "1 owner has more in 'b.outlier' than in 'b': it may be the only complete copy"
expect 4 convert "$db" b --to outlier --finish --yes
has err "'b' is kept: 1 of its owners are not the same in 'b.outlier'"
has err "drop nothing there"
expect 0 export "$db" b p1
[ "$(wc -l <out)" = 2 ] || fail "b no longer has its two elements"
expect 0 drop "$db" b.outlier p1 --yes # the reason is known
until_done convert "$db" b --as b.outlier --finish --yes
expect 0 convert "$db" b --to outlier --finish --yes
has err "'b' no longer exists"
expect 0 export "$db" b.outlier p1
[ "$(wc -l <out)" = 2 ] || fail "b.outlier does not have the two elements of b"
clean "$db"
