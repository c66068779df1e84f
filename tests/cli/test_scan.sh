#!/usr/bin/env bash
# scan: for generated inputs in every format it reports what scan_figures.py computes from the documents.
# Sets without growth have no finding. Damage is reported with its place, and the rest is scanned.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

here=${SPILLWAY_SOURCE:?}/tests/cli
figures() {
    python3 "$here/scan_figures.py" "$@" || fail "scan_figures.py $*"
}
figures make . >places
at=$(sed 's/.*"at": \([0-9]*\).*/\1/' places)
step=$(sed 's/.*"step": \([0-9]*\).*/\1/' places)
cut=$(sed 's/.*"cut": \([0-9]*\).*/\1/' places)

lacks() { # FILE TEXT
    grep -qF -- "$2" "$1" && fail "$1 has '$2'"
}

# scans SET FILE...: a scan of each file reports the figures of the set's documents.
scans() {
    local set=$1 file outputs=()
    shift
    for file in "$@"; do
        expect 0 scan "$file" --json --quiet
        mv out "out.${#outputs[@]}"
        outputs+=("out.${#outputs[@]}")
    done
    figures check "$set" "${outputs[@]}"
}

# ---- every format ---------------------------------------------------------------------------------

scans grown.ndjson grown.ndjson grown.ndjson.gz grown.json grown.bson grown.bson.gz dump/ zipped \
    shop.archive shop.archive.gz
for set in constant small; do
    scans $set.ndjson $set.bson.gz dump shop.archive
done
"$SPILLWAY" scan - --format bson --json <grown.bson >out 2>err || fail "stdin: $(cat err)"
sed -i 's/"collection":"stdin"/"collection":"grown"/g' out
figures check grown.ndjson out
expect 0 scan grown.bson --threads 1 --json --quiet
figures check grown.ndjson out

for folder in dump zipped; do
    expect 0 scan "$folder" --json --quiet
    has out '"collection":"shop.grown","path":"reviews","documents":1}'
    lacks out '"collection":"shop.constant","path"'
    lacks out '"finding":"unbounded-map"'
    has out '"collection":"shop.small"'
done
expect 0 scan dump
has out '2 findings in 5 collections, 916 documents'
has out 'unbounded-array (AVOID_UNBOUNDED_ARRAY)  shop.grown: reviews'
has out 'shop.a/b: 1 document,'
has out 'shop.none: 0 documents, 0 B'

# ---- thresholds and exit codes --------------------------------------------------------------------

expect 1 scan grown.bson --fail-on any
expect 1 scan grown.bson --fail-on critical,AVOID_UNBOUNDED_ARRAY
expect 0 scan grown.bson --fail-on critical,large-document
expect 0 scan small.bson --fail-on any
expect 1 scan grown.bson --fail-on critical --document-limit 1MB
has out 'CRITICAL  large-document'
expect 1 scan small.bson --fail-on any --max-elements 5
has out '71 documents with more than 5 elements'
expect 2 scan small.bson --fail-on nothing
has err "there is no finding 'nothing'"
expect 2 scan small.bson --max-share 0
expect 2 scan places
has err 'does not show the format'
expect 2 scan small.bson --sample 10
has err 'are for servers'
expect 2 scan mongodb://localhost/shop --read-preference fastest
has err "a read preference is primary"
expect 2 scan mongodb://localhost
has err 'names no database'
expect 3 scan missing.bson
mkdir bare
expect 3 scan bare
has err 'has no .bson file'
expect 0 define store.db recent --preset feed-recent --threshold 20 --page 20 --quiet
for owner in ann bob; do
    seq 1 130 | "$SPILLWAY" append store.db recent "$owner" - --quiet >/dev/null 2>err ||
        fail "append: $(cat err)"
done
expect 0 scan store.db --json --quiet
"$SPILLWAY" export store.db recent --documents >documents 2>err || fail "export: $(cat err)"
has out "\"documents\":$(wc -l <documents),\"bytes\""
has out '"collection":"recent.users"'
expect 0 scan rocksdb:store.db --max-elements 5 --fail-on unbounded-array # its arrays are bounded
has out '0 findings in 2 collections'

# ---- memory ---------------------------------------------------------------------------------------

