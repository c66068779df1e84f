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

# killed NAME FILE OPTION...: import, kill the program at random moments and repeat, and compare.
killed() {
    local name=$1 file=$2 done=0 pid status=137
    shift 2
    expect 0 define "$db" "$name" --layout outlier --collection "$name" --array elements \
        --page-collection "$name.pages" --threshold 100 --page 50 --op-window 16 --quiet "${define[@]}"
    while [ "$status" = 137 ]; do
        "$SPILLWAY" import "$db" "$name" "$file.ndjson.gz" "$@" --quiet >out 2>err &
        pid=$!
        if [ "$done" -lt "$kills" ]; then
            sleep "0.$(printf %03d $((20 + RANDOM % span)))"
            kill -9 "$pid" 2>kill.err
        fi
        wait "$pid" 2>wait.err
        status=$?
        done=$((done + (status == 137)))
    done
    [ "$status" = 0 ] || grep -q 'has nothing new' err || fail "$name ended with $status: $(cat err)"
    expect 0 export "$db" "$name" --relaxed
    mv out elements
    expect 0 export "$db" "$name" --documents --plain --relaxed
    python3 "$here/elements.py" check "$file.ndjson.gz" elements "$@" "${check[@]}" --heads out \
        --collection "$name" || fail "elements.py check $name"
    echo "$done kills: $name"
}

new_store
define=() check=()
killed rooms chat --elements log.messages --fields
killed versions map --elements versions --entries-as version --fields
killed released map --elements releases --entries-as cycle --fields
killed inner advisories --elements 'affected.$.versions' --owner-inner package=package.name --fields
killed places advisories --elements 'affected.$.ranges' --owner-inner at --fields
define=(--keep oldest)
killed references advisories --elements references --fields
define=(--order newest-first) check=(--backwards)
killed products releases --elements versions --fields
clean "$db"
