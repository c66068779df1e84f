#!/usr/bin/env bash
# status: what was begun and not ended, until it is ended; each command that it prints is the right one.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

new_store
expect 0 define "$db" ev --preset feed-recent --collection people --quiet
expect 0 status "$db"
has out 'no job is unfinished'

# The name needs quotes and does not show the format.
# An import that ends at a wrong line, in its second chunk, is unfinished until it is continued.
python3 - <<'EOF' || fail "making records"
with open("it's records", "w") as out:
    for n in range(30000):
        out.write('{"by": "user-%d", "n": %d}\n' % (n % 7, n))
    out.write("wrong\n")
EOF
expect 3 import "$db" ev "it's records" --format ndjson --owner by --quiet
before=$(date +%s)
expect 1 status "$db"
has out 'import of ev: '
has out ' minutes ago, at 20'
has out "continue with: spillway import $db ev"
expect 1 status "$db" --json
python3 - "$before" <<'EOF' || fail "the line: $(cat out)"
import datetime, json, sys
line = json.loads(open("out").read())
assert line["kind"] == "import" and line["name"] == "ev", line
saved = datetime.datetime.fromisoformat(line["saved"]["$date"].replace("Z", "+00:00"))
assert abs(saved.timestamp() - int(sys.argv[1])) < 3600, line
assert 0 < int(line["state"].split()[0]) < 30001, line
open("finish", "w").write(line["finish"])
EOF
sed -i '$d' "it's records"
eval "$(sed 's/^spillway/expect 0/' finish)"
expect 0 status "$db"
counts "$db" ev user-0 4286

# A migration in two stages.
python3 - <<'EOF' || fail "making a plan"
import json
with open("plan.json", "w") as out:
    json.dump({"spillwayPlan": 1, "arrays": [{"collection": "shops", "path": "sales", "migrate": True,
                                              "mayBeEmpty": True}]}, out)
EOF
expect 0 plan-set plan.json shops.sales --layout reference --order oldest-first
expect 0 migrate "$db" plan.json --execute --quiet
expect 1 status "$db"
has out "migration of shops-sales: arrays of 'shops-sales.original' are copied"
has out "continue with: spillway migrate $db PLAN --execute --finish"

# A store whose name needs quotes.
quoted="it's & it"
if on_server; then
    cp db.uri "$quoted"
    named=@$quoted
else
    cp -r "$db" "$quoted"
    named=$quoted
fi
expect 1 status "$named"
has out "continue with: spillway migrate '${named%%it*}it'\\''s & it' PLAN --execute --finish"
expect 1 status "$named" --json
python3 - >finish <<'EOF' || fail "the line: $(cat out)"
import json
print(json.loads(open("out").read())["finish"].replace("PLAN --execute --finish", "--help"))
EOF
eval "set -- $(sed 's/^spillway migrate//' finish)"
[ "$1" = "$named" ] || fail "the shell reads '$1', not '$named'"
expect 0 migrate "$db" plan.json --execute --undo --yes --quiet
expect 0 status "$db"

# Operations of owners.
expect 0 status "$db" --owners
is out 'no work is unfinished'
expect 3 status missing
expect 2 status
