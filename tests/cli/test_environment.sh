#!/usr/bin/env bash
# Failures of the program's environment: a full disk, a folder without permission, another writer, a
# library that is missing.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars in it
source "$(dirname "$0")/lib.sh"

script=$OLDPWD/$0
[ "${0#/}" = "$0" ] || script=$0

for i in {1..2000}; do
    echo "{\"_id\": $i, \"by\": \"u$((i % 7))\", \"text\": \"$RANDOM$RANDOM$RANDOM$RANDOM\"}"
done >events.ndjson

# ---- a full disk ---------------------------------------------------------------------------------

count_elements() {
    expect 0 stats disk/db ev --json
    sed 's/.*"owners":[0-9]*,"elements":\([0-9]*\),.*/\1/' out
}

# Fill a small disk with imports until one fails, then free space and continue. More than half of the
# disk becomes free, because the data in the log is then also written to tables. Runs in the mount
# namespace that has the disk.
full_disk() {
    mkdir -p disk
    mount -t tmpfs -o size=28m tmpfs disk || return 77
    full_disk_import
    rm -r disk/*
    full_disk_append fsync
    rm -r disk/*
    full_disk_append log
    umount disk
}

full_disk_import() {
    expect 0 define disk/db ev --preset feed-recent
    head -c 14000000 /dev/zero >disk/ballast
    local n=0 status=0
    while [ "$status" = 0 ] && [ "$n" -lt 400 ]; do
        n=$((n + 1))
        "$SPILLWAY" import disk/db ev events.ndjson --owner by --as "n$n" >out 2>err
        status=$?
    done
    [ "$status" = 3 ] || fail "a full disk ended import $n with $status"
    has err "space"
    # The store must have at least the reported records. A reader needs no free space.
    local reported
    reported=$(sed -n 's/^spillway: .*\b\([0-9][0-9]*\) records are imported.*/\1/p' err)
    local there
    there=$(count_elements)
    [ "$there" -ge $(((n - 1) * 2000 + ${reported:-0})) ] ||
        fail "$((n - 1)) imports of 2000 and one of ${reported:-0} records gave $there elements"
    clean disk/db
    rm disk/ballast
    # If only closing failed, the import was complete; otherwise the rest is imported now.
    "$SPILLWAY" import disk/db ev events.ndjson --owner by --as "n$n" >out 2>err
    case $? in
    0) ;;
    4) has err "already (2000 records)" ;;
    *) fail "the import did not continue: $(cat err)" ;;
    esac
    expect 0 stats disk/db ev --json
    has out "\"elements\":$((n * 2000)),"
    clean disk/db
}

# Append batches to one owner until the disk is full. After space is freed, the owner must have all
# acknowledged elements.
full_disk_append() {
    local text
    # The head is so large that a batch of ten is one part.
    text=$(head -c 60000 /dev/urandom | base64 -w 0)
    for i in {1..10}; do echo "{\"n\": $i, \"text\": \"$text\"}"; done >batch.ndjson
    expect 0 define disk/db ev --preset feed-recent --max-bytes 4MiB
    head -c 14000000 /dev/zero >disk/ballast
    local n=0 status=0
    while [ "$status" = 0 ] && [ "$n" -lt 400 ]; do
        n=$((n + 1))
        "$SPILLWAY" append disk/db ev alice - --op "n$n@0" --durability "$1" \
            <batch.ndjson >out 2>err
        status=$?
    done
    [ "$status" = 3 ] || fail "a full disk ended append $n with $status"
    has err "space"
    local there
    there=$(count_elements)
    [ "$there" -ge $(((n - 1) * 10)) ] || fail "$((n - 1)) batches of 10 gave $there elements"
    [ $((there % 10)) = 0 ] || fail "a batch is stored in part: $there elements"
    clean disk/db
    rm disk/ballast
    expect 0 append disk/db ev alice - --op "n$n@0" --durability "$1" <batch.ndjson
    counts disk/db ev alice $((n * 10))
    clean disk/db
}

if [ "${1:-}" = full-disk ]; then
    full_disk
    exit
fi
if unshare -rm true 2>/dev/null; then
    unshare -rm "$BASH" "$script" full-disk || fail "full disk"
else
    echo "no mount namespaces here: the full disk is not tested" >&2
fi

# ---- another writer ------------------------------------------------------------------------------

