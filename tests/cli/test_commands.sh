#!/usr/bin/env bash
# Every command's ordinary use, and the usage errors of each.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars in it
source "$(dirname "$0")/lib.sh"

# ---- help ----------------------------------------------------------------------------------------

expect 0 --version
grep -qE '^spillway [0-9]+\.[0-9]+\.[0-9]+$' out || fail "--version prints no version"
expect 0 --help
mapfile -t commands < <(grep -E '^  [a-z-]+ +[A-Z]' out | awk '{ print $1 }')
[ "${#commands[@]}" -ge 12 ] || fail "--help lists ${#commands[@]} commands"
for command in "${commands[@]}"; do
    expect 0 "$command" --help
    has out "Usage: spillway $command"
    has out "Example"
    mv out first
    expect 0 help "$command"
    cmp -s first out || fail "help $command and $command --help differ"
    expect 2 "$command" --no-such-option
    has err "--no-such-option"
done
expect 2
expect 2 reed db events
has err "did you mean 'read'?"
expect 2 help nope
is err "spillway: there is no command 'nope'
Try 'spillway --help'."

# A wrong option, or an argument too many, names the option that was probably meant.
# hint TEXT ARGUMENT...
hint() {
    local text=$1
    shift
    expect 2 "$@"
    tr -s ' \n' ' ' <err >line # argp breaks lines
    has line "$text"
}
hint "'5' is one argument too many: STORE NAME OWNER; did you mean --below 5 or --keep 5?" trim db events alice 5
hint "did you mean --older-than 30d?" trim db events alice 30d
hint "did you mean --limit 5?" read db events alice 5
hint "did you mean --limit 10?" owners db events 10
hint "did you mean --target 200KB or --element 200KB?" threshold db events 200KB
hint "there is no option '--limit'; did you mean --keep N?" trim db events alice --limit 5
hint "there is no option '--count'; did you mean --keep N?" trim db events alice --count=5
hint "there is no option '--count'; did you mean --limit N?" read db events alice --count 5
hint "there is no option '-n'; did you mean --limit N?" read db events alice -n 5
hint "there is no option '-limit'; did you mean --limit N?" read db events alice -limit 5
hint "did you mean --limit N?" read db events alice --limti 5
hint "did you mean --threshold N, --page N or --max-bytes SIZE?" define db events --size 5
hint "did you mean --max-bytes SIZE or --page-bytes SIZE?" define db events --bytes 1MB
hint "did you mean --interval SECONDS?" sweep db events --every 5
hint "did you mean --threads N?" migrate db plan.json --jobs 4
hint "did you mean --yes?" drop db events --force
hint "did you mean --sample N?" scan db --limit 5
hint "did you mean --listen ADDRESS[:PORT]?" serve db --port 5
# No option comes close. What stands behind -- or belongs to another option is no option.
hint "there is no option '--limit' Try" export db events --limit 5
hint "'60' is one argument too many: STORE NAME Try" sweep db events 60
hint "'--limti' is one argument too many" read db events alice -- --limti
hint "--before: '--limti' is not a number" read db events alice --before --limti
expect 2 frobnicate
has err "there is no command 'frobnicate'"
expect 2 help frobnicate

# ---- define --------------------------------------------------------------------------------------

new_store
lists_no_definition() {
    if on_server; then
        expect 3 count "$db" events alice
        has err "the database has no Spillway definitions"
    else
        [ ! -e db ]
    fi
}
expect 3 define "$db"
expect 3 define "$db" events --threshold 5
lists_no_definition || fail "a failed define left a store behind"
expect 2 define "$db" events --preset nothing
has err "feed-recent"
expect 2 define "$db" events --preset feed --threshold 0
has err "threshold"
expect 2 define "$db" events --preset feed --page 0
has err "(--page) must be at least 1"
expect 2 define "$db" events --preset feed --max-bytes 20MiB
has err "(--max-bytes) must be at most 15728640"
expect 2 define "$db" events --preset feed --threshold -1
expect 2 define "$db" events --preset feed --max-bytes 12XB
expect 2 define "$db" events --layout spiral
expect 2 define "$db" events --layout outlier --keep middle
expect 2 define "$db" events --layout outlier --order backwards
expect 2 define "$db" events --layout outlier --array same --count-field same
lists_no_definition || fail "a refused define left a store behind"
expect 0 define "$db" events --preset feed-recent --threshold 3 --page 2
expect 0 define "$db"
has out "events: outlier, keep newest, threshold 3, page 2"
expect 0 define "$db" events --json
has out '"threshold" : 3'
expect 0 define "$db" visits --layout outlier --keep oldest --threshold 4 --page 4 \
    --max-bytes 200KB --page-bytes 1MiB --op-window 10 --collection pages --array visits \
    --page-collection moreVisits --page-array visits --page-owner pageId --count-field '' \
    --overflow-field more --pages-field parts --page-number n --page-count size
