#!/usr/bin/env bash
# TLS: the program accepts only a server with a certificate signed by the URI's authority.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"
source "$here/certificates.sh"

needs SPILLWAY_TEST_URI
command -v openssl >/dev/null || skip "openssl is not installed"
command -v python3 >/dev/null || skip "python3 is not installed"
[[ $SPILLWAY_TEST_URI =~ ^mongodb://127\.0\.0\.1:([0-9]+)/ ]] ||
    skip "the test server is not on 127.0.0.1 without TLS"
server_port=${BASH_REMATCH[1]}

# Start a server with certificate NAME, and set `port` to its port.
serve() {
    python3 "$here/tls_proxy.py" "$server_port" "$1.pem" "$1.key" >"$1.port" 2>"$1.log" &
    cleanups+=("kill $! 2>/dev/null")
    for _ in {1..200}; do
        [ -s "$1.port" ] && break
        sleep 0.05
    done
    port=$(<"$1.port")
}

# Set `secure` to the URI over TLS with the given options.
over_tls() {
    secure="mongodb://127.0.0.1:$port/$name?directConnection=true&serverSelectionTimeoutMS=2000&$1"
}

authority ours
authority theirs
certificate good ours "IP:127.0.0.1,DNS:localhost"
certificate elsewhere ours "DNS:db.example"
new_database "$SPILLWAY_TEST_URI" # without TLS, to drop it
name=${uri##*/} name=${name%%\?*}

serve good
over_tls "tls=true&tlsCAFile=$PWD/ours.ca.pem"
expect 0 define "$secure" ev --preset feed-recent --threshold 3 --page 3
expect 0 append "$secure" ev alice 1 2 3 4 5 6 7 8 9 10
counts "$secure" ev alice 10
counts "$uri" ev alice 10
clean "$secure"

# fails TEXT: exit code 3, a message of one line with the text, and no append.
fails() {
    expect 3 append "$secure" ev alice 11
    has err "$1"
    [ "$(wc -l <err)" = 1 ] || fail "more than one line: $(cat err)"
    expect 3 count "$secure" ev alice
    is out ""
}

over_tls "tls=true&tlsCAFile=$PWD/theirs.ca.pem"
fails "TLS handshake failed"
over_tls "tls=true" # the system's authorities did not sign this certificate
fails "TLS handshake failed"
over_tls "tls=false"
fails "127.0.0.1:$port answers only with TLS, and the connection string has not tls=true"
serve elsewhere
over_tls "tls=true&tlsCAFile=$PWD/ours.ca.pem"
fails "TLS handshake failed"
over_tls "tls=true&tlsCAFile=$PWD/ours.ca.pem&tlsAllowInvalidHostnames=true"
counts "$secure" ev alice 10
over_tls "tls=true&tlsCAFile=$PWD/nowhere.pem"
fails "$PWD/nowhere.pem, which the connection string names as tlsCAFile"
over_tls "tls=true&tlsCAFile=$PWD"
fails "$PWD, which the connection string names as tlsCAFile: Is a directory"
echo 'no certificate' >text.pem
: >empty.pem
for file in text empty; do
    over_tls "tls=true&tlsCAFile=$PWD/$file.pem"
    expect 2 append "$secure" ev alice 11
    has err "$PWD/$file.pem, which the connection string names as tlsCAFile, has no certificate or key"
done
{ echo '-----BEGIN CERTIFICATE-----'; echo 'AAAA'; echo '-----END CERTIFICATE-----'; } >damaged.pem
over_tls "tls=true&tlsCAFile=$PWD/damaged.pem"
fails "$PWD/damaged.pem"
counts "$uri" ev alice 10