# Documents near the limit, with the maximum number of values. Sanitizers use additional memory.
if [ -z "${UBSAN_OPTIONS:-}" ]; then
    most=$(python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$SPILLWAY" scan wide.bson --quiet)
    [ "$most" -lt 128000 ] || fail "a scan took $most KB"
fi
expect 0 scan wide.bson --json --quiet
has out '"documents":8,"bytes"'
has out '"lengths":{"count":8,"sum":8600000,'

# ---- broken input ---------------------------------------------------------------------------------

# broken FILE DOCUMENTS TEXT: the scan reads that number of documents, and reports the damage.
broken() {
    expect 3 scan "$1" --json --quiet
    has out "\"documents\":$2,\"bytes\""
    has err "$3"
}

broken cut.bson 300 "cut.bson: byte $cut: the document is cut off: 96 bytes expected, 9 found"
broken type.bson 499 "type.bson: byte $((at + 4)): unknown type"
broken length.bson 499 "length.bson: byte $at: "
broken negative.bson 499 "negative.bson: byte $at: this is not a BSON document; 78 bytes are skipped"
broken short.bson 499 "short.bson: byte $at: this is not a BSON document; 78 bytes are skipped"
for name in step leap inner; do # a length too small or too large, in documents that contain documents
    broken $name.bson 799 "$name.bson: byte $step: this is not a BSON document"
    [ "$(grep -c "$name.bson: byte" err)" = 1 ] || fail "$name.bson: $(cat err)"
done
broken hole.bson 498 "hole.bson: byte $at: this is not a BSON document"
broken noise.bson 0 'noise.bson: byte 0: this is not a BSON document; 3000000 bytes are skipped'
broken front.bson 500 'front.bson: byte 0: this is not a BSON document; 1500000 bytes are skipped'
broken text.bson 0 'text.bson: byte 0: this is not a BSON document; 1560 bytes'
broken latin.bson 501 "latin.bson: byte $((at + 20)): a text is not UTF-8"
broken deep.bson 501 'nested more than 100 levels deep'
broken empty.bson 0 'empty.bson: the file is empty'
broken empty.ndjson 0 'empty.ndjson: the file is empty'
broken nothing.bson.gz 0 'nothing.bson.gz: the file is empty'
broken nothing 0 'some.bson.gz: the file is empty'
"$SPILLWAY" scan - --format bson >out 2>err </dev/null
[ $? = 3 ] || fail "no input: $(cat err)"
has err 'there is no input'
"$SPILLWAY" scan - --format ndjson >out 2>err </dev/null
[ $? = 3 ] || fail "no lines: $(cat err)"
has err 'there is no input'
mkfifo pipe.bson
cat small.bson >pipe.bson &
expect 0 scan pipe.bson --quiet
has out '500 documents'
wait
# A pipe in a folder is skipped: nobody may ever write to it.
mkdir -p special/shop
cp small.bson special/shop
mkfifo special/shop/pipe.bson special/shop/small.metadata.json
broken special 500 'special/shop/pipe.bson: this is not a file'
has err 'special/shop/small.metadata.json: this is not a file'
printf '{"_id":"\xc2\x9b31m\x7f","a\\u001b[31m":[1]}\n' >'terminal.ndjson'
expect 0 scan terminal.ndjson --max-elements 0 --quiet
has out '_id "\u009B31m\u007F"'
has out '\u001b[31m'
broken bad.ndjson 2 'bad.ndjson:2: malformed JSON at offset 15'
has err 'bad.ndjson:4: '
broken wrong.bson.gz 0 'the compressed data is damaged near byte'
broken plain.bson.gz 0 'the compressed data is damaged near byte'
broken half 500 'gone.metadata.json: the collection'
has err 'half/shop/empty.bson: the file is empty'
expect 3 scan half.bson.gz --json --quiet
has err 'half.bson.gz is cut off: the compressed data does not end'
lacks out '"documents":0,"bytes"'

# A dump's metadata has indexes; an archive has them before its documents. Damaged metadata is reported.
mkdir -p indexed/shop
cp grown.bson indexed/shop
cp small.bson indexed/shop
echo '{"indexes":[{"key":{"_id":1},"name":"_id_"},{"key":{"path.inner":1},"name":"deep"}]}' |
    gzip >indexed/shop/grown.metadata.json.gz
echo '{"indexes":[{"key"' >indexed/shop/small.metadata.json
expect 0 scan shop.archive --json --quiet
has out '{"name":"of an archive","key":{ "by" : 1 }}'
expect 3 scan indexed --json --quiet
has out '"indexes":[{"name":"_id_","key":{ "_id" : 1 }},{"name":"deep","key":{ "path.inner" : 1 }}]'
has out '"indexes":null'
has err "indexed/shop/small.metadata.json: the collection's description is damaged"

expect 3 scan cut.archive --json --quiet
has err 'cut.archive: byte '
has err 'the archive ends before the collection shop.constant does'
expect 3 scan prelude.archive
for name in grown constant small; do
    has err "the archive does not have the collection shop.$name"
done
lacks err 'shop.no '
expect 3 scan part.archive
has err 'the archive ends before the collection shop.grown does'
has err 'the archive does not have the collection shop.small'
expect 3 scan noise.archive --json --quiet
has err 'bytes are skipped'
has out '"collection":"shop.small"'
expect 3 scan rotten.archive --json --quiet
has err 'the documents of shop.constant are not those that were dumped: their CRC is'
[ "$(grep -c 'CRC' err)" = 1 ] || fail "rotten.archive: $(cat err)"
has out '"collection":"shop.constant","input":"rotten.archive","documents":15,'
head -c 50 shop.archive >start.archive
expect 3 scan start.archive
has err "the archive's list of collections is damaged at byte"

# Damage designed to be slow: lengths before lengths, block headers in block headers.
python3 - <<'END'
import struct
def text(name, value):
    return b"\2" + name + b"\0" + struct.pack("<i", len(value) + 1) + value + b"\0"
def document(fields):
    return struct.pack("<i", len(fields) + 5) + fields + b"\0"
with open("lengths.bson", "wb") as out:
    count = 1000000
    out.write(b"\xff" * 8)
    for left in range(count, 0, -1):
        out.write(b"\x10a\0" + struct.pack("<i", 7 * left + 4))
    out.write(b"\x7e\x7eX\x7e\x7e\x7e\0")
    out.write(document(b"\x10a\0\1\0\0\0") * 3)
with open("heads.archive", "wb") as out:
    end = b"\xff" * 4
    out.write(struct.pack("<I", 0x8199e26d) + document(text(b"version", b"0.1")) + end + b"\3\0\0\0")
    for _ in range(200000):
        out.write(end + struct.pack("<i", 900000) + text(b"db", b"abcdefg"))
    head = text(b"db", b"shop") + text(b"collection", b"late") + b"\x08EOF\0"
    out.write(end + document(head + b"\0") + document(b"\x10a\0\1\0\0\0") + end)
    out.write(document(head + b"\1") + end)
END
timeout 30 "$SPILLWAY" scan lengths.bson --quiet >out 2>err
has err 'lengths.bson: byte 0: this is not a BSON document; 7000015 bytes are skipped'
has out '3 documents, 36 B'
timeout 30 "$SPILLWAY" scan heads.archive --quiet >out 2>err
has err 'heads.archive: byte 30: the archive is damaged; 4800004 bytes are skipped'
has out '1 document, 12 B'

# ---- Ctrl-C ---------------------------------------------------------------------------------------

# catches_term PID: the process runs the program and catches TERM. Before the shell's child runs the
# program, it catches TERM too, and TERM would end it.
catches_term() {
    [ "$(readlink "/proc/$1/exe")" -ef "$SPILLWAY" ] &&
        (((0x$(awk '/^SigCgt/ {print $2}' "/proc/$1/status") >> 14) & 1))
}

until_caught() {
    await "the scan catches TERM" catches_term "$1"
}

mkfifo pipe
"$SPILLWAY" scan - --format bson --quiet <pipe >out 2>err &
pid=$!
exec 3>pipe
cat grown.bson grown.bson >&3
until_caught $pid
kill -TERM $pid
cat grown.bson >&3 2>/dev/null
exec 3>&-
wait $pid
status=$?
[ "$status" = 130 ] || fail "an interrupted scan ended with $status: $(cat err)"
has out '(interrupted: results up to then)'

# Wait until the scan has read all that the test wrote to the pipe of descriptor 3.
drained() {
    python3 - <<'EOF' || fail "reading the state of the pipe"
import fcntl, struct, termios, time
for _ in range(3000):
    if struct.unpack("i", fcntl.ioctl(3, termios.FIONREAD, bytes(4)))[0] == 0:
        break
    time.sleep(0.02)
else:
    raise SystemExit("the scan does not read its input")
EOF
}

# On a pipe without further input, the scan ends by itself and reports the complete documents so far. It
# also ends on a named pipe that no process has opened for writing.
for form in bson bson.gz archive; do
    case $form in
    bson) input=grown.bson ;;
    bson.gz) gzip <grown.bson >grown.gz && input=grown.gz ;;
    archive) input=shop.archive ;;
    esac
    "$SPILLWAY" scan - --format $form --quiet <pipe >out 2>err &
    pid=$!
    exec 3>pipe
    head -c $(($(stat -c %s "$input") - 9)) "$input" >&3
    drained
    kill -INT $pid
    wait $pid
    status=$?
    exec 3>&-
    [ "$status" = 130 ] || fail "an interrupted scan of $form ended with $status: $(cat err)"
    has out '(interrupted: results up to then)'
    lacks out ' 0 documents'
    is err ''
