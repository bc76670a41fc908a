#!/bin/sh
# Runs after the package was installed: makes the user of the service. It starts nothing.
set -e
if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers /usr/lib/sysusers.d/dispatcher.conf
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
