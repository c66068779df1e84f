#!/usr/bin/env bash
# scan --since: the growth since an earlier scan, and the dates forecast from it if elements contain no
# times.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

# make ADDED: write 30 users with ADDED more tags each; user 3 gets ten times that number.
make() {
    python3 - "$1" <<'EOF' || fail "making documents"
import json, sys
added = int(sys.argv[1])
with open("users.ndjson", "w") as out:
    for user in range(30):
        count = (600 if user == 3 else 40 + user) + added * (10 if user == 3 else 1)
        out.write(json.dumps({"_id": user, "tags": [{"t": "x" * 180} for _ in range(count)]}) + "\n")
EOF
}

make 0
expect 0 scan users.ndjson --json --quiet
mv out earlier.json
make 60
expect 3 scan users.ndjson --since /dev/null
expect 3 scan users.ndjson --since missing.json
has err 'missing.json'

# Date the earlier scan 30 days back, and write it like another program, with other white space.
python3 - <<'EOF' || fail "the earlier scan"
import datetime, json
scan = json.load(open("earlier.json"))
now = datetime.datetime.fromisoformat(scan["at"]["$date"].replace("Z", "+00:00"))
assert abs((datetime.datetime.now(datetime.timezone.utc) - now).total_seconds()) < 600
for name, days in (("month.json", -30), ("future.json", 30)):
    time = now + datetime.timedelta(days=days)
    scan["at"] = {"$date": time.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
    json.dump(scan, open(name, "w"), indent=2)
EOF
expect 2 scan users.ndjson --since future.json
has err 'future.json: '
expect 0 scan users.ndjson --since month.json
has out 'since:   +2340 elements in 30 days, in all documents'
has out 'more elements at 20 a day: 20'
expect 0 scan users.ndjson --since month.json --json --quiet
mv out now.json
python3 - <<'EOF' || fail "the JSON"
import datetime, json
scan = json.load(open("now.json"))
[path] = scan["collections"][0]["paths"]
assert path["growth"]["since"]["added"] == 2340
at = datetime.datetime.fromisoformat(scan["at"]["$date"].replace("Z", "+00:00"))
owners = {owner["owner"]: owner for owner in path["owners"]}
three = owners[3]["growth"]
assert three["since"]["added"] == 600 and abs(three["since"]["perDay"] - 20) < 0.01
likely = datetime.datetime.fromisoformat(three["limit"]["likely"]["$date"].replace("Z", "+00:00"))
days = (likely - at).total_seconds() / 86400
assert abs(days - three["limit"]["elements"] / 20) < 2, (days, three)
assert three["limit"]["earliest"] is None and three["limit"]["latest"] is None
assert owners[29]["growth"]["since"]["added"] == 60
EOF
expect 0 plan month.json # white space does not matter
expect 0 plan now.json
has out 'users: tags -> layout outlier'

# A decrease since the earlier scan is reported, and gives no forecast.
make 0
python3 - <<'EOF' || fail "an older scan"
import json
scan = json.load(open("now.json"))
scan["at"] = {"$date": "2024-01-01T00:00:00Z"}
json.dump(scan, open("more.json", "w"))
EOF
expect 0 scan users.ndjson --since more.json --max-bytes 100KB
has out 'since:   -2340 elements in'
