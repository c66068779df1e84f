#!/usr/bin/env bash
# Run the queries of the pattern's descriptions in MongoDB's shell, on a store.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars in it
source "$(dirname "$0")/lib.sh"

use_pymongo # drops the database
use_npm mongosh "$MONGOSH"
new_database
export HOME=$work # mongosh keeps its history and its logs there

for i in {0..59}; do
    printf '{"type": "post", "ts": {"$date": {"$numberLong": "%d"}}, "n": %d}\n' \
        $((1767225600000 + i)) "$i"
done >activities.ndjson
expect 0 define "$uri" feed --preset feed --threshold 20 --page 15
expect 0 define "$uri" sales --preset sales --threshold 50 --page 100
for part in 1,20p 21,35p 36,50p 51,60p; do
    sed -n "$part" activities.ndjson | "$SPILLWAY" append "$uri" feed user-00042 - >out ||
        fail "activities $part are not appended"
done
for part in "1 00 49" "2 00 49" "2 50 119"; do
    read -r book first last <<<"$part"
    seq -f '"user%02g"' "$first" "$last" | "$SPILLWAY" append "$uri" sales "$book" - >out ||
        fail "sales $part are not appended"
done

"$modules/.bin/mongosh" --quiet --norc "$uri" "$here/test_mongosh.js" >shell 2>&1 || {
    fail "the shell's results differ from the pattern's descriptions:"
    cat shell >&2
}
