#!/usr/bin/env bash
# Import what `export` writes: every layout, with the numbers of the elements, byte for byte; also killed,
# repeated, continued, and refused.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars in it
source "$(dirname "$0")/lib.sh"
seed_random

# Two stores at the same time: `source` is exported, `db` imports.
new_source() {
    new_store
    source=$db
    if on_server; then
        cp db.uri source.uri
        source=@source.uri
    else
        rm -rf source
        source=source
    fi
}

new_target() {
    new_store
    # shellcheck disable=SC2086
    expect 0 define "$db" ev $1 --quiet
}

# same: the target exports what the source exports.
same() {
    expect 0 export "$db" ev
    cmp -s out export.ndjson || {
        fail "$1: the target exports something else"
        diff out export.ndjson | head -5 >&2
    }
    clean "$db"
}

for i in {1..90}; do
    echo "{\"_id\": $i, \"by\": \"u$((i % 3))\", \"at\": {\"\$date\": \"2026-0$((i / 60 + 1))-01T00:00:00Z\"}, \"x\": $((i * 7 % 10)).5}"
done >events.ndjson

# round_trip_documents LAYOUT: what `export --documents` writes of the source makes the same elements, numbers and
# other fields; without bookkeeping, the same elements in order.
round_trip_documents() {
    if [[ $1 != *bucket* ]]; then
        expect 0 update "$source" ev u1 '{"$set": {"name": "Ada", "stats.theme": [1, {"a": null}]}}'
        expect 0 update "$source" ev u2 '{"$set": {"stats.other": {"$numberLong": "5"}}}'
    fi
    expect 0 export "$source" ev --documents
    mv out documents.ndjson
    expect 0 export "$source" ev --documents --plain
    mv out plain.ndjson
    new_target "$1"
    expect 0 import "$db" ev documents.ndjson --json --quiet
    has out "{\"records\":$records,\"repeated\":0,\"skipped\":0,\"before\":0"
    same "$1, documents"
    expect 0 export "$db" ev --documents --plain
    python3 - out plain.ndjson "$1" <<'EOF' || fail "$1: other fields"
import json, sys
def heads(path):
    found = {}
    for line in open(path, encoding="utf-8"):
        document = json.loads(line)["document"]
        if "_id" in document:
            fields = {name: document[name] for name in ("name", "stats") if name in document}
            if "stats" in fields: # an array, a flag and a number may be in it
                fields["stats"] = {name: fields["stats"].get(name) for name in ("theme", "other")}
            found[json.dumps(document["_id"])] = fields
    return found
got, expected = heads(sys.argv[1]), heads(sys.argv[2])
sys.exit(got != expected or ("bucket" not in sys.argv[3] and not any(expected.values())))
EOF
    expect 0 import "$db" ev documents.ndjson --again --json --quiet
    has out "{\"records\":$records,\"repeated\":$records,"
    same "$1, documents again"
    new_target "$1"
    expect 0 import "$db" ev plain.ndjson --json --quiet
    has out '"renumbered":'
    expect 0 export "$db" ev
    # A page keeps elements that were trimmed; without bookkeeping nothing shows it.
    cmp -s <(sed 's/"seq":[0-9]*,//' out | grep -vxF -f trimmed) <(sed 's/"seq":[0-9]*,//' export.ndjson) ||
        fail "$1: other elements from documents without bookkeeping"
    clean "$db"
}

# ---- layouts with numbers of the owner -----------------------------------------------------------

# u0: two gaps, u1: trimmed, u2: a gap in the last document, and a last element that was removed.
damage() {
    expect 0 export "$source" ev u1
    sed -n 's/"seq":\(1\?[0-9]\|2[0-3]\),//p' out >trimmed
    expect 0 trim "$source" ev u1 --below 24
    for number in u0:25 u0:26 u0:28 u2:27 u2:29; do
        expect 0 remove "$source" ev "${number%:*}" "${number#*:}"
    done
}

layouts=("--preset feed --threshold 5 --page 5" "--preset feed-recent --threshold 5 --page 5"
    "--preset feed-recent --threshold 1000" "--preset feed-recent --order newest-first --threshold 5 --page 5" "--layout reference --id-field _id"
    "--layout subset --sort-by x --top 3 --id-field _id" "--layout capped --threshold 8"
    "--layout capped --threshold 8 --sort-by _id"
    "--preset feed-recent --threshold 5 --page 5 --array stats.events --count-field stats.count --pages-field meta.pages")
