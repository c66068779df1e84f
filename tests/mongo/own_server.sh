# shellcheck shell=bash disable=SC1091,SC2034,SC2154 # used where it is sourced; lib.sh is not followed
# Helpers of the tests that run their own server. Sourcing it also sources tests/cli/lib.sh.
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$tests/cli/lib.sh"

needs SPILLWAY_TEST_URI # set if tests on servers are wanted
test_server=$tests/../tools/test-server
server=$work/server
cleanups+=("'$test_server' stop '$server'")

# Start the server, or restart it with its data. Writes its URI to ./server.uri.
start_server() {
    "$test_server" start --while $$ "$server" >server.uri || fail "the server does not start"
}
