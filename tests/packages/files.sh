#!/usr/bin/env bash
# The release's checksums are right, and its bill of materials names what the image has.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$SPILLWAY_DIST" || exit
sha256sum --check --quiet SHA256SUMS || fail "SHA256SUMS"
same "files without a checksum" "" \
    "$(comm -23 <(printf '%s\n' * | grep -vx SHA256SUMS | sort) <(sed 's/^[^ ]*  //' SHA256SUMS | sort))"

mkdir "$work/layout"
tar --extract --file spillway-"$version"-oci-*.tar --directory "$work/layout"
logged umoci unpack --image "$work/layout:$version" "$work/bundle"
/usr/bin/python3 "$tests/check_sbom.py" . "$work/bundle/rootfs/var/lib/dpkg/status"
