#!/usr/bin/env bash
# Import documents of an export into a definition with another name, and exports with missing lines: either the
# elements are equal, or the import fails and says why. No element is lost or changed silently.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars in it
source "$(dirname "$0")/lib.sh"

# new STORE DEFINITION: make the store `db`, and call it STORE.
new() {
    new_store
    if on_server; then
        cp db.uri "$1.uri"
        store=@$1.uri
    else
        rm -rf "$1"
        store=$1
    fi
    # shellcheck disable=SC2086
    expect 0 define "$store" ev $2 --quiet
}

# The elements have fields with the names that the table below uses, with the owner as their value.
for i in 0 1 2 3 4 5 6; do
    echo "{\"_id\": \"e$i\", \"at\": {\"\$date\": \"2026-01-01T00:00:00Z\"}, \"x\": $i, \"other\": \"a\", \"elementIdX\": $i}"
done >elements.ndjson

# exported DEFINITION: fill a store, and export it: elements.export, documents.ndjson, plain.ndjson.
exported() {
    new source "$1"
    for owner in a b; do
        "$SPILLWAY" append "$store" ev "$owner" --quiet <elements.ndjson || fail "append: $1"
    done
    expect 0 export "$store" ev
    mv out elements.export
    [ "$(wc -l <elements.export)" -gt 3 ] || fail "$1: no elements"
    expect 0 export "$store" ev --documents
    mv out documents.ndjson
    expect 0 export "$store" ev --documents --plain
    mv out plain.ndjson
    sed 's/,"definition":{[^{}]*}}$/}/' documents.ndjson >unnamed.ndjson
    cmp -s documents.ndjson unnamed.ndjson && fail "$1: the lines have no definition"
}

without_numbers() {
    sed 's/"seq":[0-9]*,//' "$1"
}

# import_into DEFINITION FILE: set `code`; if it is 0, the elements are equal.
import_into() {
    new target "$1"
    "$SPILLWAY" import "$store" ev "$2" --quiet >out 2>err
    code=$?
    cp err import.err
    [ "$code" = 0 ] || return
    expect 0 export "$store" ev
    if [ "$2" = plain.ndjson ]; then
        cmp -s <(without_numbers out) <(without_numbers elements.export)
    else
        cmp -s out elements.export
    fi || fail "$definition, $1, $2: the import ends with 0, but elements are lost or changed"
}

# names DEFINITION OPTION:VALUE...: each name differs, in the export or in the target.
names() {
    definition=$1
    shift
    for option in "$@"; do
        local other="--${option%:*} ${option#*:}"
        for pair in "$definition|$definition $other" "$definition $other|$definition"; do
            exported "${pair%|*}"
            for file in documents plain; do
                import_into "${pair#*|}" $file.ndjson
                [ "$code" = 3 ] || fail "$definition, $other, $file: the code is $code, not 3"
                grep -q "^spillway: $file.ndjson:1: .* in the export, and .*: define 'ev' with --${option%:*} " import.err ||
                    fail "$definition, $other, $file: $(cat import.err)"
                expect 0 owners "$store" ev
                is out ""
            done
            # Lines of an older version do not have the names. The documents show these:
            [[ $option =~ ^(element-id-field|order|id-field|count-field|page-number|page-count|stats-field) ]] ||
                import_into "${pair#*|}" unnamed.ndjson
            import_into "${pair%|*}" unnamed.ndjson
            [ "$code" = 0 ] || fail "$definition, without names: $(cat import.err)"
        done
    done
}

outlier="--layout outlier --threshold 2 --page 2"
names "$outlier" collection:others array:log count-field:n overflow-field:flag pages-field:parts page-collection:more \
    page-owner:other page-number:number page-array:log page-count:length order:newest-first
names "$outlier --keep oldest" page-owner:other page-array:log order:newest-first
names "--layout reference" collection:others array:summary page-collection:more page-owner:o element-id-field:elementId2
names "--layout reference --element-id-field whole" id-field:.
names "--layout subset --sort-by x --top 2" array:summary page-owner:o element-id-field:elementId2
names "--layout capped --threshold 5" collection:others array:log count-field:n order:newest-first
names "--layout bucket --time-field at --window month --threshold 3" array:log page-owner:other page-number:part \
    window-field:window stats-field:figures

