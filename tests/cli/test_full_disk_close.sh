#!/usr/bin/env bash
# A disk without space to merge tables: closing does not wait for space, and acknowledged elements
# exist. Each run of the program leaves a table, and the engine delays writers if there are 20. A
# merge uses space while it runs, so an append may find none and must report that.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed, and has the variables
source "$(dirname "$0")/lib.sh"

script=$OLDPWD/$0
[ "${0#/}" = "$0" ] || script=$0

# Runs in the mount namespace that has the disk.
full_disk() {
    mkdir -p disk
    mount -t tmpfs -o size=28m tmpfs disk || return 77
    expect 0 define disk/db ev --preset feed-recent
    # Write tables that are larger than the space that will be free.
    local text
    text=$(head -c 45000 /dev/urandom | base64 -w 0)
    for i in {1..150}; do echo "{\"n\": $i, \"text\": \"$text$i\"}"; done >large.ndjson
    expect 0 append disk/db ev alice - <large.ndjson
    local free
    free=$(df --output=avail -B1 disk | tail -n 1)
    head -c $((free - 1500000)) /dev/zero >disk/ballast
    local tries=0 acknowledged=0 kept status
    : >messages
    until grep -q "no room to merge tables" messages; do
        if [ "$((tries += 1))" -gt 100 ]; then
            fail "no close met a disk without room: $(cat messages)"
            break
        fi
        status=0
        timeout 300 "$SPILLWAY" append disk/db ev bob "$tries" >out 2>err || status=$?
        cat err >>messages
        case $status in
        0) acknowledged=$((acknowledged + 1)) ;;
        3) has err "No space left on device" ;;
        *) fail "append $tries ended with $status: $(cat err)" ;;
        esac
    done
    expect 0 count disk/db ev bob --json
    kept=$(sed 's/.*"count":\([0-9]*\).*/\1/' out)
    [ "$kept" -ge "$acknowledged" ] || fail "$acknowledged appends were acknowledged, but $kept are stored"
    [ "$kept" -le "$tries" ] || fail "$tries appends were made, but $kept are stored"
    clean disk/db
    # An append that does not even fit in the log reports that, and loses nothing.
    for durability in log fsync; do
        expect 3 append disk/db ev carol - --durability "$durability" <large.ndjson
        has err "No space left on device"
        counts disk/db ev bob "$kept"
        clean disk/db
    done
    rm disk/ballast
    expect 0 append disk/db ev bob 23
    expect 0 append disk/db ev bob 24
    is err ""
    counts disk/db ev alice 150
    counts disk/db ev bob $((kept + 2))
    clean disk/db
    umount disk
}

if [ "${1:-}" = full-disk ]; then
    full_disk
    exit
fi
unshare -rm true 2>/dev/null || skip "no mount namespaces here"
unshare -rm "$BASH" "$script" full-disk || fail "full disk"
