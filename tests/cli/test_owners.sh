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

# The sizes that the documents know are those of the elements: after trims inside of a page, removals and
# edits, with each end in the head, and in windows.
for layout in '--layout outlier' '--layout outlier --keep oldest' '--layout reference' '--layout bucket'; do
    new_store
    # shellcheck disable=SC2086 # several options
    expect 0 define "$db" ev $layout --time-field at --threshold 10 --page 7 --quiet
    expect 0 import "$db" ev records.ndjson --owner by --quiet
    if [ "$layout" != '--layout bucket' ]; then
        for owner in user-01 user-02 user-04; do
            expect 0 trim "$db" ev $owner --keep 20 --quiet
            expect 0 remove "$db" ev $owner 25 --quiet
            expect 0 remove "$db" ev $owner 32 --quiet
            # shellcheck disable=SC2016 # no variable
            expect 0 edit "$db" ev $owner 30 '{"at": {"$date": "2026-01-01T00:00:00Z"}, "text": "edited"}' --quiet
        done
        expect 0 trim "$db" ev user-05 --keep 0 --quiet
        expect 0 drop "$db" ev user-07 --yes --quiet
    fi
    expect 0 owners "$db" ev --json
    sed 's/"newest":.*//' out >sizes
    [ "$(wc -l <sizes)" -ge 48 ] || fail "$layout: $(wc -l <sizes) owners"
    expect 0 owners "$db" ev --json --no-newest
    [ "$(grep -c '"newest":null}$' out)" = "$(wc -l <sizes)" ] || fail "$layout: times: $(head -3 out)"
    sed 's/"newest":.*//' out | cmp - sizes || fail "$layout: sizes differ: $(diff sizes out | head -5)"
    sums=$(tr -c '0-9,\n' ' ' <sizes | awk -F, '{ elements += $(NF - 2); bytes += $(NF - 1) }
        END { printf "\"elements\":%d,\"bytes\":%d,", elements, bytes }')
    expect 0 stats "$db" ev --json
    has out "$sums"
done

new_store
expect 0 define "$db" ev --layout bucket --time-field at --threshold 10 --quiet
expect 0 import "$db" ev records.ndjson --owner by --quiet
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

# Elements are not read if only their sizes are asked for.
expect 0 define large ev --preset feed-recent --time-field n --quiet
for ((i = 0; i < 300; i++)); do
    printf '{"n": %d, "text": "%s"}\n' "$i" "$(head -c 15000 /dev/urandom | base64 -w 0)"
done >large.ndjson
"$SPILLWAY" append large ev one - --quiet <large.ndjson >out 2>err || fail "append: $(cat err)"

# bytes_read ARGUMENT...: print how many bytes the program reads.
bytes_read() {
    python3 - "$SPILLWAY" "$@" <<'EOF'
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
with open(f"/proc/{child.pid}/io") as counts:
    print(next(line for line in counts if line.startswith("rchar")).split()[1])
sys.exit(child.wait())
EOF
}

clean large
all=$(bytes_read export large ev)
[ "$all" -gt 5000000 ] || fail "export reads only $all bytes"
for command in 'stats large ev' 'owners large ev --no-newest' 'threshold large ev'; do
    # shellcheck disable=SC2086 # several words
    some=$(bytes_read $command)
    [ "$some" -lt $((all / 3)) ] || fail "$command reads $some of $all bytes"
done
[ "$(bytes_read owners large ev)" -gt 5000000 ] || fail "owners prints times without a read"

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
