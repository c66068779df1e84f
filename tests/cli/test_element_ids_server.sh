#!/usr/bin/env bash
# Collections in which every sub-document and every document has an ObjectId as its _id, as with
# mongoose: migrate to layout subset, undo, and import from a mongodump.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
SPILLWAY_TEST_STORE=server source "$(dirname "$0")/lib.sh"

python=$(python_with_pymongo)
new_database "$SPILLWAY_TEST_URI"
echo "$uri" >uri

cat >shop.py <<'END'
"""shop.py URI COMMAND: what another program does with the collection `products`."""
import datetime
import sys

import bson
import bson.raw_bson
import pymongo

DAY = datetime.datetime(2026, 1, 1)


def review(product, number):
    made = bson.ObjectId(f"{product:012x}{number:012x}")
    fields = {"rating": number * 7 % 11, "text": "x" * (number % 50),
              "createdAt": DAY + datetime.timedelta(hours=number)}
    return {"_id": made, **fields} if number % 2 else {**fields, "_id": made}


def reviews(product):
    return [review(product, number) for number in range(40)]


def insert(database):
    database.products.insert_many({"_id": product, "name": f"p{product}",
                                   "reviews": reviews(product)} for product in range(6))
    database.products.update_one({"_id": 2}, {"$set": {"reviews.17.spill": 1}})
    database.products.update_one({"_id": 4}, {"$set": {"reviews.39.elementId": "mine"}})


def mend(database):
    database.products.update_one({"_id": 2}, {"$unset": {"reviews.17.spill": 1}})
    database.products.update_one({"_id": 4}, {"$unset": {"reviews.39.elementId": 1}})


def save(database):
    """All documents, byte for byte."""
    raw = database.get_collection("products", codec_options=bson.CodecOptions(
        document_class=bson.raw_bson.RawBSONDocument))
    with open(sys.argv[3], "wb") as file:
        for document in raw.find().sort("_id", 1):
            file.write(document.raw)


def compare(database):
    """What drivers see of the migrated products."""
    for product in range(6):
        expected = reviews(product)
        head = database.products.find_one({"_id": product})
        best = sorted(enumerate(expected), key=lambda one: (one[1]["rating"], one[0]))[:-4:-1]
        assert head["reviewSummary"]["topReviews"] == [one for _, one in best], head
        assert head["reviewSummary"]["totalCount"] == 40, head
        found = list(database.reviews.find({"productId": product}).sort("spill.first", 1))
        stored = [{"_id": one["elementId"], **{name: value for name, value in one.items()
                   if name not in ("_id", "elementId", "productId", "spill")}} for one in found]
        assert stored == expected, stored[:2]
        for one, other in zip(found, expected):
            names = ["elementId" if name == "_id" else name for name in other]
            assert list(one) == ["_id", "productId", *names, "spill"], list(one)
    keys = database.reviews.index_information()["spillway_id"]["key"]
    assert [name for name, _ in keys] == ["productId", "elementId"], keys


def dump(database):
    """What mongodump writes of a collection of reviews."""
    with open(sys.argv[3], "wb") as file:
        for product in range(6):
            for one in reviews(product):
                file.write(bson.encode({"_id": one["_id"], "productId": product, **one}))


with pymongo.MongoClient(sys.argv[1]) as client:
    globals()[sys.argv[2]](client.get_default_database())
END
shop() { "$python" shop.py "$uri" "$@" || fail "shop.py $*"; }

shop insert
shop save before

# ---- a plan for layout subset --------------------------------------------------------------------

rm -rf plan.db
expect 0 define plan.db reviews --preset reviews-subset --collection products --id-field _id --json
cat >plan.json <<EOF
{"spillwayPlan": 1, "source": "test", "arrays": [{"collection": "products", "path": "reviews",
  "migrate": true, "definition": $(cat out)}]}
EOF
# A plan written before definitions had the field uses the default.
sed 's/"elementIdField" : "elementId", //; s/"idField" : "_id", //' plan.json >older.json
for plan in plan.json older.json; do
    expect 1 migrate @uri "$plan" --json
    has out '"layout":"subset","dropped":0,"refused":2}'
    has err "would be skipped: owner 2 of 'reviews.original': element 17: an element of 'reviews' cannot have a field 'spill'"
    has err "would be skipped: owner 4 of 'reviews.original': element 39: an element of 'reviews' cannot have a field 'elementId'"
done
shop save now
cmp -s before now || fail "a dry run changed documents"

# migrate and sweep change an owner only if all its elements can be stored.
expect 1 migrate @uri plan.json --execute --json
has err "skipped: owner 2 of 'reviews.original': element 17"
has err "skipped: owner 4 of 'reviews.original': element 39"
expect 1 sweep @uri reviews
has err "skipped: owner 2 of 'reviews.original': element 17"
expect 0 export @uri reviews
[ "$(wc -l <out)" = 160 ] || fail "$(wc -l <out) elements were exported, not 160"
shop save now
"$python" - before now <<'END' || fail "a refused owner was changed"
import sys, bson
before, now = ({one["_id"]: one for one in bson.decode_all(open(name, "rb").read())}
               for name in sys.argv[1:])
assert before[2] == now[2] and before[4] == now[4]
END
expect 4 migrate @uri plan.json --execute --finish --yes
has err 'nothing was dropped'

# ---- undo ----------------------------------------------------------------------------------------

expect 0 migrate @uri plan.json --execute --undo --yes
shop save now
"$python" - before now <<'END' || fail "--undo does not restore the documents"
import sys, bson
before, now = (bson.decode_all(open(name, "rb").read()) for name in sys.argv[1:])
assert before == now, now
for one, other in zip(before, now):
    assert [list(review) for review in one["reviews"]] == [list(review) for review in other["reviews"]]
END

# ---- the whole migration -------------------------------------------------------------------------

shop mend
expect 0 migrate @uri plan.json --json
has out '"dropped":0,"refused":0}'
expect 0 migrate @uri plan.json --execute
expect 0 migrate @uri plan.json --execute --finish --yes
shop compare
expect 0 verify @uri
has out '"findings":0}'
third=$(printf '%012x%012x' 3 21)
expect 0 edit @uri reviews 3 --id "{\"\$oid\": \"$third\"}" "{\"_id\": {\"\$oid\": \"$third\"}, \"rating\": 11}"
expect 0 read @uri reviews 3 --top --limit 1
is out "21	{ \"_id\" : { \"\$oid\" : \"$third\" }, \"rating\" : 11 }"
expect 0 remove @uri reviews 3 --id "{\"\$oid\": \"$third\"}"
expect 0 verify @uri
has out '"findings":0}'

# ---- a dump of a collection of reviews -----------------------------------------------------------

shop dump reviews.bson
expect 0 define @uri dumped --preset reviews-separate --collection dumpedProducts \
    --page-collection dumpedReviews --id-field _id --time-field _id
expect 0 import @uri dumped reviews.bson --owner productId
has out '240 records imported'
expect 0 read @uri dumped 5 --limit 1
has out "\"_id\" : { \"\$oid\" : \"$(printf '%012x%012x' 5 39)\" }"
expect 0 remove @uri dumped 5 --id "{\"\$oid\": \"$(printf '%012x%012x' 5 39)\"}"
is out 39
expect 0 verify @uri
has out '"findings":0}'
