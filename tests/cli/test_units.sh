#!/usr/bin/env bash
# The units of service/ are valid for systemd, start the commands that the program has, and their notes
# name options that exist.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

: "${SPILLWAY_SOURCE:?must be the folder of the sources}"
command -v systemd-analyze >/dev/null || skip "systemd-analyze is not installed (Debian: systemd)"

# of UNIT KEY: print the value that a unit gives the key.
of() {
    sed -n "s#^$2=##p" "$1"
}

units=0
for unit in "$SPILLWAY_SOURCE"/service/*.service; do
    name=$(basename "$unit")
    units=$((units + 1))
    installed=$(sed -n 's#^ExecStart=\(/usr/bin/spillway\) .*#\1#p' "$unit")
    [ "$installed" = /usr/bin/spillway ] || fail "$name does not start /usr/bin/spillway"
    sed "s#^ExecStart=/usr/bin/spillway#ExecStart=$SPILLWAY#" "$unit" >"${name/@/@events}"
    systemd-analyze verify --man=no "$PWD/${name/@/@events}" >out 2>&1 || fail "$name: $(cat out)"
    [ -s out ] && fail "$name: $(cat out)"
    # A server that is away for an hour must not stop the service, and each attempt costs the server little.
    [ "$(of "$unit" StartLimitIntervalSec)" = 0 ] || fail "$name: systemd gives up after some attempts"
    [ "$(of "$unit" Restart)" = on-failure ] || fail "$name is not restarted"
    [ "$(of "$unit" RestartSec)" -ge 5 ] || fail "$name is restarted at once"
    [ "$(of "$unit" RestartPreventExitStatus)" = "2 4" ] || fail "$name is restarted after a wrong option or a refusal"
    [ "$(of "$unit" TimeoutStartSec)" -ge 60 ] || fail "$name may be stopped while it searches for the server"
    command=$(sed -n 's#^ExecStart=/usr/bin/spillway \([a-z]*\) .*#\1#p' "$unit")
    expect 0 "$command" --help
    for option in $(grep -E '_OPTIONS' "$unit" | grep -oE -- ' --[a-z-]+|=--[a-z-]+' | tr -d ' ='); do
        grep -qE -- "^ +$option(=|$| )" out || fail "$name names $option, which $command does not have"
    done
done
[ "$units" -ge 2 ] || fail "$units units"