expect 0 define "$db" visits --json
for text in '"headBytesMax" : 200000' '"pageBytesMax" : 1048576' '"keep" : "oldest"' '"opWindow" : 10'; do
    has out "$text"
done
expect 2 define "$db" --threshold 3
has err "NAME is missing"

# ---- capped --------------------------------------------------------------------------------------

expect 2 define "$db" viewed --layout capped --keep oldest
expect 2 define "$db" viewed --layout capped --page 10
has err "layout capped has no pages"
expect 0 define "$db" viewed --layout capped --threshold 3 --max-bytes 100KB --order newest-first \
    --collection shoppers --array viewed --count-field ''
is out "viewed: capped, keep newest, arrays newest first, threshold 3, head 100000 bytes, window 64; shoppers.viewed"
expect 0 define "$db" viewed --json
! grep -qi page out || fail "a capped definition mentions pages"
seq 10 | "$SPILLWAY" append "$db" viewed ada - >out
is out 0..9
expect 0 read "$db" viewed ada
is out $'9\t10\n8\t9\n7\t8'
expect 0 remove "$db" viewed ada 8
expect 3 remove "$db" viewed ada 2
expect 0 append "$db" viewed ada '"x"' --op a@0
expect 0 append "$db" viewed ada '"x"' --op a@0
is out 10
expect 0 export "$db" viewed --documents --plain --relaxed
has out '"viewed" : [ "x", 10, 8 ]'
expect 0 explain "$db" viewed ada
has out "past 3 elements or 100000 bytes its oldest elements are dropped"
expect 0 append "$db" viewed ada 11 12 13
expect 0 count "$db" viewed ada
has out '"count":3'
clean "$db" viewed
expect 4 define "$db" viewed --layout outlier
expect 0 define "$db" lastly --layout capped --collection lastly --id-field n --time-field at \
    --retain-age 7d
has out "; ids at n; times at at; keeps the last 604800 seconds"
expect 0 append "$db" lastly ada '{"n": 1, "at": {"$date": "2999-01-01T00:00:00Z"}}'
for layout in subset bucket; do
    expect 4 define "$db" lastly --layout "$layout"
    has err "its layout is capped: 'spillway convert STORE lastly --layout $layout'"
done
expect 0 drop "$db" lastly --yes
expect 0 convert "$db" viewed --to outlier
expect 0 read "$db" viewed.outlier ada
is out $'13\t13\n12\t12\n11\t11'
expect 0 drop "$db" viewed.outlier --yes
expect 0 drop "$db" viewed ada --yes
expect 0 drop "$db" viewed --yes

# ---- append, read, count -------------------------------------------------------------------------

