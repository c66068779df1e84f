# shellcheck shell=bash
# Helpers shared by the tests with other drivers: a new database on the test server, and pinned
# drivers. Source this file.
# shellcheck disable=SC1091,SC2016,SC2034 # not followed; expanded, and used, where it is sourced
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../cli/lib.sh"
source "$here/drivers.sh"

export PYTHONDONTWRITEBYTECODE=1
[ -n "${SPILLWAY_TEST_URI:-}" ] ||
    skip "SPILLWAY_TEST_URI is not set: run this under tools/test-server"

# uri_of DATABASE: print the test server's URI with that database.
uri_of() {
    [[ $SPILLWAY_TEST_URI =~ ^(mongodb(\+srv)?://[^/?]*)/?[^?]*(\?.*)?$ ]] ||
        fail "SPILLWAY_TEST_URI is not a connection string"
    echo "${BASH_REMATCH[1]}/$1${BASH_REMATCH[3]}"
}

# Make Python import the pinned pymongo.
use_pymongo() {
    command -v python3 >/dev/null || skip "python3 is not installed"
    PYTHONPATH=$(fetched_pymongo) ||
        skip "pymongo $PYMONGO is not cached and cannot be fetched"
    export PYTHONPATH
}

# use_npm PACKAGE VERSION: set `modules` to a node_modules folder with the package.
use_npm() {
    command -v npm >/dev/null || skip "npm is not installed"
    modules=$(fetched_npm "$1" "$2") ||
        skip "$1 $2 is not cached and cannot be fetched"
    modules=$modules/node_modules
}

# PHP has its driver as an extension, which the system installs.
use_php() {
    command -v php >/dev/null || skip "php is not installed (Debian: php-cli)"
    php -r 'exit(extension_loaded("mongodb") ? 0 : 1);' ||
        skip "php has no extension mongodb (Debian: php-mongodb)"
}

# Set `uri` to a new database of this test, which is dropped when the test ends. Needs use_pymongo.
new_database() {
    uri=$(uri_of "interop_$$_$RANDOM")
    cleanups+=('python3 "$here/drop_database.py" "$uri"')
}
