#!/usr/bin/env bash
# Copyright The Tombolo Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Records demo.cast and demo.svg: a terminal in which the commands of the tour run, on the control planes of "make demo-up". Needs asciinema
# and termtosvg (packages of Debian), and what the tour needs: make demo-binaries kubectl.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

show() { # prints a command, runs it, and leaves time to read
  printf '\e[32m$\e[0m %s\n' "$1"
  sleep 0.8
  eval "$1"
  sleep "${2:-2}"
}

play() {
  export PATH="$PWD/bin:$PATH"
  eval "$(make -s demo-env)"
  show '# cluster-a exports web and db. This is cluster-b, where neither runs' 1
  export KUBECONFIG=$B
  show 'kubectl -n demo get serviceimports'
  show 'make ask NAME=web.demo.svc.clusterset.local' 1
  show 'make ask NAME=db-0.cluster-a.db.demo.svc.clusterset.local'
  show '# export a Service of cluster-b, with one command' 1
  show 'kubectl -n demo create service clusterip cache --tcp=6379' 1
  show 'kubectl clusterset export cache -n demo'
  show 'KUBECONFIG=$A kubectl -n demo get serviceimport cache'
}

if [[ ${1:-} == play ]]; then
  play
  exit
fi
make demo-up >/dev/null
trap 'make demo-down >/dev/null' EXIT
export TERM=xterm-256color
asciinema rec --quiet --overwrite --idle-time-limit 2 --command "stty cols 92 rows 24; $0 play" docs/images/demo.cast
termtosvg render docs/images/demo.cast docs/images/demo.svg --template window_frame --max-frame-duration 2500
