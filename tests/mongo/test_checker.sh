#!/usr/bin/env bash
# The checker of histories reports what a store must not do, and accepts what it may do. The
# histories here are hand-written, of a few lines each, and all of owner newest/a.
set -euo pipefail

: "${SPILLWAY_SOURCE:?must be the folder of the sources}"
if [ -z "${SPILLWAY_TEST_URI:-}" ] && ! command -v go >/dev/null; then
    echo "Go is not installed, and tools/test-server, which may fetch it, does not run"
    exit 77
fi
checker=$SPILLWAY_SOURCE/tests/mongo/linearizable/run
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# expect CODE DESCRIPTION: the checker exits with CODE for the history on standard input.
expect() {
    local wanted=$1 what=$2 code=0 output
    cat >"$folder/history"
    output=$("$checker" "$folder/history" 2>&1) || code=$?
    [ "$code" = "$wanted" ] && return
    echo "$what: the checker's exit code is $code, not $wanted:"
    echo "$output"
    failures=$((failures + 1))
}

# Labels: worker * 10^9 + number * 10 + place in the batch. Worker 1's append 1 has 1000000010, ...

expect 0 'one after the other' <<'END_HISTORY'
100 1 1 append newest/a 2 0
110 1 1 appended 0
120 2 1 append newest/a 1 0
130 2 1 appended 2
140 1 2 count newest/a
150 1 2 counted 3
160 1 3 read newest/a newest -1 2
170 1 3 got 2 1 2000000010 1000000011
180 1 4 read newest/a oldest 0 5
190 1 4 got 1 0 1000000011 2000000010
END_HISTORY

expect 0 'two at once, answered in the other order' <<'END_HISTORY'
100 1 1 append newest/a 1 0
100 2 1 append newest/a 1 0
120 2 1 appended 0
190 1 1 appended 1
130 3 1 count newest/a
140 3 1 counted 2
END_HISTORY

expect 0 'an append with an unknown outcome that takes effect later' <<'END_HISTORY'
100 1 1 append newest/a 1 0
110 1 1 unknown
120 2 1 count newest/a
130 2 1 counted 0
140 2 2 count newest/a
150 2 2 counted 1
160 2 3 read newest/a oldest -1 9
170 2 3 got 0 0 1000000010
END_HISTORY

expect 0 'an append with an unknown outcome that has no effect, and a call without an answer' <<'END_HISTORY'
100 1 1 append newest/a 3 0
110 1 1 unknown
120 2 1 append newest/a 1 0
130 2 1 appended 0
140 3 1 count newest/a
150 2 3 read newest/a oldest -1 9
160 2 3 got 0 0 2000000010
END_HISTORY

expect 1 'a lost append: acknowledged, but the count does not change' <<'END_HISTORY'
100 1 1 append newest/a 1 0
110 1 1 appended 0
120 1 2 count newest/a
130 1 2 counted 0
END_HISTORY

expect 1 'a lost append: its number is given again' <<'END_HISTORY'
100 1 1 append newest/a 1 0
110 1 1 appended 0
120 2 1 append newest/a 1 0
130 2 1 appended 0
END_HISTORY

expect 1 'a lost append: a read returns other elements in its place' <<'END_HISTORY'
100 1 1 append newest/a 1 0
110 1 1 appended 0
120 2 1 append newest/a 1 0
130 2 1 appended 1
140 2 2 read newest/a oldest -1 9
150 2 2 got 0 0 2000000010
END_HISTORY

expect 1 'a doubled append: the count is one too high' <<'END_HISTORY'
100 1 1 append newest/a 1 0
110 1 1 appended 0
120 1 2 count newest/a
130 1 2 counted 2
END_HISTORY

expect 1 'a doubled append: its element is read twice' <<'END_HISTORY'
100 1 1 append newest/a 1 0
110 1 1 appended 0
120 2 1 append newest/a 1 0
130 2 1 appended 2
140 2 2 read newest/a newest -1 9
150 2 2 got 2 0 2000000010 1000000010 1000000010
END_HISTORY

