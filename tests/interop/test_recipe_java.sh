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
python3 "$here/test_recipes.py" "$uri" java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC \
    -cp "$PWD/classes:$jars/*" Feed ||
    fail "the recipe and the program differ"
