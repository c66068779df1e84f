#!/usr/bin/env bash
# Ctrl-C and slow pipes: what the program stores, what it prints, and how to continue. Every wait has a
# limit.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"
new_store
cleanups+=(end_children)

end_children() {
    # shellcheck disable=SC2046 # several
    kill -9 $(jobs -p) 2>/dev/null
}

# within SECONDS COMMAND...: repeat the command until it succeeds, within that time.
within() {
    local tries=$(($1 * 20))
    shift
    while [ "$tries" -gt 0 ]; do
        "$@" >within.out 2>&1 && return 0
        sleep 0.05
        tries=$((tries - 1))
    done
    fail "not within the time: $*: $(tail -3 within.out)"
}

# ends PID CODE: the program ends soon, with that exit code.
ends() {
    local status
    within 60 eval "! kill -0 $1"
    kill -0 "$1" 2>/dev/null && kill -9 "$1" # otherwise the wait has no limit
    wait "$1"
    status=$?
    [ "$status" = "$2" ] || fail "ended with $status, not $2: $(cat err)"
}

# one_line TEXT: ./err is one line with the text.
one_line() {
    has err "$1"
    [ "$(wc -l <err)" = 1 ] || fail "more than one line: $(cat err)"
}

printed() {
    [ "$(wc -l <out)" -ge "$1" ]
}

# ---- append from a live pipe ---------------------------------------------------------------------

expect 0 define "$db" ev --preset feed-recent
for signal in INT TERM; do
    mkfifo "pipe.$signal"
    "$SPILLWAY" append "$db" ev "$signal" - <"pipe.$signal" >out 2>err &
    pid=$!
    exec 4>"pipe.$signal"
    printf '1\n2\n' >&4
    within 20 printed 1
    is out 0..1
    printf '3\n"unfinished' >&4
    kill -"$signal" $pid
    ends $pid 130
    exec 4>&-
    one_line 'spillway: interrupted: every complete line that was read before is appended'
    # The signal may arrive before the line is read.
    expect 0 read "$db" ev "$signal" --oldest --quiet
    [ "$(head -2 out | cut -f2 | paste -sd' ')" = "1 2" ] || fail "$signal: $(cat out)"
    grep -q unfinished out && fail "half a line was appended"
done

# An operation is appended as a whole or not at all.
mkfifo pipe.op
"$SPILLWAY" append "$db" ev op - --op once >out 2>err <pipe.op &
pid=$!
exec 4>pipe.op
printf '1\n2\n' >&4
within 20 grep -q 'once@0' err
sleep 0.3
kill -INT $pid
ends $pid 130
exec 4>&-
is out ''
has err 'interrupted: nothing of the operation was appended'
expect 3 count "$db" ev op
expect 0 append "$db" ev op --op once@0 <<<$'1\n2'
expect 0 append "$db" ev op --op once@0 <<<$'1\n2'
counts "$db" ev op 2
expect 2 append "$db" ev op 1 --op $'o\e'
has err '--op'

# A last line without a newline, blank lines, and bad lines.
printf '1\n\n \t\n2' | "$SPILLWAY" append "$db" ev lines - >out 2>err
is out 0..1
printf '3\n{bad\n4\n' | "$SPILLWAY" append "$db" ev lines - >out 2>err
[ $? = 3 ] || fail "a bad line is no error"
has err 'stdin:2'
counts "$db" ev lines 3
"$SPILLWAY" append "$db" ev lines - <&- >out 2>err && fail "a closed stdin is not an error"
seq 1 25000 | "$SPILLWAY" append "$db" ev many - >out 2>err || fail "$(cat err)"
counts "$db" ev many 25000

# ---- import --------------------------------------------------------------------------------------

records() {
    seq "$1" "$2" | sed -E 's/.*([0-9]{3})$/{"by": "o\1", "n": &}/'
}

