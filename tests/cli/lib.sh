# shellcheck shell=bash
# What the tests of the program share. Source it; SPILLWAY is the program.
set -uo pipefail
export LC_ALL=C

: "${SPILLWAY:?is to be the path of the program}"
work=$(mktemp -d "${TMPDIR:-/tmp}/spillway-cli-XXXXXX")
trap 'finish' EXIT
trap 'exit 1' INT TERM
cd "$work" || exit 1
failures=0
cleanups=()

finish() {
    local status=$?
    for cleanup in "${cleanups[@]}"; do
        eval "$cleanup"
    done
    cd / && rm -rf "$work"
    if [ "$status" = 0 ] && [ "$failures" -gt 0 ]; then
        status=1
    fi
    exit "$status"
}

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

skip() {
    echo "SKIPPED: $*" >&2
    exit 77
}

# expect CODE ARGUMENT... : run the program; its output is in ./out and ./err.
expect() {
    local code=$1
    shift
    "$SPILLWAY" "$@" >out 2>err
    local got=$?
    if [ "$got" != "$code" ]; then
        fail "spillway $* ended with $got, not $code"
        sed 's/^/    out: /' out | head -20 >&2
        sed 's/^/    err: /' err | head -20 >&2
    fi
}

# has FILE TEXT : the file has the text.
has() {
    grep -qF -- "$2" "$1" || {
        fail "$1 does not have '$2'; it is:"
        head -20 "$1" | sed 's/^/    /' >&2
    }
}

# is FILE TEXT : the file is exactly the text.
is() {
    [ "$(cat "$1")" = "$2" ] || {
        fail "$1 is not '$2' but:"
        head -20 "$1" | sed 's/^/    /' >&2
    }
}

# counts STORE NAME OWNER N : the owner has N elements.
counts() {
    expect 0 count "$1" "$2" "$3"
    has out "\"count\":$4,"
}

# clean STORE : verify finds nothing.
clean() {
    expect 0 verify "$1"
    has out '"findings":0}'
}
