#!/usr/bin/env bash
# A damaged database file: undamaged arrays are exported in full, damaged ones are named, and the exit
# code reports an error.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

OWNERS=40 EACH=200

# Elements of about 90 bytes that do not compress well, for all owners in turn.
for ((i = 0; i < OWNERS * EACH; i++)); do
    printf '{"_id": %d, "by": "u%02d", "text": "%05d%05d%05d%05d"}\n' \
        "$i" $((i % OWNERS)) $RANDOM $RANDOM $RANDOM $RANDOM
done >events.ndjson
expect 0 define db ev --preset feed-recent --threshold 20 --page 30
expect 0 import db ev events.ndjson --owner by
expect 0 export db ev
mv out whole
clean db

table=$(find db -name '*.sst' -printf '%s %p\n' | sort -n | tail -1)
size=${table%% *} table=${table#* }
flip_bit "$table" $((size / 3))

# ---- export, stats, verify -----------------------------------------------------------------------

expect 3 export db ev
mv out part
mv err damage
hit=$(sed -n 's/^spillway: skipped: owner "\(u[0-9]*\)" of .*/\1/p' damage)
[ -n "$hit" ] || fail "export names no damaged owner: $(cat damage)"
[ "$(wc -w <<<"$hit")" -le 3 ] || fail "one damaged bit affects more than three owners: $hit"
has damage "${table##*/}" # the file is named
tail -1 damage | grep -q '^spillway: owner "u[0-9]*" of ' || fail "the error does not come last: $(cat damage)"
for ((i = 0; i < OWNERS; i++)); do
    owner=$(printf 'u%02d' "$i")
    grep -qx "$owner" <<<"$hit" && continue
    cmp -s <(grep -F "\"owner\":\"$owner\"" whole) <(grep -F "\"owner\":\"$owner\"" part) ||
        fail "owner $owner was not damaged, but its export is incomplete"
done
expect 3 export db ev --documents
for owner in $hit; do
    has err "skipped: owner \"$owner\""
done
for ((i = 0; i < OWNERS; i++)); do
    owner=$(printf 'u%02d' "$i")
    grep -qx "$owner" <<<"$hit" || has out "\"_id\" : \"$owner\""
done

sound_owners=$((OWNERS - $(wc -w <<<"$hit")))
expect 3 stats db ev
has out "ev: $sound_owners owners, $((sound_owners * EACH)) elements"
for owner in $hit; do
    has err "owner \"$owner\""
done
expect 3 stats db --json
has out "\"owners\":$sound_owners,\"elements\":$((sound_owners * EACH)),"

expect 1 verify db
for owner in $hit; do
    has out "owner \"$owner\", "
done
[ "$(sed -n 's/^ev: owner \("u[0-9]*", [a-z0-9 ]*\), .*/\1/p' out | sort | uniq -d | wc -l)" = 0 ] ||
    fail "verify lists a document twice: $(cat out)"
[ "$(grep -c '^ev: ' out)" = "$(sed -n 's/.*"findings":\([0-9]*\).*/\1/p' out)" ] ||
    fail "verify counts and lists different numbers of findings"
expect 1 verify db ev --json
owner=$(head -1 <<<"$hit")
has out "{\"definition\":\"ev\",\"owner\":\"$owner\",\"page\":"
expect 3 export db ev "$owner"
[ "$(grep -o "\"$owner\"" err | wc -l)" = 1 ] || fail "the owner is named more than once: $(cat err)"

# A copy leaves out the damaged owners, and says how to read what is left of them.
expect 3 copy db copied --partial
has err " copied; damaged owners are left out: \`spillway export STORE NAME OWNER --partial' writes what can be read of one"
! grep -q 'run the same command' err || fail "a copy of what can be read has nothing to continue: $(cat err)"
expect 0 export copied ev --quiet
[ -s out ] || fail "the copy is empty"
clean copied

# ---- backup --------------------------------------------------------------------------------------

expect 3 backup db saved
has err "db/${table##*/}: "
[ -e saved ] && fail "a backup of a damaged store was made without --partial"
expect 0 backup db saved --partial
has err "db/${table##*/}: "
expect 1 verify saved

# An element that is large enough for a file of its own.
expect 0 define large ev --preset feed-recent
head -c 1500000 /dev/urandom | base64 -w 0 | sed 's/.*/{"by": "u1", "text": "&"}/' >large.ndjson
expect 0 import large ev large.ndjson --owner by
expect 0 backup large saved-large
clean saved-large
blob=$(find large -name '*.blob')
size=$(stat -c %s "$blob")
for at in 1 50 $((size / 2)) $((size - 10)); do
    cp "$blob" sound.blob
    flip_bit "$blob" "$at"
    expect 3 backup large saved-blob
    has err "$blob: "
    [ -e saved-blob ] && fail "a backup with a damaged blob file was made"
    cp sound.blob "$blob"
done
expect 0 backup large saved-blob

# ---- the records of the owners' other fields -----------------------------------------------------

# They come first in the table: 2000 owners have several blocks of them.
seq 6000 | awk '{ printf "{\"by\": \"u%d\", \"n\": %d}\n", $1 % 2000, $1 }' >many.ndjson
expect 0 define many ev --preset feed-recent
expect 0 import many ev many.ndjson --owner by
expect 0 export many ev
mv out whole
flip_bit "$(find many -name '*.sst' -printf '%s %p\n' | sort -n | tail -1 | cut -d ' ' -f 2)" 3000
expect 3 export many ev
expect 0 export many ev --partial
cmp -s out whole || fail "the export lacks owners whose other fields cannot be read"
has err "other fields cannot be read"
expect 1 verify many
has out '"owners":2000,"pages":0,"elements":6000,'
has out "the record of the other fields"
