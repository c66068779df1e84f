#!/usr/bin/env bash
# import --elements of real data: a chat's rooms with their messages, releases as arrays and as maps with
# dots in their keys, advisories with versions in inner documents. Each import is killed at random
# moments (SPILLWAY_KILLS times) and resumed. elements.py compares every element with the raw file.
# Runs if SPILLWAY_DATA names a folder of data sets.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; paths have dollars in them
source "$(dirname "$0")/lib.sh"

data=${SPILLWAY_DATA:-}
for set in eol_releases/products_array eol_releases/products_map pypa_advisories/advisories \
    gitter_chat/events; do
    [ -r "$data/$set.ndjson.gz" ] || skip "SPILLWAY_DATA has no $set.ndjson.gz"
done
here=${SPILLWAY_SOURCE:?}/tests/cli
kills=${SPILLWAY_KILLS:-3}
each=1 span=300 # use every Nth document; kill after 20 to 20 + SPAN milliseconds
[ -n "${SPILLWAY_LONG:-}" ] || each=40 span=60
if on_server; then each=$((each * 10)) span=300; fi
seed_random

python3 "$here/elements.py" rooms "$data" rooms.ndjson || fail "making the rooms"
# documents NAME FILE: write every Nth document of the file to NAME.ndjson.gz.
documents() {
    local cat="cat"
    [ "${2%.gz}" = "$2" ] || cat="zcat"
    "$cat" "$2" | awk -v each="$each" 'NR % each == 1 || each == 1' | gzip -1 >"$1.ndjson.gz"
}
documents chat rooms.ndjson
documents releases "$data/eol_releases/products_array.ndjson.gz"
documents map "$data/eol_releases/products_map.ndjson.gz"
documents advisories "$data/pypa_advisories/advisories.ndjson.gz"

# imported NAME FILE OPTION...: import with kills, and compare.
imported() {
    local name=$1 file=$2
    shift 2
    expect 0 define "$db" "$name" --layout outlier --collection "$name" --array elements \
        --page-collection "$name.pages" --threshold 100 --page 50 --op-window 16 --quiet "${define[@]}"
    killed_import "$kills" 20 "$span" "$name" "$file.ndjson.gz" "$@"
    expect 0 export "$db" "$name" --relaxed
    mv out elements
    expect 0 export "$db" "$name" --documents --plain --relaxed
    python3 "$here/elements.py" check "$file.ndjson.gz" elements "$@" "${check[@]}" --heads out \
        --collection "$name" || fail "elements.py check $name"
    echo "$killed kills: $name"
}

new_store
define=() check=()
imported rooms chat --elements log.messages --fields
imported versions map --elements versions --entries-as version --fields
imported released map --elements releases --entries-as cycle --fields
imported inner advisories --elements 'affected.$.versions' --owner-inner package=package.name --fields
imported places advisories --elements 'affected.$.ranges' --owner-inner at --fields
define=(--keep oldest)
imported references advisories --elements references --fields
define=(--order newest-first) check=(--backwards)
imported products releases --elements versions --fields
clean "$db"