records 100000 140000 >first
records 140001 141999 >second
mkfifo pipe.import
"$SPILLWAY" import "$db" ev - --owner by --format ndjson --as live --quiet >out 2>err <pipe.import &
pid=$!
exec 4>pipe.import
cat first >&4
within 60 "$SPILLWAY" count "$db" ev o999
kill -INT $pid
ends $pid 130
exec 4>&-
one_line 'run the same command to continue'
reported=$(grep -oE 'after [0-9]+ records' err)
expect 1 status "$db"
has out "${reported#after } of live have been imported so far"
cat first second |
    "$SPILLWAY" import "$db" ev - --owner by --format ndjson --as live --quiet >out 2>err ||
    fail "the import does not continue: $(cat err)"
expect 0 export "$db" ev --relaxed
[ "$(grep -o '"n" : 1.*' out | sort -u | wc -l)" = 42000 ] || fail "records are missing"
[ "$(grep -c '"n" : 1' out)" = 42000 ] || fail "records were imported twice"
clean "$db"

# ---- convert and verify --------------------------------------------------------------------------

# interrupted TEXT ARGUMENT...: press Ctrl-C at different times, until it interrupts the command.
interrupted() {
    local text=$1 delay
    shift
    for delay in 0.05 0.1 0.15 0.2 0.3 0.4 0.6 0.8 1.2 1.6 2.4 3.2; do
        "$SPILLWAY" "$@" >out 2>err &
        pid=$!
        sleep $delay
        kill -INT $pid 2>/dev/null
        wait $pid
        status=$?
        if grep -q 'interrupted after' err; then
            [ $status = 130 ] || fail "interrupted, it ended with $status"
            one_line "$text"
            return
        fi
    done
    fail "spillway $* was never interrupted while it worked"
}

interrupted 'run the same command to continue' convert "$db" ev --keep oldest --as old --quiet
expect 0 convert "$db" ev --keep oldest --as old
has out '"differences":0'
interrupted 'the same command starts again with the first owner' verify "$db"
grep -qE 'after [0-9]+ owners? with 0 findings' err || fail "verify does not report how far it got"
clean "$db"

# ---- one long array ------------------------------------------------------------------------------

new_store
expect 0 define "$db" long --preset feed-recent --time-field n --quiet
most=$(on_server && echo 30000 || echo 300000)
seq "$most" | sed 's/.*/{"n": &, "text": "some words to read"}/' >long.ndjson
"$SPILLWAY" append "$db" long one - --quiet <long.ndjson >out 2>err || fail "append: $(cat err)"

# Ctrl-C ends it between two pages, while the reader of the pipe is slow.
mkfifo pipe.export
for words in '' one; do
    # shellcheck disable=SC2086 # no word or one
    "$SPILLWAY" export "$db" long $words --quiet >pipe.export 2>err &
    pid=$!
    exec 4<pipe.export
    head -c 1000 <&4 >part
    kill -INT $pid
    cat <&4 >>part
    exec 4<&-
    ends $pid 130
    lines=$(wc -l <part)
    [ "$lines" -lt $((most - 1000)) ] || fail "Ctrl-C waits for the whole array: $lines lines"
    [ "$(grep -c '}}$' part)" = "$lines" ] || fail "half a line was printed"
    one_line "$([ -n "$words" ] || echo 'after 0 owners, and ')$lines lines"
    one_line 'the output ends there; the same command starts again'
done

# A reader that is gone ends it, too: that needs much less time than the whole array.
now_ms() {
    echo $((${EPOCHREALTIME/[.,]/} / 1000))
}

ends_without_reader() {
    local begin whole part try
    begin=$(now_ms)
    expect 0 "$@"
    whole=$(($(now_ms) - begin))
    for ((try = 0; try < 5; try++)); do
        begin=$(now_ms)
        "$SPILLWAY" "$@" 2>err | true
        [ "${PIPESTATUS[0]}" = 141 ] || fail "$* without a reader: $(cat err)"
        part=$(($(now_ms) - begin))
        [ "$part" -ge $((whole / 2)) ] || return 0
    done
    fail "$*: $part ms of $whole ms for a reader that is gone"
}

ends_without_reader owners "$db" long
on_server || ends_without_reader stats "$db" long --partial

# A reader that needs no more of the result is no error.
for ((i = 0; i < 20; i++)); do
    "$SPILLWAY" stats "$db" long | grep -q '^long: 1 owner'
    [ "${PIPESTATUS[*]}" = '0 0' ] || fail "stats ends with ${PIPESTATUS[0]}"
done