expect 1 'an append with an unknown outcome that takes effect twice' <<'END_HISTORY'
100 1 1 append newest/a 1 0
110 1 1 unknown
120 2 1 read newest/a oldest -1 9
130 2 1 got 0 0 1000000010 1000000010
END_HISTORY

expect 1 'a stale count, after a newer one' <<'END_HISTORY'
100 1 1 append newest/a 1 0
190 1 1 appended 0
110 2 1 count newest/a
120 2 1 counted 1
130 3 1 count newest/a
140 3 1 counted 0
END_HISTORY

expect 1 'a stale page, after the append was acknowledged' <<'END_HISTORY'
100 1 1 append newest/a 1 0
110 1 1 appended 0
120 2 1 append newest/a 1 0
130 2 1 appended 1
140 3 1 read newest/a newest -1 1
150 3 1 got 0 0 1000000010
END_HISTORY

expect 1 'the end announced too early' <<'END_HISTORY'
100 1 1 append newest/a 2 0
110 1 1 appended 0
140 3 1 read newest/a oldest -1 1
150 3 1 got 0 0 1000000010
END_HISTORY

expect 1 'half a batch' <<'END_HISTORY'
100 1 1 append newest/a 2 0
190 1 1 appended 0
140 3 1 read newest/a newest -1 9
150 3 1 got 0 0 1000000010
END_HISTORY

expect 1 'a batch in another order' <<'END_HISTORY'
100 1 1 append newest/a 2 0
110 1 1 appended 0
140 3 1 read newest/a newest -1 9
150 3 1 got 1 0 1000000010 1000000011
END_HISTORY

expect 1 'an element read before its append was called' <<'END_HISTORY'
100 3 1 read newest/a newest -1 9
110 3 1 got 0 0 1000000010
120 1 1 append newest/a 1 0
130 1 1 appended 0
END_HISTORY

expect 0 'removals and a trim, one of them without an answer' <<'END_HISTORY'
100 1 1 append newest/a 3 0
110 1 1 appended 0
120 1 2 remove newest/a 1
130 1 2 removed 1
140 1 3 remove newest/a 1
150 1 3 removed 0
160 2 1 count newest/a
170 2 1 counted 2
180 3 1 remove newest/a 2
190 2 2 count newest/a
200 2 2 counted 2
210 2 3 count newest/a
220 2 3 counted 1
230 2 4 trim newest/a 2
240 2 4 trimmed
250 2 5 count newest/a
260 2 5 counted 0
END_HISTORY

expect 1 'an element removed twice' <<'END_HISTORY'
100 1 1 append newest/a 3 0
110 1 1 appended 0
120 1 2 remove newest/a 1
130 1 2 removed 1
140 2 3 remove newest/a 1
150 2 3 removed 1
END_HISTORY

expect 1 'a removed element that is read again' <<'END_HISTORY'
100 1 1 append newest/a 3 0
110 1 1 appended 0
120 1 2 remove newest/a 1
130 1 2 removed 1
140 2 3 count newest/a
150 2 3 counted 3
END_HISTORY

expect 1 'a trim that removes too much' <<'END_HISTORY'
100 1 1 append newest/a 3 0
110 1 1 appended 0
120 1 2 trim newest/a 1
130 1 2 trimmed
140 2 3 count newest/a
150 2 3 counted 1
END_HISTORY

expect 0 'appends without numbers, one without an answer' <<'END_HISTORY'
100 1 1 append newest/a 1 0
110 2 1 append newest/a 1 0
120 3 1 append newest/a 1 0
130 1 1 appended -1
140 2 1 appended -1
150 3 1 unknown
160 4 1 read newest/a oldest -1 9
170 4 1 got 0 0 2000000010 3000000010 1000000010
END_HISTORY

expect 1 'an append without a number that is doubled' <<'END_HISTORY'
100 1 1 append newest/a 1 0
130 1 1 appended -1
160 4 1 read newest/a oldest -1 9
170 4 1 got 0 0 1000000010 1000000010
END_HISTORY