expect 0 append "$db" events alice '{"n": 0}'
is out 0
expect 0 append "$db" events alice '{"n": 1}' '"two"' 3
is out 1..3
seq 4 9 | "$SPILLWAY" append "$db" events alice - >out || fail "append from stdin"
is out 4..9
expect 0 append "$db" events alice --json 10
is out '{"first":10,"count":1,"repeated":false}'
counts "$db" events alice 11
has out '"owner":"alice"'
expect 0 read "$db" events alice --limit 3
printf '10\t10\n9\t9\n8\t8\n' | cmp -s - out || fail "read prints $(cat out)"
is err ''
on_terminal 100 read "$db" events alice --limit 3
has out "next: --limit 3 --before 8"
expect 0 read "$db" events alice --limit 3 --before 8 --json
[ "$(head -1 out)" = '{"seq":7,"element":7}' ] || fail "read --json prints $(head -1 out)"
expect 0 read "$db" events alice --oldest --limit 2
printf '0\t{ "n" : 0 }\n1\t{ "n" : 1 }\n' | cmp -s - out || fail "read --oldest prints $(cat out)"
on_terminal 100 read "$db" events alice --oldest --limit 2
has out "next: --oldest --limit 2 --after 1"
expect 0 read "$db" events alice --oldest --after 8 --quiet
printf '9\t9\n10\t10\n' | cmp -s - out || fail "read --after prints $(cat out)"
is err ""
expect 0 read "$db" events alice --skip 9
printf '1\t{ "n" : 1 }\n0\t{ "n" : 0 }\n' | cmp -s - out || fail "read --skip prints $(cat out)"
for command in read export; do
    expect 3 "$command" "$db" events nobody --quiet
    is out ""
    is err "spillway: 'events' has no owner \"nobody\""
done

# Owners: plain words and Extended JSON; 1 and 1.0 are one owner, "1" is another.
expect 0 append "$db" events 1 '"int"'
expect 0 append "$db" events 1.0 '"double"'
is out 1
expect 0 append "$db" events '"1"' '"text"'
is out 0
expect 0 append "$db" events '{"$oid": "5f1d7a3e9d1b2c0001a2b3c4"}' 1
counts "$db" events '{"$oid": "5f1d7a3e9d1b2c0001a2b3c4"}' 1
expect 2 append "$db" events '{"broken"' 1
for number in 12345678901234567890 -9223372036854775809; do
    expect 2 append "$db" events $number 1
    has err "does not fit into 64 bits; if it is meant as text, write it in quotes: '\"$number\"'"
    expect 3 count "$db" events "\"$number\""
    expect 0 append "$db" events "\"$number\"" 1
    expect 0 drop "$db" events "\"$number\"" --yes
done
expect 3 count "$db" events 9223372036854775807
expect 2 append "$db" events 00012 1
has err "is not a number, because it begins with 0; if it is meant as text, write it in quotes: '\"00012\"'"
expect 2 append "$db" events alice '{"broken"'
has err "Extended JSON"
expect 2 append "$db" events alice --op ''
expect 2 append "$db" events alice --op "$(printf 'x%.0s' {1..65})" 1
expect 2 append "$db" events alice --op a@b 1
expect 2 append "$db" events alice --op a@9223372036854775807 1
has err "base"
expect 3 append "$db" events alice - <<<'{"a": 1} trailing'
has err "stdin:1"
counts "$db" events alice 11
expect 0 append "$db" events minus -5 -1.5 7
expect 0 read "$db" events minus --oldest
printf '0\t-5\n1\t-1.5\n2\t7\n' | cmp -s - out || fail "negative numbers are $(cat out)"
expect 0 edit "$db" events minus 0 -- -6
expect 0 append "$db" events -3 '"a number owns it"'
counts "$db" events -3 1
has out '"owner":-3,'
expect 2 read "$db" events minus --limit -1
has err "'-1' is not a number"
expect 2 read "$db" events minus --oldest --after 9223372036854775807
has err "--after: '9223372036854775807' is not a number from 0 to 9007199254740992"
expect 2 remove "$db" events minus first
has err "SEQ: 'first' is not a sequence number"
# If a batch fails before the malformed line, both failures are reported.
printf '1\nnonsense\n' | "$SPILLWAY" append "$db" events '[1]' - >out 2>err
[ $? = 3 ] || fail "a malformed line did not fail"
has err "stdin:2: "
[ "$(wc -l <err)" = 2 ] || fail "append does not report both failures: $(cat err)"

# ---- operations ----------------------------------------------------------------------------------

