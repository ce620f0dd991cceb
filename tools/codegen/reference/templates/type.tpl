{{- define "type" -}}
{{- $type := . -}}
{{- if markdownShouldRenderType $type }}
### {{ $type.Name }}
{{ if $type.IsAlias }}
Underlying type: {{ markdownRenderTypeLink $type.UnderlyingType }}
{{ end }}
{{ $type.Doc }}
{{ if $type.Validation }}
Validation:
{{ range $type.Validation }}
- {{ . }}
{{- end }}
{{ end }}
{{- if $type.References }}
Appears in:
{{- range $i, $r := $type.SortedReferences }}{{ if $i }},{{ end }} {{ markdownRenderTypeLink $r }}{{ end }}
{{ end }}
{{- if $type.Members }}
| Field | Description | Default | Validation |
| --- | --- | --- | --- |
{{- if $type.GVK }}
| `apiVersion` | `{{ $type.GVK.Group }}/{{ $type.GVK.Version }}` | | |
| `kind` | `{{ $type.GVK.Kind }}` | | |
{{- end }}
{{- range $type.Members }}
| `{{ .Name }}` {{ markdownRenderType .Type }} | {{ template "type_members" . }} | {{ markdownRenderDefault .Default }} | {{ range $i, $v := .Validation }}{{ if $i }}<br />{{ end }}{{ markdownRenderFieldDoc $v }}{{ end }} |
{{- end }}
{{ end }}
{{- end -}}
{{- end -}}
