#!/usr/bin/env bash
# owners: each owner once, with what its array contains, in every layout; a prefix, a limit, a damaged owner.
# restore: a backup comes back whole, nothing is overwritten, and a damaged backup makes no store.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

# ---- owners --------------------------------------------------------------------------------------

python3 - <<'EOF' || fail "making records"
import json
with open("records.ndjson", "w") as out:
    for n in range(2000):
        owner = f"user-{n % 40:02}" if n % 3 else {"$oid": f"65a0000000000000000000{n % 10:02}"}
        at = {"$date": f"2026-{1 + n % 12:02}-{1 + n % 28:02}T00:00:{n % 60:02}Z"}
        out.write(json.dumps({"by": owner, "_id": n, "at": at, "text": "x" * (n % 90)}) + "\n")
EOF

# totals NAME: compare `owners --json` (in ./out) with sums over what `export` writes.
totals() {
    "$SPILLWAY" export "$db" "$1" >elements
    python3 - <<'EOF' || fail "$1: owners and export differ"
import json
def key(owner):
    return json.dumps(owner)
sums = {}
for line in open("elements"):
    line = json.loads(line)
    seen = sums.setdefault(key(line["owner"]), [0, None])
    seen[0] += 1
    at = int(line["element"]["at"]["$date"]["$numberLong"])
    seen[1] = at if seen[1] is None else max(seen[1], at)
listed = [json.loads(line) for line in open("out")]
assert len(listed) == len(sums) >= 45, (len(listed), len(sums))
import datetime
for line in listed:
    count, newest = sums[key(line["owner"])]
    time = datetime.datetime.fromisoformat(line["newest"]["$date"].replace("Z", "+00:00"))
    assert line["elements"] == count and line["bytes"] > 30 * count, line
    assert int(time.timestamp() * 1000) == newest, (line, newest)
EOF
}

for layout in outlier reference bucket; do
    new_store
    expect 0 define "$db" ev --layout $layout --time-field at --threshold 10 --quiet
    expect 0 import "$db" ev records.ndjson --owner by --quiet
    expect 0 owners "$db" ev --json
    totals ev
done

expect 0 owners "$db" ev --prefix user-1
[ "$(wc -l <out)" = 11 ] || fail "not ten owners and a heading: $(cat out)"
has out '2026-'
expect 0 owners "$db" ev --prefix 65a00000000000000000000 --json
[ "$(wc -l <out)" = 10 ] || fail "not ten ObjectIds: $(cat out)"
expect 0 owners "$db" ev --limit 3 --json
[ "$(wc -l <out)" = 3 ] || fail "not three owners: $(cat out)"
expect 0 owners "$db" ev --prefix nobody
has err 'no owner begins with this text'
expect 2 owners "$db" ev --limit 0
expect 3 owners "$db" other
on_server && exit 0

# ---- restore -------------------------------------------------------------------------------------

expect 0 backup "$db" copy --quiet
expect 0 restore copy again
has err 'restored to again: 50 owners, 2000 elements, 0 findings'
"$SPILLWAY" export again ev | cmp -s - elements || fail "the restored store has other elements"
expect 4 restore copy again
has err 'exists already'
expect 2 restore copy mongodb://localhost/shop
has err 'spillway copy BACKUP STORE'
expect 3 restore missing new
[ ! -e new ] || fail "a store without a backup"
table=$(find copy -name '*.sst' | head -1)
python3 - "${table:-$(find copy -name '*.log' | head -1)}" <<'EOF'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(60)
    byte = file.read(1)
    file.seek(60)
    file.write(bytes([byte[0] ^ 1]))
EOF
expect 3 restore copy new
[ ! -e new ] || fail "a store from a damaged backup"