expect 0 define db ev --preset feed-recent
mkfifo lines
"$SPILLWAY" append db ev alice - <lines >appended 2>appender.err &
writer=$!
cleanups+=("kill $writer 2>/dev/null")
exec 3>lines
for i in {1..1000}; do echo "$i"; done >&3
await "the writer acknowledges, or ends" eval '[ -s appended ] || ! kill -0 "$writer" 2>/dev/null'
expect 3 append db ev bob 1
has err "$writer"
expect 3 drop db ev --yes
expect 0 count db ev alice # readers work at the same time
expect 0 verify db
exec 3>&-
wait "$writer" || fail "the writer failed: $(cat appender.err)"
counts db ev alice 1000
expect 0 append db ev bob 1

# ---- killed --------------------------------------------------------------------------------------

# Run without MONGOC_DISABLE_SHM. The program itself must keep the server's driver from leaving a file in
# shared memory: the next process with the same id would print a warning about it.
env -u MONGOC_DISABLE_SHM "$SPILLWAY" append db ev alice - <lines >doomed 2>doomed.err &
writer=$!
cleanups+=("kill -9 $writer 2>/dev/null")
exec 3>lines
for i in {1..1000}; do echo "$i"; done >&3
await "the writer acknowledges, or ends" eval '[ -s doomed ] || ! kill -0 "$writer" 2>/dev/null'
kill -9 "$writer"
wait "$writer" 2>/dev/null
exec 3>&-
[ -s doomed ] || fail "the writer ended before it was killed: $(cat doomed.err)"
[ ! -e "/dev/shm/mongoc-$writer" ] || fail "a killed program leaves a file in /dev/shm"
counts db ev alice 2000

# ---- no permission -------------------------------------------------------------------------------

if [ "$(id -u)" = 0 ]; then
    chmod 755 "$work"
    install -m 755 "$SPILLWAY" program
    unprivileged() { setpriv --reuid=65534 --regid=65534 --clear-groups ./program "$@"; }
else
    unprivileged() { "$SPILLWAY" "$@"; }
fi
mkdir closed
chmod 555 closed
touch out err
unprivileged define closed/db ev --preset feed >out 2>err
[ $? = 3 ] || fail "a store was made in a folder without write permission"
has err "closed"
has err "ermission"
[ -z "$(ls -A closed)" ] || fail "something was left in the closed folder"
chmod 755 closed
expect 0 define closed/db ev --preset feed --mode 0644
expect 0 append closed/db ev alice 1
chmod -R a-w closed
unprivileged append closed/db ev alice 2 >out 2>err
[ $? = 3 ] || fail "something was appended to a store without write permission"
has err "ermission"
unprivileged count closed/db ev alice >out 2>err || fail "a store without write permission cannot be read: $(cat err)"
has out '"count":1'
chmod -R u+w closed
counts closed/db ev alice 1
chmod 000 events.ndjson
if [ "$(id -u)" != 0 ]; then
    expect 3 import db ev events.ndjson --owner by
    has err "ermission"
fi
chmod 644 events.ndjson

# ---- libmongoc, which only stores on a server need -----------------------------------------------

# Print how many times a command loads libmongoc.
loads_of_libmongoc() {
    LD_DEBUG=files "$SPILLWAY" "$@" 2>&1 | grep -c 'file=libmongoc-1.0.*generating link map'
}

expect 0 define here feed --preset feed
[ "$(loads_of_libmongoc --version)" = 0 ] || fail "--version loads libmongoc"
[ "$(loads_of_libmongoc append here feed ada '{"n":1}')" = 0 ] || fail "an append loads libmongoc"
[ "$(loads_of_libmongoc stats 'mongodb://127.0.0.1:1/db?serverSelectionTimeoutMS=100')" = 1 ] ||
    fail "a store on a server did not load libmongoc"

mkdir broken
echo "not a library" >broken/libmongoc-1.0.so.0
export LD_LIBRARY_PATH=$PWD/broken
expect 3 stats mongodb://127.0.0.1:1/db
has err "stores on a server need libmongoc-1.0.so.0, which cannot be loaded"
has err "install libmongoc"
expect 3 scan mongodb://127.0.0.1:1/db --read-preference secondary
has err "install libmongoc"
expect 0 append here feed ada '{"n":2}'
unset LD_LIBRARY_PATH
