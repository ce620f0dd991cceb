#!/bin/sh
# Copyright The Tombolo Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the binaries of the labs from the Go modules pinned in tools/kubernetes, tools/kubernetes-oldest, tools/etcd and
# tools/containerd into bin/.
#
#   tools/assets/build.sh                    kube-apiserver, kube-controller-manager and etcd
#   tools/assets/build.sh kubectl ...        only those named; oldest/kubelet is that of the oldest Kubernetes supported
#
# Needs Go and nothing else; works on Linux and macOS. What is up to date is left alone: bin/.stamps holds, for each
# binary, the version of its module and of Go. Binaries in $KUBEBUILDER_ASSETS are used as they are and not built.
set -eu

fail() {
	echo "assets: $*" >&2
	exit 1
}

# module_folder prints the folder under tools/ whose go.mod builds the binary $1.
module_folder() {
	case "$1" in
	etcd) echo etcd ;;
	kube-apiserver | kube-controller-manager | kube-scheduler | kube-proxy | kubelet | kubectl) echo kubernetes ;;
	oldest/kube-apiserver | oldest/kube-controller-manager | oldest/kube-scheduler | oldest/kube-proxy | oldest/kubelet)
		echo kubernetes-oldest ;;
	containerd | containerd-shim-runc-v2 | ctr) echo containerd ;;
	*) fail "unknown binary \"$1\"; known are etcd, those of Kubernetes and those of containerd" ;;
	esac
}

# stamp prints what an up-to-date binary $1 was built from. A changed build recipe needs a new last number.
stamp() {
	folder=$(module_folder "$1")
	echo "$folder $(version_of "$folder") $go_version 1"
}

# version_of prints the version of what the module in tools/$1 builds.
version_of() {
	case "$1" in
	etcd) path=go.etcd.io/etcd/server/v3 ;;
	containerd) path=github.com/containerd/containerd/v2 ;;
	*) path=k8s.io/kubernetes ;;
	esac
	version=$(awk -v path="$path" '{ sub(/^require /, "") } $1 == path { print $2; exit }' "$root/tools/$1/go.mod")
	[ -n "$version" ] || fail "tools/$1/go.mod requires no $path"
	echo "$version"
}

fresh() {
	[ -x "$bin/$1" ] && [ -f "$bin/.stamps/$1" ] && [ "$(cat "$bin/.stamps/$1")" = "$(stamp "$1")" ]
}

provided() {
	[ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$1" ]
}

# stale prints the binaries among the arguments that are neither provided nor fresh.
stale() {
	for name in "$@"; do
		provided "$name" || fresh "$name" || echo "$name"
	done
}

# lock waits until no other build runs. The lock is a courtesy that saves double work: binaries are put in place by
# rename, so correctness does not depend on it, and a lock whose holder died is simply removed.
lock() {
	announced=
	until mkdir "$lock" 2>/dev/null; do
		holder=$(cat "$lock/pid" 2>/dev/null || true)
		if [ -n "$holder" ] && ! kill -0 "$holder" 2>/dev/null; then
			rm -rf "$lock" # its holder was killed
		elif [ -n "$(find "$lock" -prune -mmin +2 2>/dev/null)" ]; then
			rm -rf "$lock" # a holder touches it every second: its number now belongs to another process
		else
			[ -n "$announced" ] || echo "assets: waiting for another build (process ${holder:-unknown}) to end"
			announced=yes
			sleep 1
		fi
	done
	echo $$ >"$lock/pid"
}

release() {
	[ -z "$build" ] || kill "$build" 2>/dev/null || true
	rm -rf "$lock" "$work"
}

# watch_build shows that the build (process $1, log $2) moves, until it has ended.
watch_build() {
	seconds=0
	while kill -0 "$1" 2>/dev/null; do
		sleep 1
		touch "$lock"
		seconds=$((seconds + 1))
		[ $((seconds % 15)) -eq 0 ] || continue
		echo "assets:   $seconds s, $(grep -vc '^go: ' "$2" || true) packages compiled, $(tail -n 1 "$2")"
	done
}

# build_module builds the binaries $2... of the module in tools/$1.
build_module() {
	folder=$root/tools/$1
	module=$1
	shift
	log=$work/$module.log
	version=$(version_of "$module")
	flags="-s -w"
	tags=
	packages=.
	case "$module" in
	kubernetes*)
		packages=
		minor=${version#v1.}
		for name in "$@"; do packages="$packages k8s.io/kubernetes/cmd/${name##*/}"; done
		for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
			flags="$flags -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
			flags="$flags -X $package.gitTreeState=clean -X $package.gitCommit="
		done
		;;
	containerd)
		packages=
		tags=no_btrfs,no_devmapper,no_zfs # they need C libraries, and no lab needs them
		flags="$flags -X github.com/containerd/containerd/v2/version.Version=${version#v}"
		for name in "$@"; do packages="$packages github.com/containerd/containerd/v2/cmd/$name"; done
		;;
	esac
	echo "assets: building $* $version (the first time: about $(estimate "$module") on 2 cores; cached afterwards)"
	mkdir -p "$work/$module"
	# shellcheck disable=SC2086 # the packages are words
	(cd "$folder" && exec env CGO_ENABLED=0 GOOS="$(go env GOHOSTOS)" GOARCH="$(go env GOHOSTARCH)" GOFLAGS= GOWORK=off \
		go build -v -trimpath -buildvcs=false -tags "$tags" -ldflags "$flags" -o "$work/$module/" $packages) >"$log" 2>&1 &
	build=$!
	watch_build "$build" "$log"
	if ! wait "$build"; then
		build=
		tail -n 30 "$log" >&2
		fail "building $* failed; the end of the log is above"
	fi
	build=
	for name in "$@"; do
		mkdir -p "$bin/$(dirname "$name")" "$bin/.stamps/$(dirname "$name")"
		rm -f "$bin/.stamps/$name"
		mv -f "$work/$module/${name##*/}" "$bin/$name"
		stamp "$name" >"$bin/.stamps/$name"
	done
}

estimate() {
	case "$1" in
	etcd) echo "1 minute" ;;
	kubernetes*) echo "5 minutes" ;;
	containerd) echo "2 minutes" ;;
	esac
}

root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$root/bin
lock=$bin/.lock
work=$bin/.work.$$
build=

command -v go >/dev/null 2>&1 || fail "the command go is missing: install Go (https://go.dev/dl) and put it on the PATH"
[ $# -gt 0 ] || set -- kube-apiserver kube-controller-manager etcd
for name in "$@"; do
	module_folder "$name" >/dev/null
	! provided "$name" || echo "assets: using $KUBEBUILDER_ASSETS/$name (KUBEBUILDER_ASSETS is set)"
done

go_version=$(go env GOVERSION)
[ -n "$(stale "$@")" ] || exit 0
mkdir -p "$bin/.stamps"
lock
trap release EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
mkdir -p "$work"
for module in etcd kubernetes kubernetes-oldest containerd; do
	names=
	for name in $(stale "$@"); do
		[ "$(module_folder "$name")" != "$module" ] || names="$names $name"
	done
	# shellcheck disable=SC2086 # the names are words
	[ -z "$names" ] || build_module "$module" $names
done
echo "assets: $* ready in $bin"
