#!/usr/bin/env bash
# The gateway's TLS: towards clients, with and without certificates of theirs, and towards the server.
# shellcheck disable=SC1091 # lib.sh is not followed
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"
source "$here/certificates.sh"

needs SPILLWAY_TEST_URI
command -v openssl >/dev/null || skip "openssl is not installed"
[[ $SPILLWAY_TEST_URI =~ ^mongodb://127\.0\.0\.1:([0-9]+)/ ]] ||
    skip "the test server is not on 127.0.0.1 without TLS"
server_port=${BASH_REMATCH[1]}
python=$(python_with_pymongo) || exit $?

authority ours
authority theirs
certificate good ours "IP:127.0.0.1"
certificate second theirs "IP:127.0.0.1"
certificate client ours "DNS:client"
cat client.pem client.key >client.both.pem

"$python" "$here/tls_proxy.py" "$server_port" good.pem good.key >proxy.port 2>proxy.log &
cleanups+=("kill $! 2>/dev/null")
await "the proxy listens" test -s proxy.port
SECURE_URI="mongodb://127.0.0.1:$(<proxy.port)/gateway?tls=true&serverSelectionTimeoutMS=5000"
export SECURE_URI

PYTHONDONTWRITEBYTECODE=1 "$python" "$here/gateway_tls.py" "$PWD" || fail "see above"

# refused CODE TEXT ARGUMENT...: the gateway does not start, and says why.
refused() {
    local code=$1 text=$2
    shift 2
    expect "$code" serve "$@"
    has err "$text"
}
plain="mongodb://127.0.0.1:$server_port/gateway"
refused 3 "handshake" "$SECURE_URI&tlsCAFile=$PWD/theirs.ca.pem"
refused 2 "--tls-cert: cannot open $PWD/none.pem: No such file" "$plain" --tls-cert "$PWD/none.pem"
refused 2 "the private key in client.key" "$plain" --tls-cert good.pem --tls-key client.key
refused 2 "need --tls-cert" "$plain" --tls-client require
