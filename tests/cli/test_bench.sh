#!/usr/bin/env bash
# bench measures every layout at each length, with one thread and with several, and prints the JSON of
# docs/how-to/bench.md. It leaves a store unchanged: at its end, after Ctrl-C, and after a kill and
# --clean. It does not touch existing data under its names.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

lengths=20,60
on_server && lengths=60
tiny=(--lengths "$lengths" --rounds 2 --threads 3 --threshold 4 --page 6 --durability log)

# Check that the benchmark left nothing: no definition, no mark, and on a server no collection.
left_alone() {
    expect 0 define "$db" --json
    grep -q spillway_bench out && fail "definitions are left: $(cat out)"
    expect 0 bench "$db" "${tiny[@]}" --layouts capped --lengths=20 --rounds 1 --threads 1 --quiet
    on_server || return 0
    "$(python_with_pymongo)" - "$uri" <<'END' || fail "collections are left"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    names = client.get_default_database().list_collection_names()
    left = [name for name in names if name.startswith("spillway_bench")]
    assert not left, left
END
}

new_store
expect 0 define "$db" feed --preset feed-recent
expect 0 append "$db" feed ada 1 2 3
expect 0 bench "$db" "${tiny[@]}" --json --quiet
[ -s err ] && fail "--quiet, but there are messages: $(cat err)"
python3 - out "$(on_server && echo server)" "$lengths" <<'END' || fail "the JSON"
import json, sys
result = json.load(open(sys.argv[1]))
server = sys.argv[2] == "server"
layouts = ["unbounded", "newest", "oldest", "subset", "reference", "bucket", "capped"]
assert set(result) == {
    "spillwayBench", "version", "started", "seconds", "processors", "loadBefore", "loadAfter",
    "store", "durability", "threads", "rounds", "elementBytes", "threshold", "page",
    "newestPageElements", "proofLength", "rows", "tuned"}, sorted(result)
assert result["spillwayBench"] == 1 and result["durability"] == "log"
assert result["elementBytes"] == 200 and result["proofLength"] == 60 and result["tuned"] == []
assert [(row["layout"], row["length"], row["threads"]) for row in result["rows"]] == [
    (layout, length, threads) for length in map(int, sys.argv[3].split(",")) for layout in layouts for threads in (1, 3)]
cost = {"operations", "medianUs", "lowUs", "highUs", "confidence", "p50Us", "p90Us", "p99Us",
        "maxUs", "perSecond", "bytesWritten", "bytesRead"}
for row in result["rows"]:
    assert set(row) == {"layout", "length", "threads", "tooLong", "append", "newestPage",
                        "headBytes", "documentBytes", "documentBytesMax", "given", "found"}, row
    assert not row["tooLong"] and row["found"] == row["given"] > row["length"], row
    for what in "append", "newestPage":
        assert set(row[what]) == cost, row[what]
        assert 0 < row[what]["lowUs"] <= row[what]["medianUs"] <= row[what]["highUs"], row
        assert row[what]["p50Us"] <= row[what]["p90Us"] <= row[what]["p99Us"] <= row[what]["maxUs"]
        assert row[what]["confidence"] == 0.5, row[what]  # two rounds: the interval between them
    # Rounds of whole cycles: lcm(6, threads) appends, or pushes of at most 5 %.
    appends = row["append"]["operations"]
    if row["layout"] == "unbounded":
        assert 2 * row["threads"] <= appends <= 2 * 3 * row["threads"], row
    else:
        assert appends == 2 * 6, row
    assert row["newestPage"]["operations"] == 2 * 20 * row["threads"], row
    assert row["append"]["bytesWritten"] > 100, row
    assert (row["append"]["bytesRead"] is not None) == server, row
    assert (row["documentBytes"] < 4000) == (row["layout"] != "unbounded"), row
    assert 0 < row["headBytes"] <= row["documentBytes"] <= row["documentBytesMax"], row
END
left_alone
expect 0 read "$db" feed ada
is out $'2\t3\n1\t2\n0\t1'

