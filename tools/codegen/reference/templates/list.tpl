{{- define "gvList" -}}
{{- $groupVersions := . -}}

<!-- Written by "make generate" from pkg/api: change it there. -->

# API reference

This page is for platform teams. It lists the fields of the kinds that Tombolo defines, besides `apiVersion`, `kind` and `metadata`. The
[Multi-Cluster Services API](https://github.com/kubernetes-sigs/mcs-api) defines ServiceExport and ServiceImport;
[objects.md](objects.md) explains their conditions and labels.
{{ range $groupVersions }}
- {{ markdownRenderGVLink . }}
{{- end }}
{{ range $groupVersions }}
{{ template "gvDetails" . }}
{{ end }}

{{- end -}}
