#!/usr/bin/env bash
# Copyright The Tombolo Authors.
# SPDX-License-Identifier: Apache-2.0
#
# check.sh CONTROLLER_GEN CRD_REF_DOCS: generates into a scratch folder and compares with the tree, which it never touches.
set -euo pipefail

cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tools/codegen/generate.sh "$1" "$2" "$scratch"

stale=0
while IFS= read -r file; do
  if ! diff -u --label "$file (tree)" --label "$file (generated)" "$file" "$scratch/$file"; then
    [[ -e $file ]] || echo "$file is missing"
    stale=1
  fi
done < <(cd "$scratch" && find . -type f | sed 's,^\./,,' | sort)

# A CRD of a kind that is gone keeps its file: controller-gen names files <group>_<plural>.yaml.
while IFS= read -r group; do
  for file in manifests/crd/"$group"_*.yaml; do
    [[ -e $file && ! -e $scratch/$file ]] || continue
    echo "$file belongs to no type in pkg/api any more: delete it"
    stale=1
  done
done < <(find "$scratch/manifests/crd" -name '*_*.yaml' 2>/dev/null | sed 's,.*/,,; s,_.*,,' | sort -u)

if [[ $stale != 0 ]]; then
  echo "generated files are stale: run make generate"
  exit 1
fi
