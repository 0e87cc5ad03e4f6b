#!/usr/bin/env bash
# Draws docs/images/console-channel.png for the README.
set -euo pipefail
cd "$(dirname "$0")"
make -s install binaries chromium
PARLEY=${PARLEY:-$PWD/../bin/parley} node readme-images.mjs