for layout in "${layouts[@]}"; do
    new_source
    # shellcheck disable=SC2086
    expect 0 define "$source" ev $layout --quiet
    expect 0 import "$source" ev events.ndjson --owner by --quiet
    damage
    expect 0 export "$source" ev
    mv out export.ndjson
    records=$(wc -l <export.ndjson)
    [ "$(grep -c '"owner":"u1"' export.ndjson)" -gt 3 ] || fail "$layout: u1 has no elements"
    new_target "$layout"
    expect 0 import "$db" ev export.ndjson --json --quiet
    is out "{\"records\":$records,\"repeated\":0,\"skipped\":0,\"before\":0}"
    same "$layout"
    # Elements that are there already, with their numbers, are recognized.
    expect 0 import "$db" ev export.ndjson --again --json --quiet
    is out "{\"records\":$records,\"repeated\":$records,\"skipped\":0,\"before\":0}"
    same "$layout, again"
    # The next element gets the next number.
    expect 0 append "$db" ev u1 '{"_id": 1000, "x": 3.5}'
    is out 30
    round_trip_documents "$layout"
done

# From a layout to another one: a cap keeps the newest, and the rest is reported.
new_target "--layout capped --threshold 4"
sed -n '/"owner":"u1"/p' export.ndjson >one.ndjson
expect 0 import "$db" ev one.ndjson --json --quiet
has out "\"records\":$(wc -l <one.ndjson),"
expect 0 export "$db" ev
cmp -s out <(tail -n 4 one.ndjson) || fail "the cap does not keep the newest four"

# A first number that is far away costs no time, and elements may be any values.
cat >export.ndjson <<'END'
{"owner":{ "$numberInt" : "7" },"seq":4000000000,"element":{ "$numberInt" : "5" }}
{"owner":{ "$numberInt" : "7" },"seq":4000000003,"element":"a\tb"}
{"owner":{ "a" : { "$oid" : "0123456789abcdef01234567" } },"seq":1,"element":[ { "$numberDouble" : "-0.0" } ]}
END
for layout in "${layouts[@]:0:4}" "${layouts[7]}"; do
    new_target "$layout"
    expect 0 import "$db" ev export.ndjson --quiet
    same "$layout"
done

# Owners whose values have no bytes are different owners.
cat >export.ndjson <<'END'
{"owner":{ "$minKey" : 1 },"seq":0,"element":{ "$numberInt" : "1" }}
{"owner":null,"seq":0,"element":{ "$numberInt" : "2" }}
{"owner":{ "a" : { "$minKey" : 1 } },"seq":0,"element":{ "$maxKey" : 1 }}
{"owner":{ "$maxKey" : 1 },"seq":0,"element":{ "$numberInt" : "3" }}
END
new_target "--preset feed-recent"
expect 0 import "$db" ev export.ndjson --quiet
same "minKey and maxKey"
expect 0 owners "$db" ev --json
has out '"owner":{ "$minKey" : 1 },'
expect 0 stats "$db" ev --json
has out '"owner":{ "$maxKey" : 1 },'

# A head does not count the elements of its open page, so their removal does not make its count negative.
new_source
expect 0 define "$source" ev --preset feed --threshold 2 --page 3 --quiet
for i in {0..3}; do
    expect 0 append "$source" ev a "$i"
done
for i in {0..2}; do
    expect 0 remove "$source" ev a "$i"
done
expect 0 export "$source" ev
mv out export.ndjson
expect 0 export "$source" ev --documents --relaxed
has out '"activityCount" : 0,'
mv out documents.ndjson
new_target "--preset feed --threshold 2 --page 3"
expect 0 import "$db" ev documents.ndjson --quiet
same "removed elements of the open page"

# ---- what cannot be imported ---------------------------------------------------------------------

line() {
    echo "{\"owner\":\"$1\",\"seq\":$2,\"element\":{\"n\":$3}}"
}
refused() { # refused CODE TEXT: the import of bad.ndjson ends with the code and the text
    expect "$1" import "$db" ev bad.ndjson --quiet
    has err "$2"
}