expect 0 append "$db" events bob --op first '"x"'
is err "first@0"
expect 0 append "$db" events bob --op first@0 '"x"'
is out 0
has err "nothing was written this time"
expect 0 append "$db" events bob --op first@0 --json --quiet '"x"'
is out '{"first":0,"count":1,"repeated":true}'
is err ""
expect 4 append "$db" events bob --op first@0 '"y"' '"x"'
has err 'was used for an append of 1 element, this one has 2: choose another id'
counts "$db" events bob 1
printf '1\n2\n3\n4\n5\n' | "$SPILLWAY" append "$db" events bob - --op many@1 >out 2>err
is out 1..5
printf '1\n2\n3\n4\n5\n' | "$SPILLWAY" append "$db" events bob - --op many@1 --quiet >out 2>err
is out 1..5
counts "$db" events bob 6
printf '1\nnonsense\n' | "$SPILLWAY" append "$db" events bob - --op bad@2 >out 2>err
[ $? = 3 ] || fail "a malformed line did not fail"
counts "$db" events bob 6

# ---- documents are filled ------------------------------------------------------------------------

# holds FILE DOCUMENT TEXT: the document's line in the output of explain has the text.
holds() {
    grep "^  $2 " "$1" | grep -qF -- "$3" || fail "$2 does not have '$3': $(cat "$1")"
}

expect 0 define "$db" sales --preset sales
seq 350 | sed 's/.*/"u&"/' | "$SPILLWAY" append "$db" sales 2 - >out
is out 0..349
expect 0 explain "$db" sales 2
holds out head '[0..50)  50 elements'
holds out 'page 0' '[50..350)  300 elements'
seq 60 | "$SPILLWAY" append "$db" sales 3 - --op load@0 --quiet >out
is out 0..59
expect 0 explain "$db" sales 3
holds out head '[0..50)  50 elements'
seq 60 | "$SPILLWAY" append "$db" sales 3 - --op load@0 --json >out 2>err
is out '{"first":0,"count":60,"repeated":true}'
seq 60 | "$SPILLWAY" append "$db" sales 3 - --op load@0 --atomic --json >out 2>err
is out '{"first":0,"count":60,"repeated":true}'
counts "$db" sales 3 60
seq 60 | "$SPILLWAY" append "$db" sales 4 - --atomic >out
expect 0 explain "$db" sales 4
holds out head '[0..0)  0 elements'
holds out 'page 0' '[0..60)  60 elements'
expect 2 append "$db" sales 5 --op "$(printf 'x%.0s' {1..64})" 1 2
has err 'may be split'
expect 0 append "$db" sales 5 --op "$(printf 'x%.0s' {1..64})" --atomic 1 2
for i in {1..350}; do
    echo "{\"book\": 6, \"user\": \"u$i\"}"
done >sales.ndjson
expect 0 import "$db" sales sales.ndjson --owner book
expect 0 explain "$db" sales 6
holds out head '[0..50)  50 elements'
holds out 'page 0' '[50..350)  300 elements'

# ---- edit, remove, trim --------------------------------------------------------------------------

expect 0 edit "$db" events alice 2 '"edited"'
expect 0 read "$db" events alice --oldest --after 1 --limit 1
has out '"edited"'
expect 0 remove "$db" events alice 3
expect 3 remove "$db" events alice 3
expect 3 edit "$db" events alice 3 1
expect 3 edit "$db" events alice 999 1
expect 2 edit "$db" events alice x 1
expect 2 edit "$db" events alice 2 nonsense
expect 2 remove "$db" events alice -- -1
counts "$db" events alice 10
expect 2 remove "$db" events alice
expect 2 remove "$db" events alice 1 --id 1
expect 2 remove "$db" events alice --id nonsense
expect 2 remove "$db" events alice --id 1
has err "idField"
expect 0 trim "$db" events alice --below 2
is out 2
counts "$db" events alice 8
expect 0 trim "$db" events alice --keep 4
is out 7
expect 0 read "$db" events alice --oldest --quiet
printf '7\t7\n8\t8\n9\t9\n10\t10\n' | cmp -s - out || fail "after trim: $(cat out)"
expect 0 trim "$db" events alice --keep 100
counts "$db" events alice 4
expect 0 trim "$db" events bob --keep 0
is out ''
expect 3 trim "$db" events nobody --keep 1
counts "$db" events bob 0
expect 0 read "$db" events bob
is out ''
expect 0 export "$db" events bob
is out ''
expect 0 remove "$db" events bob --where '{"n": 1}'
is out 0

expect 0 define "$db" ids --preset feed-recent --collection idOwners --page-collection idPages \
    --threshold 3 --page 4 --id-field event.id
