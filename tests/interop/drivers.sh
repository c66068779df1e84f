# shellcheck shell=bash
# The pinned drivers that the tests use. They are fetched once and kept in a cache.
# shellcheck disable=SC2034 # used where it is sourced

PYMONGO=4.20.0
NODE_MONGODB=7.9.0
MONGOOSE=9.12.1
MONGOSH=2.12.0

case "$(id -u)" in
0) cache=${XDG_CACHE_HOME:-/var/cache} ;;
*) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;;
esac
cache=${SPILLWAY_INTEROP_CACHE:-$cache/spillway/interop}

# fetched NAME COMMAND...: print the cache's folder NAME. If it does not exist, COMMAND fills it; its
# last argument is the folder. Tests that run at the same time fetch once.
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

# The source distribution, which has pymongo's own tests. They ask the server for a parameter that not
# every server has.
fetch_pymongo_source() {
    (
        cd "$1" &&
            python3 -m pip download --disable-pip-version-check --no-deps --no-binary :all: \
                "pymongo==$PYMONGO" &&
            tar xzf "pymongo-$PYMONGO.tar.gz" --strip-components=1 &&
            sed -i 's/server_parameters\["enableTestCommands"\]/server_parameters.get("enableTestCommands")/' \
                test/__init__.py
    )
}

fetch_npm() {
    npm install --no-audit --no-fund --prefix "$2" "$1"
}

fetch_java() {
    mvn -q -B -f "$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$2"
}

# Keeps modules outside the user's own cache, and builds the program that uses them.
fetch_go() {
    (cd "$1" && GOFLAGS=-modcacherw GOMODCACHE=$2/modules go build -o "$2/program" .)
}

# Each of these prints the folder of a driver.

fetched_pymongo() {
    local version
    version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    fetched "pymongo-$PYMONGO-python$version" fetch_pymongo
}

fetched_pymongo_source() {
    fetched "pymongo-$PYMONGO-source" fetch_pymongo_source
}

fetched_npm() {
    fetched "$1-$2" fetch_npm "$1@$2"
}

# fetched_java RECIPE: the dependencies named by the pom.xml in that folder.
fetched_java() {
    fetched "java-$(cksum <"$1/pom.xml" | tr ' ' -)" fetch_java "$1"
}

# fetched_go PROGRAM: the Go program in that folder, built; named `program`.
fetched_go() {
    fetched "go-$(cat "$1/go.sum" "$1"/*.go | cksum | tr ' ' -)" fetch_go "$1"
}