# An older export, and an owner's field that the elements do not have: the first such line is bad.
definition="--layout reference"
exported "$definition --page-owner userId"
import_into "$definition --page-owner zone" unnamed.ndjson
[ "$code" = 3 ] || fail "another owner's field ends with $code"
grep -q "unnamed.ndjson:2: the document has no owner in 'zone': define 'ev' with" import.err || fail "$(cat import.err)"
import_into "$definition --page-owner other" unnamed.ndjson # a field of the elements, equal to owner a
[ "$code" = 3 ] || fail "an owner's field of the elements ends with $code"
# Names of other parts may differ, and so may keep, if the documents have bookkeeping.
definition=$outlier
exported "$definition"
import_into "$definition --keep oldest" documents.ndjson
[ "$code" = 0 ] || fail "another keep ends with $code"
import_into "$definition --keep oldest" plain.ndjson
[ "$code" = 3 ] || fail "another keep, without bookkeeping, ends with $code"
import_into "$definition --id-field _id --time-field at --page 3" documents.ndjson
[ "$code" = 0 ] || fail "paths into elements end with $code"

# ---- lines that are missing ----------------------------------------------------------------------

# without LINE: the line is missing. The import fails, and continues with the whole export.
without() {
    sed "$1d" documents.ndjson >lines.ndjson
    new target "$definition"
    "$SPILLWAY" import "$store" ev lines.ndjson --quiet >out 2>err && fail "$definition: line $1 is missing, unnoticed"
    has err "owner \"$2\""
    cp documents.ndjson lines.ndjson
    expect 0 import "$store" ev lines.ndjson --quiet
    expect 0 export "$store" ev
    cmp -s out elements.export || fail "$definition: line $1 was missing, and the whole export gives other elements"
    sed "$1d" documents.ndjson >lines.ndjson
    new target "$definition"
    expect 0 import "$store" ev lines.ndjson --json --quiet --skip-bad=10
    has out '"skipped":'
    ! grep -q '"skipped":0' out || fail "$definition: line $1 is missing, and nothing was skipped"
}

for definition in "$outlier" "$outlier --keep oldest" "--layout reference" "--layout reference --threshold 4" \
    "--layout subset --sort-by x --top 2" "--layout bucket --time-field at --window month --threshold 3"; do
    exported "$definition"
    lines=$(($(wc -l <documents.ndjson) / 2))
    for ((line = 1; line <= lines; line++)); do
        without $line a
    done
    without $((2 * lines)) b
    # Trimmed, removed: no line is missing.
    for steps in "trim --below 3" "trim --below 7" "remove 4" "remove 0" "remove 2;remove 3" "remove 0;remove 1;trim --below 4"; do
        [[ $definition != *bucket* ]] || break
        new source "$definition"
        "$SPILLWAY" append "$store" ev a --quiet <elements.ndjson || fail "append"
        while IFS= read -r step; do
            # shellcheck disable=SC2086
            expect 0 ${step%% *} "$store" ev a ${step#* }
        done <<<"${steps//;/$'\n'}"
        "$SPILLWAY" append "$store" ev a --quiet <elements.ndjson || fail "append"
        expect 0 export "$store" ev
        mv out elements.export
        expect 0 export "$store" ev --documents
        mv out trimmed.ndjson
        import_into "$definition" trimmed.ndjson
        [ "$code" = 0 ] || fail "$definition, $steps: $(cat import.err)"
    done
done

# Pages behind the heads of other owners are bad lines.
definition=$outlier
exported "$definition"
{ grep '"collection":"users"' documents.ndjson && grep -v '"collection":"users"' documents.ndjson; } >apart.ndjson
import_into "$definition" apart.ndjson
[ "$code" = 3 ] || fail "pages apart from their head end with $code"
grep -q 'owner "a": the head counts 2 pages' import.err || fail "$(cat import.err)"
