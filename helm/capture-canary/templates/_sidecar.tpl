{{/*
What other charts add to a server's pod (docs/deployment.md). Each takes one dict:
  canary  this chart: (index .Subcharts "capture-canary") where it is a dependency
  image   the server's image: sidecar and gate run on its Python and its CANN
  gate    optional: resources, env, volumeMounts of the server, for its gate
No device, no privilege, no token; the injector fills an emptyDir, traces stay in the pod.
*/}}

{{/* Whether the sidecar is an init container that stays. */}}
{{- define "capture-canary.sidecar.native" -}}
{{- $how := .canary.Values.sidecar.native -}}
{{- if or (eq $how "always") (and (eq $how "auto") (semverCompare ">=1.29.0-0" .canary.Capabilities.KubeVersion.Version)) -}}
true
{{- end -}}
{{- end -}}

{{- define "capture-canary.sidecar.initContainers" -}}
{{- $values := .canary.Values -}}
- name: capture-canary-injector
  image: {{ include "capture-canary.image" (dict "root" .canary "image" $values.injector "tag" (include "capture-canary.version" .canary)) }}
  imagePullPolicy: {{ $values.injector.pullPolicy }}
  args:
    - {{ include "capture-canary.sidecar.folder" . }}
  resources:
    {{- toYaml $values.sidecar.injectorResources | nindent 4 }}
  securityContext:
    {{- include "capture-canary.sidecar.securityContext" . | nindent 4 }}
  volumeMounts:
    - name: capture-canary
      mountPath: {{ include "capture-canary.sidecar.folder" . }}
{{- if $values.sidecar.gate.enabled }}
{{ include "capture-canary.sidecar.gate" . }}
{{- end }}
{{- if include "capture-canary.sidecar.native" . }}
{{ include "capture-canary.sidecar.container" . }}
{{- end }}
{{- end -}}

{{/* Containers; nothing where the sidecar is among the init containers. */}}
{{- define "capture-canary.sidecar.containers" -}}
{{- if not (include "capture-canary.sidecar.native" .) -}}
{{- include "capture-canary.sidecar.container" . -}}
{{- end -}}
{{- end -}}

{{- define "capture-canary.sidecar.volumes" -}}
- name: capture-canary
  emptyDir:
    sizeLimit: 256Mi
- name: capture-canary-traces
  emptyDir:
    sizeLimit: 300Mi
- name: capture-canary-state
  emptyDir:
    sizeLimit: 128Mi
- name: capture-canary-tmp
  emptyDir:
    sizeLimit: 64Mi
{{- if .canary.Values.sidecar.gate.enabled }}
- name: capture-canary-gate
  {{- if .canary.Values.sidecar.gate.cache }}
  hostPath:
    path: {{ .canary.Values.sidecar.gate.cache }}
    type: DirectoryOrCreate
  {{- else }}
  emptyDir:
    sizeLimit: 16Mi
  {{- end }}
{{- end }}
{{- end -}}

{{/* Of the server's container. */}}
{{- define "capture-canary.sidecar.volumeMounts" -}}
- name: capture-canary
  mountPath: {{ include "capture-canary.sidecar.folder" . }}
  readOnly: true
- name: capture-canary-traces
  mountPath: /run/capture-canary/traces
{{- end -}}

{{/* Of the server's container. */}}
{{- define "capture-canary.sidecar.env" -}}
- name: CAPTURE_CANARY_TRACE_DIR
  value: /run/capture-canary/traces
{{- end -}}

{{/* What stands before the server's own command: it adds the tracer to what LD_PRELOAD holds already. */}}
{{- define "capture-canary.sidecar.command" -}}
- {{ include "capture-canary.sidecar.folder" . }}/bin/capture-canary
- exec
- --
{{- end -}}

{{/* Of the pod's template: how Prometheus finds the sidecar (podMonitor.sidecars). */}}
{{- define "capture-canary.sidecar.labels" -}}
capture-canary/sidecar: "true"
{{- end -}}

{{- define "capture-canary.sidecar.folder" -}}
/opt/capture-canary
{{- end -}}

{{- define "capture-canary.sidecar.securityContext" -}}
allowPrivilegeEscalation: false
capabilities:
  drop:
    - ALL
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: {{ .canary.Values.sidecar.user }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "capture-canary.sidecar.nodeName" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- end -}}

{{- define "capture-canary.sidecar.container" -}}
{{- $sidecar := .canary.Values.sidecar -}}
- name: capture-canary
  image: {{ .image | quote }}
  imagePullPolicy: {{ $sidecar.pullPolicy }}
  {{- if include "capture-canary.sidecar.native" . }}
  restartPolicy: Always
  {{- end }}
  command:
    - {{ include "capture-canary.sidecar.folder" . }}/bin/capture-canary
    - run
    - --listen=:{{ $sidecar.port }}
  env:
    {{- include "capture-canary.sidecar.nodeName" . | nindent 4 }}
    - name: HOME
      value: /tmp
    {{- with $sidecar.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - name: canary-metrics
      containerPort: {{ $sidecar.port }}
      protocol: TCP
  livenessProbe:
    httpGet:
      path: /healthz
      port: canary-metrics
    failureThreshold: 6
    periodSeconds: 30
    timeoutSeconds: 5
  resources:
    {{- toYaml $sidecar.resources | nindent 4 }}
  securityContext:
    {{- include "capture-canary.sidecar.securityContext" . | nindent 4 }}
  volumeMounts:
    - name: capture-canary
      mountPath: {{ include "capture-canary.sidecar.folder" . }}
      readOnly: true
    - name: capture-canary-traces
      mountPath: /run/capture-canary/traces
    - name: capture-canary-state
      mountPath: /var/lib/capture-canary
    - name: capture-canary-tmp
      mountPath: /tmp
{{- end -}}
