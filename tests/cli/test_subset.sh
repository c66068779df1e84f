#!/usr/bin/env bash
# Layout subset: the head's summary has the top-N elements or the newest ones.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; messages have backticks
source "$(dirname "$0")/lib.sh"

# tops NAME OWNER NUMBERS: the summary has exactly these numbers, in the order of `read --top`.
tops() {
    local name=$1 owner=$2 expected=$3
    expect 0 read "$db" "$name" "$owner" --top --limit 1000
    [ "$(cut -f1 out | paste -sd' ')" = "$expected" ] ||
        fail "the top of $owner is $(cut -f1 out | paste -sd' '), not $expected"
}

# ---- ordinary use --------------------------------------------------------------------------------

new_store
expect 0 define "$db" reviews --preset reviews-subset
has out 'reviews: subset, keep newest, threshold 1, page 100'
has out 'topReviews has the 3 highest by rating'
for rating in 5 3 4 1 5; do
    expect 0 append "$db" reviews p1 "{\"customerName\": \"c$rating\", \"rating\": $rating}"
done
tops reviews p1 '4 0 2'
expect 0 read "$db" reviews p1 --top --limit 1 --json
is out '{"seq":4,"element":{ "customerName" : "c5", "rating" : 5 }}'
expect 0 export "$db" reviews p1 --documents --plain --relaxed
has out '"reviewSummary" : { "topReviews" : [ { "customerName" : "c5", "rating" : 5 }, { "customerName" : "c5", "rating" : 5 }, { "customerName" : "c4", "rating" : 4 } ], "totalCount" : 5, "averageRating" : 3.6'
expect 0 remove "$db" reviews p1 4
tops reviews p1 '0 2 1'
expect 0 edit "$db" reviews p1 3 '{"rating": 4.5}'
tops reviews p1 '0 3 2'
expect 0 edit "$db" reviews p1 2 '{"customerName": "c7", "rating": 4}' # its rank does not change
expect 0 read "$db" reviews p1 --top
has out '"c7"'
expect 0 verify "$db" reviews
expect 0 edit "$db" reviews p1 0 '{"title": "no rating"}'
tops reviews p1 '3 2 1'
expect 0 trim "$db" reviews p1 --below 2
tops reviews p1 '3 2'
counts "$db" reviews p1 2
expect 0 explain "$db" reviews p1
has out 'the 3 highest by rating: the head'
has out '2 of 2 elements shown, '
expect 0 explain "$db" reviews p1 --json
has out '"top":2,"topShown":2,'
expect 3 read "$db" reviews nobody --top
clean "$db"

# ---- elements rank by a part of their own _id ----------------------------------------------------

expect 0 define "$db" keyed --preset reviews-subset --collection shops --page-collection keyedNotes \
    --id-field _id --sort-by _id.n --time-field ''
for n in 3 9 1 7 5 8; do
    echo "{\"_id\": {\"n\": $n}, \"x\": $n}"
done | "$SPILLWAY" append "$db" keyed o - >out 2>err || fail "append: $?"
tops keyed o '1 5 3'
expect 0 remove "$db" keyed o --id '{"n": 9}'
expect 0 edit "$db" keyed o --id '{"n": 8}' '{"x": 8, "_id": {"n": 0}}'
tops keyed o '3 4 0'
expect 0 read "$db" keyed o --limit 1
is out '5	{ "x" : 8, "_id" : { "n" : 0 } }'
clean "$db"
expect 0 drop "$db" keyed --yes

# ---- refused calls -------------------------------------------------------------------------------

expect 4 define "$db" reviews --top 5
has err 'topCount cannot change from 3 to 5'
expect 2 define "$db" other --preset reviews-subset --top 0
expect 2 define "$db" other --preset reviews-subset --top-field ''
expect 2 define "$db" other --preset feed --top 3
expect 2 define "$db" other --preset reviews-separate --sort-by rating
has err "belong to layout 'subset'"
expect 2 read "$db" reviews p1 --top --before 3
expect 2 append "$db" reviews p1 '"good"'
expect 0 drop "$db" reviews p1 --yes
clean "$db"

# ---- many, of several kinds, and to another layout and back --------------------------------------

for i in {0..299}; do
    echo "{\"productId\": \"p$((i % 3))\", \"rating\": $((i * 7919 % 1009)), \"i\": $i}"
done >reviews.ndjson
expect 0 import "$db" reviews reviews.ndjson --owner productId
python3 - reviews.ndjson <<'END' >expected
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
ranked = sorted(rows[1::3], key=lambda row: -row["rating"])
print(" ".join(str(row["i"] // 3) for row in ranked[:3]))
END
tops reviews p1 "$(cat expected)"
expect 0 convert "$db" reviews --to reference --as referenced
expect 2 read "$db" referenced p1 --top
has err "its layout is 'reference', not 'subset'"
expect 0 define "$db" best --preset reviews-subset --top 3 --collection best --page-collection \
    best.reviews --quiet
expect 0 convert "$db" referenced --as best
tops best p1 "$(cat expected)"
expect 0 convert "$db" best --to outlier --as arrays
expect 0 convert "$db" arrays --to subset --as newest
tops newest p1 '99 98 97'
expect 0 export "$db" reviews
sort out >before
for name in referenced best arrays newest; do
    expect 0 export "$db" "$name"
    sort out | cmp -s - before || fail "the arrays of $name differ from those of reviews"
done
clean "$db"

# ---- elements that do not fit in the summary -----------------------------------------------------

# The summary may have half of 32 KiB. Of elements of 5, 12 and 5 KB only the first is in it. After the
# element of 12 KB is removed, made small or trimmed, the others are too.
sized() { # owner rating bytes
    printf '{"rating": %d, "text": "%s"}\n' "$2" "$(head -c "$3" /dev/zero | tr '\0' x)" >review
    expect 0 append "$db" small "$1" - <review
}
shown() { # owner ratings
    expect 0 read "$db" small "$1" --top --json
    sed 's/.*"rating" : \([0-9]*\).*/\1/' out | tr "\n" " " >ratings
    [ "$(cat ratings)" = "$2 " ] || fail "the summary of $1 shows $(head -c 80 ratings), not $2"
}
expect 0 define "$db" small --preset reviews-subset --collection things --page-collection thingReviews \
    --max-bytes 32768
for owner in removed edited trimmed; do
    sized "$owner" 4 12000
    sized "$owner" 5 5000
    sized "$owner" 3 5000
    sized "$owner" 2 100
    shown "$owner" 5
done
has err 'the summary has room for 1 of the elements that rank highest, in half of 32768 bytes'
expect 0 explain "$db" small trimmed
has out '1 of 3 elements shown, '
sized none 9 17000
expect 0 read "$db" small none --top
is out ''
has err 'the summary has room for 0 of'
has err 'make room with `define --max-bytes` and a larger number, then `repair`'
expect 0 read "$db" small none --top --quiet
is err ''
expect 0 remove "$db" small removed 0
shown removed '5 3 2'
expect 0 edit "$db" small edited 0 '{"rating": 4}'
shown edited '5 4 3'
expect 0 trim "$db" small trimmed --below 1
shown trimmed '5 3 2'
clean "$db"
