{{/* An endpoint of a monitor. Takes monitor and port. */}}
{{- define "capture-canary.endpoint" -}}
- port: {{ .port }}
  path: /metrics
  interval: {{ .monitor.interval }}
  scrapeTimeout: {{ .monitor.scrapeTimeout }}
  scheme: {{ .monitor.scheme }}
  {{- with .monitor.tlsConfig }}
  tlsConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .monitor.basicAuth }}
  basicAuth:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  relabelings:
    - sourceLabels: [__meta_kubernetes_pod_node_name]
      targetLabel: node
    {{- if .sidecar }}
    # a Deployment's pods belong to a ReplicaSet: its name without the hash
    - sourceLabels: [__meta_kubernetes_pod_controller_kind, __meta_kubernetes_pod_controller_name]
      regex: ReplicaSet;(.+)-[a-z0-9]+
      targetLabel: workload
    - sourceLabels: [__meta_kubernetes_pod_controller_kind, __meta_kubernetes_pod_controller_name]
      regex: (?:StatefulSet|DaemonSet|Job);(.+)
      targetLabel: workload
    - sourceLabels: [__meta_kubernetes_pod_label_leaderworkerset_sigs_k8s_io_name]
      regex: (.+)
      targetLabel: workload
    {{- else }}
    - sourceLabels: [__meta_kubernetes_pod_label_capture_canary_daemonset]
      targetLabel: pool
    {{- end }}
    {{- with .monitor.relabelings }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .monitor.metricRelabelings }}
  metricRelabelings:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Limits of a monitor. */}}
{{- define "capture-canary.limits" -}}
{{- with .sampleLimit }}
sampleLimit: {{ . }}
{{- end }}
{{- with .labelLimit }}
labelLimit: {{ . }}
{{- end }}
{{- if .attachNodeMetadata }}
attachMetadata:
  node: true
{{- end }}
{{- end -}}

{{- define "capture-canary.monitorMetadata" -}}
namespace: {{ .monitor.namespace | default .root.Release.Namespace }}
labels:
  {{- include "capture-canary.labels" .root | nindent 2 }}
  {{- with .monitor.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .monitor.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Refuses an object whose kind the cluster does not know, with what to do. */}}
{{- define "capture-canary.needs" -}}
{{- if not (.root.Capabilities.APIVersions.Has .api) -}}
{{- fail (printf "%s.enabled: this cluster has no %s: install the Prometheus operator first, or leave it off (helm template: --api-versions %s)" .key .api .api) -}}
{{- end -}}
{{- end -}}