# The table has only the requested layouts.
expect 0 bench "$db" "${tiny[@]}" --layouts "unbounded,newest" --element 300
has out 'elements   300 bytes each; threshold 4, pages of 6'
has out 'Comparison at 60 elements of 300 bytes, one thread'
has out 'full at about'
has out 'never reached: at most'
grep -q subset out && fail "the output has a layout that was not requested"
if ! on_server || [ -n "${SPILLWAY_LONG:-}" ]; then # on a server a minute or two
    expect 0 bench "$db" --tune --rounds 1 --element 100 --durability log --quiet
    has out 'least cost on this store: --threshold '
    expect 0 bench "$db" --tune --rounds 1 --element 100 --durability log --quiet --json
    [ "$(grep -o '"final" : true' out | wc -l)" = 4 ] || fail "the finalists: $(cat out)"
fi

# A password is not printed. An array that does not fit in a document is not measured.
expect 0 bench "$db" --lengths 2000 --layouts unbounded --element 100KB --rounds 1
has out 'does not fit a document'
expect 0 bench "$db" --lengths 2000 --layouts unbounded --element 100KB --rounds 1 --json
has out '"tooLong" : true'

# Plots.
expect 0 bench "$db" "${tiny[@]}" --layouts "unbounded,newest" --plots plots --quiet
python3 - plots/append.svg plots/threads.svg plots/documents.svg <<'END' || fail "the plots"
import sys, xml.etree.ElementTree as tree
for path in sys.argv[1:]:
    root = tree.parse(path).getroot()
    words = " ".join(root.itertext())
    assert root.tag.endswith("svg") and "unbounded" in words and "newest" in words, (path, words)
    lines = [part for part in root.iter() if part.tag.endswith("polyline")]
    assert len(lines) >= 2, (path, "a line for each layout")
END

# Existing data is not touched.
expect 0 define "$db" spillway_bench_mine --preset feed-recent --collection mine \
    --page-collection minePages
expect 0 append "$db" spillway_bench_mine ada 7
expect 4 bench "$db" "${tiny[@]}"
has err "'spillway_bench_mine'"
counts "$db" spillway_bench_mine ada 1
expect 0 drop "$db" spillway_bench_mine --yes
expect 0 define "$db" mine --preset feed-recent --collection spillway_benches --page-collection minePages
expect 4 bench "$db" "${tiny[@]}"
expect 4 bench "$db" --clean
has err "'mine'"
expect 0 drop "$db" mine --yes
if on_server; then # drop keeps the empty collection
    "$(python_with_pymongo)" -c 'import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    client.get_default_database().drop_collection("spillway_benches")' "$uri"
fi

# Interrupted and killed while it runs.
has_begun() {
    if on_server; then
        "$(python_with_pymongo)" -c 'import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    database = client.get_default_database()
    sys.exit(database.spillway_bench_newest.estimated_document_count() == 0)' "$uri"
    else
        [ -n "$(find "$db" -name '*.log' -size +100k 2>/dev/null)" ]
    fi
}
begin_long() {
    "$SPILLWAY" bench "$db" --lengths 1000000 --layouts newest --durability log --quiet \
        >long.out 2>long.err &
    pid=$!
    # shellcheck disable=SC2016 # eval expands it
    await "the benchmark has begun, or has ended" eval 'has_begun || ! kill -0 "$pid" 2>/dev/null'
    kill -0 "$pid" || fail "it ended: $(cat long.err)"
}
interrupted() { # SIGNAL CODE
    begin_long
    kill "-$1" "$pid"
    wait "$pid" 2>wait.err
    local got=$?
    [ "$got" = "$2" ] || fail "after $1 it ended with $got, not $2: $(cat long.err)"
}
interrupted TERM 130
has long.err 'interrupted'
left_alone
interrupted KILL 137
expect 4 bench "$db" "${tiny[@]}"
has err '--clean'
expect 0 bench "$db" --clean
left_alone
counts "$db" feed ada 3
clean "$db"

# Invalid options.
for wrong in --lengths=19 "--lengths=," --lengths=a --lengths=20,20 "--layouts=," --layouts=best \
    --threads=0 --rounds=0 --rounds=100 --element=50 --page=0; do
    expect 2 bench "$db" "$wrong"
done
expect 3 bench @no-such-file
