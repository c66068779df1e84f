# shellcheck shell=bash
# Certificates for tests of TLS. Source it after tests/cli/lib.sh.

# authority NAME: create NAME.ca.pem. certificate NAME AUTHORITY SUBJECTS: create NAME.pem and NAME.key.
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \
        -keyout "$1.ca.key" -out "$1.ca.pem" 2>openssl.log || fail "openssl: $(cat openssl.log)"
}
certificate() {
    {
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
            -keyout "$1.key" -out "$1.csr"
        openssl x509 -req -in "$1.csr" -CA "$2.ca.pem" -CAkey "$2.ca.key" -CAcreateserial -days 2 \
            -extfile <(echo "subjectAltName=$3") -out "$1.pem"
    } 2>openssl.log
    [ -s "$1.pem" ] || fail "openssl: $(cat openssl.log)"
}
