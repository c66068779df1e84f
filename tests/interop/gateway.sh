# shellcheck shell=bash
# Helpers of the tests that run an unmodified driver through the gateway. Source this file after
# lib.sh.
# shellcheck disable=SC2154 # set in lib.sh

gateway=

# Options for the bounds of the definition: documents of 4 MB, because a server rewrites a document for
# each push. The test with pymongo has the bounds of the preset.
bounds=(--max-bytes 4MB)

# Start the gateway in front of `uri`. Sets `gateway_uri`. Called again, it listens on the same port.
start_gateway() {
    local waited port
    if [ -z "${gateway_port:-}" ]; then
        gateway_port=$(python3 -c 'import socket
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    print(probe.getsockname()[1])')
        cleanups+=('stop_gateway')
    fi
    port=$gateway_port
    "$SPILLWAY" serve "$uri" --listen "127.0.0.1:$port" >>gateway.log 2>&1 &
    gateway=$!
    for ((waited = 0; waited < 300; waited++)); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            [[ $uri =~ ^(mongodb://([^@/]*@)?)[^/]*(/.*)$ ]]
            gateway_uri=${BASH_REMATCH[1]}127.0.0.1:$port${BASH_REMATCH[3]}
            return
        fi
        kill -0 "$gateway" 2>/dev/null || break
        sleep 0.1
    done
    cat gateway.log >&2
    fail "the gateway does not listen"
    exit 1
}

stop_gateway() {
    [ -z "$gateway" ] || kill -9 "$gateway" 2>/dev/null
    wait "$gateway" 2>/dev/null
    gateway=
}

# push_past_the_limit PROGRAM...: run a program of examples/drivers, which logs in, through the gateway,
# kill the gateway at the program's pause and start it again. Then compare the program's hash with the
# elements in the store, and look for a document above the definition's bounds.
push_past_the_limit() {
    local answer
    needs SPILLWAY_TEST_AUTH_URI
    # shellcheck disable=SC2034 # new_database reads it
    SPILLWAY_TEST_URI=$SPILLWAY_TEST_AUTH_URI
    new_database
    [[ $uri == *@* ]] || fail "the program would not log in: the server has no users"
    "$SPILLWAY" define "$uri" feeds --preset gateway --collection feeds --array events \
        "${bounds[@]}" >/dev/null || fail "the definition is refused"
    start_gateway
    mkfifo program.in program.out
    "$@" "$gateway_uri" --pause <program.in >program.out 2>program.log &
    local program=$!
    exec 4>program.in 5<program.out
    read -r -t 300 answer <&5
    [ "$answer" = paused ] || {
        cat program.log gateway.log >&2
        fail "the program does not reach its pause: '$answer'"
        exit 1
    }
    stop_gateway
    start_gateway
    echo go on >&4
    read -r -t 300 answer <&5
    wait "$program" || {
        cat program.log gateway.log >&2
        fail "the program fails"
    }
    exec 4>&- 5<&-
    "$SPILLWAY" export "$uri" feeds long >elements.ndjson || fail "export fails"
    python3 "$here/check_bounded.py" "$uri" elements.ndjson "$answer" ||
        fail "the server's documents are not what the program pushed"
}
