{{/* The init gate: a probe with the server's image and NPUs before it starts. Takes what _sidecar.tpl takes. */}}
{{- define "capture-canary.sidecar.gate" -}}
{{- $gate := .canary.Values.sidecar.gate -}}
{{- $server := .gate | default dict -}}
- name: capture-canary-gate
  image: {{ .image | quote }}
  imagePullPolicy: {{ .canary.Values.sidecar.pullPolicy }}
  command:
    - {{ include "capture-canary.sidecar.folder" . }}/bin/capture-canary
    - probe
    - --gate={{ $gate.onDegraded }}
    - --budget={{ $gate.timeout }}
  env:
    {{- include "capture-canary.sidecar.nodeName" . | nindent 4 }}
    - name: CAPTURE_CANARY_IMAGE
      value: {{ .image | quote }}
    - name: CAPTURE_CANARY_GATE_CACHE
      value: /var/lib/capture-canary/gate
    {{- with concat ($server.env | default list) $gate.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $server.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $server.securityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  volumeMounts:
    - name: capture-canary
      mountPath: {{ include "capture-canary.sidecar.folder" . }}
      readOnly: true
    - name: capture-canary-gate
      mountPath: /var/lib/capture-canary/gate
    {{- with $server.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
