#!/usr/bin/env bash
# The C reference is complete: Doxygen warns of nothing, each function says what it must say, a manual
# page explains each public name, and no page has warnings. A comment or a name that lacks a part is
# found.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$SPILLWAY_SOURCE/tools/c_reference" "$folder/reference"
headers=("$SPILLWAY_SOURCE"/include/spillway/*.h)
functions=$(grep -ho '^SPILL_API .*\bspill_[a-z0-9_]*(' "${headers[@]}" | wc -l)
types=$(grep -hcE '^(} spill_\w+_t;|typedef .*(\*spill_\w+\)|spill_\w+;))' "${headers[@]}" | paste -sd+ | bc)
pages=("$folder"/reference/man/man3/spill_*.3)
if [ "$functions" -lt 90 ] || [ "${#pages[@]}" != $((functions + types)) ]; then
    echo "$functions functions and $types types have ${#pages[@]} manual pages" >&2
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
if command -v mandoc >/dev/null; then
    mandoc -Tlint -W style "$folder"/reference/man/man3/*.3 >"$folder/lint" || {
        cat "$folder/lint" >&2
        exit 1
    }
fi

shows() { # PAGE TEXT
    MANWIDTH=80 man -E UTF-8 -l "$folder/reference/man/man3/$1.3" 2>/dev/null | tr -s ' \n' ' ' |
        grep -qF -- "$2" || {
        echo "the page $1 does not show: $2" >&2
        exit 1
    }
}
shows spill_op_t 'A restarted program that keeps the id and reads a new base may append a second time.'
shows spill_op_t 'size_t id_bytes the number of these bytes, 1 to SPILL_OP_ID_MAX'
shows spill_code_t 'SPILL_BUSY Another process has the store open for writing.'
shows spillway_array 'SPILL_OP_ID_MAX = 64 Most bytes of an operation id.'
shows spillway_version 'SPILL_API A function that the shared library exports.'
shows spill_array_append 'spill_append_options_t(3)'
shows spillway 'spillway_error(3) What does a code mean?'
examples=$(grep -l '^\.SH EXAMPLES$' "${pages[@]}" | wc -l)
if [ "$examples" -lt 10 ]; then
    echo "only $examples functions have an example" >&2
    exit 1
fi

# The check finds what is missing.
mkdir -p "$folder/copy/tools" "$folder/copy/cmake" "$folder/copy/man"
cp -r "$SPILLWAY_SOURCE/include" "$SPILLWAY_SOURCE/examples" "$folder/copy"
cp "$SPILLWAY_SOURCE/tools/c_reference" "$folder/copy/tools"
cp "$SPILLWAY_SOURCE/cmake/Doxyfile.in" "$folder/copy/cmake"
cp "$SPILLWAY_SOURCE/man/spillway.1" "$folder/copy/man"
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

# Doxygen says nothing about a macro that is in no group.
sed -i '/addtogroup/,/\\{/d; \|^/\*\* \\} \*/$|d' "$folder/copy/include/spillway/export.h"
expect 'include/spillway/export.h: no manual page explains SPILL_BEGIN_DECLS'
