#!/usr/bin/env bash
# serve --check prints what would be served, and finds definitions that are not served, and that the
# URI's user may not write.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"

needs SPILLWAY_TEST_AUTH_URI SPILLWAY_TEST_READER_URI
new_database "$SPILLWAY_TEST_AUTH_URI"
name=${uri##*/} name=${name%%\?*}
writer=$(database_at "$SPILLWAY_TEST_AUTH_URI" "$name")
reader=$(database_at "$SPILLWAY_TEST_READER_URI" "$name")
options='?authSource=admin'

expect 0 serve "$writer$options" --check
has out "no collection has a definition"
if grep -q "^server: .*, a standalone server" out; then
    has out "drivers see: a standalone server; a connection string names one address"
else
    has out "drivers see: mongos; a connection string may name several"
fi
expect 0 serve "$writer$options" --check --present mongos
has out "drivers see: mongos; a connection string may name several such gateways"
expect 0 define "$writer$options" feed --preset feed-recent
expect 0 append "$writer$options" feed ada 1
expect 0 serve "$writer$options" --check
has out "users: served: array activities, pages in overflowActivities, threshold 1000"
expect 0 serve "$writer$options" --check --json
python3 - <<'END' || fail "--check --json: $(cat out)"
import json
server, users = [json.loads(line) for line in open("out", encoding="utf-8")]
assert server["server"]["host"] and server["server"]["port"] > 0, server
assert (server["server"]["kind"], server["driversSee"]) in {
    ("standalone", "standalone"), ("replicaSet", "mongos"), ("sharded", "mongos")}, server
assert users == {"collection": "users", "served": True, "array": "activities", "pages": "overflowActivities",
                 "threshold": 1000}, users
END
expect 2 serve "$writer$options" --json
has err "--json needs --check"
expect 3 serve "$reader$options" --check
has err "the user of the URI may not write"
expect 2 serve ./folder --check
has err "serve needs a server's URI"
expect 2 serve "$writer$options" --present nothing
has err "--present is auto, mongos or standalone"
expect 2 serve "$writer$options" --header-timeout 0
has err "--header-timeout must be from 1"
expect 2 serve "$writer$options" --listen 127.0.0.1:99999999
has err "must be ADDRESS[:PORT]"
expect 2 serve "$writer$options" --listen 127.0.0.1:99999
has err "with a port from 0 to 65535"
expect 2 serve "$writer$options" --listen 27720
has err "must be ADDRESS[:PORT]"
for number in listen=127.0.0.1:65536 metrics=65536; do
    expect 2 serve "$writer$options" --check "--$number"
done
for name in loops max-workers max-reply max-connections max-per-address header-timeout memory; do
    expect 2 serve "$writer$options" --check "--$name" 0
    has err "--$name must be from"
done
expect 2 serve "$writer$options" --check --tls-key key.pem
has err "need --tls-cert"
expect 2 serve "$writer$options" --metrics nowhere
has err "must be PORT or ADDRESS:PORT"
expect 2 serve "$writer$options" --max-connections 1000000
has err "open files"

# Definitions that are not served: the check finds each, with its own cause.
start_gateway() { # print the line at start; with arguments, run them with the address as $address
    coproc gateway { exec "$SPILLWAY" serve "$writer$options" --listen 127.0.0.1:0 2>gateway.log; }
    # shellcheck disable=SC2154 # coproc sets it
    local pid=$gateway_PID
    IFS= read -r -t 30 line <&"${gateway[0]}"
    address=${line#*mongodb://} address=${address%%/*}
    ps -o args= -p "$pid" >ps.out
    "$@"
    kill "$pid" && wait "$pid"
    echo "$line" >out
}
expect 2 define "$writer$options" events --preset gateway --collection people
has err "needs --collection and --array"
expect 2 define "$writer$options" events --preset gateway --array events
expect 0 define "$writer$options" events --preset gateway --collection people --array events
has err "note: the collection 'people' has no document yet; is its name right?"
expect 0 serve "$writer$options" --check
has out "people: note: the collection 'people' has no document yet"
expect 0 serve "$writer$options" --check --json
grep -q '"collection" : "people", "served" : true, .*"note" : "the collection .people. has no document yet' out || fail "--check --json: $(cat out)"
expect 4 define "$writer$options" followers --preset gateway --collection people --array followers
has err "Nothing was saved"
expect 3 define "$writer$options" followers
expect 0 serve "$writer$options" --check

# Two definitions that share a collection can be saved if none is of preset gateway; then one is
# made like it.
expect 0 drop "$writer$options" events --yes
expect 0 define "$writer$options" events --preset feed-recent --collection people --array events \
    --page-collection peopleEvents
expect 0 define "$writer$options" followers --preset feed-recent --collection people --array followers \
    --count-field followerCount --overflow-field hasMore --pages-field morePages \
    --page-collection peopleFollowers
[ ! -s err ] || fail "define warns of definitions that are not for the gateway: $(cat err)"
expect 0 define "$writer$options" followers --page-collection people.followers.pages
has err "the definitions 'followers' and 'events' share the collection 'people'"
expect 0 define "$writer$options" followers
[ ! -s err ] || fail "define warns of a definition that it shows: $(cat err)"
expect 1 serve "$writer$options" --check
has out "people: not served: the definitions 'events' and 'followers' share the collection"
has out "users: served: array activities"
start_gateway
has out "people (not served: the definitions 'events' and 'followers' share the collection"
expect 0 drop "$writer$options" followers --yes
expect 0 serve "$writer$options" --check
expect 0 define "$writer$options" likes --preset gateway --id-field . --unique --collection likes --array likes
expect 1 serve "$writer$options" --check
has out "likes: not served: the definition 'likes' is a set"
expect 0 drop "$writer$options" likes --yes
expect 0 define "$writer$options" visits --preset reviews-bucket
expect 1 serve "$writer$options" --check
has out "not served: the definition 'visits' has the layout bucket"
expect 1 serve "$writer$options" --check --json
grep -q '"served" : false, "reason" : "the definition .visits. has the layout bucket' out || fail "--check --json: $(cat out)"
expect 3 serve "$reader$options" --check
has err "the user of the URI may not write"

# A store is not opened through a gateway, and nothing is written there.
refuse_gateway() {
    local through=${writer/@*/@$address/$name}
    for command in "verify" "serve --check" "scan" "status" \
        "define q --preset gateway --collection q --array a"; do
        # shellcheck disable=SC2086 # several words
        expect 2 ${command%% *} "$through$options" ${command#"${command%% *}"}
        has err "this is a Spillway gateway: give the address of the server behind it"
    done
    expect 3 define "$writer$options" q
    grep -q '^spillway serve mongodb://' ps.out || fail "ps shows $(cat ps.out)"
}
start_gateway refuse_gateway

# A port of a gateway: one of the same database may share it, for an upgrade. One of another is refused.
share_port() {
    local other
    other=$(database_at "$SPILLWAY_TEST_AUTH_URI" other)
    expect 4 serve "$other$options" --listen "$address"
    has err "process $gateway_PID is a gateway of another database at $address: choose another port"
    "$SPILLWAY" serve "$writer$options" --listen "$address" >second.out 2>second.err &
    local second=$!
    await "the second gateway listens" grep -q "listening on mongodb://$address/" second.out
    kill "$second" && wait "$second"
}
start_gateway share_port