expect 1 'an append without a number that is lost' <<'END_HISTORY'
100 1 1 append newest/a 1 0
130 1 1 appended -1
140 2 1 append newest/a 1 0
150 2 1 appended -1
160 4 1 read newest/a oldest -1 9
170 4 1 got 0 0 2000000010
END_HISTORY

expect 1 'appends without numbers, in the wrong order' <<'END_HISTORY'
100 1 1 append newest/a 1 0
130 1 1 appended -1
140 2 1 append newest/a 1 0
150 2 1 appended -1
160 4 1 read newest/a oldest -1 9
170 4 1 got 0 0 2000000010 1000000010
END_HISTORY

expect 0 'a set: adds, removals and two ids' <<'END_HISTORY'
100 1 1 add newest/a 7
110 1 1 added 1
120 2 1 add newest/a 7
130 2 1 added 0
140 2 2 add newest/a 8
150 2 2 added 1
160 1 2 remove-id newest/a 7
170 1 2 removed 1
180 2 3 contains newest/a 7
190 2 3 contained 0
200 2 4 remove-id newest/a 7
210 2 4 removed 0
220 1 3 add newest/a 7
230 1 3 added 1
240 1 4 contains newest/a 8
250 1 4 contained 1
END_HISTORY

expect 0 'a set: two adds at once and a removal between them' <<'END_HISTORY'
100 1 1 add newest/a 7
100 2 1 add newest/a 7
100 3 1 remove-id newest/a 7
180 3 1 removed 1
190 1 1 added 1
190 2 1 added 1
END_HISTORY

expect 0 'a set: an add and a removal with unknown outcomes that take effect later' <<'END_HISTORY'
100 1 1 add newest/a 7
110 1 1 unknown
120 2 1 contains newest/a 7
130 2 1 contained 0
140 2 2 add newest/a 7
150 2 2 added 0
160 3 1 remove-id newest/a 7
170 3 1 unknown
180 2 3 contains newest/a 7
190 2 3 contained 1
200 2 4 contains newest/a 7
210 2 4 contained 0
END_HISTORY

expect 1 'a set: two adds of one id, both new, without a removal between them' <<'END_HISTORY'
100 1 1 add newest/a 7
100 2 1 add newest/a 7
190 1 1 added 1
190 2 1 added 1
END_HISTORY

expect 1 'a set: a duplicate of an id that was never there' <<'END_HISTORY'
100 1 1 add newest/a 7
110 1 1 added 0
END_HISTORY

expect 1 'a set: an id removed twice' <<'END_HISTORY'
100 1 1 add newest/a 7
110 1 1 added 1
120 1 2 remove-id newest/a 7
190 1 2 removed 1
120 2 1 remove-id newest/a 7
190 2 1 removed 1
END_HISTORY

expect 1 'a set: a removal that finds nothing, although an add was acknowledged' <<'END_HISTORY'
100 1 1 add newest/a 7
110 1 1 added 1
120 2 1 remove-id newest/a 7
130 2 1 removed 0
END_HISTORY

expect 1 'a set: a lost id' <<'END_HISTORY'
100 1 1 add newest/a 7
110 1 1 added 1
120 2 1 contains newest/a 7
130 2 1 contained 0
END_HISTORY

expect 1 'a set: a removed id that is there again' <<'END_HISTORY'
100 1 1 add newest/a 7
110 1 1 added 1
120 2 1 remove-id newest/a 7
130 2 1 removed 1
140 2 2 contains newest/a 7
150 2 2 contained 1
END_HISTORY

expect 2 'a file that is not a history' <<'END_HISTORY'
100 1 1 shout newest/a
END_HISTORY

expect 2 'an answer without a call' <<'END_HISTORY'
100 1 1 counted 3
END_HISTORY

[ $failures = 0 ] || exit 1
echo "35 histories checked correctly"
