#!/usr/bin/env bash
# Real data in every suitable layout: edits of a wiki by channel and hour, a chat by room and by user,
# advisories by package and year. Every element, and every total, average, minimum and maximum, must
# equal what real_layouts.py computes from the raw files. The test uses every 120th message of the chat
# and every 24th line of the other files, or with SPILLWAY_LONG all lines. On a server it uses every
# 120th or 800th line.
# Runs if SPILLWAY_DATA names a folder of data sets.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

data=${SPILLWAY_DATA:-}
for file in wiki_edits/events gitter_chat/events pypa_advisories/advisories; do
    [ -r "$data/$file.ndjson.gz" ] || skip "SPILLWAY_DATA has no $file.ndjson.gz"
done
here=${SPILLWAY_SOURCE:?}/tests/cli
figures() {
    python3 "$here/real_layouts.py" "$@" || fail "real_layouts.py $*"
}
# prepare N M SET...: use every Nth line of the files, on a server every Mth; with SPILLWAY_LONG all.
prepare() {
    if [ -z "${SPILLWAY_LONG:-}" ]; then
        SPILLWAY_EACH=$1
        on_server && SPILLWAY_EACH=$2
        export SPILLWAY_EACH
    fi
    shift 2
    figures prepare "$data" "$@"
}

# in_windows NAME SET VALUE N: check all elements, and the statistics of the N largest owners.
in_windows() {
    local statistics=() owner rest file
    expect 0 export "$db" "$1"
    mv out elements
    expect 0 export "$db" "$1" --documents --plain
    mv out documents
    while IFS=$'\t' read -r owner rest; do
        expect 0 count "$db" "$1" "$owner"
        has out "\"count\":$rest,"
        expect 0 stats "$db" "$1" "$owner" --json
        file=statistics.${#statistics[@]}
        mv out "$file"
        statistics+=(--statistics "$file")
    done < <(head -"$4" "$2.owners")
    [ "${#statistics[@]}" -gt 1 ] || fail "$1 has no owners"
    figures check "$data" "$2" bucket --value "$3" --elements elements --documents documents \
        "${statistics[@]}"
    clean "$db"
}

# in_one_array NAME SET LAYOUT [CHECK...]: check all elements, and the counts of the largest owners.
in_one_array() {
    local name=$1 set=$2 layout=$3 owner count
    shift 3
    expect 0 export "$db" "$name"
    mv out elements
    if [ "$layout" != array ]; then
        expect 0 export "$db" "$name" --documents --plain
        set -- "$@" --documents out
    fi
    figures check "$data" "$set" "$layout" --elements elements "$@"
    while IFS=$'\t' read -r owner count; do
        counts "$db" "$name" "$owner" "$count"
    done < <(head -10 "$set.owners")
}

# ---- edits by channel and hour -------------------------------------------------------------------

prepare 24 120 edits advisories
bucket=(--preset reviews-bucket --array elements --page-owner owner --window-field window
    --stats-average average --quiet)
new_store
expect 0 define "$db" edits "${bucket[@]}" --window hour --time-field at --value-field added \
    --page 200
expect 0 import "$db" edits edits.ndjson --owner channel --quiet
in_windows edits edits added 60 # more than the 51 owners

# ---- advisories by package, by year and in one array ---------------------------------------------

new_store
expect 0 define "$db" years "${bucket[@]}" --window year --time-field publishedAt \
    --value-field versionCount --page 20
expect 0 import "$db" years advisories.ndjson --owner package --quiet
in_windows years advisories versionCount 20
expect 0 define "$db" referenced --layout reference --collection packages --array advisories \
    --page-collection advisories --page-owner package --time-field publishedAt \
    --value-field versionCount --quiet
expect 0 import "$db" referenced advisories.ndjson --owner package --quiet
in_one_array referenced advisories reference --value versionCount --summary advisories averageRating
clean "$db"

# ---- a chat, by room and by user -----------------------------------------------------------------

prepare 120 800 room user
for owner in room user; do
    new_store
    for keep in newest oldest; do
        expect 0 define "$db" "$keep" --layout outlier --keep "$keep" --threshold 100 --page 200 \
            --collection "$keep" --page-collection "$keep.pages" --quiet
        expect 0 import "$db" "$keep" "$owner.ndjson" --owner "$owner" --quiet
        in_one_array "$keep" "$owner" array
    done
    expect 0 define "$db" referenced --layout reference --collection owners --array messages \
        --page-collection messages --page-owner "$owner" --time-field at \
        --value-field text_bytes --stats-average averageBytes --quiet
    expect 0 import "$db" referenced "$owner.ndjson" --owner "$owner" --quiet
    in_one_array referenced "$owner" reference --value text_bytes --summary messages averageBytes
    expect 0 define "$db" subset --layout subset --top 5 --top-field top --sort-by '' \
        --collection newest --array messages --page-collection newestMessages \
        --page-owner "$owner" --time-field at --value-field text_bytes \
        --stats-average averageBytes --quiet
    expect 0 import "$db" subset "$owner.ndjson" --owner "$owner" --quiet
    in_one_array subset "$owner" subset --value text_bytes --summary messages averageBytes
    clean "$db"
done
