#!/usr/bin/env bash
# A server that does not run, refuses the user or refuses a write, and invalid connection strings: check
# the exit code and the message, which must not have the password.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

needs SPILLWAY_TEST_URI SPILLWAY_TEST_AUTH_URI SPILLWAY_TEST_READER_URI

# fails CODE TEXT ARGUMENT...: no output on stdout, and a message of one line with the text and without
# the password.
secret=Tr0ub4dor
fails() {
    local code=$1 text=$2 password
    shift 2
    expect "$code" "$@"
    is out ""
    has err "$text"
    grep -q '^spillway: ' err || fail "spillway $* ends without its own message: $(cat err)"
    for password in "$secret" "$own_secret"; do
        grep -qF "$password" err && fail "spillway $* prints a password: $(cat err)"
    done
}

# Print the password of a connection string.
password_of() {
    [[ $1 =~ ^[^@]*:([^@:]*)@ ]] && echo "${BASH_REMATCH[1]}"
}
own_secret=$(password_of "$SPILLWAY_TEST_AUTH_URI")
[ -n "$own_secret" ] || fail "SPILLWAY_TEST_AUTH_URI has no password"

# ---- connection strings --------------------------------------------------------------------------

fails 2 "names no database" count "mongodb://u:$secret@127.0.0.1:1" ev alice
fails 2 "names no database" count "mongodb://u:$secret@127.0.0.1:1/" ev alice
fails 2 "names no database" count "mongodb://u:$secret@127.0.0.1:1/?tls=false" ev alice
for uri in "mongodb://u:$secret@" "mongodb://u:$secret@h:port/db" "mongodb://u:$secret%ZZ@h/db" \
    "mongodb://u:$secret@h/db?tls=maybe" "mongodb://u:$secret@h/a.b" "mongodb://u:a/$secret@h/db" \
    "mongodb://u:1/$secret@h/db" "mongodb://u:1/$secret@h" "mongodb://u:1?$secret@h/db" \
    "mongodb://u:1@$secret@h/db" "mongodb://u:a@1/$secret@h/db" "mongodb+srv://u:$secret@h/db" \
    "mongodb:/u:$secret@h/db" "mongo://u:$secret@h/db" "mongodb://u:$secret@h/db?w=0"; do
    for command in count append define; do
        case $command in
        count) fails 2 "" count "$uri" ev alice ;;
        append) fails 2 "" append "$uri" ev alice 1 ;;
        define) fails 2 "" define "$uri" ev --preset feed ;;
        esac
    done
done

fails 2 "the option 'tsl', which the driver does not know" \
    count "mongodb://u:$secret@h/db?w=1&tsl=true" ev alice
fails 2 "the option 'tsl', which the driver does not know" \
    define "mongodb://u:$secret@h/db?tsl=true" ev --preset feed
fails 2 "raise maxPoolSize" count "mongodb://u:$secret@h/db?waitQueueTimeoutMS=5" ev alice
fails 2 "encode characters other than letters" count "mongodb://u%zz:$secret@h/db" ev alice
fails 3 "tlsCertificateKeyFile: No such file" \
    count "mongodb://h/db?tls=true&tlsCertificateKeyFile=$PWD/nowhere.pem" ev alice

# ---- no server -----------------------------------------------------------------------------------

# A server that runs, but not as the connection string says. Options of other drivers are no error.
short="serverSelectionTimeoutMS=500"
fails 3 "answers only without TLS, and the connection string has tls=true" \
    count "${SPILLWAY_TEST_URI%/}/db?tls=true&$short" ev alice
fails 3 "answers, but is no member of a replica set" \
    count "${SPILLWAY_TEST_URI%/}/db?replicaSet=rs0&$short" ev alice
fails 3 "the database has no Spillway definitions" \
    count "${SPILLWAY_TEST_URI%/}/no_such_db?uuidRepresentation=standard&timeoutMS=9000" ev alice

nobody_there="mongodb://u:$secret@127.0.0.1:1/db?serverSelectionTimeoutMS=200"
fails 3 "127.0.0.1:1/db: " count "$nobody_there" ev alice
fails 3 "127.0.0.1:1/db: " define "$nobody_there" ev --preset feed
fails 3 "127.0.0.1:1/db: " append "$nobody_there" ev alice 1
echo '{"by": "alice"}' >one.ndjson
fails 3 "127.0.0.1:1/db: " import "$nobody_there" ev one.ndjson --owner by
fails 3 "127.0.0.1:1/db: " verify "$nobody_there"
echo "$nobody_there" >uri
fails 3 "127.0.0.1:1/db: " count @uri ev alice
SPILLWAY_URI=$nobody_there fails 3 "127.0.0.1:1/db: " count - ev alice

