#!/usr/bin/env bash
# Documents of managed arrays that another program, or a TTL index, deletes: warnings of TTL indexes, and
# `repair --drop-orphans', which deletes pages only of owners without a document.
# shellcheck disable=SC1091,SC2154,SC2016 # lib.sh is not followed; $in is an operator
SPILLWAY_TEST_STORE=server source "$(dirname "$0")/lib.sh"

python=$(python_with_pymongo)
new_database "$SPILLWAY_TEST_URI"
echo "$uri" >db.uri
db=@db.uri
# mongo STATEMENT: run it with `items' and `pages', the two collections.
mongo() {
    "$python" -c "
import sys, pymongo
database = pymongo.MongoClient(sys.argv[1]).get_default_database()
items, pages = database['items'], database['items.log.pages']
$1" "$uri" || fail "mongo: $1"
}

expect 0 define "$db" items.log --preset gateway --collection items --array log --quiet
for owner in gone away replaced lives; do
    for i in {1..2500}; do echo "$i"; done | "$SPILLWAY" append "$db" items.log "$owner" - --quiet >out 2>err ||
        fail "append to $owner: $(cat err)"
done
expect 0 repair "$db" items.log --drop-orphans --dry-run
has out '"owners":0'

# ---- a TTL index --------------------------------------------------------------------------------

expect 0 serve "$uri" --check
grep -q TTL out && fail "serve --check warns without a TTL index"
mongo 'items.create_index("at", expireAfterSeconds=3600)'
expect 0 serve "$uri" --check
has out "items: warning: the TTL index 'at_1' of 'items' deletes documents and leaves their pages"
for command in "status $db" "define $db items.log --threshold 2001" "migrate $db items.log"; do
    # shellcheck disable=SC2086 # several words
    "$SPILLWAY" $command >out 2>err
    has err "warning: 'items.log': the TTL index 'at_1' of 'items' deletes documents and leaves their pages"
done
mongo 'items.drop_index("at_1"); pages.create_index("at", expireAfterSeconds=3600)'
expect 0 serve "$uri" --check
has out "the TTL index 'at_1' of 'items.log.pages' deletes pages of living arrays"
mongo 'pages.drop_index("at_1")'

# ---- pages of deleted documents -----------------------------------------------------------------

mongo 'items.delete_many({"_id": {"$in": ["gone", "away"]}}); items.replace_one({"_id": "replaced"}, {"log": [7]})'
mongo 'print(pages.count_documents({}))' >before
expect 1 verify "$db"
[ "$(grep -c "no document has the owner's _id" out)" = 2 ] || fail "verify: $(cat out)"
[ "$(grep -c 'another program replaced the document' out)" = 1 ] || fail "verify: $(cat out)"
expect 1 repair "$db"
mongo 'print(pages.count_documents({}))' >after
cmp before after || fail "repair deleted pages"
expect 1 repair "$db" --drop-orphans --dry-run --json
has out '"owners":2,"pages":2,"deleted":0,"left":1'
mongo 'print(pages.count_documents({}))' >after
cmp before after || fail "a dry run deleted pages"
expect 2 repair "$db" --drop-orphans </dev/null
has err "Delete 2 pages of 2 documents that no longer exist?"
expect 2 repair "$db" items.log gone --drop-orphans
has err "is for all owners"
expect 1 repair "$db" items.log --drop-orphans --yes --json
has out '"owners":2,"pages":2,"deleted":2,"left":1'
mongo 'print(pages.count_documents({}))' >out
is out 2
expect 0 count "$db" items.log lives
has out '"owner":"lives","count":2500,'
expect 0 drop "$db" items.log replaced --yes
mongo 'assert items.find_one({"_id": "replaced"}) == {"_id": "replaced", "log": [7]}'
expect 0 verify "$db"

# ---- the document is written again -------------------------------------------------------------

mongo 'items.delete_one({"_id": "lives"}); items.insert_one({"_id": "lives", "log": [1]})'
expect 1 repair "$db" --drop-orphans --yes
has out '"pages":0,"deleted":0,"left":1'
expect 0 drop "$db" items.log '"lives"' --yes
expect 0 verify "$db"

# ---- a page is deleted: the summary counts the elements that are left ------------------------------

for i in {1..3500}; do echo "$i"; done | "$SPILLWAY" append "$db" items.log torn - --quiet >out 2>err ||
    fail "append to torn: $(cat err)"
mongo 'pages.delete_many({}); print(len(items.find_one({"_id": "torn"})["log"]))' >in_head
expect 1 verify "$db" --json
has out "\"owners\":1,\"pages\":0,\"elements\":$(cat in_head),\"findings\":1"
