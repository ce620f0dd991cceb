{{- define "type" -}}
{{- $type := . -}}
{{- /* Fields have the validation of the aliases of string, except of values of maps. */ -}}
{{- $inFields := and $type.IsAlias (not (hasSuffix "Value" $type.Name)) -}}
{{- if and (markdownShouldRenderType $type) (not $inFields) }}
### {{ $type.Name }}

{{ if $type.IsAlias }}{{ markdownRenderTypeLink $type.UnderlyingType }}{{ range $type.Validation }}, {{ . }}{{ end }}. {{ end }}{{ $type.Doc }}
{{ if $type.GVK }}
{{- range $type.Members }}
{{- if ne .Name "metadata" }}
- `{{ .Name }}` {{ markdownRenderType .Type }}{{ with .Doc }}: {{ markdownRenderFieldDoc . }}{{ end }}
{{- end }}
{{- end }}
{{ else if $type.Members }}
| Field | Description | Validation |
| --- | --- | --- |
{{- range $type.Members }}
{{- if ne .Name "metadata" }}
| `{{ .Name }}` {{ template "field_type" .Type }} | {{ markdownRenderFieldDoc .Doc }} | {{ with .Default }}Default: {{ markdownRenderDefault . }}<br />{{ end }}{{ range $i, $v := .Validation }}{{ if $i }}<br />{{ end }}{{ if hasPrefix "Optional:" $v }}Optional{{ else }}{{ markdownRenderFieldDoc $v }}{{ end }}{{ end }} |
{{- end }}
{{- end }}
{{ end }}
{{- end -}}
{{- end -}}

{{- define "field_type" -}}
{{- if and .IsAlias (markdownShouldRenderType .) -}}
{{ markdownRenderType .UnderlyingType }}
{{- else if and .UnderlyingType .UnderlyingType.IsAlias (markdownShouldRenderType .UnderlyingType) -}}
{{ markdownRenderType .UnderlyingType.UnderlyingType }} array
{{- else -}}
{{ markdownRenderType . }}
{{- end -}}
{{- end -}}
