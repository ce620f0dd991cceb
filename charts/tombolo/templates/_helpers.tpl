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
{{- include "tombolo.merge" (dict "into" $container "field" "resources" "given" $values.resources) -}}
{{- if not (kindIs "invalid" $values.replicas) }}{{ $_ := set $deployment.spec "replicas" $values.replicas }}{{ end -}}
{{- include "tombolo.merge" (dict "into" $pod "field" "nodeSelector" "given" $values.nodeSelector) -}}
{{- range $field := list "tolerations" "affinity" "priorityClassName" -}}
{{- with get $values $field }}{{ $_ := set $pod $field . }}{{ end -}}
{{- end -}}
{{- include "tombolo.merge" (dict "into" $deployment.spec.template.metadata "field" "annotations" "given" $values.podAnnotations) -}}
{{ toYaml $deployment }}
{{- end -}}
{{- /*
tombolo.merge merges a map of the values into a field of an object: the field keeps what the values do not name, and null removes.
*/}}
{{- define "tombolo.merge" -}}
{{- if .given -}}
{{- $merged := mergeOverwrite (get .into .field | default dict | deepCopy) .given -}}
{{- range $key, $value := $merged -}}
{{- if kindIs "invalid" $value }}{{ $_ := unset $merged $key }}{{ end -}}
{{- if kindIs "map" $value -}}
{{- range $inner, $of := $value }}{{ if kindIs "invalid" $of }}{{ $_ := unset $value $inner }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $_ := set .into .field $merged -}}
{{- end -}}
{{- end -}}
{{- /*
tombolo.createsProperty is true if this release creates a ClusterProperty, or has created it. Other programs, kubectl and kubectl clusterset
join create them too. Their values are what the other clusters know, so they must be those of the chart.
*/}}
{{- define "tombolo.createsProperty" -}}
{{- $creates := true -}}
{{- $existing := dict -}}
{{- if .root.Capabilities.APIVersions.Has "about.k8s.io/v1beta1/ClusterProperty" -}}
{{- $existing = lookup "about.k8s.io/v1beta1" "ClusterProperty" "" .name -}}
{{- end -}}
{{- if $existing -}}
{{- $creates = eq "true" (include "tombolo.owns" (dict "root" .root "object" $existing)) -}}
{{- if and (not $creates) (ne .value $existing.spec.value) -}}
{{- fail (printf "ClusterProperty %s of this cluster is %q, and this release has not set it: use this value instead of %q (clusterID, clusterset), or change the ClusterProperty first" .name $existing.spec.value .value) -}}
{{- end -}}
{{- end -}}
{{- $creates -}}
{{- end -}}
