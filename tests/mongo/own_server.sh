# shellcheck shell=bash disable=SC1091,SC2034,SC2154 # used where it is sourced; lib.sh is not followed
# What the tests share that have a server of their own. Source it; tests/cli/lib.sh comes with it.
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$tests/cli/lib.sh"

needs SPILLWAY_TEST_URI # set by who wants tests on servers
test_server=$tests/../tools/test-server
server=$work/server
cleanups+=("'$test_server' stop '$server'")

# Starts the server, or starts it again with its data; its URI is in ./server.uri.
start_server() {
    "$test_server" start --while $$ "$server" >server.uri || fail "the server does not start"
}
