#!/usr/bin/env bash
# The program and the shared library have the protections that cmake/Flags.cmake asks for, as
# readelf reports them: PIE, full RELRO, BIND_NOW, a stack that is not executable, the stack
# protector, and checked libc calls.
set -uo pipefail
export LC_ALL=C

failures=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cached() {
    sed -n "s/^$1:[A-Z]*=//p" "$SPILLWAY_BUILD/CMakeCache.txt"
}

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# wants FILE PATTERN WHAT : readelf's report about the file has the pattern.
wants() {
    grep -qE -- "$2" "$folder/report" || fail "$1: $3"
}

check_file() {
    local file=$1
    readelf --wide --file-header --program-headers --dynamic --dyn-syms "$file" >"$folder/report" ||
        fail "readelf cannot read $file"
    wants "$file" 'Type: +DYN' "not position-independent"
    wants "$file" 'GNU_RELRO' "no RELRO"
    wants "$file" '\(FLAGS_1\).* NOW' "no BIND_NOW"
    wants "$file" 'GNU_STACK .* RW +0x' "the stack is executable"
    wants "$file" '__stack_chk_fail' "no stack protector"
    if [ "$optimized" = yes ]; then
        wants "$file" '__(snprintf|fprintf|memcpy|vsnprintf|printf|read)_chk' \
            "no checked libc calls (_FORTIFY_SOURCE)"
    fi
}

# The sanitizers and SPILLWAY_HARDEN=OFF take the protections out: then nothing is promised.
if [ -n "$(cached SPILLWAY_SANITIZE)" ] || [ "$(cached SPILLWAY_HARDEN)" = OFF ]; then
    echo "SKIPPED: this build is sanitized or has SPILLWAY_HARDEN=OFF" >&2
    exit 77
fi
optimized=no
case "$(cached CMAKE_BUILD_TYPE) $(cached CMAKE_C_FLAGS)" in
Rel* | MinSizeRel* | *-O[1-9s]*) optimized=yes ;;
esac

check_file "$SPILLWAY"
check_file "$SPILLWAY_BUILD/spillway-serve"
grep -qE '\(FLAGS_1\).* PIE' <(readelf --wide --dynamic "$SPILLWAY") ||
    fail "$SPILLWAY: not a position-independent executable"
if [ "$(cached BUILD_SHARED_LIBS)" = ON ]; then
    check_file "$SPILLWAY_BUILD/libspillway.so"
fi
[ "$failures" = 0 ]
