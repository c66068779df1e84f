# shellcheck shell=bash
# What the tests with other drivers share: a database of their own on the test server, and drivers
# of pinned versions. Source it.
# shellcheck disable=SC1091,SC2016,SC2034 # not followed; expanded, and used, where it is sourced
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../cli/lib.sh"
source "$here/drivers.sh"

export PYTHONDONTWRITEBYTECODE=1
[ -n "${SPILLWAY_TEST_URI:-}" ] ||
    skip "SPILLWAY_TEST_URI is not set: run this under tools/test-server"

# uri_of DATABASE : the test server's URI with that database.
uri_of() {
    [[ $SPILLWAY_TEST_URI =~ ^(mongodb(\+srv)?://[^/?]*)/?[^?]*(\?.*)?$ ]] ||
        fail "SPILLWAY_TEST_URI is no connection string"
    echo "${BASH_REMATCH[1]}/$1${BASH_REMATCH[3]}"
}

# Python imports the pinned pymongo from now on.
use_pymongo() {
    command -v python3 >/dev/null || skip "there is no python3"
    PYTHONPATH=$(fetched_pymongo) ||
        skip "pymongo $PYMONGO is not cached and cannot be fetched"
    export PYTHONPATH
}

# use_npm PACKAGE VERSION : sets `modules` to a node_modules folder that has it.
use_npm() {
    command -v npm >/dev/null || skip "there is no npm"
    modules=$(fetched_npm "$1" "$2") ||
        skip "$1 $2 is not cached and cannot be fetched"
    modules=$modules/node_modules
}

# A database of this test alone, which goes with it. Needs use_pymongo.
new_database() {
    uri=$(uri_of "interop_$$_$RANDOM")
    cleanups+=('python3 "$here/drop_database.py" "$uri"')
}
