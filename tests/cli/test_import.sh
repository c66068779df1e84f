#!/usr/bin/env bash
# Imports: every format, resuming, repeating, and all kinds of bad input.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars in it
source "$(dirname "$0")/lib.sh"

fresh() {
    new_store
    expect 0 define "$db" ev --preset feed-recent --threshold 5 --page 5
}

# ---- formats -------------------------------------------------------------------------------------

for i in {1..40}; do
    echo "{\"_id\": $i, \"by\": \"u$((i % 3))\", \"at\": {\"\$date\": \"2026-01-01T00:00:00Z\"}, \"x\": 1.5}"
done >events.ndjson
sed '1s/^/[/; s/$/,/; $s/,$/]/' events.ndjson >array.json
sed 's/, "/,\n    "/g' events.ndjson >pretty.json
printf '\xEF\xBB\xBF' >bom.ndjson
sed 's/$/\r/; 3s/$/\n\n/' events.ndjson >>bom.ndjson
gzip -k events.ndjson
head -20 events.ndjson | gzip >members.ndjson.gz
tail -n +21 events.ndjson | gzip >>members.ndjson.gz
zstd -q events.ndjson

fresh
expect 0 import "$db" ev events.ndjson --owner by
is out "40 records imported"
expect 0 export "$db" ev
mv out expected
clean "$db"
for file in array.json pretty.json bom.ndjson events.ndjson.gz members.ndjson.gz events.ndjson.zst; do
    fresh
    expect 0 import "$db" ev "$file" --owner by --json
    is out '{"records":40,"repeated":0,"skipped":0,"before":0}'
    expect 0 export "$db" ev
    cmp -s out expected || fail "$file is imported differently"
done
for format in ndjson:events.ndjson json:pretty.json ndjson.gz:events.ndjson.gz ndjson.zst:events.ndjson.zst; do
    fresh
    expect 0 import "$db" ev - --owner by --format "${format%%:*}" <"${format##*:}"
    expect 0 export "$db" ev
    cmp -s out expected || fail "${format##*:} from stdin is imported differently"
done

# CSV: quotes, newlines in fields, numbers only if they print as the same text, all else as text.
printf 'name,year,note,code\r\nann,2013,"a ""quoted"", b\nand a line",007\r\nbob,1.5,,1e5\r\n' >t.csv
printf 'ann,12345678901,"5",-0\n' >>t.csv
fresh
expect 0 import "$db" ev t.csv --owner name
expect 0 export "$db" ev ann
has out '{ "name" : "ann", "year" : { "$numberInt" : "2013" }, "note" : "a \"quoted\", b\nand a line", "code" : "007" }'
has out '{ "name" : "ann", "year" : { "$numberLong" : "12345678901" }, "note" : "5", "code" : "-0" }'
expect 0 export "$db" ev bob
has out '{ "name" : "bob", "year" : { "$numberDouble" : "1.5" }, "note" : "", "code" : "1e5" }'
fresh
expect 0 import "$db" ev t.csv --owner name --strings
expect 0 export "$db" ev bob
has out '"year" : "1.5"'

# bson: {"by": "u"} and {"by": 7}, as mongodump writes them.
printf '\x0f\0\0\0\x02by\0\x02\0\0\0u\0\0' >two.bson
printf '\x0d\0\0\0\x10by\0\x07\0\0\0\0' >>two.bson
fresh
expect 0 import "$db" ev two.bson --owner by
counts "$db" ev u 1
counts "$db" ev 7 1

# Owners in sub-documents, and names with a dot in them.
printf '{"user": {"_id": 5}}\n' >sub.ndjson
printf '{"user._id": 6, "user": {"_id": 5}}\n' >>sub.ndjson
fresh
expect 0 import "$db" ev sub.ndjson --owner user._id
counts "$db" ev 5 1
counts "$db" ev 6 1

# ---- repeated imports ----------------------------------------------------------------------------

fresh
expect 0 import "$db" ev events.ndjson --owner by
expect 4 import "$db" ev events.ndjson --owner by
has err "already (40 records)"
expect 4 import "$db" ev events.ndjson --owner _id
has err "--owner by"
expect 0 import "$db" ev events.ndjson --owner by --as other
expect 0 import "$db" ev events.ndjson --owner by --again
expect 0 stats "$db" ev --json
has out '"elements":120,'
echo '{"_id": 41, "by": "u1"}' >>events.ndjson # the added line is imported
expect 0 import "$db" ev events.ndjson --owner by --json
is out '{"records":1,"repeated":0,"skipped":0,"before":40}'
expect 4 import "$db" ev events.ndjson --owner by
sed -i '1s/1.5/2.55/' events.ndjson # a changed file is not
echo '{"_id": 42, "by": "u1"}' >>events.ndjson
expect 4 import "$db" ev events.ndjson --owner by
has err "is not what was imported"
expect 0 stats "$db" ev --json
has out '"elements":121,'
expect 0 drop "$db" ev --yes
expect 0 define "$db" ev --preset feed
expect 0 import "$db" ev events.ndjson --owner by # the job checkpoints were dropped with the definition
is out "42 records imported"

