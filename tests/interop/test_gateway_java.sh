#!/usr/bin/env bash
# Push past 16 MB through the gateway with the Java driver.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"
source "$here/gateway.sh"

use_pymongo # which checks the result
for tool in javac mvn; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
program=$here/../../examples/drivers/java
jars=$(fetched_java "$program") ||
    skip "the Java driver is not cached and cannot be fetched"
javac -cp "$jars/*" -d classes "$program/Push.java" || fail "the program does not compile"
push_past_the_limit java -Xmx1g -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$PWD/classes:$jars/*" Push
