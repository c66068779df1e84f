#!/usr/bin/env bash
# Layout reference: elements in a collection of their own, their number and average in the head.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

# ---- what it does --------------------------------------------------------------------------------

new_store
expect 0 define "$db" reviews --preset reviews-separate
has out 'reviews: reference, keep newest, threshold 1, page 100'
for rating in 5 4 3 1; do
    expect 0 append "$db" reviews p1 "{\"customerName\": \"c$rating\", \"rating\": $rating}"
done
expect 0 count "$db" reviews p1
is out '{"owner":"p1","count":4,"head":0,"pages":4,"values":4,"sum":13,"average":3.25}'
expect 0 export "$db" reviews p1 --documents --relaxed
has out '"reviewSummary" : { "totalCount" : 4, "averageRating" : 3.25 }'
has out '"productId" : "p1", "customerName" : "c5", "rating" : 5, "spill"'
expect 0 edit "$db" reviews p1 1 '{"customerName": "c4", "rating": 4.5}'
expect 0 remove "$db" reviews p1 3
expect 0 append "$db" reviews p1 '{"customerName": "none"}'
expect 0 count "$db" reviews p1
is out '{"owner":"p1","count":4,"head":0,"pages":4,"values":3,"sum":12.5,"average":4.166666666666667}'
expect 0 read "$db" reviews p1 --limit 2 --json
has out '{"seq":4,"element":{ "customerName" : "none" }}'
has out '{"seq":2,"element":{ "customerName" : "c3", "rating" : 3 }}'
expect 0 trim "$db" reviews p1 --below 2
counts "$db" reviews p1 2
expect 0 explain "$db" reviews p1
has out 'count and average: the head'
clean "$db"

# ---- what it refuses -----------------------------------------------------------------------------

expect 2 append "$db" reviews p1 '"good"'
has err "has to be a document"
for field in _id spill productId; do
    expect 2 append "$db" reviews p1 "{\"$field\": 1}"
    has err "cannot have a field '$field'"
done
expect 2 edit "$db" reviews p1 2 '5'
expect 2 define "$db" other --preset reviews-separate --page-array elements
has err 'has no pageArray'
expect 2 define "$db" other --layout reference --keep oldest
expect 2 define "$db" other --preset feed --value-field rating
counts "$db" reviews p1 2
expect 0 drop "$db" reviews p1 --yes
clean "$db"

# ---- ids, and what is kept -----------------------------------------------------------------------

expect 2 define "$db" events --preset reviews-separate --order newest-first
has err 'no array whose order'
expect 2 define "$db" events --preset reviews-separate --id-field productId.of
has err "no element has it"
expect 0 define "$db" events --preset reviews-separate --collection owners \
    --page-collection events --page 10 --id-field n --retain-elements 25
for i in {1..60}; do
    echo "{\"n\": $i, \"rating\": $((i % 5))}"
done | "$SPILLWAY" append "$db" events o --op all - >out 2>err || fail "append: $?"
expect 0 count "$db" events o
kept=$(sed 's/.*"count":\([0-9]*\),.*/\1/' out)
if [ "$kept" -lt 25 ] || [ "$kept" -gt 35 ]; then
    fail "$kept elements were kept, not 25 to 35"
fi
expect 0 edit "$db" events o --id 50 '{"n": 500, "rating": 100}'
expect 0 read "$db" events o --before 50 --limit 1
has out '"n" : 500, "rating" : 100'
expect 0 remove "$db" events o --id 59
is out "58"
expect 3 remove "$db" events o --id 59
expect 3 remove "$db" events o --id 1
clean "$db"
expect 0 define "$db" events --retain-elements 0 --retain-age 1h
expect 0 drop "$db" events --yes

# ---- to another layout and back ------------------------------------------------------------------

for i in {1..300}; do
    echo "{\"productId\": \"p$((i % 3))\", \"rating\": $((i % 5)), \"i\": $i}"
done >reviews.ndjson
expect 0 import "$db" reviews reviews.ndjson --owner productId
counts "$db" reviews p0 100
has out '"sum":200,"average":2'
expect 0 remove "$db" reviews p0 50
expect 0 export "$db" reviews
sort out >before
expect 0 convert "$db" reviews --to outlier --as arrays
expect 0 convert "$db" arrays --to reference --as again
for name in arrays again; do
    expect 0 export "$db" "$name"
    sort out | cmp -s - before || fail "the arrays of $name are not those of reviews"
done
clean "$db"
expect 0 append "$db" arrays p9 '{"rating": 1}' 5
expect 2 convert "$db" arrays --to reference --as again
has err 'owner "p9"'
has err "element 1: an element of 'again' has to be a document"
