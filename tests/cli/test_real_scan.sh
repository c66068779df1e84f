#!/usr/bin/env bash
# scan of real data: releases as arrays and as maps with dots in their keys, and advisories with
# arrays that are long but not too long. What it tells is what scan_figures.py computes.
# Runs where SPILLWAY_DATA names a folder of data sets.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

data=${SPILLWAY_DATA:-}
for set in eol_releases/products_array eol_releases/products_map pypa_advisories/advisories; do
    file=$data/$set.ndjson.gz
    [ -r "$file" ] || skip "SPILLWAY_DATA has no $set.ndjson.gz"
    expect 0 scan "$file" --json --quiet
    python3 "${SPILLWAY_SOURCE:?}/tests/cli/scan_figures.py" check "$file" out || fail "$set"
    case $set in
    *array)
        has out '"finding":"unbounded-array","atlas":"AVOID_UNBOUNDED_ARRAY"'
        has out '{"owner":"renovate","length":12046,'
        ;;
    *map)
        has out '"finding":"unbounded-map","atlas":"AVOID_UNBOUNDED_ARRAY"'
        has out '"path":"versions.*"'
        ;;
    *) has out '"findings":[]' ;;
    esac
done
