#!/usr/bin/env bash
# Layout reference: elements in a separate collection, with their count and average in the head.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; names of fields begin with $
source "$(dirname "$0")/lib.sh"

# ---- ordinary use --------------------------------------------------------------------------------

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

# ---- refused calls -------------------------------------------------------------------------------

expect 2 append "$db" reviews p1 '"good"'
has err "must be a document"
for field in spill productId elementId; do
    expect 2 append "$db" reviews p1 "{\"$field\": 1}"
    has err "cannot have a field '$field'"
done
expect 2 edit "$db" reviews p1 2 '5'
expect 2 define "$db" other --preset reviews-separate --page-array elements
has err "does not use pageArray"
expect 2 define "$db" other --layout reference --keep oldest
expect 2 define "$db" other --preset feed --value-field rating
counts "$db" reviews p1 2
expect 0 drop "$db" reviews p1 --yes
clean "$db"

# ---- elements that have an _id -------------------------------------------------------------------

one=65a000000000000000000001
two=65a000000000000000000002
expect 2 define "$db" own --preset reviews-separate --element-id-field productId
has err "same name, 'productId'"
expect 2 define "$db" own --preset feed --element-id-field elementId
expect 0 define "$db" own --preset reviews-separate --id-field _id --collection shops \
    --page-collection notes --time-field _id
