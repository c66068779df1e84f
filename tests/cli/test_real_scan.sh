#!/usr/bin/env bash
# scan of real data: releases as arrays and as maps with dots in their keys, advisories with arrays that
# are long but within the limits, and feeds with an array of events for each owner. The feeds have the
# streams' first 8000 lines, or all lines with SPILLWAY_LONG. The scan must report what scan_figures.py
# computes.
# Runs if SPILLWAY_DATA names a folder of data sets.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

data=${SPILLWAY_DATA:-}
for set in eol_releases/products_array eol_releases/products_map pypa_advisories/advisories; do
    file=$data/$set.ndjson.gz
    [ -r "$file" ] || skip "SPILLWAY_DATA has no $set.ndjson.gz"
    expect 0 scan "$file" --json --quiet
    python3 "${SPILLWAY_SOURCE:?}/tests/cli/scan_figures.py" check "$file" out || fail "$set"
    case $set in
    *array)
        has out '"finding":"unbounded-array","atlas":"AVOID_UNBOUNDED_ARRAY"'
        has out '{"owner":"renovate","length":12046,'
        ;;
    *map)
        has out '"finding":"unbounded-map","atlas":"AVOID_UNBOUNDED_ARRAY"'
        has out '"path":"versions.*"'
        ;;
    *) has out '"findings":[]' ;;
    esac
done

# make_feeds FILE FIELD: write feeds.ndjson, with a document of events for each value of the field.
make_feeds() {
    python3 - "$1" "$2" "${SPILLWAY_LONG:+all}" <<'END' || fail "making feeds of $1"
import gzip, itertools, json, sys
with gzip.open(sys.argv[1], "rt", encoding="utf-8") as lines:
    feeds = {}
    for line in itertools.islice(lines, None if sys.argv[3] else 8000):
        event = json.loads(line)
        feeds.setdefault(event.pop(sys.argv[2]), []).append(event)
with open("feeds.ndjson", "w", encoding="utf-8") as out:
    for owner, events in feeds.items():
        out.write(json.dumps({"_id": owner, "count": len(events), "feed": events}) + "\n")
END
}

for stream in gitter_chat:room openstack_updates:project wiki_edits:channel eol_releases:product; do
    file=$data/${stream%:*}/events.ndjson.gz
    [ -r "$file" ] || skip "SPILLWAY_DATA has no ${stream%:*}/events.ndjson.gz"
    make_feeds "$file" "${stream#*:}"
    expect 0 scan feeds.ndjson --json --quiet
    python3 "${SPILLWAY_SOURCE:?}/tests/cli/scan_figures.py" check feeds.ndjson out || fail "$stream"
    has out '"time":{"field":"at","type":"date"}'
done
