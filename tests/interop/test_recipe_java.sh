#!/usr/bin/env bash
# Compare the recipe for Java with the program.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

for tool in javac mvn; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
use_pymongo # for the test, which is the same for all recipes
recipe=$here/../../examples/recipes/java
jars=$(fetched_java "$recipe") ||
    skip "the Java driver is not cached and cannot be fetched"
new_database
javac -cp "$jars/*" -d classes "$recipe/Feed.java" || fail "the recipe does not compile"
jar cf feed.jar -C classes . || fail "the recipe cannot be packed"
java=(java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC)
classes=$PWD/feed.jar$(printf ':%s' "$jars"/*.jar)
# The test starts the recipe often. An archive of loaded classes halves the time of a start.
SPILLWAY_URI=$uri "${java[@]}" -XX:ArchiveClassesAtExit="$PWD/feed.jsa" -cp "$classes" Feed \
    undefined count nobody >archive.log 2>&1
[ -s feed.jsa ] || fail "Java makes no archive of classes: $(cat archive.log)"
python3 "$here/test_recipes.py" "$uri" "${java[@]}" -XX:SharedArchiveFile="$PWD/feed.jsa" \
    -cp "$classes" Feed ||
    fail "the recipe and the program differ"
