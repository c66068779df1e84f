#!/usr/bin/env bash
# Round trips of real data in each layout: a chat's messages, advisories' references and products' releases (arrays, and
# maps) are imported, exported as elements and as documents, and imported again. Each import is killed at random moments (SPILLWAY_KILLS
# times) and resumed. exported.py compares every element with the raw file.
# Runs if SPILLWAY_DATA names a folder of data sets.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2086,SC2154 # lib.sh is not followed; layouts are lists of words
source "$(dirname "$0")/lib.sh"

data=${SPILLWAY_DATA:-}
for set in pypa_advisories/advisories gitter_chat/events eol_releases/products_array eol_releases/products_map; do
    [ -r "$data/$set.ndjson.gz" ] || skip "SPILLWAY_DATA has no $set.ndjson.gz"
done
here=${SPILLWAY_SOURCE:?}/tests/cli
each=1 span=300 kills=3 # use every Nth record; kill after 20 to 20 + SPAN milliseconds
[ -n "${SPILLWAY_LONG:-}" ] || each=40 span=60 kills=1
kills=${SPILLWAY_KILLS:-$kills}
if on_server; then each=$((each * 10)) span=300; fi
seed_random
# records FILE NAME: write every Nth record of a data set to NAME.ndjson.
records() {
    zcat "$data/$1.ndjson.gz" | awk -v each="$each" 'NR % each == 1 || each == 1' >"$2.ndjson"
}
records gitter_chat/events chat
records pypa_advisories/advisories advisories
records eol_releases/products_array products
records eol_releases/products_map maps

# import_killed FILE OPTION...: import it into ev, with kills.
import_killed() {
    killed_import "$kills" 20 "$span" ev "$@"
    killed_sum=$((killed_sum + killed))
}

new_array() {
    new_store
    expect 0 define "$db" ev $1 --op-window 16 --quiet
}

# compare NAME: the array has exactly the elements of the source, with their numbers.
compare() {
    expect 0 export "$db" ev --relaxed
    python3 "$here/exported.py" "$source" out "${check[@]}" >compared || fail "$1: $(cat compared) differs"
    clean "$db"
}

# round_trip LAYOUT SOURCE OPTION...: with the options of the first import.
round_trip() {
    local layout=$1
    source=$2 killed_sum=0
    shift 2
    new_array "$layout"
    import_killed "$source" "$@"
    compare "$layout, imported"
    expect 0 export "$db" ev
    mv out elements.ndjson
    expect 0 export "$db" ev --documents
    mv out documents.ndjson
    for file in elements documents; do
        new_array "$layout"
        import_killed $file.ndjson
        compare "$layout, $file"
    done
    echo "$killed_sum kills, $source, $layout: $(cat compared)"
}

check=(--owner room)
for keep in newest oldest; do
    round_trip "--layout outlier --keep $keep --threshold 100 --page 50" chat.ndjson --owner room
done
round_trip "--layout reference" chat.ndjson --owner room
round_trip "--layout subset --sort-by text_bytes --top 5" chat.ndjson --owner room
check=(--owner room --window month)
round_trip "--layout bucket --window month --time-field at --value-field text_bytes --threshold 200" chat.ndjson --owner room
check=(--owner room --newest 200)
round_trip "--layout capped --threshold 200" chat.ndjson --owner room
check=(--owner _id --elements versions)
for keep in newest oldest; do
    round_trip "--layout outlier --keep $keep --threshold 40 --page 20" products.ndjson --elements versions
done
round_trip "--layout reference" products.ndjson --elements versions
check=(--owner _id --elements versions --newest 10)
round_trip "--layout capped --threshold 10" products.ndjson --elements versions
check=(--owner _id --elements versions --entries-as version)
for keep in newest oldest; do
    round_trip "--layout outlier --keep $keep --threshold 40 --page 20" maps.ndjson --elements versions --entries-as version
done
check=(--owner _id --elements references)
for keep in newest oldest; do
    round_trip "--layout outlier --keep $keep --threshold 10 --page 5" advisories.ndjson --elements references
done
round_trip "--layout reference" advisories.ndjson --elements references
round_trip "--layout subset --sort-by type --top 2" advisories.ndjson --elements references
check=(--owner _id --elements references --window type)
round_trip "--layout bucket --window field --window-source type --threshold 20" advisories.ndjson --elements references
check=(--owner _id --elements references --newest 3)
round_trip "--layout capped --threshold 3" advisories.ndjson --elements references
