# shellcheck shell=bash disable=SC2154 # lib.sh is sourced before
# Documents for the tests of report: growing arrays, a map, arrays of equal lengths, and names that
# would be code in HTML if they were not escaped.

evil="<script>document.title='ran'<\/script>\"'&\`touch ran\`"

# Write ./feeds.ndjson and ./<b>&amp;'.ndjson.
make_documents() {
    python3 - "$evil" <<'END' || fail "making documents"
import datetime, json, sys
start = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
with open("feeds.ndjson", "w") as out:
    for owner in range(60):
        hours = 6 + owner % 7
        times = [start + datetime.timedelta(hours=h, minutes=owner) for h in range(0, 24 * 400 + 6 * (owner == 0), hours)]
        name = sys.argv[1].replace("\\/", "/") + "\u202e\x07" if owner == 0 else f"feed{owner}"
        out.write(json.dumps({
            "_id": name, "vector": [0.5] * 300,
            "posts": [] if owner % 20 == 1 else [
                {"at": {"$date": t.isoformat().replace("+00:00", "Z")}, "text": "x" * 250}
                for t in times]}) + "\n")
with open("<b>&amp;'.ndjson", "w") as out:
    for owner in range(30):
        keys = 12000 if owner == 9 else 70 + owner
        out.write(json.dumps({"_id": owner, "pri\"ces<i>": {f"k{i}": {"c": i} for i in range(keys)}})
                  + "\n")
END
}
