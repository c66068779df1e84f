#!/usr/bin/env bash
# Readers while writers work: a reader keeps the view that it opened, whatever writers delete meanwhile.
# A backup is complete although writers open and close the store meanwhile.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

# element BYTES TAG: print a JSON object of that size that does not compress well.
element() {
    printf '{"tag":"%s","x":"' "$2"
    head -c "$(($1 / 2))" /dev/urandom | od -An -v -tx1 | tr -d ' \n'
    printf '"}\n'
}

# ---- a slow export during trims ------------------------------------------------------------------

# Elements on both sides of 512 KiB: table files and blob files. The pipe holds 64 KiB, so the
# export is still at its first elements when the writers delete the files of the later ones.
expect 0 define db feed --preset feed-recent
for i in 1 2 3 4 5 6; do
    bytes=$((i == 3 ? 300000 : 600000))
    element "$bytes" "old$i" | "$SPILLWAY" append db feed ada - >append.out 2>&1 ||
        fail "append $i: $(cat append.out)"
done
mkfifo pipe
"$SPILLWAY" export db feed >pipe 2>export.err &
exporter=$!
exec 8<pipe
IFS= read -r -n 1 first <&8
# deleted KIND: print the files of that kind that are in the view, but no longer in the folder.
files=$(ls db)
deleted() {
    local file
    for file in $files; do
        [ "${file##*.}" != "$1" ] || [ -e "db/$file" ] || echo "$file"
    done
}
expect 0 trim db feed ada --keep 1
for round in 1 2 3 4 5; do
    expect 0 append db feed bob "{\"round\":$round}"
    [ -z "$(deleted sst)" ] || [ "$(deleted blob | wc -l)" -lt 3 ] || break
done
[ -n "$(deleted sst)" ] || fail "the writers deleted no table file of the reader's view"
[ -n "$(deleted blob)" ] || fail "the writers deleted no blob file of the reader's view"
{ printf %s "$first" && cat <&8; } >exported
exec 8<&-
wait "$exporter" || fail "the export ended with $?: $(head -c 400 export.err)"
[ "$(wc -l <exported)" = 6 ] || fail "the export has $(wc -l <exported) of 6 elements"
for i in 1 2 3 4 5 6; do
    grep -q "\"old$i\"" exported || fail "the export lacks element $i"
done
clean db
counts db feed ada 1

# ---- readers and backups while writers open and close the store ----------------------------------

# Each append is a process that opens, writes, and closes the store. A reader that starts after an
# append was acknowledged must see it, even if a file is deleted while the reader opens the store.
expect 0 define busy feed --preset feed-recent --threshold 20 --page 20
echo 0 >acknowledged
(
    n=0
    while [ ! -e stop ]; do
        "$SPILLWAY" append busy feed ada "$n" >writer.out 2>writer.err || {
            cp writer.err writer.failed
            break
        }
        n=$((n + 1))
        echo "$n" >acknowledged.new && mv acknowledged.new acknowledged
    done
) &
writer=$!
cleanups+=("touch stop; wait $writer")

# at_least STORE N: the store has the elements 0, 1, ... without gaps, and at least N of them.
at_least() {
    local lines
    expect 0 export "$1" feed --relaxed
    lines=$(wc -l <out)
    [ "$lines" -ge "$2" ] || fail "$1 has $lines elements, but $2 were acknowledged"
    sed -n 's/.*"element":\([0-9]*\).*/\1/p' out | sort -n | awk '$1 != NR - 1 { exit 1 }' ||
        fail "$1 lacks an element between others: $(tail -3 out)"
}

for round in $(seq "${SPILLWAY_ROUNDS:-6}"); do
    before=$(cat acknowledged)
    expect 0 backup busy "copy$round" --quiet
    at_least "copy$round" "$before"
    clean "copy$round"
    expect 0 append "copy$round" feed ada '"more"'
    before=$(cat acknowledged)
    expect 0 count busy feed ada
    counted=$(sed 's/.*"count":\([0-9]*\).*/\1/' out)
    [ "$counted" -ge "$before" ] || fail "count is $counted, but $before were acknowledged"
    before=$(cat acknowledged)
    at_least busy "$before"
    rm -rf "copy$round"
done
touch stop
wait "$writer"
[ ! -e writer.failed ] || fail "the writer failed: $(cat writer.failed)"
[ "$(cat acknowledged)" -gt 10 ] || fail "the writer made only $(cat acknowledged) appends"
