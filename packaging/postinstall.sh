#!/bin/sh
# Makes the user and the data folder. The hub is started by whoever looks after the
# machine, not by the package; an upgrade starts a running one anew.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
  systemd-sysusers /usr/lib/sysusers.d/parley.conf
elif ! getent passwd parley >/dev/null 2>&1 && command -v adduser >/dev/null 2>&1; then
  # Alpine's: there is no systemd to read sysusers.d.
  addgroup -S parley
  adduser -S -D -H -h /var/lib/parley -s /sbin/nologin -G parley -g "Parley hub" parley
fi
if [ ! -d /var/lib/parley ]; then
  mkdir -m 0700 /var/lib/parley
  chown parley:parley /var/lib/parley
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart parley.service
fi
