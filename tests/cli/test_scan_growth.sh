#!/usr/bin/env bash
# scan: it dates the threshold and the limit of steady feeds as simple arithmetic does, and gives no
# date for feeds that have stopped.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

# 80 feeds from 2024-01-01, with an element of about 300 bytes every few hours for 400 days. Every tenth
# feed stops after 250 days.
python3 - <<'EOF' || fail "making feeds"
import datetime, json
start = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
with open("feeds.ndjson", "w") as out:
    for owner in range(80):
        hours = 3 + owner % 7
        days = 250 if owner % 10 == 9 else 400
        times = [start + datetime.timedelta(hours=h, minutes=owner)
                 for h in range(0, 24 * days, hours)]
        out.write(json.dumps({"_id": f"feed{owner}", "posts": [
            {"at": {"$date": t.isoformat().replace("+00:00", "Z")}, "text": "x" * 250}
            for t in times]}) + "\n")
EOF

expect 0 scan feeds.ndjson --max-elements 4000 --document-limit 1200KB --json --quiet
python3 - out <<'EOF' || fail "dates"
import datetime, json, sys
[path] = json.load(open(sys.argv[1]))["collections"][0]["paths"]
start = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)

def day(date):
    time = datetime.datetime.fromisoformat(date["$date"].replace("Z", "+00:00"))
    return (time - start).total_seconds() / 86400

assert path["time"] == {"field": "at", "type": "date"}, path["time"]
assert path["growth"]["rising"] > 0.99, path["growth"]
assert len(path["owners"]) == 10
for owner in path["owners"]:  # the longest: an element every three hours, 3200 by day 400
    growth = owner["growth"]
    assert owner["length"] == 3200, owner
    assert abs(growth["perDay"] - 8) < 0.5, growth
    assert growth["threshold"]["elements"] == 800
    likely = day(growth["threshold"]["likely"])
    assert abs(likely - 500) < 12, likely
    assert day(growth["threshold"]["earliest"]) <= likely
    latest = growth["threshold"]["latest"]
    assert latest is None or day(latest) >= likely
    room = 1200000 - owner["documentBytes"]
    expected = 400 + room / (owner["bytes"] / owner["length"]) / 8
    assert abs(day(growth["limit"]["likely"]) - expected) < 15, (growth, expected)
    # the forecast starts at the newest element, long before the scan, so its dates are past
    for wall in growth["threshold"], growth["limit"]:
        assert abs(day(wall["asOf"]) - 400) < 2 and wall["past"] is True, wall
EOF
expect 0 scan feeds.ndjson --max-elements 1000 --document-limit 1200KB
grep -qE 'more elements at (7\.[5-9]|8)' out || fail "no pace in: $(cat out)"
grep -qE 'a day: 2025-0[2-6]-[0-9]+ \(80 %: 2025-' out || fail "no date in: $(cat out)"
grep -qE '\(80 %: 2025-[^)]*\) as of 2025-02-0[0-9], in the past$' out || fail "no mark in: $(cat out)"
has out '80 % behind a date: in about eight of ten cases the true date is within these dates.'
expect 0 scan feeds.ndjson --max-elements 1000 --document-limit 1200KB --json --quiet
cp out feeds.json
expect 0 report feeds.json --quiet -o feeds.html
grep -q '80 % behind a date: in about eight of ten cases the true dat' feeds.html || fail "the report does not say what 80 % means"
grep -q ' as of 2025-02-0[0-9], in the past' feeds.html || fail "no mark in the report"
expect 0 plan feeds.json --quiet
grep -q 'Its newest element is of 2025-02-0[0-9], before the scan' out || fail "no mark in: $(cat out)"

# One feed that continues, and the stopped feeds: they grow no longer and have no date for the limit.
grep -E '"feed[0-9]*9"' feeds.ndjson >silent.ndjson
head -n 1 feeds.ndjson >one.ndjson
cat one.ndjson silent.ndjson >mixed.ndjson
expect 0 scan mixed.ndjson --max-elements 500 --document-limit 1200KB --json --quiet
python3 - out <<'EOF' || fail "silent feeds"
import json, sys
[path] = json.load(open(sys.argv[1]))["collections"][0]["paths"]
silent = [owner for owner in path["owners"] if owner["owner"] != "feed0"]
assert len(silent) == 8
for owner in silent:
    assert owner["growth"]["perDay"] == 0, owner
    assert owner["growth"]["limit"]["likely"] is None, owner
EOF

# Without a date the report has a short cell, and explains it once for each table.
expect 0 report mixed.ndjson --max-elements 500 --document-limit 1200KB --quiet -o mixed.html
grep -q 'later than can be foreseen[^<]*</td>' mixed.html && fail "a cell has a sentence"
has mixed.html '<td data-label="Document full">-</td>'
has mixed.html '-: no date. It is further ahead than the known past is long'

# Bookings: 30 of 430 elements have times after the scan. Scan, JSON and report count them.
python3 - <<'EOF' || fail "making bookings"
import datetime, json
now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
times = [now + datetime.timedelta(days=day) for day in range(-400, 0)]
times += [now + datetime.timedelta(days=day) for day in range(1, 31)]
with open("bookings.ndjson", "w") as out:
    out.write(json.dumps({"_id": "room", "bookings": [
        {"at": {"$date": t.isoformat().replace("+00:00", "Z")}, "text": "x" * 250} for t in times]}) + "\n")
EOF
expect 0 scan bookings.ndjson --max-elements 100 --quiet
grep -q '^             about [23][0-9] elements have times after the scan, which forecasts leave out$' out ||
    fail "no elements after the scan in: $(cat out)"
expect 0 scan bookings.ndjson --max-elements 100 --json --quiet
cp out bookings.json
python3 - out <<'EOF' || fail "later"
import json, sys
[path] = json.load(open(sys.argv[1]))["collections"][0]["paths"]
assert abs(path["growth"]["later"] - 30) <= 2, path["growth"]
EOF
expect 0 report bookings.json --quiet -o bookings.html
grep -q ' About [23][0-9] elements have times after the scan, which forecasts leave out\.' bookings.html ||
    fail "the report does not count the elements after the scan"
expect 0 scan feeds.ndjson --max-elements 1000 --quiet
! grep -q 'after the scan' out || fail "no element is after this scan: $(cat out)"
