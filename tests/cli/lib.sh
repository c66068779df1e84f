# shellcheck shell=bash disable=SC2034 # used where it is sourced
# Helpers shared by the tests of the program. Source this file. SPILLWAY is the program. new_store
# makes folders or, if SPILLWAY_TEST_STORE is "server", databases of the test server.
set -uo pipefail
export LC_ALL=C

: "${SPILLWAY:?must be the path of the program}"
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

# Seed RANDOM, with SPILLWAY_SEED if it is set, and print the seed.
seed_random() {
    local seed=${SPILLWAY_SEED:-$RANDOM}
    RANDOM=$seed
    echo "seed $seed"
}

# needs VARIABLE...: skip the test unless all these variables of tools/test-server are set.
needs() {
    for variable in "$@"; do
        [ -n "${!variable:-}" ] ||
            skip "$variable is not set: run this under tools/test-server run --auth"
    done
}

# database_at URI NAME: print the URI with that database.
database_at() {
    [[ $1 =~ ^(mongodb(\+srv)?://[^/?]*)/?[^?]*(\?.*)?$ ]] || fail "'$1' is not a connection string"
    echo "${BASH_REMATCH[1]}/$2${BASH_REMATCH[3]}"
}

# Print a Python with pymongo. Debian's Python has it, but another one may come first on PATH.
python_with_pymongo() {
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import pymongo' 2>/dev/null && echo "$python" && return
    done
    skip "no python3 has pymongo"
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

# new_database URI: set `uri` to a new database of this test, which is dropped when the test ends.
new_database() {
    uri=$(database_at "$1" "cli_${$}_$RANDOM${#databases[@]}")
    [ "${#databases[@]}" -gt 0 ] || cleanups+=(drop_databases)
    databases+=("$uri")
}

# Set `db` to a STORE without data: ./db, after removing it, or ./db.uri with a new database.
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

# expect CODE ARGUMENT...: run the program and check its exit code. Its output is in ./out and ./err.
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

# on_terminal COLUMNS ARGUMENT...: run the program on a terminal, SPILLWAY_TERM its kind. What a person
# sees is in ./out. Returns the exit code.
on_terminal() {
    python3 "$(dirname "${BASH_SOURCE[0]}")/terminal.py" "$1" show "$SPILLWAY" "${@:2}" >out 2>err
}

# has FILE TEXT: the file contains the text.
has() {
    grep -qF -- "$2" "$1" || {
        fail "$1 does not have '$2'; it is:"
        head -20 "$1" | sed 's/^/    /' >&2
    }
}

# plain_numbers FILE: no number has an exponent, and no count of one has a plural.
plain_numbers() {
    grep -oE '[0-9]e[+-][0-9]+ .{0,30}' "$1" >strange && fail "$1 has exponents: $(cat strange)"
    sed 's/<[^>]*>//g' "$1" | grep -oE '(^|[^0-9.:,;#])1 (more )?(elements|documents|collections|owners|keys|arrays|pages|windows|indexes|problems|findings|records|days|bytes)\b' >strange &&
        fail "$1 has a plural after one: $(cat strange)"
}

# is FILE TEXT: the file contains exactly the text.
is() {
    [ "$(cat "$1")" = "$2" ] || {
        fail "$1 is not '$2' but:"
        head -20 "$1" | sed 's/^/    /' >&2
    }
}

# await EVENT COMMAND...: repeat the command until it succeeds. EVENT completes "waited too long until".
# The test fails if that takes more than a minute, or more than SPILLWAY_WAIT_SECONDS.
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

# counts STORE NAME OWNER N: the owner has N elements.
counts() {
    expect 0 count "$1" "$2" "$3"
    has out "\"count\":$4,"
}

# clean STORE: verify finds nothing.
clean() {
    expect 0 verify "$1"
    has out '"findings":0}'
}

# flip_bit FILE AT: flip one bit of the byte at that place.
flip_bit() {
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    # shellcheck disable=SC2059 # the format is the byte
    printf "\\x$(printf '%02x' $((byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

if on_server; then
    needs SPILLWAY_TEST_URI
fi

# kill_and_repeat MOST FROM SPAN ARGUMENT...: run the program with these arguments, kill it FROM to
# FROM + SPAN milliseconds after its start, and repeat it until it ends by itself; from the kill number
# MOST on it is left alone. `killed` has the number of kills, `status` the exit code, ./out and ./err the
# output.
kill_and_repeat() {
    local most=$1 from=$2 span=$3 pid
    shift 3
    for ((killed = 0;; killed++)); do
        "$SPILLWAY" "$@" --quiet >out 2>err &
        pid=$!
        if [ "$killed" -lt "$most" ]; then
            sleep "0.$(printf %03d $((from + RANDOM % span)))"
            kill -9 "$pid" 2>kill.err
        fi
        wait "$pid" 2>wait.err
        status=$?
        [ "$status" = 137 ] || break
    done
}

# killed_import MOST FROM SPAN ARGUMENT...: the same for an import, which must succeed. After the last
# record, the last kill leaves nothing to import.
killed_import() {
    kill_and_repeat "$1" "$2" "$3" import "$db" "${@:4}"
    [ "$status" = 0 ] || grep -q 'has nothing new' err || fail "import ${*:4} ended with $status: $(cat err)"
}

# until_done ARGUMENT...: run a copying command, kill it after a random time (at most SPILLWAY_KILLS
# times; otherwise 5 times, on a server twice), and repeat it until it succeeds. Its output is in ./out
# and ./err.
until_done() {
    local rounds=5 span=100 killed status
    ! on_server || rounds=2 span=300
    kill_and_repeat "${SPILLWAY_KILLS:-$rounds}" 0 $span "$@"
    [ "$status" = 0 ] || fail "spillway $* ended with $status: $(cat err)"
    has out '"differences":0}'
    echo "$killed kills: spillway $*"
}