has out '_id of elements in elementId; ids at _id'
{
    echo "{\"x\": 1, \"_id\": {\"\$oid\": \"$one\"}, \"rating\": 2}"
    echo "{\"_id\": {\"\$oid\": \"$two\"}, \"rating\": 3}"
    echo '{"$cost": 1, "": 2, "a.b": 3, "_id": [1]}'
} >own.ndjson
"$SPILLWAY" append "$db" own o --op first@0 - <own.ndjson >out 2>err || fail "append: $?"
"$SPILLWAY" append "$db" own o --op first@0 - <own.ndjson >out 2>err || fail "append: $?"
counts "$db" own o 3
expect 0 read "$db" own o --oldest
is out "0	{ \"x\" : 1, \"_id\" : { \"\$oid\" : \"$one\" }, \"rating\" : 2 }
1	{ \"_id\" : { \"\$oid\" : \"$two\" }, \"rating\" : 3 }
2	{ \"\$cost\" : 1, \"\" : 2, \"a.b\" : 3, \"_id\" : [ 1 ] }"
expect 0 export "$db" own o --documents --plain --relaxed
has out "\"productId\" : \"o\", \"x\" : 1, \"elementId\" : { \"\$oid\" : \"$one\" }, \"rating\" : 2 }"
expect 0 edit "$db" own o --id "{\"\$oid\": \"$two\"}" \
    "{\"rating\": 5, \"\$new\": 1, \"_id\": {\"\$oid\": \"$two\"}}"
expect 0 edit "$db" own o 2 '{"_id": {"n": 7}, "$new": 2}'
expect 0 read "$db" own o --limit 2
is out "2	{ \"_id\" : { \"n\" : 7 }, \"\$new\" : 2 }
1	{ \"rating\" : 5, \"\$new\" : 1, \"_id\" : { \"\$oid\" : \"$two\" } }"
expect 2 edit "$db" own o 2 '{"elementId": 1}'
has err 'define another --element-id-field'
expect 0 export "$db" own
cp out own.before
expect 0 stats "$db" own
expect 0 explain "$db" own o
expect 0 repair "$db" own --dry-run
# Converted to arrays, to a subset with another name, and back.
expect 0 convert "$db" own --to outlier --as own.arrays
expect 0 define "$db" own.subset --preset reviews-subset --element-id-field noteId \
    --collection own.subset --page-collection own.subset.pages
expect 0 convert "$db" own.arrays --as own.subset
expect 0 read "$db" own.subset o --top --limit 1
has out "1	{ \"rating\" : 5, \"\$new\" : 1, \"_id\" : { \"\$oid\" : \"$two\" } }"
expect 0 export "$db" own.subset o --documents --plain --relaxed
has out "\"topReviews\" : [ { \"rating\" : 5, \"\$new\" : 1, \"_id\" : { \"\$oid\" : \"$two\" } }"
has out "\"productId\" : \"o\", \"rating\" : 5, \"\$new\" : 1, \"noteId\" : { \"\$oid\" : \"$two\" } }"
expect 0 convert "$db" own.subset --to reference --as own.back
for name in own.subset own.back; do
    expect 0 export "$db" "$name"
    cmp -s out own.before || fail "the elements of $name differ from those of own"
done
expect 0 remove "$db" own o --where '{"_id.n": 7}'
expect 0 remove "$db" own o --id "{\"\$oid\": \"$one\"}"
expect 3 remove "$db" own o --id "{\"\$oid\": \"$one\"}"
counts "$db" own o 1
expect 0 trim "$db" own o --older 1h # the time of the element's _id
counts "$db" own o 0
clean "$db"

# A definition saved without an id field has none: its elements may have a field with the default name.
expect 0 define "$db" older --preset reviews-separate --element-id-field '' --collection olds \
    --page-collection oldNotes
expect 2 append "$db" older o '{"_id": 1}'
has err 'has no elementIdField'
expect 0 append "$db" older o '{"elementId": 1}'
expect 0 define "$db" older --preset reviews-separate --collection olds --page-collection oldNotes
expect 2 append "$db" older o '{"_id": 1}'
expect 4 define "$db" older --element-id-field elementId
has err "elementIdField cannot change from '' to 'elementId'"
expect 0 read "$db" older o
is out '0	{ "elementId" : 1 }'
expect 2 convert "$db" older --to subset --as newer
has err "owner \"o\""
has err "element 0: an element of 'newer' cannot have a field 'elementId'"

# ---- records that cannot be stored ---------------------------------------------------------------

for i in {1..400}; do
    echo "{\"shop\": \"s$((i % 5))\", \"_id\": {\"\$oid\": \"$(printf '%024x' "$i")\"}, \"rating\": $((i % 7))}"
done >good.ndjson
{
    sed -n 1,300p good.ndjson
    echo '{"shop": "s0", "spill": 1}'
    sed -n 301,350p good.ndjson
    echo '{"shop": "s1", "productId": 1}'
    echo '{"shop": "s2", "elementId": 1}'
    sed -n 351,400p good.ndjson
} >bad.ndjson
expect 0 define "$db" imported --preset reviews-separate --collection shopsIn \
    --page-collection notesIn --id-field _id
# A file is checked before anything is written; `--skip-bad` skips as many as it says.
for file in bad.ndjson bad.ndjson.gz; do
    [ -e $file ] || gzip -k bad.ndjson
    expect 3 import "$db" imported $file --owner shop
    has err "$file:301: an element of 'imported' cannot have a field 'spill'"
    [ "$(wc -l <err)" = 1 ] || fail "the refusal has more than one line: $(cat err)"
    expect 3 import "$db" imported $file --owner shop --skip-bad=2
    has err "$file:353: an element of 'imported' cannot have a field 'elementId'"
    expect 3 import "$db" imported - --as bad --format "${file#bad.}" --owner shop <$file
    has err "stdin:301: an element of 'imported' cannot have a field 'spill'"
    expect 3 count "$db" imported s0
done
# Bad records of other kinds count, and the import reports them.
{
    sed -n 1,10p good.ndjson
    echo '{"shop": '
    echo '{"rating": 1}'
    echo '{"shop": "s0", "spill": 1}'
} >malformed.ndjson
expect 3 import "$db" imported malformed.ndjson --owner shop --skip-bad=2
has err "malformed.ndjson:13: an element"
expect 3 count "$db" imported s0
expect 0 define "$db" malformed --preset reviews-separate --collection malformed \
    --page-collection malformedNotes
expect 3 import "$db" malformed malformed.ndjson --owner shop --skip-bad=1
has err "malformed.ndjson:13: an element"
expect 3 import "$db" malformed <(sed -n 1,12p malformed.ndjson) --format ndjson --as head --owner shop
has err ":11:"
has err '10 records are imported; after removing the cause, run the same command to continue'
sed -n 1,12p malformed.ndjson >fixed.ndjson
expect 3 import "$db" malformed fixed.ndjson --as head --owner shop --skip-bad=1
has err "fixed.ndjson:12:"
# What was imported is not checked again, and the rest is checked before more is written.
sed '301d;352,353d' bad.ndjson >grown.ndjson
sed -n 1,100p good.ndjson >part.ndjson
expect 0 define "$db" grown --preset reviews-separate --collection grown --page-collection grownNotes
expect 0 import "$db" grown part.ndjson --as grown --owner shop
sed -n 1,353p bad.ndjson >part.ndjson
expect 3 import "$db" grown part.ndjson --as grown --owner shop
has err "part.ndjson:301: an element"
has err '100 records are imported; after removing the cause, run the same command to continue'
counts "$db" grown s0 20
expect 0 import "$db" grown grown.ndjson --as grown --owner shop --json
has out '"records":300,"repeated":0,"skipped":0,"before":100'
# A pipe cannot be read twice: the records before the bad one are imported.
expect 3 import "$db" imported <(cat bad.ndjson) --format ndjson --as bad --owner shop
has err ":301: an element of 'imported' cannot have a field 'spill'"
has err '300 records are imported; after removing the cause, run the same command to continue'
expect 3 import "$db" imported bad.ndjson --as bad --owner shop --skip-bad=2
has err "bad.ndjson:353: an element of 'imported' cannot have a field 'elementId'"
has err '300 records are imported'
expect 0 import "$db" imported bad.ndjson --as bad --owner shop --skip-bad --json
has out '"records":100,'
has out '"skipped":3,"before":300'
for shop in s0 s1 s2 s3 s4; do
    counts "$db" imported "$shop" 80
done
expect 0 remove "$db" imported s1 --id "{\"\$oid\": \"$(printf '%024x' 396)\"}"
is out 79
# The owner field of the records may be the owner field of the documents, or their own _id.
echo '{"productId": "p7", "_id": 1}' >own.ndjson
expect 0 import "$db" imported own.ndjson --owner productId
echo '{"_id": "p8", "rating": 1}' >named.ndjson
expect 0 import "$db" imported named.ndjson --owner _id
expect 0 read "$db" imported p8
is out '0	{ "_id" : "p8", "rating" : 1 }'
clean "$db"

# ---- ids and retention ---------------------------------------------------------------------------

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
    sort out | cmp -s - before || fail "the arrays of $name differ from those of reviews"
done
clean "$db"
expect 0 append "$db" arrays p9 '{"rating": 1}' 5
expect 2 convert "$db" arrays --to reference --as again
has err 'owner "p9"'
has err "element 1: an element of 'again' must be a document"
# The refused element is found before anything is written: another owner comes first.
expect 0 define "$db" mixed --preset feed --collection mixed --page-collection mixed.pages
expect 0 append "$db" mixed a '{"_id": 1}' '{"_id": 2}'
expect 0 append "$db" mixed b '{"_id": 1}' '{"spill": 1}'
for layout in reference subset; do
    for dry in --dry-run --quiet; do
        expect 2 convert "$db" mixed --to $layout $dry
        has err "owner \"b\" of 'mixed': element 1: an element of 'mixed.$layout' cannot have a field 'spill'"
        expect 3 define "$db" mixed.$layout
    done
done
expect 0 remove "$db" mixed b 1
expect 0 convert "$db" mixed --to reference --dry-run
expect 0 convert "$db" mixed --to reference
expect 0 append "$db" mixed a '{"_id": 3}'
expect 0 append "$db" mixed b '{"_id": 3}' '{"spill": 1}'
expect 2 convert "$db" mixed --to reference
has err 'owner "b"'
has err 'element 3:'
expect 2 convert "$db" mixed --as mixed.reference --finish --yes
counts "$db" mixed.reference a 2
counts "$db" mixed.reference b 1
expect 0 remove "$db" mixed b 3
expect 0 convert "$db" mixed --as mixed.reference --finish --yes
counts "$db" mixed.reference a 3
clean "$db"