for i in {1..20}; do
    echo "{\"event\": {\"id\": \"e$((i % 10))\"}, \"n\": $i}"
done >ids.ndjson
"$SPILLWAY" append "$db" ids o --op ids - <ids.ndjson >out 2>err || fail "append by ids: $?"
expect 0 remove "$db" ids o --id '"e7"'
is out 6
expect 0 remove "$db" ids o --id '"e7"'
is out 16
expect 3 remove "$db" ids o --id '"e7"'
has err 'no element with the id "e7"'
expect 0 edit "$db" ids o --id '"e0"' '{"event": {"id": "new"}}'
expect 3 edit "$db" ids o --id '"gone"' 1
expect 2 edit "$db" ids o --id '"e0"' 5 1
expect 0 read "$db" ids o --oldest --after 8 --limit 1
has out '"new"'
expect 0 remove "$db" ids o --id '"new"'
is out 9
counts "$db" ids o 17
expect 0 remove "$db" ids o --where '{"n": {"$gte": 15}, "event.id": {"$ne": "e9"}}' --limit 2
is out 2
expect 0 remove "$db" ids o --where '{"n": {"$gte": 15}, "event.id": {"$ne": "e9"}}'
is out 2
expect 3 remove "$db" ids nobody --where '{"n": 1}'
is out ''
expect 2 remove "$db" ids o --where '{"$or": []}'
expect 2 remove "$db" ids o --where 7
expect 2 remove "$db" ids o --where '{}'
is out ''
expect 2 remove "$db" ids o 3 --where '{"n": 1}'
counts "$db" ids o 13
expect 4 define "$db" ids --id-field n
has err "idField"
clean "$db"
expect 0 drop "$db" ids --yes
expect 0 append "$db" events bob 1
is out 6
expect 2 trim "$db" events alice
expect 2 trim "$db" events alice --keep 1 --below 2
expect 2 trim "$db" events alice --older-than soon
expect 2 trim "$db" events alice --older-than 30x
expect 2 trim "$db" events alice --older-than 30d
has err "timeField"
# --like takes the settings of another definition; other options replace single ones.
expect 0 define "$db" logs --preset feed-recent --collection logOwners --page-collection logPages --threshold 7 \
    --page 5 --op-window 9 --id-field id --time-field at --retain-age 30d --count-field total
expect 4 define "$db" likes --like logs # they would share documents
has err "definition 'likes' clashes with 'logs'"
expect 0 define "$db" likes --like logs --collection likeOwners --page-collection likePages --page 6
expect 0 define "$db" logs --json
python3 -c '
import json
one = json.load(open("out"))
one.update(name="likes", collection="likeOwners", pageCollection="likePages")
for bounds in ("bounds", "largest"):
    one[bounds]["pageCapacity"] = 6
json.dump(one, open("wanted", "w"))'
expect 0 define "$db" likes --json
python3 -c 'import json; assert json.load(open("out")) == json.load(open("wanted"))' || fail "--like: $(cat out wanted)"
expect 0 define "$db" posts.comments --preset gateway --collection posts --array comments
expect 4 define "$db" posts.likes --like posts.comments --array likes # the gateway serves one of a collection
expect 0 define "$db" posts.likes --like posts.comments --collection fans --array likes --json --quiet
expect 0 define "$db" posts.likes
has out 'fans.likes, pages in fans.likes.pages'
expect 3 define "$db" more --like nobody
has err "there is no definition 'nobody' in the store"
expect 2 define "$db" more --like logs --preset feed
expect 2 define "$db" logs --like logs
expect 2 define "$db" --like logs
expect 3 define nowhere more --like logs
[ ! -e nowhere ] || fail "--like has created a store"

expect 0 define "$db" times --preset feed-recent --collection timeOwners \
    --page-collection timePages --threshold 3 --page 4 --time-field at
for i in {10..29}; do
    echo "{\"at\": {\"\$date\": \"2024-01-${i}T00:00:00Z\"}}"