done
mkfifo idle.bson
"$SPILLWAY" scan idle.bson --quiet >out 2>err &
pid=$!
until_caught $pid
kill -TERM $pid
wait $pid
status=$?
[ "$status" = 130 ] || fail "a scan of an idle pipe ended with $status: $(cat err)"

# An interrupted plan does not replace a complete one. A page has what was read, and says so.
# interrupted_on_pipe COMMAND FILE
interrupted_on_pipe() {
    "$SPILLWAY" "$1" idle.bson --output "$2" >out 2>err &
    pid=$!
    until_caught $pid
    kill -INT $pid
    wait $pid
    status=$?
    [ "$status" = 130 ] || fail "an interrupted $1 ended with $status: $(cat err)"
}
echo 'a complete plan' >kept.json
interrupted_on_pipe plan kept.json
is kept.json 'a complete plan'
has err 'interrupted: kept.json is unchanged'
has out 'nothing to plan in what was read before the interruption'
lacks err wrote
interrupted_on_pipe report part.html
has part.html 'The scan was interrupted'
has err 'wrote part.html'
has err 'the scan was interrupted: the page has its results up to then'

# Arrays that Spillway bounds (in heads, pages and windows) are not reported as growing. Another array
# among a head's fields is reported.
expect 0 define own.db posts --preset feed-recent --collection users --array posts --threshold 50 --page 40
expect 0 define own.db hours --layout bucket --collection hours --array events --window day \
    --time-field at --threshold 50
