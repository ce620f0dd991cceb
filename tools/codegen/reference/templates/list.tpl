{{- define "gvList" -}}
{{- $groupVersions := . -}}

<!-- Written by "make generate" from pkg/api: change it there. -->

# API reference

The kinds that Tombolo defines. ServiceExport and ServiceImport are those of the
[Multi-Cluster Services API](https://github.com/kubernetes-sigs/mcs-api); what Tombolo says in their conditions and labels
is in [objects.md](objects.md).
{{ range $groupVersions }}
- {{ markdownRenderGVLink . }}
{{- end }}
{{ range $groupVersions }}
{{ template "gvDetails" . }}
{{ end }}

{{- end -}}
