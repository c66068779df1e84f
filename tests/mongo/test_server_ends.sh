#!/usr/bin/env bash
# tools/test-server run ends soon after a signal, however its command handles the signal, and leaves
# neither a process nor a file.
# shellcheck disable=SC1091,SC2154 # what is sourced is not followed
source "$(dirname "$0")/own_server.sh"


# ends SIGNAL CODE SCRIPT: send the signal after the script has created the file `ready`.
ends() {
    local signal=$1 code=$2 script=$3 pid status
    rm -f ready
    env -u SPILLWAY_TEST_URI --default-signal=HUP,INT,TERM TMPDIR="$work" \
        "$test_server" run -- bash -c "$script" "$work/command" 2>err &
    pid=$!
    # shellcheck disable=SC2016 # eval expands it
    await "the server starts, or ends" eval '[ -e ready ] || ! kill -0 "$pid"'
    if [ ! -e ready ]; then
        fail "$signal: the server does not start: $(cat err)"
        exit
    fi
    kill -s "$signal" "$pid"
    timeout 120 tail --pid="$pid" -f /dev/null || fail "$signal: still runs: $script"
    wait "$pid"
    status=$?
    [ "$status" = "$code" ] || fail "$signal: ended with $status, not $code: $(cat err)"
    ! pgrep -af "$work/" || fail "$signal: leaves processes: $script"
    ! compgen -G "spillway-test-server.*" || fail "$signal: leaves files: $script"
}

ends TERM 143 ': >ready; sleep 300 & wait'
ends HUP 129 'trap "exit 1" HUP; : >ready; sleep 300'
ends TERM 143 'trap "" TERM; : >ready; while :; do sleep 1; done'

# refuses TEXT ARGUMENT...: start reports TEXT, and starts no server.
refuses() {
    local text=$1
    shift
    "$test_server" start "$@" 2>err && fail "start $* was accepted"
    has err "$text"
    [ ! -e "$work/server" ] || fail "start $* made a server"
}

refuses "needs the id of a process" "$work/server" --while
refuses "there is no option --auht" --auht "$work/server"
refuses "not both '$work/server' and 'other'" "$work/server" other
"$test_server" start "$work/server" --while $$ >server.uri || fail "options after the folder are refused"
"$test_server" start "$work/server" >again.uri 2>err || fail "a start of a running server fails: $(cat err)"
cmp server.uri again.uri || fail "the URI of a running server is not printed: $(cat again.uri)"
grep -q 'runs already' err || fail "it is not said: $(cat err)"