python3 - >events.ndjson <<'EOF' || fail "making events"
import json
for i in range(400):
    print(json.dumps({"user": i % 2, "at": {"$date": f"2025-01-01T00:{i % 60:02}:00Z"}}))
EOF
expect 0 import own.db posts events.ndjson --owner user --quiet
expect 0 import own.db hours events.ndjson --owner user --quiet
expect 0 scan own.db --max-elements 20 --quiet
has out '0 findings in '
has out 'hours.hours'
for i in $(seq 40); do
    "$SPILLWAY" append own.db posts 1 "$i" --op "op$i" --quiet >/dev/null 2>err || fail "append: $(cat err)"
done
expect 0 scan own.db --max-elements 20 --quiet # nor is the list of operation ids
has out '0 findings in '
has out 'spill.posts.ops'
python3 - >both.ndjson <<'EOF' || fail "making a head"
import json
for i in range(12):
    print(json.dumps({"_id": i, "posts": [1] * (i + 5), "other": [1] * (i + 5), "spill": {"posts": {"epoch": 1}}}))
    print(json.dumps({"_id": {"owner": i, "page": 0}, "posts": [1] * (i + 5), "spill": {"epoch": 1}}))
EOF
expect 0 scan both.ndjson --max-elements 10 --quiet
has out '1 finding in 1 collection'
has out 'both: other'

# The scan also keeps the largest arrays by bytes, whatever their rank by length.
python3 - >heavy.ndjson <<'EOF' || fail "making a large array"
import json
for i in range(30):
    print(json.dumps({"_id": i, "a": ["x" * 9000] * 50 if i == 7 else [1] * (100 + 50 * i)}))
EOF
expect 0 scan heavy.ndjson --max-elements 1000 --quiet
has out '    longest: 1550 elements'
has out '    largest: 44'
expect 0 scan heavy.ndjson --max-elements 1000 --quiet --json
python3 - out <<'EOF' || fail "the heaviest"
import json, sys
[path] = json.load(open(sys.argv[1]))["collections"][0]["paths"]
assert [owner["owner"] for owner in path["owners"]] == list(range(29, 19, -1)), path["owners"]
assert [owner["owner"] for owner in path["heaviest"]] == [7] + list(range(29, 20, -1))
heaviest = path["heaviest"][0]
assert heaviest["length"] == 50 and heaviest["bytes"] > 450000 and "growth" not in heaviest
EOF
mv out heavy.json
expect 0 plan heavy.json --quiet