# ---- ids -----------------------------------------------------------------------------------------

head -20 events.ndjson >first.ndjson
sed -n 11,42p events.ndjson >second.ndjson
fresh
expect 0 import "$db" ev first.ndjson --owner by --id _id
expect 0 import "$db" ev second.ndjson --owner by --id _id --json
is out '{"records":32,"repeated":10,"skipped":0,"before":0}'
expect 0 stats "$db" ev --json
has out '"elements":42,'
clean "$db"

# ---- bad input -----------------------------------------------------------------------------------

# bad NAME LINE CODE MESSAGE [IMPORTED]: line LINE of NAME is bad. The lines before it are imported, and
# after the line is fixed the import continues.
bad() {
    local name=$1 line=$2 code=$3 message=$4
    fresh
    expect "$code" import "$db" ev "$name" --owner by
    has err "$name:$line: "
    has err "$message"
    local imported="$((line - 1)) records are imported"
    [ "$line" != 2 ] || imported="1 record is imported"
    if [ "$line" = 1 ]; then
        grep -q "are imported" err && fail "$name: an import of no records reports imported records"
    else
        has err "spillway: $imported; after removing the cause, run the same command"
        tail -1 err | grep -q "$imported" || fail "$name: the error does not come first"
    fi
    expect 0 stats "$db" ev --json
    has out "\"elements\":$((line - 1)),"
    clean "$db"
    fresh
    expect 0 import "$db" ev "$name" --owner by --skip-bad
    has err "skipped: $name:$line: "
    has out ", 1 bad ones skipped"
    expect 0 stats "$db" ev --json
    has out '"elements":9,'
    clean "$db"
    fresh
    expect "$code" import "$db" ev "$name" --owner by --skip-bad=0
    sed -i "${line}s/.*/{\"by\": \"fixed\"}/" "$name"
    expect 0 import "$db" ev "$name" --owner by
    counts "$db" ev fixed 1
    expect 0 stats "$db" ev --json
    has out '"elements":10,'
}

with_line() { # with_line NAME LINE TEXT
    for i in {1..10}; do
        if [ "$i" = "$2" ]; then printf '%s\n' "$3"; else echo "{\"by\": \"u$((i % 3))\", \"n\": $i}"; fi
    done >"$1"
}

with_line malformed.ndjson 7 '{"by": "u1", "n": }'
bad malformed.ndjson 7 3 "offset"
with_line trailing.ndjson 1 '{"by": "u1"} {"by": "u2"}'
bad trailing.ndjson 1 3 "offset"
with_line number.ndjson 3 '7'
bad number.ndjson 3 3 "must be a document"
with_line noowner.ndjson 10 '{"user": "u1"}'
bad noowner.ndjson 10 3 "has no field 'by'"
with_line arrayowner.ndjson 4 '{"by": [1]}'
bad arrayowner.ndjson 4 3 "array"
with_line regexowner.ndjson 5 '{"by": {"$regularExpression": {"pattern": "a", "options": ""}}}'
bad regexowner.ndjson 5 3 "regular expression"
with_line undefined.ndjson 5 '{"by": {"$undefined": true}}'
bad undefined.ndjson 5 3 "undefined"
with_line utf8.ndjson 2 "$(printf '{"by": "\xff\xfe"}')"
bad utf8.ndjson 2 3 "UTF-8"

big=$(head -c 17000000 /dev/zero | tr '\0' x)
with_line big.ndjson 6 "{\"by\": \"u1\", \"text\": \"$big\"}"
bad big.ndjson 6 4 "16 MiB"
# The element fits in 16 MiB, but not together with the document around it.
with_line nearly.ndjson 6 "{\"by\": \"u1\", \"text\": \"${big:0:16777170}\"}"
bad nearly.ndjson 6 4 "document"
# Text longer than any element is not read into memory.
{
    with_line huge.ndjson 1 '{"by": "u0"}'
    sed -n 1,5p huge.ndjson
    printf '{"by": "u1", "text": "'
    head -c 300000000 /dev/zero | tr '\0' x
    printf '"}\n'
    sed -n 6,9p huge.ndjson
} >huger.ndjson
fresh
expect 0 import "$db" ev huger.ndjson --owner by --skip-bad
has err "huger.ndjson:6: the record's text is longer than 32 MiB"
expect 0 stats "$db" ev --json
has out '"elements":9,'
rm huger.ndjson

