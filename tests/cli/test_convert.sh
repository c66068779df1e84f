#!/usr/bin/env bash
# Arrays that are laid out in another way, within a store: what it says, what it refuses, conversions
# that are killed and started again, and the end of the old documents.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
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

# same NAME : the arrays are those that there were before.
same() {
    expect 0 export "$db" "$1"
    sort out | cmp -s - before || fail "the arrays of $1 are not those of ev"
}

# ---- killed, and started again -------------------------------------------------------------------

until_done convert "$db" ev --keep oldest --as old
same old
same ev
clean "$db"
expect 0 define "$db" old
has out 'keep oldest, threshold 50, page 40'
has out 'old.activities, pages in old.pages'

# ---- what it says and refuses --------------------------------------------------------------------

expect 0 convert "$db" ev --keep oldest --as old
has out '"elements":0,'
has err "'ev' is as it was"
has err "--as old --finish"
expect 2 convert "$db" ev
has err "--to LAYOUT"
expect 2 convert "$db" ev --to tree
has err "there is no layout 'tree'; the layouts are: outlier, capped, reference, subset, bucket"
expect 2 convert "$db" ev --keep both
has err "--keep is 'newest' or 'oldest'"
expect 2 convert "$db" ev --as ev
has err "cannot be converted into itself"
expect 2 convert "$db" ev --to outlier --as 'a b'
has err "name 'a b' must"
expect 4 convert "$db" ev --keep newest --as old
has err "definition 'old' is there, and keeps the oldest"
expect 3 convert "$db" nothing --keep oldest
has err "there is no definition 'nothing'"
expect 3 convert "$db" ev --keep oldest --as none --finish --yes
has err "there is no definition 'none'"
expect 2 convert "$db" ev --as old --finish --no-verify
has err "--finish compares first"
expect 2 convert "$db" ev --as old --finish
has err "give --yes"
expect 0 convert "$db" ev --to outlier --threshold 7 --page 9 # its name follows from the layout
expect 0 define "$db" ev.outlier
has out 'keep newest, threshold 7, page 9'
same ev.outlier

# A definition that is there already, with names of its own.
expect 0 define "$db" mine --preset sales --threshold 5 --page 11
expect 0 convert "$db" ev --as mine --quiet
is err ""
same mine
expect 0 export "$db" mine u3 --documents --plain
has out '"customers_purchased_extra"'

# ---- differences ---------------------------------------------------------------------------------

expect 0 edit "$db" ev u4 300 '{"edited": true}'
expect 1 convert "$db" ev --as old --quiet
has out 'ev: owner "u4", element 300: the target'"'"'s element is another one'
expect 4 convert "$db" ev --as old --finish --yes
has err "'ev' is kept: 1 of its owners"
counts "$db" ev u4 "$(grep -c '"u4"' before)"
expect 0 drop "$db" old u4 --yes
expect 0 convert "$db" ev --as old --quiet
expect 0 export "$db" ev
sort out >before
same old

# ---- the end of the old documents ----------------------------------------------------------------

expect 0 append "$db" ev u5 '{"late": 1}'
expect 0 export "$db" ev
sort out >before
until_done convert "$db" ev --as old --finish --yes
same old
expect 0 convert "$db" ev --as old --finish --yes # as it may be found after a crash
has err "'ev' is not there any more"
expect 3 convert "$db" ev --as old
has err "there is no definition 'ev'"
expect 3 count "$db" ev u5
has err "there is no definition 'ev'"
clean "$db"
expect 0 append "$db" old u5 '{"later": 1}'
has out "$(($(sed -n 's/.*"owner":"u5","seq":\([0-9]*\),.*/\1/p' before | sort -n | tail -1) + 1))"
