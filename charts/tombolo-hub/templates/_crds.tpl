{{- /*
tombolo.crds is the CRDs of a file that this release creates or updates. Its argument has the file and the root of the chart. Helm refuses
objects that it has not created, and kubectl clusterset leave, kubectl and other releases leave CRDs with objects of users. So a CRD of
another owner is used as it is if it is that of the chart. An installation stops at a CRD that differs, also at its own of before an
uninstallation: without server-side apply (Helm 3), Helm would keep it as it is, without a word. Without a cluster, as in helm template,
all CRDs are rendered.
*/}}
{{- define "tombolo.crds" -}}
{{- $root := .root -}}
{{- range $text := splitList "\n---\n" ($root.Files.Get .file) -}}
{{- $crd := fromYaml $text -}}
{{- $name := $crd.metadata.name -}}
{{- $existing := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name -}}
{{- $ours := true -}}
{{- with $existing -}}
{{- $ours = eq "true" (include "tombolo.owns" (dict "root" $root "object" .)) -}}
{{- if .metadata.deletionTimestamp -}}
{{- fail (printf "CustomResourceDefinition %s is being deleted, with all objects of its kind: wait until it does not exist (kubectl wait --for=delete crd/%s), and run this again" $name $name) -}}
{{- end -}}
{{- $differs := ne (omit .spec "conversion" | toJson) (omit $crd.spec "conversion" | toJson) -}}
{{- if and $differs (or $root.Release.IsInstall (not $ours)) -}}
{{- fail (printf "CustomResourceDefinition %s exists and differs from that of this chart (%s). If it is of a newer version, use the newer chart. If not, update it first, and run this again:\n  helm template %s CHART VALUES --namespace %s --show-only templates/crds.yaml | kubectl apply --server-side --force-conflicts --field-manager=helm -f -\nCHART and VALUES are the chart and the values of this command" $name $root.Chart.Version $root.Release.Name $root.Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- if $ours }}
---
{{ $text }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- /*
tombolo.owns is true if this release has created an object, by the names that Helm gives it.
*/}}
{{- define "tombolo.owns" -}}
{{- $annotations := .object.metadata.annotations | default dict -}}
{{- $name := get $annotations "meta.helm.sh/release-name" -}}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" -}}
{{- and (eq $name .root.Release.Name) (eq $namespace .root.Release.Namespace) -}}
{{- end -}}
