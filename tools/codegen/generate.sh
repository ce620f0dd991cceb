#!/usr/bin/env bash
# Copyright The Tombolo Authors.
# SPDX-License-Identifier: Apache-2.0
#
# generate.sh CONTROLLER_GEN CRD_REF_DOCS DIR: writes what is generated below DIR (the repository's root, or a scratch
# folder when freshness is checked): zz_generated.deepcopy.go beside the types of pkg/api, manifests/crd/*.yaml, the
# references docs/{api,cli}.md, and the files of the charts that come from the kustomizations.
set -euo pipefail

controller_gen=$1
crd_ref_docs=$2
mkdir -p "$3"
out=$(cd "$3" && pwd)
cd "$(dirname "$0")/../.."

found=0
while IFS= read -r dir; do
  compgen -G "$dir/*.go" >/dev/null || continue
  found=1
  mkdir -p "$out/$dir"
  "$controller_gen" object:headerFile=tools/codegen/boilerplate.go.txt "paths=./$dir" "output:object:dir=$out/$dir"
done < <(find pkg/api -type d 2>/dev/null | sort)
if [[ $found == 0 ]]; then
  echo "generate: no types in pkg/api yet"
  exit 0
fi
"$controller_gen" crd "paths=./pkg/api/..." "output:crd:dir=$out/manifests/crd"
# Only clusters with gateways need these. kustomize reads no file outside of its folder.
for group in gateway policy; do
  mkdir -p "$out/manifests/crd/$group"
  mv "$out"/manifests/crd/$group.tombolo-mcs.io_*.yaml "$out/manifests/crd/$group/"
done

# The Multi-Cluster Services API's own CRDs, as its Go module has them: whoever installs by kustomize needs them too.
mkdir -p "$out/manifests/crd/mcs"
api=$(go list -m -f '{{.Dir}}' sigs.k8s.io/mcs-api)
for kind in serviceexports serviceimports; do
  cp "$api/config/crd/multicluster.x-k8s.io_$kind.yaml" "$out/manifests/crd/mcs/"
  chmod u+w "$out/manifests/crd/mcs/multicluster.x-k8s.io_$kind.yaml"
done

# The references. Templates leave blank lines behind, and spaces at the ends of lines.
mkdir -p "$out/docs"
"$crd_ref_docs" --config=tools/codegen/reference/config.yaml --templates-dir=tools/codegen/reference/templates \
  --source-path=pkg/api --renderer=markdown --max-depth=20 --log-level=WARN --output-path="$out/docs/api.md"
text=$(sed 's/ *$//' "$out/docs/api.md" | cat -s)
printf '%s\n' "$text" >"$out/docs/api.md"
go run ./e2e/docs/reference -out="$out/docs"

# The charts, from the kustomizations of the tree.
(cd tools/charts && go run . -root=../.. -out="$out/charts")
