{{- /*
tombolo.deployment is a Deployment of a file, with the values that are set. Its argument has the file, the values of the Deployment,
and the root of the chart.
*/}}
{{- define "tombolo.deployment" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $deployment := $root.Files.Get .file | fromYaml -}}
{{- $pod := $deployment.spec.template.spec -}}
{{- $container := first $pod.containers -}}
{{- $tag := $root.Values.image.tag | default $root.Chart.AppVersion -}}
{{- if and (eq $tag "dev") (not $values.image) -}}
{{- fail (printf "this chart is a development build (dev), for which no images were published, so it cannot know their names: set image.tag and image.registry, or %s.image, to an image that the nodes can pull (\"make images\" builds it)" .name) -}}
{{- end -}}
{{- $_ := set $container "image" ($values.image | default (printf "%s/%s:%s" $root.Values.image.registry $deployment.metadata.name $tag)) -}}
{{- with $root.Values.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end -}}
{{- with $root.Values.image.pullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- with $values.args }}{{ $_ := set $container "args" (concat ($container.args | default list) .) }}{{ end -}}
{{- with $values.resources }}{{ $_ := set $container "resources" . }}{{ end -}}
{{- if not (kindIs "invalid" $values.replicas) }}{{ $_ := set $deployment.spec "replicas" $values.replicas }}{{ end -}}
{{- with $values.nodeSelector }}{{ $_ := set $pod "nodeSelector" (merge (deepCopy .) $pod.nodeSelector) }}{{ end -}}
{{- range $field := list "tolerations" "affinity" "priorityClassName" -}}
{{- with get $values $field }}{{ $_ := set $pod $field . }}{{ end -}}
{{- end -}}
{{- with $values.podAnnotations }}{{ $_ := set $deployment.spec.template.metadata "annotations" . }}{{ end -}}
{{ toYaml $deployment }}
{{- end -}}