done | "$SPILLWAY" append "$db" times o --op times - >out 2>err || fail "append by times: $?"
expect 0 trim "$db" times o --older-than 2024-01-15
counts "$db" times o 15
expect 0 trim "$db" times o --older-than 2024-01-27T12:00:00Z
counts "$db" times o 2
expect 0 append "$db" times o '{"no": "time"}'
expect 0 trim "$db" times o --older-than 1d
counts "$db" times o 1
clean "$db"
expect 0 drop "$db" times --yes
expect 0 define "$db" kept --preset feed-recent --collection keptOwners \
    --page-collection keptPages --threshold 3 --page 4 --retain-elements 10
has out "keeps the newest 10"
for i in {1..60}; do
    echo "$i"
done | "$SPILLWAY" append "$db" kept o --op kept - >out 2>err || fail "append to be kept: $?"
expect 0 count "$db" kept o
kept=$(sed 's/.*"count":\([0-9]*\),.*/\1/' out)
if [ "$kept" -lt 10 ] || [ "$kept" -gt 15 ]; then
    fail "$kept elements were kept, not 10 to 15"
fi
expect 0 read "$db" kept o --limit 1
has out "60"
expect 0 define "$db" kept --retain-elements 0
expect 2 define "$db" kept --retain-age 30d
has err "timeField"
expect 2 define "$db" kept --retain-age soon
expect 2 define "$db" capped --layout capped --retain-elements 5
has err "threshold"
expect 0 define "$db" capped --layout capped --collection cappedOwners --threshold 10 \
    --order newest-first --id-field n --time-field at --retain-age 1h
expect 0 append "$db" capped o '{"n": 1, "at": {"$date": "2024-01-01T00:00:00Z"}}'
counts "$db" capped o 0
for i in 2 3; do
    printf '{"n": %d, "at": {"$date": {"$numberLong": "%d000"}}}\n' "$i" "$(date +%s)"
done >young
expect 0 append "$db" capped o - <young
counts "$db" capped o 2
expect 0 remove "$db" capped o --id 2
has out "1"
clean "$db"
expect 0 drop "$db" capped --yes
clean "$db"
expect 0 drop "$db" kept --yes

# ---- export, explain, stats, threshold, verify ---------------------------------------------------

expect 0 export "$db" events alice
is out '{"owner":"alice","seq":7,"element":{ "$numberInt" : "7" }}
{"owner":"alice","seq":8,"element":{ "$numberInt" : "8" }}
{"owner":"alice","seq":9,"element":{ "$numberInt" : "9" }}
{"owner":"alice","seq":10,"element":{ "$numberInt" : "10" }}'
expect 0 export "$db" events alice --relaxed
has out '{"owner":"alice","seq":10,"element":10}'
expect 0 export "$db" events
has out '"owner":"bob"'
has out '"owner":{ "$oid" : "5f1d7a3e9d1b2c0001a2b3c4" }'
expect 0 export "$db" events alice --documents --relaxed
has out '{"collection":"users","document":{ "_id" : "alice"'
has out '"spill"'
expect 0 export "$db" events --documents --plain --relaxed
grep -q '"spill"' out && fail "export --plain prints bookkeeping"
expect 2 export "$db" events --plain
expect 3 export "$db" nothing
has err "nothing"
seq 1 20 | "$SPILLWAY" append "$db" events carol - >out
expect 0 explain "$db" events carol
has out '"carol": 20 elements'
has out 'page 0'
has out 'append: the head'
expect 0 explain "$db" events carol --json
head -1 out | grep -q '"page":-1' || fail "explain --json does not start with the head"
[ "$(sed 's/.*"elements":\([0-9]*\).*/\1/' out | paste -sd+ | bc)" = 20 ] ||
    fail "explain's elements do not add up to 20"
has out '"elementsMax":'
expect 0 explain "$db" events carol --documents
has out '"_id" : "carol"'
expect 4 define "$db" long --preset feed
has err "definition 'long' clashes with 'events'"
has err "--collection"
expect 4 define "$db" long --preset feed --collection long
has err "--page-collection"
expect 0 define "$db" long --preset feed --collection long --page-collection long.pages
seq 1 30 | "$SPILLWAY" append "$db" long carol - >out
expect 0 explain "$db" long carol --documents
has out '"... 27 more ..."'
expect 0 explain "$db" long carol
has out 'append: the head, one operation, until'
LC_ALL=C expect 0 explain "$db" sales 2
holds out head '#################### 100 % of 50       [0..50)  50 elements'
holds out 'page 0' '######.............. '
LC_ALL=C.UTF-8 expect 0 explain "$db" sales 2
holds out 'page 0' '██████░░░░░░░░░░░░░░ '
expect 0 define "$db" short --preset feed --collection short --page-collection short.pages \
    --threshold 2 --page 3