fresh
printf '{"n": 1}\n{"n": 2}\n{"by": 1}\n{"n": 3}\n' >three.ndjson
expect 3 import "$db" ev three.ndjson --owner by --skip-bad=2
has err "three.ndjson:4: "
counts "$db" ev 1 1

fresh
printf 'by,n\na,1\nb\nc,3\n' >fields.csv
expect 3 import "$db" ev fields.csv --owner by
has err "fields.csv:3: 1 fields, but the header has 2"
printf 'by,n\na,"x\ny"\nb,"open\n' >quote.csv
fresh
expect 3 import "$db" ev quote.csv --owner by
has err "quote.csv:4: column 2: the quote is not closed"
for header in 'by,by' 'by,' ''; do
    printf '%s\n' "$header" >header.csv
    fresh
    expect 3 import "$db" ev header.csv --owner by
    has err "header.csv:"
done

fresh
head -c 20 two.bson >cut.bson
expect 3 import "$db" ev cut.bson --owner by
has err "cut.bson: byte 15: the document is cut off: 13 bytes expected, 5 found"
counts "$db" ev u 1
cp two.bson cut.bson
expect 0 import "$db" ev cut.bson --owner by
counts "$db" ev 7 1
fresh
printf '\x01\0\0\0' >short.bson
expect 3 import "$db" ev short.bson --owner by --skip-bad
has err "short.bson: byte 0: this is not a BSON document"
fresh
sed 's/\x02by/\x77by/' two.bson >type.bson
expect 3 import "$db" ev type.bson --owner by
has err "type.bson: byte 0: malformed BSON"
fresh
printf '\x0f\0\0\0\x02by\0\x02\0\0\0\xff\0\0' >>utf8.bson
expect 3 import "$db" ev utf8.bson --owner by
has err "utf8.bson: byte 0: the text at 'by' is not UTF-8"

head -c 100 events.ndjson.gz >cut.ndjson.gz
fresh
expect 3 import "$db" ev cut.ndjson.gz --owner by --skip-bad
has err "cut.ndjson.gz is cut off"
head -c 100 events.ndjson.zst >cut.ndjson.zst
fresh
expect 3 import "$db" ev cut.ndjson.zst --owner by --skip-bad
has err "cut.ndjson.zst is cut off"
fresh
cp events.ndjson plain.ndjson.gz
expect 3 import "$db" ev plain.ndjson.gz --owner by
has err "the compressed data is damaged"

for text in '[{"by": 1}' '[{"by": 1} {"by": 2}]' '[{"by": 1}] 7' '{"by": 1} x' '{"by": {"a": 1}' '[{"by": 1},' '[{"by": 1},]'; do
    printf '%s' "$text" >bad.json
    fresh
    expect 3 import "$db" ev bad.json --owner by --skip-bad
    has err "bad.json:1: "
done

# A failed import without records does not fix the options for the next one.
fresh
expect 3 import "$db" ev second.ndjson --owner mistyped
expect 3 import "$db" ev second.ndjson --owner mistyped --skip-bad=5
expect 0 import "$db" ev second.ndjson --owner mistyped --skip-bad
expect 0 import "$db" ev second.ndjson --owner by
is out "32 records imported"
expect 4 import "$db" ev second.ndjson --owner by
# Stdin without a name.
fresh
with_line malformed.ndjson 7 '{"by": "u1", "n": }'
expect 3 import "$db" ev - --owner by <malformed.ndjson
has err "6 records are imported; an import of stdin without --as cannot be resumed"
fresh
with_line malformed.ndjson 1 '{"by": "u1", "n": }'
expect 3 import "$db" ev - --owner by <malformed.ndjson
[ "$(wc -l <err)" = 1 ] || fail "an import of no records prints more than the reason: $(cat err)"
expect 3 import "$db" ev nothere.ndjson --owner by
grep -q "are imported" err && fail "an import without a file reports imported records"

fresh
expect 0 import "$db" ev /dev/null --owner by --format ndjson
is out "0 records imported"
expect 3 import "$db" ev nothere.ndjson --owner by
expect 3 import "$db" ev "$work" --owner by --format ndjson
expect 3 import "$db" ev "$work" --owner by
has err "$work is a folder; import takes a file"
expect 3 import "$db" ev events.ndjson
has err "--owner"
expect 3 import "$db" ev uri --owner by
expect 2 import "$db" ev events.ndjson --owner by --format xml
: >uri
expect 2 import "$db" ev uri --owner by
has err "does not show its format"
