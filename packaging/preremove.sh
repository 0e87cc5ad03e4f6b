#!/bin/sh
# Stops the hub when the package goes, not when it is upgraded. What the hub stored
# stays in /var/lib/parley.
set -e
case "${1:-remove}" in
  upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl disable --now parley.service
fi