# ---- no database, no definition ------------------------------------------------------------------

new_database "$SPILLWAY_TEST_URI"
for command in "count ev alice" "read ev alice" "export ev" verify stats "explain ev alice" define \
    "append ev alice 1" "edit ev alice 0 1" "remove ev alice 0" "trim ev alice --keep 0" \
    "drop ev --yes" "import ev one.ndjson --owner by"; do
    read -r name rest <<<"$command"
    # shellcheck disable=SC2086 # words
    fails 3 "the database has no Spillway definitions; \`spillway define\` makes one" \
        "$name" "$uri" $rest
done
expect 0 define "$uri" ev --preset feed
fails 3 "there is no definition 'events' in the store (there are: ev)" count "$uri" events alice

# ---- users and passwords -------------------------------------------------------------------------

new_database "$SPILLWAY_TEST_AUTH_URI"
expect 0 define "$uri" ev --preset feed-recent --threshold 2 --page 2
expect 0 append "$uri" ev alice 0 1 2 3 4
counts "$uri" ev alice 5

for wrong in "${uri/":$own_secret@"/":$secret@"}" "${uri/"//"*"@"/"//nobody:$secret@"}"; do
    fails 4 "uthentication" count "$wrong" ev alice
    fails 4 "uthentication" define "$wrong" other --preset sales
    fails 4 "uthentication" append "$wrong" ev alice 5
done
fails 3 "authentication" count "${uri/"//"*"@"/"//"}" ev alice
counts "$uri" ev alice 5

name=${uri##*/}
reader=$(database_at "$SPILLWAY_TEST_READER_URI" "${name%%\?*}")
counts "$reader" ev alice 5
expect 0 read "$reader" ev alice --limit 3
is out "$(printf '4\t4\n3\t3\n2\t2')"
expect 0 export "$reader" ev
[ "$(wc -l <out)" = 5 ] || fail "a reader exports $(wc -l <out) elements"
clean "$reader"
expect 0 stats "$reader"
for command in "append ev alice 5" "append ev alice --op op@1 5" "append ev bob 1" \
    "edit ev alice 4 7" "edit ev alice 0 7" "remove ev alice 4" "remove ev alice 0" \
    "trim ev alice --keep 1" "drop ev alice --yes" "drop ev --yes" "define other --preset sales" \
    "define ev --threshold 3" "import ev one.ndjson --owner by"; do
    read -r name rest <<<"$command"
    # shellcheck disable=SC2086 # words
    fails 3 "permi" "$name" "$reader" $rest
    has err '(the role readWrite on the database has every right that Spillway needs; to read, the role read is enough)'
done
expect 0 export "$uri" ev
mv out before
expect 0 export "$reader" ev
cmp -s before out || fail "a reader changed the store, or reads other data"
counts "$uri" ev alice 5
expect 3 count "$uri" ev bob
clean "$uri"

# ---- interrupted while the driver waits for a server ---------------------------------------------

# A server that accepts connections and never answers. It creates `reached` at the first one.
python3 - <<'END' &
import os, socket
with socket.create_server(("127.0.0.1", 0)) as server:
    with open("port.new", "w") as file:
        print(server.getsockname()[1], file=file)
    os.rename("port.new", "port")
    connections = []
    while True:
        connections.append(server.accept())
        open("reached", "w").close()
END
cleanups+=("kill $! 2>/dev/null")
await "the silent server listens" test -e port
mute="mongodb://127.0.0.1:$(cat port)/db?serverSelectionTimeoutMS=600000&connectTimeoutMS=600000"
echo '{"spillwayPlan": 1, "arrays": []}' >plan.json
for command in "scan $mute" "plan $mute" "migrate $mute plan.json" "sweep $mute ev"; do
    rm -f reached
    # shellcheck disable=SC2086 # words
    "$SPILLWAY" $command >out 2>err &
    pid=$!
    await "the program connects" test -e reached
    kill -TERM "$pid"
    ended() { ! kill -0 "$pid" 2>/dev/null; }
    await "${command%% *} ends after SIGTERM" ended
    wait "$pid"
    code=$?
    case $command in # the last two end by themselves, as interrupted: what they did is reported
    scan* | plan*) [ $code = 143 ] ;;
    *) [ $code = 130 ] ;;
    esac || fail "${command%% *} was not ended by SIGTERM, but ended with $code: $(cat err)"
done
