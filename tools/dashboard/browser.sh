#!/bin/sh
# Copyright The Tombolo Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs Chromium on Debian, as root, unless there is one. Without it the test is skipped, or fails with REQUIRE_ALL=1.
set -eu

for program in chromium chromium-browser google-chrome; do
	if command -v "$program" >/dev/null 2>&1; then exit 0; fi
done
if [ "$(id -u)" != 0 ] || [ ! -e /etc/debian_version ]; then exit 0; fi
echo "install the Debian package chromium"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get -q update && apt-get -q install -y --no-install-recommends chromium fonts-dejavu-core; } >"$log" 2>&1; then cat "$log" >&2; fi
