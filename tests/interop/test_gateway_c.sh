#!/usr/bin/env bash
# Push past 16 MB through the gateway with libmongoc.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"
source "$here/gateway.sh"

use_pymongo # which checks the result
read -ra flags <<<"$(pkg-config --cflags --libs libmongoc-1.0 libcrypto)"
"${CC:-cc}" -Wall -Wextra -Werror "$here/../../examples/drivers/c/push.c" -o push "${flags[@]}" ||
    fail "the program does not compile"
push_past_the_limit "$PWD/push"