new_target "--preset feed --threshold 5 --page 5"
{ line a 0 0 && line a 1 1 && echo '{"by": "a", "n": 2}' && line a 2 2; } >bad.ndjson
refused 3 "bad.ndjson:3: this is no line of an export"
counts "$db" ev a 2
sed -i 3d bad.ndjson
expect 0 import "$db" ev bad.ndjson --json --quiet # it continues
is out '{"records":1,"repeated":0,"skipped":0,"before":2}'
{ cat bad.ndjson && line a 2 3; } >falling.ndjson
mv falling.ndjson bad.ndjson
expect 3 import "$db" ev bad.ndjson --quiet --as falling
has err "bad.ndjson:4: number 2 follows number 2"
{ line a 3 3 && echo '{"owner":"a","window":"2026-01","seq":4,"element":{"n":4}}'; } >bad.ndjson
expect 3 import "$db" ev bad.ndjson --quiet --as mixed
has err "bad.ndjson:2: this line has the form"
counts "$db" ev a 4
{ line b 0 0 && line a 1 9; } >bad.ndjson # another element of a number: nothing of the chunk is written
expect 4 import "$db" ev bad.ndjson --quiet --as other
has err 'lines 1 to 2: owner "a" of '"'ev': number 1 has another element already"
expect 3 count "$db" ev b
expect 0 import "$db" ev bad.ndjson --quiet --as other --new-numbers --json
is out '{"records":2,"repeated":0,"skipped":0,"before":0,"renumbered":2}'
counts "$db" ev a 5
expect 0 remove "$db" ev a 2
line a 2 2 >bad.ndjson
expect 4 import "$db" ev bad.ndjson --quiet --as removed
has err "number 2 was used before, and its element removed"
has err "bad.ndjson: lines 1 to 1: owner \"a\" of 'ev'"
has err "drop the owner, or import with --new-numbers"
expect 2 import "$db" ev bad.ndjson --id _id
expect 2 import "$db" ev bad.ndjson --owner by --new-numbers

# ---- documents that cannot be imported -----------------------------------------------------------

new_source
expect 0 define "$source" ev --preset feed-recent --threshold 2 --page 2 --quiet
for owner in a b; do
    for number in 0 1 2 3 4 5 6; do
        echo "{\"n\": $number}"
    done | "$SPILLWAY" append "$source" ev "$owner" --quiet || fail "append"
done
expect 0 update "$source" ev a '{"$set": {"name": "Ada"}}'
expect 0 export "$source" ev
mv out export.ndjson
expect 0 export "$source" ev --documents
mv out documents.ndjson
[ "$(wc -l <documents.ndjson)" = 6 ] || fail "there are not 2 pages for each owner"
# Other names, or another layout: nothing is imported, and the message says what to do.
new_target "--preset feed-recent --collection others"
expect 3 import "$db" ev documents.ndjson --quiet
has err "documents.ndjson:1: collection is 'users' in the export, and 'others' in 'ev': define 'ev' with --collection 'users'"
expect 0 owners "$db" ev
is out ""
new_target "--preset feed-recent --array log"
expect 3 import "$db" ev documents.ndjson --quiet
has err "documents.ndjson:1: array is 'activities' in the export, and 'log' in 'ev'"
# An older version did not write the names of the definition: the documents show them.
sed 's/,"definition":{[^{}]*}}$/}/' documents.ndjson >unnamed.ndjson
new_target "--preset feed-recent --collection others"
expect 3 import "$db" ev unnamed.ndjson --quiet
has err "unnamed.ndjson:1: neither heads nor pages are in the collection 'users': define 'ev' with"
new_target "--preset feed-recent --array log"
expect 3 import "$db" ev unnamed.ndjson --quiet
has err "unnamed.ndjson:1: the document has no bookkeeping 'spill.log'"
# The other fields clash with a field of the definition.
new_target "--preset feed-recent --threshold 2 --page 2 --count-field name"
expect 3 import "$db" ev unnamed.ndjson --quiet
has err "the document has no number of elements 'name': define 'ev' with"
# A bad page ends the import in the middle of an owner; repaired, the import continues.
new_target "--preset feed-recent --threshold 2 --page 2"
{ sed -n 1,2p documents.ndjson && echo '{"collection": "overflowActivities"}' && sed -n 4,6p documents.ndjson; } >bad.ndjson
expect 3 import "$db" ev bad.ndjson --quiet
has err "bad.ndjson:3: this is no line of an export, which has the form {\"collection\", \"document\"}"
counts "$db" ev a 2 # of the first page
cp documents.ndjson bad.ndjson
expect 0 import "$db" ev bad.ndjson --json --quiet
has out '"records":12,"repeated":0,"skipped":0,"before":2'
same "a repaired page"
# Skipped, it leaves a gap.
sed -i 3s/document/something/ bad.ndjson
new_target "--preset feed-recent --threshold 2 --page 2"
expect 0 import "$db" ev bad.ndjson --json --quiet --skip-bad=1
has out '"records":12,"repeated":0,"skipped":1,"before":0'
expect 0 export "$db" ev
cmp -s out <(sed '3,4d' export.ndjson) || fail "other elements are missing than those of the bad page"
# An export of elements and one of documents, or with and without bookkeeping, are not mixed.
expect 0 export "$source" ev --documents --plain
{ sed -n 1,3p documents.ndjson && sed -n 4,6p out; } >bad.ndjson
new_target "--preset feed-recent --threshold 2 --page 2"
expect 3 import "$db" ev bad.ndjson --quiet
has err "bad.ndjson:4: this line has the form {\"collection\", \"document\"} without bookkeeping"
# From the documents of a definition that keeps the newest to one that keeps the oldest.
new_target "--preset feed-recent --keep oldest --threshold 2 --page 2"
expect 0 import "$db" ev documents.ndjson --quiet
same "keep oldest"

