{{/* The container that talks with Kubernetes, and whether a DaemonSet has one. */}}

{{- define "capture-canary.asks" -}}
{{- if or (eq .one.mode "job") .root.Values.kubernetes.nodeCondition .root.Values.kubernetes.events -}}
true
{{- end -}}
{{- end -}}

{{- define "capture-canary.k8sContainer" -}}
{{- end -}}
