#!/usr/bin/env bash
# Run the commands of docs/tutorial/guide.md, from a scan to bounded arrays, while an application
# pushes, and compare their output with the page.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_pymongo # drops the database
new_database
export SPILLWAY_URI=$uri
mkdir bin
ln -s "$SPILLWAY" bin/spillway
ln -s "$here/../../examples/guide/shop.py" .
PATH=$PWD/bin:$PATH
cleanups+=('touch stop')
python3 "$here/test_guide.py" "$here/../../docs/tutorial/guide.md" || fail "the guide and the program differ"
