#!/usr/bin/env bash
# A two-stage migration copies arrays to other layouts. It is killed and restarted while programs with
# pymongo push, edit and pull. The test uses generated arrays. With SPILLWAY_LONG it uses more of them
# and, if SPILLWAY_DATA names a folder of data sets, also real ones.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_pymongo
sets=${SPILLWAY_SETS:-small}
if [ -n "${SPILLWAY_LONG:-}" ] && [ -z "${SPILLWAY_SETS:-}" ]; then
    sets="small ${SPILLWAY_DATA:+openstack_updates gitter_chat eol_releases}"
fi
for set in $sets; do
    new_database
    python3 "$here/test_migrate_staged.py" "$uri" "$set" ||
        fail "$set: an array differs from the acknowledged writes"
done