# ---- layout bucket -------------------------------------------------------------------------------

bucket="--layout bucket --window month --time-field at --value-field x --threshold 6"
new_source
# shellcheck disable=SC2086
expect 0 define "$source" ev $bucket --quiet
expect 0 import "$source" ev events.ndjson --owner by --quiet
expect 0 export "$source" ev
mv out export.ndjson
new_target "$bucket"
expect 0 import "$db" ev export.ndjson --json --quiet
is out '{"records":90,"repeated":0,"skipped":0,"before":0}'
same bucket
records=90
: >trimmed
round_trip_documents "$bucket"
# Other windows, and no windows: the elements get new numbers, in order.
new_target "${bucket/month/day}"
expect 3 import "$db" ev export.ndjson --quiet
has err "export.ndjson:1: the element's window is 2026-01-01 in 'ev', and 2026-01 in the export"
expect 0 import "$db" ev export.ndjson --new-numbers --quiet --json
has out '"renumbered":90'
new_target "--preset feed"
expect 0 import "$db" ev export.ndjson --quiet --json
is out '{"records":90,"repeated":0,"skipped":0,"before":0,"renumbered":90}'
expect 0 export "$db" ev
mv out export.ndjson
sed 's/.*"_id" : { "$numberInt" : "\([0-9]*\)".*/\1/' export.ndjson | sort -n | cmp -s - <(seq 90) ||
    fail "elements are lost or doubled"
new_target "$bucket"
expect 0 import "$db" ev export.ndjson --quiet --json
is out '{"records":90,"repeated":0,"skipped":0,"before":0,"renumbered":90}'

# ---- killed --------------------------------------------------------------------------------------

# Gaps, trimmed owners and several chunks. The import is killed, and continued until it ends.
records=40000 kills=${SPILLWAY_KILLS:-5}
! on_server || records=4000 kills=${SPILLWAY_KILLS:-3}
awk -v records=$records 'BEGIN { for (i = 0; i < records; i++) printf "{\"owner\":\"u%d\",\"seq\":%d,\"element\":{ \"_id\" : { \"$numberInt\" : \"%d\" } }}\n", i * 11 / records, i + int(i / 7) + 500, i }' | LC_ALL=C sort -t'"' -k4,4 -s >export.ndjson
layouts=("--preset feed --threshold 50 --page 50" "--preset feed-recent --threshold 50 --page 50")
[ -z "${SPILLWAY_LONG:-}" ] || layouts+=("--layout reference" "--preset feed --threshold 3 --page 2")
# imported FILE: import it with kills.
imported() {
    killed_import "$kills" 0 300 ev "$1"
    echo "$killed kills: $layout, $1"
}
for layout in "${layouts[@]}"; do
    new_target "$layout"
    imported export.ndjson
    same "$layout, killed"
    expect 0 update "$db" ev u3 '{"$set": {"name": "Ada"}}'
    expect 0 export "$db" ev --documents
    mv out documents.ndjson
    new_target "$layout"
    imported documents.ndjson
    same "$layout, documents, killed"
    expect 0 export "$db" ev u3 --documents --plain
    has out '"name" : "Ada"'
done