seq 1 80 | "$SPILLWAY" append "$db" short carol - >out
expect 0 explain "$db" short carol
has out '... 10 more pages, 30 elements, '
has out ', 100 to 100 % full'
[ "$(grep -c '^  page ' out)" = 16 ] || fail "not eight pages at each end: $(cat out)"
expect 0 explain "$db" short carol --all
[ "$(grep -c '^  page ' out)" = 26 ] || fail "not every page: $(cat out)"
# A trim deletes whole pages. The remaining pages keep their numbers.
expect 0 define "$db" recent --preset feed-recent --collection recent \
    --page-collection recent.pages --threshold 2 --page 3
for number in {1..20}; do echo "$number"; done | "$SPILLWAY" append "$db" recent carol - >out
expect 0 trim "$db" recent carol --keep 1
expect 0 explain "$db" recent carol
has out '"carol": 1 element, '
last=$(grep -o 'spills into page [0-9]*' out | grep -o '[0-9]*')
holds out "page $((last - 1))" ', all trimmed'
expect 3 explain "$db" events nobody
expect 0 append "$db" visits v 1 2 3 4 5 6
expect 0 explain "$db" visits v
has out 'the tail'
expect 0 stats "$db" events
has out 'events: 8 owners'
expect 0 stats "$db" events --top 1 --json
has out '"largest":[{"owner":"carol","elements":20,'
has out '"p50":1,'
expect 0 stats "$db"
has out 'visits: 1 owner, 6 elements'
expect 2 stats "$db" events --top 99999
expect 0 threshold --target 200KB --element 200B
is out 1000
expect 0 threshold --target 200KB --element 2KB --json
is out '{"target":200000,"element":2000,"threshold":100}'
expect 0 threshold "$db" visits --target 4KB
is out 1000
expect 2 threshold --target 0 --element 5
expect 2 threshold --target 5
expect 2 threshold "$db"
expect 2 threshold --target 4KB --element 1 "$db" visits
clean "$db"
expect 0 verify "$db" events --json
expect 3 verify "$db" nothing

# ---- other spellings of a store's name -----------------------------------------------------------

store=rocksdb:$work/db
on_server && store=$uri
echo "  $store  " >uri
counts @uri events carol 20
for name in env: -; do
    SPILLWAY_URI=$store "$SPILLWAY" count $name events carol >out || fail "SPILLWAY_URI does not serve"
    has out '"count":20'
done
unset SPILLWAY_URI
expect 2 count env: events carol
has err "SPILLWAY_URI"
expect 3 count @nothere events carol
: >empty
expect 2 count @empty events carol
head -c 5000 /dev/zero | tr '\0' x >long
expect 2 count @long events carol
has err "longer than 4095 bytes"
expect 3 count nothere events carol
[ -e nothere ] && fail "count made a store"
echo text >afile
mkdir afolder
echo text >afolder/other
for command in define count verify export; do
    arguments="events"
    [ "$command" = count ] && arguments="events carol"
    for place in nothere afile afolder; do
        # shellcheck disable=SC2086 # two arguments
        expect 3 "$command" "$place" $arguments
        has err "$place: "
    done
done
expect 3 define afile events --preset feed
expect 3 define afolder events --preset feed
has err "afolder: is not a Spillway store"
[ "$(ls afolder)" = other ] || fail "define left something in a folder of another kind"
expect 3 append nothere events carol 1
[ -e nothere ] && fail "append made a store"

# ---- backup, drop --------------------------------------------------------------------------------

backups() {
    expect 0 backup "$db" copy
    counts copy events carol 20
    clean copy
    expect 4 backup "$db" copy
    has err "copy: exists already"
    expect 0 backup "$db" copy2/
    has err "the copy is in copy2/"
    ls -d copy2.partial* 2>/dev/null && fail "the copy succeeded, but a partial copy remains"
    expect 3 backup "$db" missing/copy
    has err "spillway: missing/copy: no copy was made: "
}
if on_server; then
    expect 2 backup "$db" copy
    has err "has no backup; export its arrays instead"
    [ -e copy ] && fail "a refused backup left files"
