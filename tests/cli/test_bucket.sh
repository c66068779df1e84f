#!/usr/bin/env bash
# Layout bucket: windows, statistics, and options that it refuses.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars in it
source "$(dirname "$0")/lib.sh"

review() { # RATING TIME
    echo "{\"rating\": $1, \"createdAt\": {\"\$date\": \"$2T10:00:00Z\"}}"
}

new_store
expect 2 define "$db" r --layout outlier --window day
has err "layout 'bucket'"
expect 2 define "$db" r --preset reviews-bucket --window moment
expect 0 define "$db" reviews --preset reviews-bucket --page 3
has out "bucket by month, part 3 elements"
has out "statistics of rating; times at createdAt"
expect 4 define "$db" more --preset reviews-bucket
has err "its buckets would be in 'reviewBuckets', where the other has its buckets; give it another"
expect 4 define "$db" feed --preset feed-recent --collection reviewBuckets
has err "its heads would be in 'reviewBuckets', where the other has its buckets"
expect 0 append "$db" reviews bike "$(review 5 2026-03-01)" "$(review 4 2026-03-05)" \
    "$(review 2.5 2026-04-05)" "$(review '"x"' 2026-04-06)"
is out $'2026-03:0..1\n2026-04:0..1'
expect 4 define "$db" reviews --value-field stars
has err "valueField cannot change"
expect 0 append "$db" reviews bike "$(review 1 2026-03-01)" "$(review 3 2026-03-02)" --json
is out '{"window":"2026-03","first":2,"count":2,"repeated":false}'
expect 0 append "$db" reviews car "$(review 1 2025-01-01)" --op a
is err a@0
expect 0 append "$db" reviews car "$(review 1 2025-01-01)" --op a@0
has err "was applied before"
expect 2 append "$db" reviews car "$(review 1 2025-01-01)" "$(review 1 2025-02-01)" --op b
has err "an operation must be in one"
expect 2 append "$db" reviews car '{"rating": 1}'
has err "no time at 'createdAt'"

expect 0 read "$db" reviews bike --limit 3
is err ''
[ "$(cut -f1 out | tr '\n' ' ')" = "2026-04:1 2026-04:0 2026-03:3 " ] || fail "read: $(cat out)"
on_terminal 100 read "$db" reviews bike --limit 3
has out "next: --limit 3 --cursor '2026-03:3'"
expect 0 read "$db" reviews bike --cursor 2026-03:3 --json
[ "$(grep -c window out)" = 3 ] || fail "the rest of a read: $(cat out)"
expect 0 read "$db" reviews bike --from 2026-03-02 --to 2026-04-06 --oldest
[ "$(cut -f1 out | tr '\n' ' ')" = "2026-03:1 2026-03:3 2026-04:0 " ] || fail "read: $(cat out)"
expect 2 read "$db" reviews bike --from yesterday
expect 2 read "$db" reviews bike --from 2026-02-30
expect 2 read "$db" reviews bike --before 5
expect 0 count "$db" reviews bike
is out '{"owner":"bike","count":6,"windows":2}'
expect 0 stats "$db" reviews bike
has out "2026-03: 4 elements, 4 values, sum 13, average 3.25, min 1, max 5, in 2 parts"
has out "2026-04: 2 elements, 1 value, sum 2.5, average 2.5, min 2.5, max 2.5"
has out "in all 2 windows: 6 elements, 5 values, sum 15.5, average 3.1, min 1, max 5"
expect 0 stats "$db" reviews bike --json
has out '{"window":"2026-03","parts":2,"count":4,"values":4,"sum":13,"average":3.25,"min":1,"max":5}'
expect 0 stats "$db" reviews
has out "reviews: 2 owners, 7 elements"

expect 0 edit "$db" reviews bike 2026-03:0 "$(review -4 2026-03-09)"
expect 2 edit "$db" reviews bike 2026-03:0 "$(review -4 2026-04-09)"
expect 2 edit "$db" reviews bike 0 "$(review -4 2026-03-09)"
has err "WINDOW:SEQ"
expect 0 remove "$db" reviews bike 2026-03:1
expect 0 stats "$db" reviews bike
has out "2026-03: 3 elements, 3 values, sum 0, average 0, min -4, max 3, in 2 parts"
expect 0 explain "$db" reviews bike
has out "2026-03: 3 elements in 2 parts; the next sequence number is 4"
has out "part 1 "
expect 0 export "$db" reviews bike --relaxed
has out '{"owner":"bike","window":"2026-03","seq":3,'
[ "$(grep -c . out)" = 5 ] || fail "export: $(cat out)"
expect 0 export "$db" reviews bike --documents --plain --relaxed
has out '{ "productId" : "bike", "month" : "2026-04", "reviews" : [ { "rating" : 2.5'
has out '"stats" : { "count" : 2, "averageRating" : 2.5, "sum" : 2.5, "min" : 2.5, "max" : 2.5 } },"definition":'
clean "$db"

cat >more.ndjson <<'END'
{"product": "bike", "rating": 9, "createdAt": {"$date": "2026-04-30T23:59:59.999Z"}}
{"product": "bike", "rating": 8, "createdAt": {"$date": "2026-05-01T00:00:00Z"}}
{"product": "boat", "rating": 7, "createdAt": {"$oid": "65e5d9000000000000000000"}}
{"product": "boat", "rating": 7}
END
expect 3 import "$db" reviews more.ndjson --owner product
has err "more.ndjson:4"
sed -i '$d' more.ndjson
expect 0 import "$db" reviews more.ndjson --owner product --again --as again
expect 0 stats "$db" reviews bike
has out "2026-05: 2 elements, 2 values, sum 16"
expect 0 count "$db" reviews boat
has out '"count":2,"windows":1'

