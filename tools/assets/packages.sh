#!/bin/sh
# Copyright The Tombolo Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that complete clusters need of their host, or says which are missing where this is neither
# Debian nor root.
set -eu

# need prints the package $2 if the file or command $1 is missing.
need() {
	[ -e "$1" ] || command -v "$1" >/dev/null 2>&1 || echo "$2"
}

missing=$(
	need runc runc
	need /usr/lib/cni/bridge containernetworking-plugins
	need iptables iptables
	need nft nftables
	need conntrack conntrack
	need ip iproute2
	need ping iputils-ping
	need sysctl procps
	need /bin/busybox busybox-static
	need socat socat
	need /bin/nc.openbsd netcat-openbsd
	need nslookup bind9-dnsutils
)
[ -n "$missing" ] || exit 0
# shellcheck disable=SC2086 # the names are words
set -- $missing
if [ "$(id -u)" != 0 ] || [ ! -e /etc/debian_version ]; then
	echo "complete clusters need these packages of Debian, or what another system has for them: $*" >&2
	exit 1
fi
echo "install the Debian packages $*"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get -q update && apt-get -q install -y --no-install-recommends "$@"; } >"$log" 2>&1; then
	cat "$log" >&2
	exit 1
fi
