#!/usr/bin/env bash
# Follow docs/tutorial/gateway.md in an empty folder: save its programs, run its commands, and compare their
# output with the page. The server, the database and the ports are the test's own.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

page=$here/../../docs/tutorial/gateway.md
use_pymongo # drops the database
new_database
[[ $uri =~ ^mongodb://([^/@]+)/([^/?]+)$ ]] || skip "the test server needs more than a host in its URI"
mkdir bin folder
ln -s "$SPILLWAY" bin/spillway
PATH=$PWD/bin:$PATH
read -r port metrics < <(python3 -c 'import socket
with socket.socket() as one, socket.socket() as other:
    for probe in (one, other):
        probe.bind(("127.0.0.1", 0))
    print(one.getsockname()[1], other.getsockname()[1])')
sed -e "s/localhost:27017/${BASH_REMATCH[1]}/g" -e "s/\bshop\b/${BASH_REMATCH[2]}/g" \
    -e "s/127\.0\.0\.1:27018/127.0.0.1:$port/g" -e "s/\b9216\b/$metrics/g" "$page" >page.md

# save NAME: the indented block that follows the line which says to save it under this name.
save() {
    awk -v name="**$1**:" '
        index($0, "ave th") && index($0, name) { begins = 1; next }
        begins && /^    / { inside = 1; print substr($0, 5); next }
        inside && !/^$/ { exit }
        inside { print }' page.md >"folder/$1"
    [ -s "folder/$1" ] || fail "the page does not have $1"
}

save app.py
save sort.py
cd folder || exit 1
python3 "$here/test_guide.py" ../page.md || fail "the tutorial and the program differ"
[ -z "$(ls)" ] || fail "the clean-up leaves $(ls)"
"$(python_with_pymongo)" - "$uri" <<'END' || fail "the clean-up leaves data"
import sys, pymongo
with pymongo.MongoClient(sys.argv[1]) as client:
    names = client.get_default_database().list_collection_names()
    assert not names, names
END
