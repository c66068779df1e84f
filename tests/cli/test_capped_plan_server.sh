#!/usr/bin/env bash
# A plan with layout capped deletes elements: the dry run counts them, and says where the array is afterwards.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
SPILLWAY_TEST_STORE=server source "$(dirname "$0")/lib.sh"

python=$(python_with_pymongo)
new_database "$SPILLWAY_TEST_URI"
echo "$uri" >db.uri
db=@db.uri
"$python" -c "
import sys, pymongo
sensors = pymongo.MongoClient(sys.argv[1]).get_default_database().sensors
sensors.insert_many([{'_id': i, 'site': 's', 'readings': [{'n': n} for n in range(length)]}
                     for i, length in enumerate([12000, 50, 101])])" "$uri" || fail "inserting"
expect 0 plan "$db" --output plan.json
expect 0 plan-set plan.json sensors.readings --layout capped --threshold 100 --order oldest-first --migrate
has out "otherWriters"
expect 0 migrate "$db" plan.json
has out "11901 elements are not kept there: --finish deletes them for good"
has out "no longer in 'sensors': programs need the library"
has out "each of 3 documents gets bookkeeping"
expect 0 migrate "$db" plan.json --execute --quiet
expect 0 migrate "$db" plan.json
has out "11901 elements are not kept there"
expect 2 migrate "$db" plan.json --execute --finish </dev/null
has err "are deleted for good"
