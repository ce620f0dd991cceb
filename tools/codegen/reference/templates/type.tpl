{{- define "type" -}}
{{- $type := . -}}
{{- if markdownShouldRenderType $type }}
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
| `{{ .Name }}` {{ markdownRenderType .Type }} | {{ markdownRenderFieldDoc .Doc }} | {{ with .Default }}Default: {{ markdownRenderDefault . }}<br />{{ end }}{{ range $i, $v := .Validation }}{{ if $i }}<br />{{ end }}{{ if hasPrefix "Optional:" $v }}Optional{{ else }}{{ markdownRenderFieldDoc $v }}{{ end }}{{ end }} |
{{- end }}
{{- end }}
{{ end }}
{{- end -}}
{{- end -}}
