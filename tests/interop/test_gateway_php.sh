#!/usr/bin/env bash
# Push past 16 MB through the gateway with PHP's extension.
# shellcheck disable=SC1091,SC2154 # lib.sh and gateway.sh are not followed
source "$(dirname "$0")/lib.sh"
source "$here/gateway.sh"

use_php
use_pymongo # which checks the result
push_past_the_limit php "$here/../../examples/drivers/php/push.php"