else
    backups
fi
expect 2 drop "$db" events carol </dev/null
has err "--yes"
if command -v script >/dev/null; then # script provides a terminal
    # answer TEXT CODE ARGUMENT...: run the program on a terminal and answer its question. The pipe
    # stays open until the program ends, so that input does not end before the question.
    mkfifo keyboard
    answer() {
        : >out
        script -qec "'$SPILLWAY' ${*:3}" /dev/null <keyboard >out 2>err &
        local pid=$! status
        exec 4>keyboard
        await "it asks, or ends" eval "grep -q 'Type yes: ' out || ! kill -0 $pid 2>/dev/null"
        printf '%s\n' "$1" >&4
        wait $pid
        status=$?
        exec 4>&-
        [ $status = "$2" ] || fail "spillway ${*:3}, answered '$1', did not end with $2: $(cat out)"
    }
    answer no 4 drop "$db" events carol
    has out "Drop the array of carol in 'events'? Type yes: "
    has out "nothing was changed"
    answer no 4 drop "$db" events
    has out "Drop definition 'events', and delete all elements of all its owners? Type yes: "
    counts "$db" events carol 20
    answer yes 0 drop "$db" events minus
    expect 3 count "$db" events minus
fi
expect 0 drop "$db" events carol --yes
expect 3 count "$db" events carol
expect 3 drop "$db" events carol --yes
expect 0 drop "$db" events --yes
expect 3 count "$db" events alice
counts "$db" visits v 6
clean "$db"

# Other fields of heads: in layouts with heads, only of owners that exist, and never the array's own.
new_store
for layout in outlier reference subset capped; do
    pages=(--page-collection "$layout.pages")
    [ "$layout" != capped ] || pages=()
    expect 0 define "$db" "$layout" --layout "$layout" --collection "$layout" "${pages[@]}" --quiet
done
for layout in outlier reference subset capped; do
    expect 0 append "$db" "$layout" alice '{"n": 1}'
    expect 0 update "$db" "$layout" alice '{"$set": {"name": "Alice"}, "$inc": {"visits": 2}}'
    expect 0 update "$db" "$layout" alice '{"$inc": {"visits": 3}, "$unset": {"name": ""}}'
    expect 0 explain "$db" "$layout" alice --documents
    has out '"visits" : 5'
    grep -q Alice out && fail "the name was not removed: $(cat out)"
    expect 3 update "$db" "$layout" bob '{"$set": {"name": "Bob"}}'
    expect 3 count "$db" "$layout" bob
    expect 2 update "$db" "$layout" alice '{"$set": {"spill": 1}}'
    counts "$db" "$layout" alice 1
done
expect 0 update "$db" outlier bob '{"$set": {"name": "Bob"}}' --create
counts "$db" outlier bob 0
expect 2 update "$db" outlier alice '{"name": "Alice"}'
for update in '{}' '[]' 'x' '{"$set"'; do
    expect 2 update "$db" outlier alice "$update"
done
clean "$db"

# Output that cannot be written is an error.
if [ -e /dev/full ]; then
    new_store
    expect 0 define "$db" events --preset feed-recent
    seq 1 20 | "$SPILLWAY" append "$db" events carol - >out
    "$SPILLWAY" export "$db" events >/dev/full 2>err
    [ $? = 3 ] || fail "export to a full device did not fail"
    has err "cannot write the output"
    "$SPILLWAY" append "$db" events carol 21 22 >/dev/full 2>err
    [ $? = 3 ] || fail "append to a full device did not fail"
    has err "elements 20 to 21 were appended"
    has err "No space left on device"
    counts "$db" events carol 22
    for option in --help --version 'read --help'; do
        # shellcheck disable=SC2086 # a command and its option are two words
        "$SPILLWAY" $option >/dev/full 2>err
        [ $? = 3 ] || fail "$option to a full device did not fail"
        has err "No space left on device"
    done
fi
