{{- define "gvDetails" -}}
{{- $gv := . -}}

## {{ $gv.GroupVersionString }}

{{ $gv.Doc }}
{{ if $gv.Kinds }}
Kinds:
{{- range $gv.SortedKinds }}
{{- if not (hasSuffix "List" .) }}
- {{ $gv.TypeForKind . | markdownRenderTypeLink }}
{{- end }}
{{- end }}
{{ end }}

{{- range $gv.SortedTypes }}
{{ template "type" . }}
{{- end }}

{{- end -}}