expect 2 trim "$db" reviews bike --below 1
has err "--windows-before"
expect 0 trim "$db" reviews bike --older-than 2026-03-01
expect 0 count "$db" reviews bike
has out '"windows":3'
expect 2 define "$db" reviews --retain-elements 5
expect 0 remove "$db" reviews bike --where '{"rating": 1000}'
is out 0
expect 2 remove "$db" reviews bike --id 5
expect 0 trim "$db" reviews bike --windows-before 2026-04
expect 0 count "$db" reviews bike
has out '"windows":2'
expect 0 drop "$db" reviews bike --yes
for command in count read stats export explain repair remove; do
    filter=()
    [ "$command" = remove ] && filter=(--where '{"rating": 1}')
    expect 3 "$command" "$db" reviews bike "${filter[@]}"
    has err "'reviews' has no owner \"bike\""
done
expect 3 drop "$db" reviews bike --yes
clean "$db"
expect 0 convert "$db" reviews --to reference --quiet
has out '"owners":2,"elements":3,"before":0,"verified":3,'
expect 0 define "$db" reviews.reference --json
has out '"valueField" : "rating"'
expect 0 drop "$db" reviews.reference --yes

# Ids, filters, trims and retention over all windows.
expect 0 define "$db" visits --preset reviews-bucket --collection visits --window day --threshold 2 \
    --id-field n --order newest-first
for i in 1 2 3 4 5 6 7 8 9; do
    echo "{\"n\": $i, \"rating\": $i, \"createdAt\": {\"\$date\": \"2026-01-0$(((i + 3) / 4))T0$i:00:00Z\"}}"
done | "$SPILLWAY" append "$db" visits shop - >out 2>err || fail "append of visits: $?"
expect 0 export "$db" visits shop --documents --plain --relaxed
has out '"reviews" : [ { "n" : 2, '
expect 0 edit "$db" visits shop --id 6 \
    '{"n": 6, "rating": 60, "createdAt": {"$date": "2026-01-02T06:00:00Z"}}'
expect 2 edit "$db" visits shop --id 6 '{"n": 6, "createdAt": {"$date": "2026-01-03T06:00:00Z"}}'
expect 0 remove "$db" visits shop --id 7
is out "2026-01-02:2"
expect 3 remove "$db" visits shop --id 7
expect 0 remove "$db" visits shop --where '{"rating": {"$gt": 7}}' --limit 2
is out 2
expect 0 stats "$db" visits shop
has out "2026-01-02: 1 element, 1 value, sum 5,"
expect 0 trim "$db" visits shop --keep 4
has out "2026-01-0"
for how in "--keep 4" "--older-than 2026-03-01" "--windows-before 2026-03-01"; do
    # shellcheck disable=SC2086 # two words
    expect 3 trim "$db" visits nobody $how
    has err "'visits' has no owner \"nobody\""
done
expect 0 count "$db" visits shop
has out '"count":4,'
expect 0 trim "$db" visits shop --older-than 2026-01-02T04:30:00Z
expect 0 stats "$db" visits shop
has out "in all 2 windows: 2 elements, 2 values, sum 14,"
clean "$db"
expect 2 define "$db" visits --window field --window-source n --retain-age 1d --time-field ''
expect 0 define "$db" visits --retain-age 30d
expect 0 append "$db" visits shop "{\"n\": 10, \"createdAt\": {\"\$date\": {\"\$numberLong\": \"$(date +%s)000\"}}}"
expect 0 count "$db" visits shop
has out '"windows":'
expect 0 drop "$db" visits --yes
clean "$db"

# Windows named by a field, without statistics, in a separate collection.
expect 0 define "$db" seasons --layout bucket --collection visits --array seen --window field \
    --window-source season --window-field season --stats-field '' --value-field '' --time-field ''
expect 0 append "$db" seasons park '{"season": "2026-2", "n": 1}' '{"season": "2026-1", "n": 2}'
expect 0 read "$db" seasons park --from 2026-2
has out "2026-2:0"
[ "$(grep -c . out)" = 1 ] || fail "read of windows of a field: $(cat out)"
expect 0 export "$db" seasons --documents --plain --relaxed
has out '{ "productId" : "park", "season" : "2026-1", "seen" : [ { "season" : "2026-1", "n" : 2 } ] },"definition":'
expect 0 drop "$db" seasons --yes
clean "$db"

# ---- a name that is not a window drops nothing ---------------------------------------------------

expect 0 define "$db" monthly --preset reviews-bucket --collection monthlyReviews
for month in 01 06 11; do
    expect 0 append "$db" monthly bike "{\"rating\": 3, \"createdAt\": {\"\$date\": \"2026-$month-05T10:00:00Z\"}}"
done
for window in 2026-6 'march 2020' 2026-13 2026-06-05 2027; do
    expect 2 trim "$db" monthly bike --windows-before "$window"
    has err "2026-03"
done
counts "$db" monthly bike 3
expect 0 trim "$db" monthly bike --windows-before 2026-06
counts "$db" monthly bike 2
