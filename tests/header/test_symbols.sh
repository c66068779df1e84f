#!/usr/bin/env bash
# src/libspillway.map lists the functions of the public headers, and the shared library exports these
# with their versions and nothing else. tools/abi finds a function that was removed.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

declared() {
    awk '/^SPILL_API/ { all = "" } /^SPILL_API/, /;/ { all = all " " $0 } /;/ && all != "" {
        sub(/\(.*/, "", all); sub(/.*[ *]/, "", all); print all; all = "" }' \
        "$SPILLWAY_SOURCE"/include/spillway/*.h | sort
}

mapped() {
    sed -n 's/^    \(spill_[a-z0-9_]*\);$/\1/p' "$SPILLWAY_SOURCE/src/libspillway.map" | sort
}

declared >"$folder/declared"
mapped >"$folder/mapped"
if [ "$(wc -l <"$folder/declared")" -lt 90 ]; then
    echo "only $(wc -l <"$folder/declared") declared functions were found" >&2
    exit 1
fi
diff "$folder/declared" "$folder/mapped"

library=$SPILLWAY_BUILD/libspillway.so
if [ ! -e "$library" ]; then
    echo "the build has a static library: its symbols have no versions"
    exit 0
fi
nm -D --defined-only --with-symbol-versions "$library" | awk '$2 != "A" { print $3 }' |
    sort >"$folder/exported"
sed 's/$/@@SPILLWAY_0.2/' "$folder/declared" | sort >"$folder/expected"
diff "$folder/expected" "$folder/exported"

# abidiff reports removals and changes.
if ! command -v abidiff >/dev/null; then
    echo "abidiff is not installed: the check of removals is not tested" >&2
    exit 1
fi
mkdir -p "$folder/copy/tools" "$folder/copy/build/release"
cp -r "$SPILLWAY_SOURCE/include" "$SPILLWAY_SOURCE/abi" "$folder/copy"
cp "$SPILLWAY_SOURCE/tools/abi" "$folder/copy/tools"
cp -L "$library" "$folder/copy/build/release"
if grep -q "CMAKE_C_COMPILER:.*gcc" "$SPILLWAY_BUILD/CMakeCache.txt" &&
    grep -q "^CMAKE_BUILD_TYPE:.*=RelWithDebInfo" "$SPILLWAY_BUILD/CMakeCache.txt"; then
    "$folder/copy/tools/abi" check
fi

# reported TEXT SED-SCRIPT: a release with this difference is reported, with this text.
reported() {
    cp "$SPILLWAY_SOURCE"/abi/* "$folder/copy/abi"
    sed -i "$2" "$folder"/copy/abi/*.abi
    if "$folder/copy/tools/abi" check >"$folder/log" 2>&1 || ! grep -q "$1" "$folder/log"; then
        echo "not reported: $1" >&2
        cat "$folder/log" >&2
        exit 1
    fi
}
reported 'spill_slice_release' "s/'spill_slice_free'/'spill_slice_release'/
    s/spill_slice_free@@/spill_slice_release@@/"
reported "SPILL_BUSY' from value '77'" "s/name='SPILL_BUSY' value='9'/name='SPILL_BUSY' value='77'/"
reported 'int64_t count. offset changed' "/class-decl name='spill_count'/,/<\/class-decl>/{
    s/layout-offset-in-bits='64'/layout-offset-in-bits='96'/
}"
