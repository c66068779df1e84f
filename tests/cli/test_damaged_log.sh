#!/usr/bin/env bash
# A log that was damaged after its writer was killed: no command reads or copies such a store without
# --partial, verify reports the damage, and repair cuts the log and keeps the cut part.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

# A store of a killed writer, with about 300 KB in its log.
seq 400000 | awk '{ printf "{\"by\": \"u%d\", \"n\": %d, \"text\": \"some words %d\"}\n", $1 % 50, $1, $1 * 7919 % 10007 }' >events.ndjson
expect 0 define db ev --preset feed-recent
"$SPILLWAY" import db ev events.ndjson --owner by --quiet 2>/dev/null &
writer=$!
for ((i = 0; i < 600; i++)); do
    log=$(find db -name '*.log' -size +300k | head -1)
    [ -n "$log" ] && break
    sleep 0.05
done
kill -9 "$writer"
wait "$writer" 2>/dev/null
[ -n "$log" ] || fail "the import wrote no log"
log=$(find db -name '*.log' -printf '%s %p\n' | sort -n | tail -1)
size=${log%% *} log=${log#* }
expect 0 verify db
whole=$(sed -n 's/.*"elements":\([0-9]*\).*/\1/p' out)

place=$((size - 150000))
flip_bit "$log" $place
cp "$log" original.log

# ---- commands that read refuse -------------------------------------------------------------------

expect 1 verify db
has out "store: "
has out "${log##*/}"
expect 1 verify db --json
has out '{"definition":null,"owner":null,"page":-1,"invariant":0,"text":'
for command in 'export db ev' 'read db ev u1' 'count db ev u1' 'stats db' 'stats db ev u1' 'explain db ev u1' \
    'threshold db ev' 'scan db' 'plan db' 'report db -o page.html' 'define db ev' 'copy db target' 'backup db saved' 'append db ev u1 1' 'trim db ev u1 --keep 1' \
    'drop db ev u1 --yes' 'import db ev events.ndjson --owner by'; do
    # shellcheck disable=SC2086 # words
    expect 3 $command
    has err "${log##*/}"
    has err "byte "
done
[ -e saved ] && fail "a backup of a damaged store was made without --partial"
# With --partial, an owner that lost elements is still an error, but the other owners are read.
for command in 'scan db --partial' 'export db ev --partial' 'stats db --partial' 'copy db target --partial'; do
    # shellcheck disable=SC2086 # words
    "$SPILLWAY" $command >out 2>err
    has err "showing only what can be read"
    [ -s out ] || fail "spillway $command shows nothing"
done
expect 0 backup db saved --partial
expect 1 verify saved
expect 0 repair saved --yes
clean saved
cmp -s "$log" original.log || fail "reading changed the log"

# ---- repair --------------------------------------------------------------------------------------

expect 1 repair db --dry-run
has out "${log##*/}: cannot be read from byte "
has out "elements written"
mv out report
behind=$(sed -n 's/.*"elements":\([0-9]*\).*/\1/p' report)
listed=$(sed -n 's/.*behind the cut: \([0-9]*\) elements.*/\1/p' report | awk '{ sum += $1 } END { print sum }')
[ "$behind" = "$listed" ] || fail "the summary has $behind elements behind the cut, the list $listed"
[ "$behind" -gt 0 ] || fail "no element behind the cut is counted"
cut=$(sed -n 's/.*"offset":\([0-9]*\).*/\1/p' report)
if [ "$cut" -le $((place - 100000)) ] || [ "$cut" -gt "$place" ]; then
    fail "the cut is at $cut, the damage at $place of $size"
fi
expect 1 repair db --dry-run --json
has out '"definition":"ev","owner":"u'
expect 2 repair db </dev/null
has err "--yes"
cmp -s "$log" original.log || fail "repair changed the log without an answer"

expect 0 repair db --yes
has out '"kept":"damaged-'
kept=db/$(sed -n 's/.*"kept":"\([^"]*\)".*/\1/p' out)
cmp -s "$kept" original.log || fail "repair did not keep the log unchanged"
expect 0 verify db
has out '"findings":0'
now=$(sed -n 's/.*"elements":\([0-9]*\).*/\1/p' out)
# At least one record is unreadable, and none is read twice.
if [ "$now" -ge $((whole - behind)) ] || [ "$now" -le $((whole - behind - 4000)) ]; then
    fail "of $whole elements, $behind are readable behind the cut, but $now remain"
fi
expect 0 append db ev u1 '"again"'
cmp -s "$kept" original.log || fail "a writer changed the log that repair kept"
expect 0 repair db
expect 0 import db ev events.ndjson --owner by --quiet

# ---- CURRENT -------------------------------------------------------------------------------------

flip_bit db/CURRENT 3
for command in 'verify db' 'export db ev' 'append db ev u1 1'; do
    # shellcheck disable=SC2086 # words
    expect 3 $command
    has err "CURRENT"
done
