#!/usr/bin/env bash
# --max-lag: migrate, sweep and consolidate wait while a secondary is too far behind. A proxy in front of
# the test server answers replSetGetStatus.
# shellcheck disable=SC1091,SC2016,SC2034,SC2154 # lib.sh is not followed; JSON has dollars in it
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"
needs SPILLWAY_TEST_URI
python=$(python_with_pymongo)

new_database "$SPILLWAY_TEST_URI"
address=$(sed -E 's,^mongodb://([^@/]*@)?([^/,]*)/.*,\2,' <<<"$uri")
PYTHONDONTWRITEBYTECODE=1 "$python" "$here/lag_proxy.py" "$address" port lag 2>proxy.err &
proxy=$!
cleanups+=('kill "$proxy"')
await "the proxy listens" test -s port
echo "${uri/"$address"/127.0.0.1:$(cat port)}" >uri

"$python" - "$uri" <<'END' || fail "the collections cannot be made"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    database = client.get_default_database()
    for name in ("users_a", "users_b"):
        database[name].insert_many([{"_id": i, "n": i} for i in range(50)])
    database.shops.insert_many([{"_id": i, "sales": [{"n": n} for n in range(30)]} for i in range(20)])
END
bounds='{"threshold":5,"pageCapacity":5,"headBytesMax":1048576,"pageBytesMax":1048576}'
cat >plan.json <<END
{"spillwayPlan": 1, "source": "test", "arrays": [{"collection": "shops", "path": "sales",
 "migrate": true, "definition": {"name": "sales", "collection": "shops", "array": "sales",
 "countField": "", "overflowField": "", "pagesField": "",
 "pageCollection": "shops.pages", "pageOwner": "owner", "pageNumber": "page",
 "pageArray": "sales", "pageCount": "", "layout": "outlier", "keep": "newest",
 "opWindow": 64, "bounds": $bounds, "largest": $bounds}}],
 "sprawl": [{"pattern": "users_*", "consolidate": true, "into": "users", "field": "kind",
  "ids": "compound", "collections": [{"collection": "users_a", "value": "a"},
  {"collection": "users_b", "value": "b"}], "indexes": [], "leaveOut": []}]}
END

# waits COMMAND...: it does nothing while the secondary is 30 s behind, and ends when it is 2 s behind.
waits() {
    local status
    rm -f job.out job.err # of the command before
    echo 30 >lag
    "$SPILLWAY" "$@" --max-lag 5 >job.out 2>job.err &
    local job=$!
    await "$1 waits" grep -q 'paused: a secondary is 30.0 s behind, limit 5.0' job.err
    [ -z "$(cat job.out)" ] || fail "$1 does not wait: $(cat job.out)"
    echo 2 >lag
    wait "$job"
    status=$?
    [ "$status" = 0 ] || fail "$1 ended with $status: $(cat job.err)"
    has job.err "going on"
}

waits migrate @uri plan.json --execute
counts @uri sales 3 30
clean @uri
"$python" - "$uri" <<'END' || fail "the array cannot be added"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    client.get_default_database().shops.insert_one({"_id": 99, "sales": [{"n": n} for n in range(30)]})
END
waits sweep @uri sales
counts @uri sales 99 30
waits consolidate @uri plan.json --execute

# A server that is no replica set, and an embedded store.
rm lag
for job in "migrate @uri plan.json --execute" "sweep @uri sales" "consolidate @uri plan.json --execute"; do
    # shellcheck disable=SC2086
    expect 3 $job --max-lag 5
    has err "--max-lag needs a replica set"
    has err "not running with --replSet"
done
expect 0 define store sales --preset feed-recent --quiet
expect 2 sweep store sales --max-lag 5
has err "--max-lag is for a replica set"
