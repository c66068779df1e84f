#!/usr/bin/env bash
# Play through the practices of docs/runbooks, each in a folder and a database of its own, and compare the
# output with the pages. The server that a page stops and starts is this test's own.
# shellcheck disable=SC1091,SC2154 # what is sourced is not followed
source "$(dirname "$0")/lib.sh"

runbooks=$here/../../docs/runbooks
test_server=$here/../../tools/test-server
script=$here/test_runbooks.sh

# play PAGE: in a folder of its own.
play() {
    mkdir "${1%.md}" || exit 1
    (
        cd "${1%.md}" || exit 1
        ln -s "$here/../../examples/runbooks/shop.py" .
        python3 "$here/test_guide.py" "$runbooks/$1"
    ) || fail "$1 and the program differ"
}

# Runs in a mount namespace, where everybody may mount.
if [ "${1:-}" = disk-full ]; then
    play disk-full.md
    exit
fi

use_pymongo
mkdir bin
ln -s "$SPILLWAY" bin/spillway
# "systemctl stop mongod" and "start" are for the test's own server.
cat >bin/systemctl <<END
#!/usr/bin/env bash
case "\$1" in
stop) exec "$test_server" kill "$work/server" ;;
start) exec "$test_server" start --while $$ "$work/server" >/dev/null ;;
esac
exit 2
END
chmod +x bin/systemctl
export PATH=$PWD/bin:$PATH

played=0
for page in "$runbooks"/*.md; do
    page=$(basename "$page")
    case $page in
    README.md) continue ;;
    disk-full.md)
        if unshare -rm true 2>/dev/null; then
            unshare -rm "$BASH" "$script" disk-full || fail "disk-full.md"
        else
            echo "no mount namespaces here: disk-full.md was not played" >&2
        fi
        ;;
    server-away.md)
        "$test_server" start --while $$ "$work/server" >server.uri || fail "the server does not start"
        cleanups+=("'$test_server' stop '$work/server'")
        uri=$(cat server.uri)
        SPILLWAY_URI="${uri%/}/shop?serverSelectionTimeoutMS=2000" play "$page"
        ;;
    *)
        new_database
        SPILLWAY_URI=$uri play "$page"
        ;;
    esac
    played=$((played + 1))
done
[ "$played" = "$(grep -c '^| \[' "$runbooks/README.md")" ] || fail "README.md lists other pages than the $played"
