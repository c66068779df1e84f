#!/usr/bin/env bash
# import --elements: documents that carry an array, from each kind of source; maps, inner arrays, other
# fields; errors with their places; and imports that are killed within a document. elements.py compares
# every element with the source.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; paths have dollars in them
source "$(dirname "$0")/lib.sh"

here=${SPILLWAY_SOURCE:?}/tests/cli
check() {
    python3 "$here/elements.py" check "$@" || fail "elements.py check $*"
}
python3 "$here/elements.py" make . || fail "making the inputs"

# define_array NAME [OPTION...]: an array in a new collection. Its pages are small, so a long array
# becomes several chunks.
page=7
! on_server || page=60
define_array() {
    local name=$1
    shift
    expect 0 define "$db" "$name" --layout outlier --collection "$name" --array elements \
        --page-collection "$name.pages" --threshold 10 --page $page --op-window 8 --quiet "$@"
}

# imports NAME SET OPTION...: the array has exactly the elements of the set, in order.
imports() {
    local name=$1 set=$2
    shift 2
    expect 0 export "$db" "$name" --relaxed
    check "$set.ndjson" out "$@"
}

# ---- sources -------------------------------------------------------------------------------------

new_store
total=$(python3 -c 'import json
print(sum(len(json.loads(line)["log"].get("messages", [])) for line in open("rooms.ndjson")
    if isinstance(json.loads(line)["log"], dict)))')
# The sources to import, each with its options; on a server one is enough.
sources() {
    if on_server; then
        echo "shop.archive --collection rooms"
        return
    fi
    cat <<'END'
rooms.ndjson.gz
rooms.ndjson
rooms.json
rooms.bson.gz
- --format bson
dump --collection shop.rooms
shop.archive --collection rooms
shop.archive.gz --collection shop.rooms
END
}
number=0
while read -r input; do
    number=$((number + 1))
    define_array "rooms$number"
    # shellcheck disable=SC2086 # options
    expect 0 import "$db" "rooms$number" $input --elements log.messages <rooms.bson
    is out "$total elements of 14 documents imported, 2 documents without the array"
    imports "rooms$number" rooms --elements log.messages
done < <(sources)
[ "$number" -gt 0 ] || fail "no sources"
clean "$db"

expect 2 import "$db" rooms1 dump --elements log.messages
has err 'dump has 4 collections: choose one with --collection: shop.advisories, shop.product_maps,'
expect 3 import "$db" rooms1 shop.archive --elements log.messages --collection none --as other
has err "shop.archive has no collection 'none', but: "
expect 2 import "$db" rooms1 rooms.bson --elements log.messages --collection rooms
has err 'rooms.bson is a file of one collection'
touch rooms.csv
expect 2 import "$db" rooms1 rooms.csv --elements log.messages --format csv
has err 'CSV has no arrays'

if on_server; then
    new_database "$SPILLWAY_TEST_URI"
    "$(python_with_pymongo)" - "$uri" <<'END' || fail "filling the database"
import json, sys
import bson, pymongo
with open("rooms.bson", "rb") as file, pymongo.MongoClient(sys.argv[1]) as client:
    for document in bson.decode_file_iter(file):
        client.get_default_database().rooms.insert_one(document)
END
    database=${uri%%\?*}
    options=${uri:${#database}}
    echo "$database.rooms$options" >source.uri
    define_array fromserver
    expect 0 import "$db" fromserver @source.uri --elements log.messages
    is out "$total elements of 14 documents imported, 2 documents without the array"
    imports fromserver rooms --elements log.messages
    expect 4 import "$db" fromserver "$uri" --collection rooms --elements log.messages
    has err '.rooms was imported into '
    echo "$uri" >other.uri
    expect 0 define @other.uri same --layout outlier --collection rooms --array list --quiet
    expect 4 import @other.uri same @source.uri --elements log.messages
    has err ".rooms is a collection of 'same' itself"
fi

# ---- maps, inner arrays, other fields, order -------------------------------------------------------

define_array maps --array versions
expect 0 import "$db" maps product_maps.bson --elements versions --entries-as key --fields --json
has out '"documents":9,"updates":9'
expect 0 export "$db" maps --documents --plain --relaxed
mv out heads
imports maps product_maps --elements versions --entries-as key --heads heads --collection maps
define_array scalars
expect 0 import "$db" scalars product_maps.json --elements releases --entries-as name
imports scalars product_maps --elements releases --entries-as name
expect 0 export "$db" scalars --relaxed
has out '{ "name" : "2.0", "value" : "2026-01-01" }'

for inner in package package=package.name; do
    define_array "inner-${inner#*=}"
    expect 0 import "$db" "inner-${inner#*=}" shop.archive --collection advisories \
        --elements 'affected.$.versions' --owner-inner "$inner" --fields
    expect 0 export "$db" "inner-${inner#*=}" --documents --plain --relaxed
    mv out heads
    imports "inner-${inner#*=}" advisories --elements 'affected.$.versions' --owner-inner "$inner" \
        --heads heads --collection "inner-${inner#*=}"
done

define_array fields
expect 0 import "$db" fields rooms.bson --elements log.messages --fields
has out 'other fields kept in 14 heads'
expect 0 export "$db" fields --documents --plain --relaxed
mv out heads
imports fields rooms --elements log.messages --heads heads --collection fields

define_array backwards --order newest-first
expect 0 import "$db" backwards products.bson --elements versions
imports backwards products --elements versions --backwards

define_array owners
expect 0 import "$db" owners rooms.bson --elements log.messages --owner topic.title
imports owners rooms --elements log.messages --owner topic.title
clean "$db"

# ---- errors --------------------------------------------------------------------------------------

errors() {
    cat >mixed.ndjson <<'END'
{"_id": 1, "list": ["a", "b"], "map": {"x": {"key": 5}}, "a.b": 1, "deep": [{"list": 1}]}

{"_id": 2, "list": {"x": 1}}
{"_id": 3, "list": ["c"]}
{"list": ["d"]}
{"_id": [4], "list": ["e"]}
{"_id": 5, "list": [], "map": {"x": {"key": 5}}}
END
    define_array mixed
    # wrong TEXT OPTION...: the import fails before the first document with this text.
    wrong() {
        local text=$1
        shift
        expect 3 import "$db" mixed mixed.ndjson "$@"
        has err "$text"
    }
    wrong "mixed.ndjson:1: owner 1: 'deep' is an array, which 'deep.list' cannot pass" --elements deep.list
    wrong "mixed.ndjson:1: owner 1: 'map' is no array, but a document: --entries-as KEY" --elements map
    wrong "mixed.ndjson:1: owner 1: 'list' is no map, as --entries-as expects, but an array" \
        --elements list --entries-as key
    wrong "mixed.ndjson:1: owner 1, element 0: the entry 'x' has a field 'key' already" \
        --elements map --entries-as key
    wrong "mixed.ndjson:1: owner 1: --fields cannot keep the field 'a.b'" --elements list --fields
    wrong "mixed.ndjson:1: owner { \"_id\" : 1, \"at\" : 0 }: 'deep.\$.list' is no array" \
        --elements 'deep.$.list' --owner-inner at
    wrong "mixed.ndjson:1: owner { \"_id\" : 1 }: document 0 of 'deep' has no field 'id' for its owner" \
        --elements 'deep.$.list' --owner-inner at=id
    wrong "mixed.ndjson:1: owner 1: '0' in 'list' is no document" --elements 'list.$.x' --owner-inner at
    expect 3 import "$db" mixed mixed.ndjson --elements list
    has err "mixed.ndjson:3: owner 2: 'list' is no array"
    has err '2 elements are imported; after removing the cause, run the same command to continue'
    expect 0 import "$db" mixed mixed.ndjson --elements list --skip-bad
    is out '1 element of 2 documents imported, 3 bad documents skipped, after 2 in earlier runs'
    has err "mixed.ndjson:5: the record has no field '_id'"
    has err 'mixed.ndjson:6: owner [ 4 ], element 0: '
    counts "$db" mixed 3 1

    for wrong in "--entries-as key" "--owner-inner x" "--fields" "--collection x"; do
        # shellcheck disable=SC2086 # options
        expect 2 import "$db" mixed mixed.ndjson --owner _id $wrong
    done
    expect 2 import "$db" mixed mixed.ndjson --elements 'a.$.b'
    has err '--owner-inner FIELD'
    for inner in _id a.b '=x' 'x=' '$x'; do
        expect 2 import "$db" mixed mixed.ndjson --elements 'a.$.b' --owner-inner "$inner"
    done
    expect 2 import "$db" mixed mixed.ndjson --elements 'a.$.b.$.c' --owner-inner x
    expect 2 import "$db" mixed mixed.ndjson --elements a.b --owner-inner x

    # An archive that is cut off gives what it has.
    define_array cut
    expect 3 import "$db" cut cut.archive --collection rooms --elements log.messages
    has err 'cut.archive: byte'
    expect 3 import "$db" cut cut.archive --collection rooms --elements log.messages
    has err '; after removing the cause, run the same command'

    # Layout reference: nothing is written if an element of the file cannot be stored.
    expect 0 define "$db" referenced --layout reference --collection referenced --array summary \
        --page-collection elements --page-owner product --quiet
    printf '%s\n' '{"_id": 1, "list": [{"a": 1}]}' '{"_id": 2, "list": [{"a": 1}, {"product": 1}]}' >two.ndjson
    expect 3 import "$db" referenced two.ndjson --elements list
    has err "two.ndjson:2: owner 2, element 1: "
    expect 3 count "$db" referenced 1
    expect 3 import "$db" referenced mixed.ndjson --elements list
    has err "must be a document, because it is stored as one"
    expect 0 import "$db" referenced rooms.json --elements log.messages --fields --id msg
    imports referenced rooms --elements log.messages
}
on_server || errors

# ---- interruptions -------------------------------------------------------------------------------

define_array resumed
expect 0 import "$db" resumed products.bson --elements versions
expect 4 import "$db" resumed products.bson --elements versions
has err 'was imported into'
expect 4 import "$db" resumed products.bson --elements releases
has err "products.bson was imported with --elements versions --owner _id, and not with the options given now"
printf '%s\n' '{"_id": 1, "list": [1, 2, {"a": 1}], "more": 1}' '{"_id": 2, "list": [3]}' '{"_id": 3' >half.ndjson
expect 3 import "$db" resumed half.ndjson --elements list --fields --as half
expect 1 status "$db"
has out "--elements 'list' --owner '_id' --fields"
expect 4 import "$db" resumed half.ndjson --elements list --as half
has err "the import of half was begun with --elements list --owner _id --fields: continue with these options"
# A field that the definition has for itself names the option, the field and the way out.
define_array clashing --count-field more
expect 3 import "$db" clashing half.ndjson --elements list --fields
has err "half.ndjson:1: owner 1: --fields cannot keep the field 'more': 'more' is a field of the heads of 'clashing' itself"
echo '{"_id": 3, "list": [4]}' >last
{ head -2 half.ndjson && cat last; } >whole.ndjson
expect 0 import "$db" resumed whole.ndjson --elements list --fields --as half
is out '1 element of 1 document imported, after 4 in earlier runs'
clean "$db"

# imported NAME ARGUMENT...: import with kills.
imported() {
    killed_import "${SPILLWAY_KILLS:-6}" 20 120 "$@"
    echo "$killed kills: $1"
}
seed_random
define_array killed --keep oldest
imported killed rooms.bson --elements log.messages --fields
imports killed rooms --elements log.messages
define_array killedmap
imported killedmap shop.archive --collection product_maps --elements versions --entries-as key
imports killedmap product_maps --elements versions --entries-as key
clean "$db"
