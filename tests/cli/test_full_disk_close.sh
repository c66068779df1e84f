#!/usr/bin/env bash
# A disk without room to merge tables: appends that fit go on, and closing does not wait for room.
# Each run of the program leaves a table, and the engine holds writers up where there are 20.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed, and has the variables
source "$(dirname "$0")/lib.sh"

script=$OLDPWD/$0
[ "${0#/}" = "$0" ] || script=$0

# Runs where the disk is mounted: in a mount namespace of its own.
full_disk() {
    mkdir -p disk
    mount -t tmpfs -o size=28m tmpfs disk || return 77
    expect 0 define disk/db ev --preset feed-recent
    # Tables that are larger than what will be free.
    local text
    text=$(head -c 45000 /dev/urandom | base64 -w 0)
    for i in {1..150}; do echo "{\"n\": $i, \"text\": \"$text$i\"}"; done >large.ndjson
    expect 0 append disk/db ev alice - <large.ndjson
    local free
    free=$(df --output=avail -B1 disk | tail -n 1)
    head -c $((free - 1500000)) /dev/zero >disk/ballast
    for i in {1..22}; do
        timeout 300 "$SPILLWAY" append disk/db ev bob "$i" >out 2>err ||
            fail "append $i ended with $?: $(cat err)"
    done
    has err "no room to merge tables"
    counts disk/db ev bob 22
    clean disk/db
    # What does not fit even the log is told, and what was there stays.
    for durability in log fsync; do
        expect 3 append disk/db ev carol - --durability "$durability" <large.ndjson
        has err "No space left on device"
        counts disk/db ev bob 22
        clean disk/db
    done
    rm disk/ballast
    expect 0 append disk/db ev bob 23
    expect 0 append disk/db ev bob 24
    is err ""
    counts disk/db ev alice 150
    counts disk/db ev bob 24
    clean disk/db
    umount disk
}

if [ "${1:-}" = full-disk ]; then
    full_disk
    exit
fi
unshare -rm true 2>/dev/null || skip "no mount namespaces here"
unshare -rm "$BASH" "$script" full-disk || fail "full disk"
