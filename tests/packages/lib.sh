# shellcheck shell=bash disable=SC2034 # used where it is sourced
# Helpers of the package tests. Source this file. SPILLWAY_DIST is the folder that tools/release filled.
set -euo pipefail
export LC_ALL=C.UTF-8

: "${SPILLWAY_DIST:?must be the folder with the packages}"
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_folder=$(cd "$tests/../.." && pwd)
version=$(sed -n 's/^#define SPILL_VERSION "\(.*\)"$/\1/p' "$source_folder/include/spillway/version.h")
packages=$source_folder/packaging
work=$(mktemp -d "${TMPDIR:-/tmp}/spillway-packages-XXXXXX")
# Words that end background processes of the test.
at_end=()
finish() {
    local status=$?
    for command in "${at_end[@]}"; do
        eval "$command"
    done
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 1' INT TERM

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# same WHAT EXPECTED ACTUAL
same() {
    [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

# logged COMMAND...: print the output only if the command fails.
logged() {
    "$@" >"$work/log" 2>&1 || {
        tail -n 40 "$work/log" >&2
        fail "$*"
    }
}

# fresh_root NAME: make a copy of the fresh Debian 12 root, in $work/NAME.
fresh_root() {
    mkdir "$work/$1"
    tar --extract --file "$("$packages/fresh_root")" --directory "$work/$1"
}

# install ROOT NAME...: install these packages; ./PATTERN is a file of SPILLWAY_DIST.
install() {
    local root=$1
    shift
    rm -rf "$root/packages"
    mkdir "$root/packages"
    cp "$SPILLWAY_DIST"/*.deb "$root/packages"
    (cd "$root/packages" && rm -f ./*-dbgsym_*)
    # shellcheck disable=SC2016 # sh expands it
    logged "$packages/in_root" "$root" sh -euc '
        cd /packages
        apt-get -qq update
        DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 \
            install $*' install "$@"
}
