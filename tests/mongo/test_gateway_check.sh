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
expect 0 define "$writer$options" feed --preset feed-recent
expect 0 append "$writer$options" feed ada 1
expect 0 serve "$writer$options" --check
has out "users: served: array activities, pages in overflowActivities, threshold 1000"
expect 3 serve "$reader$options" --check
has err "the user of the URI may not write"
expect 2 serve ./folder --check
has err "serve needs a server's URI"
expect 2 serve "$writer$options" --present nothing
has err "--present is auto, mongos or standalone"
expect 2 serve "$writer$options" --header-timeout 0
has err "--header-timeout must be from 1"
expect 2 serve "$writer$options" --listen 127.0.0.1:99999999
has err "must be ADDRESS, ADDRESS:PORT"
expect 2 serve "$writer$options" --metrics nowhere
has err "must be PORT or ADDRESS:PORT"
expect 2 serve "$writer$options" --max-connections 1000000
has err "open files"

# Definitions that are not served: the check finds each, with its own cause.
start_gateway() { # print the line at start
    coproc gateway { exec "$SPILLWAY" serve "$writer$options" --listen 127.0.0.1:0; }
    # shellcheck disable=SC2154 # coproc sets it
    local pid=$gateway_PID
    IFS= read -r -t 30 line <&"${gateway[0]}"
    kill "$pid" && wait "$pid"
    echo "$line" >out
}
expect 0 define "$writer$options" events --preset gateway --collection people --array events
[ ! -s err ] || fail "define warns of one definition: $(cat err)"
expect 0 serve "$writer$options" --check
expect 0 define "$writer$options" followers --preset gateway --collection people --array followers
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
expect 3 serve "$reader$options" --check
has err "the user of the URI may not write"
