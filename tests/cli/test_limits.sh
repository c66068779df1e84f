#!/usr/bin/env bash
# Limits of a process: output, file size, memory, open files. If one is reached, the program reports
# it, exits with 3, and loses no acknowledged element.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

expect 0 define db feed --preset feed-recent --quiet

# ---- output that is lost -------------------------------------------------------------------------

echo '{"_id":1,"a":[1,2,3]}' >documents.ndjson
expect 0 append db feed ada 1
cat >commands <<'END'
append db feed ada 2 --json
define db --json
count db feed ada
read db feed ada
export db feed
stats db
verify db
repair db
explain db feed ada
scan documents.ndjson
plan documents.ndjson
report documents.ndjson
threshold feed
--help
--version
help append
append --help
END
while read -r line; do
    for where in closed full; do
        # shellcheck disable=SC2086 # its words
        case $where in
        closed) "$SPILLWAY" $line >&- 2>err </dev/null ;;
        full) "$SPILLWAY" $line >/dev/full 2>err </dev/null ;;
        esac
        got=$?
        case $line in
        threshold*) [ "$got" = 3 ] || [ "$got" = 2 ] || fail "$where: $line ended with $got" ;;
        *) [ "$got" = 3 ] || fail "$where: $line ended with $got, although its output is lost" ;;
        esac
    done
done <commands
clean db

# Files of the store must not get the number of a closed descriptor: messages would be written to them.
"$SPILLWAY" append db feed ada 3 --json <&- >&- 2>&-
[ $? = 3 ] || fail "append without descriptors ended with another code"
echo 4 | "$SPILLWAY" append db feed ada - --json >out 2>&- || fail "append without stderr failed"
"$SPILLWAY" append db feed ada - <&- >out 2>err && fail "append read a closed stdin"
clean db
grep -aq spillway db/0*.log db/CURRENT db/MANIFEST-* && fail "a message is in a file of the store"
expect 0 count db feed ada

# ---- the size of a file --------------------------------------------------------------------------

# line BYTES: print an element of that size.
line() {
    printf '"'
    head -c "$(($1 / 2))" /dev/urandom | od -An -v -tx1 | tr -d ' \n'
    printf '"\n'
}

for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do line 20000; done >lines
expect 0 append db feed large 0
(ulimit -f 128 && exec "$SPILLWAY" append db feed large - --json <lines >out 2>err)
got=$?
[ "$got" = 3 ] || fail "append beyond the file size ended with $got"
has err "File too large"
has err "raise the file size limit"
acknowledged=$(grep -c seq out)
expect 0 count db feed large
counted=$(sed 's/.*"count":\([0-9]*\).*/\1/' out)
[ "$counted" -gt "$acknowledged" ] || fail "1 + $acknowledged appends were acknowledged, but $counted are stored"
clean db
expect 0 append db feed large - <lines
# The limit may meet any file of the engine. Without room, a command ends with 3, and loses nothing.
expect 0 define small feed --preset feed-recent
expect 0 append small feed ada 1 2 3
kept=3
for limit in 1 2 3 4 6 8 12 18; do
    for change in "append small feed ada 4" "trim small feed ada --keep 100" "define new$limit feed --preset feed"; do
        # shellcheck disable=SC2086 # its words
        (ulimit -c 0 -f "$limit" && exec "$SPILLWAY" $change >out 2>err)
        got=$?
        [ "$got" = 0 ] || [ "$got" = 3 ] || fail "$change ended with $got if files have $limit KB: $(cat err)"
        [ "$got" = 0 ] || has err "File too large"
        if [ "$got" = 0 ] && [ "${change%% *}" = append ]; then kept=$((kept + 1)); fi
    done
done
expect 0 count small feed ada
counted=$(sed 's/.*"count":\([0-9]*\).*/\1/' out)
[ "$counted" -ge "$kept" ] || fail "$kept elements were acknowledged, but $counted are stored"
clean small

(ulimit -f 1 && exec "$SPILLWAY" report documents.ndjson -o page.html >out 2>err)
got=$?
[ "$got" = 3 ] || fail "report beyond the file size ended with $got"
[ ! -e page.html ] || fail "a partial report exists"

# ---- open files ----------------------------------------------------------------------------------

(ulimit -n 12 && exec "$SPILLWAY" count db feed ada >out 2>err)
got=$?
[ "$got" = 3 ] || fail "count with 12 open files ended with $got"

# ---- memory --------------------------------------------------------------------------------------

# The sanitizers reserve more address space than any limit here.
grep -q '^SPILLWAY_SANITIZE:[A-Z]*=.' "$SPILLWAY_BUILD/CMakeCache.txt" && exit

least=40000
until (ulimit -v "$least" && "$SPILLWAY" --version >out 2>err); do
    least=$((least + 4000))
    if [ "$least" -gt 4000000 ]; then
        fail "the program does not start in 4 GB: $(cat err)"
        exit
    fi
done
expect 0 count db feed ada
before=$(sed 's/.*"count":\([0-9]*\).*/\1/' out)
done=0 denied=0 ended=0
for more in 0 2000 4000 6000 8000 10000 14000 20000 40000 80000 200000; do
    (ulimit -v $((least + more)) && exec "$SPILLWAY" append db feed ada 5 >out 2>err)
    got=$?
    case $got in
    0) done=$((done + 1)) ;;
    3)
        denied=$((denied + 1))
        grep -qE 'memory' err || fail "$((least + more)) kB: the message is $(cat err)"
        ;;
    *) # RocksDB itself, in a narrow range: an assertion of its compression
        ended=$((ended + 1))
        echo "$((least + more)) kB: ended with $got: $(cat err)"
        ;;
    esac
done
[ "$done" -ge 2 ] || fail "only $done appends succeeded with little memory"
[ "$denied" -ge 1 ] || fail "no append ran out of memory"
[ "$ended" -le 1 ] || fail "$ended appends ended by a signal"
expect 0 count db feed ada
after=$(sed 's/.*"count":\([0-9]*\).*/\1/' out)
[ "$after" -ge $((before + done)) ] || fail "$done appends acknowledged, but $((after - before)) are stored"
clean db
