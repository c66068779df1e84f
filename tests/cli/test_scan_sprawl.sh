#!/usr/bin/env bash
# scan: collections of one shape with names that differ by a tenant, a date or a number are sprawl.
# Collections with similar names and different documents are not.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

python3 - <<'EOF' || fail "making dumps"
import os, struct

def document(fields):
    body = b"".join(b"\x10" + name.encode() + b"\0" + struct.pack("<i", value)
                    for name, value in fields.items())
    return struct.pack("<i", len(body) + 5) + body + b"\0"

def put(folder, name, fields, count=30):
    os.makedirs(f"{folder}/shop", exist_ok=True)
    with open(f"{folder}/shop/{name}.bson", "wb") as out:
        for i in range(count):
            out.write(document({"_id": i, **fields}))
    with open(f"{folder}/shop/{name}.metadata.json", "w") as out:
        out.write('{"indexes":[{"v":2,"key":{"_id":1},"name":"_id_"}]}')

for i, tenant in enumerate("acme contoso fabrikam initech umbrella hooli globex stark wayne tyrell".split()):
    put("many", f"customer_{tenant}_orders", {"customer": i, "total": 5, "at": 7})
    put("many", f"customer_{tenant}_notes", {"text": i, "by": 5})
for month in range(24):
    put("many", f"readings_{2024 + month // 12}_{month % 12 + 1:02}", {"device": 1, "celsius": 20})
for name in ("customers", "products", "suppliers"):
    put("many", name, {f"{name}_a": 1, f"{name}_b": 2})
for i in range(50):
    put("different", f"module_{i}_data", {f"a{i}": 1, f"b{i}": 2, "at": 3})
for i in range(9):
    put("different", f"orders_{i}", {"customer": i, "total": 5})
for i in range(20):
    put("different", f"empty_{i}", {}, 0)
EOF

# Half of the collections have one more index: they form two groups, each too small.
python3 - <<'EOF' || fail "making indexes"
import shutil
for i in range(18):
    shutil.copy("many/shop/products.bson", f"different/shop/part_{i}.bson")
    with open(f"different/shop/part_{i}.metadata.json", "w") as out:
        more = ',{"v":2,"key":{"products_a":1},"name":"a"}' if i % 2 else ""
        out.write('{"indexes":[{"v":2,"key":{"_id":1},"name":"_id_"}' + more + "]}")
EOF

expect 0 scan many
has out 'they have 24 indexes: 48 tables in all'
has out '3 findings in 47 collections'
has out 'WARNING  collection-sprawl (REDUCE_NUMBER_OF_NAMESPACES)  shop.customer_*_notes'
has out 'shop.customer_*_orders'
has out '24 collections with the same fields differ by their dates (shop.readings_2024_01, '
has out 'would have their 720 documents'
# A sprawl is one row, and collections with findings come first.
grep '^[a-z].*:' out | cut -d: -f1 | sed 's/^and /and/' >rows
[ "$(sort rows | tr '\n' ' ')" = "$(printf '%s ' 'shop.customer_*_notes' 'shop.customer_*_orders' \
    shop.customers shop.products 'shop.readings_*' shop.suppliers)" ] || fail "the rows: $(cat rows)"
[ "$(head -3 rows | grep -c '\*')" = 3 ] || fail "collections without findings come first: $(cat rows)"
has out 'shop.readings_*: 24 collections of one shape, 720 documents'
expect 1 scan many --collection-limit 50 --fail-on critical
has out 'CRITICAL  collection-sprawl'
has out '47 collections of at most 50'
expect 1 scan many --fail-on REDUCE_NUMBER_OF_NAMESPACES

expect 0 scan many --json --quiet
mv out scan.json
python3 - <<'EOF' || fail "the JSON"
import json
scan = json.load(open("scan.json"))
groups = {group["pattern"]: group for group in scan["sprawl"]}
assert set(groups) == {"shop.customer_*_orders", "shop.customer_*_notes", "shop.readings_*"}, groups
readings = groups["shop.readings_*"]
assert readings["identifiers"] == "dates" and readings["documents"] == 720
assert readings["collections"] == sorted(readings["collections"]) and len(readings["collections"]) == 24
assert groups["shop.customer_*_orders"]["identifiers"] == "names"
assert {finding["pattern"] for finding in scan["findings"]} == set(groups)
assert scan["limits"]["collections"] == 1000
assert readings["indexes"] == 24 and readings["indexBytes"] == 0
assert all(collection["indexes"] == [{"name": "_id_", "key": {"_id": 1}}]
           for collection in scan["collections"])
EOF
expect 0 plan scan.json --output plan.json # plan reads the groups from the scan
has out 'shop.customer_*_orders: 10 collections -> one, orders, with the field customerId'
has out 'shop.readings_*: 24 collections -> one, readings, with the field period'
python3 - <<'EOF' || fail "the plan"
import json
groups = {group["pattern"]: group for group in json.load(open("plan.json"))["sprawl"]}
orders = groups["customer_*_orders"]
assert orders["consolidate"] is True and orders["ids"] == "compound"
assert {"collection": "customer_acme_orders", "value": "acme"} in orders["collections"], orders
assert {"collection": "readings_2024_01", "value": "2024_01"} in groups["readings_*"]["collections"]
EOF
sed 's/"collections":\["shop.customer_acme/"collections":["shop.customer_other/' scan.json >wrong.json
expect 3 plan wrong.json
has err "there is no collection 'shop.customer_other"

expect 0 scan different --fail-on any
has out '0 findings in 97 collections'
