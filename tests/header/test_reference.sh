#!/usr/bin/env bash
# The C reference is complete: Doxygen warns of nothing, each function says what it must say, and each
# has a manual page without warnings. A comment that lacks a part is found.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$SPILLWAY_SOURCE/tools/c_reference" "$folder/reference"
functions=$(grep -ho '^SPILL_API .*\bspill_[a-z0-9_]*(' "$SPILLWAY_SOURCE"/include/spillway/*.h | wc -l)
pages=("$folder"/reference/man/man3/spill_*.3)
if [ "$functions" -lt 90 ] || [ "${#pages[@]}" != "$functions" ]; then
    echo "$functions functions have ${#pages[@]} manual pages" >&2
    exit 1
fi
for page in "$folder"/reference/man/man3/*.3; do
    warnings=$(MANWIDTH=80 man --warnings=w -E UTF-8 -l "$page" 2>&1 >"$folder/shown")
    if [ -n "$warnings" ] || ! grep -q NAME "$folder/shown"; then
        echo "$page: $warnings" >&2
        exit 1
    fi
done
grep -q 'spill_deadline_begin(3)' <(man -E UTF-8 -l "$folder/reference/man/man3/spillway_deadline.3")
grep -q 'first_program' "$folder/reference/html/index.html"

# The check finds what is missing.
mkdir -p "$folder/copy/tools" "$folder/copy/cmake"
cp -r "$SPILLWAY_SOURCE/include" "$SPILLWAY_SOURCE/examples" "$folder/copy"
cp "$SPILLWAY_SOURCE/tools/c_reference" "$folder/copy/tools"
cp "$SPILLWAY_SOURCE/cmake/Doxyfile.in" "$folder/copy/cmake"
header=$folder/copy/include/spillway/deadline.h
expect() {
    if "$folder/copy/tools/c_reference" "$folder/broken" >"$folder/log" 2>&1; then
        echo "a header was accepted: $1" >&2
        exit 1
    fi
    grep -q "$1" "$folder/log" || {
        cat "$folder/log" >&2
        exit 1
    }
    cp "$SPILLWAY_SOURCE/include/spillway/deadline.h" "$header"
}
sed -i '/\\cost none/d' "$header"
expect 'spill_deadline_end does not say .cost'
sed -i 's/milliseconds from now/from now/' "$header"
expect 'the unit of timeout_ms'
sed -i 's/\\threads/threads/' "$header"
expect 'spill_deadline_begin does not say .threads'
sed -i '/\\param outer/d' "$header"
expect 'spill_deadline_end'
