# shellcheck shell=bash disable=SC2034 # used where it is sourced
# What the tests of the program share. Source it; SPILLWAY is the program. The stores of new_store
# are folders, or databases of the test server where SPILLWAY_TEST_STORE is "server".
set -uo pipefail
export LC_ALL=C

: "${SPILLWAY:?is to be the path of the program}"
work=$(mktemp -d "${TMPDIR:-/tmp}/spillway-cli-XXXXXX")
trap 'finish' EXIT
trap 'exit 1' INT TERM
cd "$work" || exit 1
failures=0
cleanups=()

finish() {
    local status=$?
    for cleanup in "${cleanups[@]}"; do
        eval "$cleanup"
    done
    cd / && rm -rf "$work"
    if [ "$status" = 0 ] && [ "$failures" -gt 0 ]; then
        status=1
    fi
    exit "$status"
}

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

skip() {
    echo "SKIPPED: $*" >&2
    exit 77
}

on_server() {
    [ "${SPILLWAY_TEST_STORE:-folder}" = server ]
}

# Seeds RANDOM, with SPILLWAY_SEED where it is set, and says with what.
seed_random() {
    local seed=${SPILLWAY_SEED:-$RANDOM}
    RANDOM=$seed
    echo "seed $seed"
}

# needs VARIABLE... : pass over the test where one of those that tools/test-server sets is not.
needs() {
    for variable in "$@"; do
        [ -n "${!variable:-}" ] ||
            skip "$variable is not set: run this under tools/test-server run --auth"
    done
}

# database_at URI NAME : the URI with that database.
database_at() {
    [[ $1 =~ ^(mongodb(\+srv)?://[^/?]*)/?[^?]*(\?.*)?$ ]] || fail "'$1' is no connection string"
    echo "${BASH_REMATCH[1]}/$2${BASH_REMATCH[3]}"
}

# A Python with pymongo: Debian's has it, where another one comes first on PATH.
python_with_pymongo() {
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import pymongo' 2>/dev/null && echo "$python" && return
    done
    skip "there is no python3 with pymongo"
}

databases=()

drop_databases() {
    [ "${#databases[@]}" = 0 ] || "$(python_with_pymongo)" - "${databases[@]}" <<'END'
import sys, pymongo
for uri in sys.argv[1:]:
    with pymongo.MongoClient(uri) as client:
        client.drop_database(client.get_default_database())
END
}

# new_database URI : sets `uri` to one with a database of this test alone, which goes with it.
new_database() {
    uri=$(database_at "$1" "cli_${$}_$RANDOM${#databases[@]}")
    [ "${#databases[@]}" -gt 0 ] || cleanups+=(drop_databases)
    databases+=("$uri")
}

# Sets `db` to a STORE where nothing is yet: ./db, which is removed, or ./db.uri with a database.
new_store() {
    if on_server; then
        new_database "$SPILLWAY_TEST_URI"
        echo "$uri" >db.uri
        db=@db.uri
    else
        rm -rf db
        db=db
    fi
}

# expect CODE ARGUMENT... : run the program; its output is in ./out and ./err.
expect() {
    local code=$1
    shift
    "$SPILLWAY" "$@" >out 2>err
    local got=$?
    if [ "$got" != "$code" ]; then
        fail "spillway $* ended with $got, not $code"
        sed 's/^/    out: /' out | head -20 >&2
        sed 's/^/    err: /' err | head -20 >&2
    fi
}

# has FILE TEXT : the file has the text.
has() {
    grep -qF -- "$2" "$1" || {
        fail "$1 does not have '$2'; it is:"
        head -20 "$1" | sed 's/^/    /' >&2
    }
}

# is FILE TEXT : the file is exactly the text.
is() {
    [ "$(cat "$1")" = "$2" ] || {
        fail "$1 is not '$2' but:"
        head -20 "$1" | sed 's/^/    /' >&2
    }
}

# await WHAT COMMAND... : repeat the command until it succeeds. WHAT completes "waited too long until";
# the test ends if that takes more than a minute, or than SPILLWAY_WAIT_SECONDS.
await() {
    local what=$1 end=$((SECONDS + ${SPILLWAY_WAIT_SECONDS:-60}))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$end" ]; then
            fail "waited too long until $what"
            exit 1
        fi
        sleep 0.02
    done
}

# counts STORE NAME OWNER N : the owner has N elements.
counts() {
    expect 0 count "$1" "$2" "$3"
    has out "\"count\":$4,"
}

# clean STORE : verify finds nothing.
clean() {
    expect 0 verify "$1"
    has out '"findings":0}'
}

if on_server; then
    needs SPILLWAY_TEST_URI
fi

# until_done ARGUMENT... : kill a command that copies after a random while, SPILLWAY_KILLS times at
# most, and start it again until it ends well. Its output is in ./out and ./err.
until_done() {
    local rounds=${SPILLWAY_KILLS:-5} kills=0 tenths=0 pid status
    while :; do
        on_server && tenths=$((RANDOM % 3))
        "$SPILLWAY" "$@" --quiet >out 2>err &
        pid=$!
        if [ "$kills" -lt "$rounds" ]; then
            sleep "0.$tenths$((RANDOM % 10))$((RANDOM % 10))"
            kill -9 "$pid" 2>kill.err
        fi
        wait "$pid" 2>wait.err
        status=$?
        [ "$status" = 137 ] || break
        kills=$((kills + 1))
    done
    [ "$status" = 0 ] || fail "spillway $* ended with $status: $(cat err)"
    has out '"differences":0}'
    echo "$kills kills: spillway $*"
}
