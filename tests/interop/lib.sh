# shellcheck shell=bash
# What the tests with other drivers share: a database of their own on the test server, and drivers
# of pinned versions, which are fetched once and kept. Source it.
# shellcheck disable=SC1091,SC2016,SC2034 # not followed; expanded, and used, where it is sourced
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../cli/lib.sh"

PYMONGO=4.10.1
NODE_MONGODB=6.22.0
MONGOSH=2.12.0

export PYTHONDONTWRITEBYTECODE=1
case "$(id -u)" in
0) cache=${XDG_CACHE_HOME:-/var/cache} ;;
*) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;;
esac
cache=${SPILLWAY_INTEROP_CACHE:-$cache/spillway/interop}

[ -n "${SPILLWAY_TEST_URI:-}" ] ||
    skip "SPILLWAY_TEST_URI is not set: run this under tools/test-server"

# uri_of DATABASE : the test server's URI with that database.
uri_of() {
    [[ $SPILLWAY_TEST_URI =~ ^(mongodb(\+srv)?://[^/?]*)/?[^?]*(\?.*)?$ ]] ||
        fail "SPILLWAY_TEST_URI is no connection string"
    echo "${BASH_REMATCH[1]}/$1${BASH_REMATCH[3]}"
}

# fetched NAME COMMAND... : the folder of that name in the cache, which COMMAND fills, given a
# folder as its last argument. Tests that run side by side fetch once.
fetched() {
    local folder=$cache/$1
    shift
    mkdir -p "$cache"
    exec 9>"$folder.lock"
    flock 9
    if [ ! -d "$folder" ]; then
        rm -rf "$folder.new"
        mkdir "$folder.new"
        "$@" "$folder.new" >"$folder.log" 2>&1 || {
            tail -5 "$folder.log" >&2
            exit 1
        }
        mv "$folder.new" "$folder"
    fi
    exec 9>&-
    echo "$folder"
}

fetch_pymongo() {
    python3 -m pip install --disable-pip-version-check "pymongo==$PYMONGO" --target "$1"
}

fetch_npm() {
    npm install --no-audit --no-fund --prefix "$2" "$1"
}

fetch_java() {
    mvn -q -B -f "$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$2"
}

# Python imports the pinned pymongo from now on.
use_pymongo() {
    command -v python3 >/dev/null || skip "there is no python3"
    local version
    version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    PYTHONPATH=$(fetched "pymongo-$PYMONGO-python$version" fetch_pymongo) ||
        skip "pymongo $PYMONGO is not cached and cannot be fetched"
    export PYTHONPATH
}

# use_npm PACKAGE VERSION : sets `modules` to a node_modules folder that has it.
use_npm() {
    command -v npm >/dev/null || skip "there is no npm"
    modules=$(fetched "$1-$2" fetch_npm "$1@$2") ||
        skip "$1 $2 is not cached and cannot be fetched"
    modules=$modules/node_modules
}

# A database of this test alone, which goes with it. Needs use_pymongo.
new_database() {
    uri=$(uri_of "interop_$$_$RANDOM")
    cleanups+=('python3 "$here/drop_database.py" "$uri"')
}
