{{/* `capture-canary k8s`: the container that talks with Kubernetes, and which DaemonSets have one. */}}

{{- define "capture-canary.asks" -}}
{{- if or (eq .one.mode "job") .root.Values.kubernetes.nodeCondition .root.Values.kubernetes.events -}}
true
{{- end -}}
{{- end -}}

{{/* Whether anything of this release asks the API. */}}
{{- define "capture-canary.anyAsks" -}}
{{- $root := . -}}
{{- $found := and .Values.config.servers .Values.config.servers.kubernetes -}}
{{- range $suffix, $one := include "capture-canary.daemonSets" . | fromYaml -}}
{{- if include "capture-canary.asks" (dict "root" $root "one" $one) -}}{{- $found = true -}}{{- end -}}
{{- end -}}
{{- if $found -}}true{{- end -}}
{{- end -}}

{{- define "capture-canary.anyJobs" -}}
{{- $found := false -}}
{{- range $suffix, $one := include "capture-canary.daemonSets" . | fromYaml -}}
{{- if eq $one.mode "job" -}}{{- $found = true -}}{{- end -}}
{{- end -}}
{{- if $found -}}true{{- end -}}
{{- end -}}

{{- define "capture-canary.jobPriority" -}}
{{- .Values.job.priorityClass.name | default (ternary (printf "%s-%s-job" .Release.Namespace (include "capture-canary.fullname" .)) "" .Values.job.priorityClass.create) -}}
{{- end -}}

{{/* Takes root and one. */}}
{{- define "capture-canary.k8sContainer" -}}
- name: k8s
  image: {{ .one.image }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args:
    - k8s
    - --folder=/var/lib/capture-canary/kubernetes
    {{- if eq .one.mode "job" }}
    - --job=/etc/capture-canary/config/job.yaml
    - --max-at-once={{ .root.Values.job.maxAtOnce }}
    {{- end }}
    {{- if .root.Values.kubernetes.nodeCondition }}
    - --node-condition
    {{- end }}
    {{- if .root.Values.kubernetes.events }}
    - --events
    {{- end }}
  env:
    - name: NODE_NAME
      valueFrom:
        fieldRef:
          fieldPath: spec.nodeName
    - name: POD_NAME
      valueFrom:
        fieldRef:
          fieldPath: metadata.name
    - name: HOME
      value: /tmp
  resources:
    {{- toYaml .root.Values.kubernetes.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    capabilities:
      drop:
        - ALL
    readOnlyRootFilesystem: true
  volumeMounts:
    - name: kubernetes
      mountPath: /var/lib/capture-canary/kubernetes
    - name: tmp
      mountPath: /tmp
    - name: token
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
    {{- if eq .one.mode "job" }}
    - name: config
      mountPath: /etc/capture-canary/config
      readOnly: true
    {{- end }}
{{- end -}}

{{/* The Job that `k8s` makes when a probe is due: it adds name, node and labels. Takes root and one. */}}
{{- define "capture-canary.job" -}}
{{- $job := .root.Values.job -}}
{{- $given := dict $job.resource (toString $job.npus) -}}
apiVersion: batch/v1
kind: Job
metadata:
  generateName: {{ include "capture-canary.fullname" .root }}-probe-
  namespace: {{ .root.Release.Namespace }}
  labels:
    app.kubernetes.io/part-of: capture-canary
    app.kubernetes.io/component: probe
    app.kubernetes.io/instance: {{ .root.Release.Name }}
spec:
  backoffLimit: 0
  activeDeadlineSeconds: {{ $job.deadline }}
  ttlSecondsAfterFinished: {{ $job.keep }}
  template:
    metadata:
      labels:
        app.kubernetes.io/part-of: capture-canary
        app.kubernetes.io/component: probe
        {{- with $job.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $job.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      enableServiceLinks: false
      {{- include "capture-canary.pullSecrets" .root | nindent 6 }}
      {{- with include "capture-canary.jobPriority" .root }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $job.schedulerName }}
      schedulerName: {{ . }}
      {{- end }}
      {{- with $job.runtimeClassName }}
      runtimeClassName: {{ . }}
      {{- end }}
      {{- with $job.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      terminationGracePeriodSeconds: 30
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        supplementalGroups: [{{ .root.Values.npus.group }}]
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: probe
          image: {{ .one.image }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args:
            - probe
            - --ranks={{ $job.npus }}
            - --result=/dev/termination-log
            {{- with .root.Values.config.emulate }}
            - --emulate={{ . }}
            {{- end }}
          env:
            - name: HOME
              value: /tmp
            {{- with $job.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          resources:
            {{- $limits := mergeOverwrite (deepCopy ($job.resources.limits | default dict)) $given }}
            {{- $requests := mergeOverwrite (deepCopy ($job.resources.requests | default dict)) $given }}
            {{- toYaml (dict "limits" $limits "requests" $requests) | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: tmp
              mountPath: /tmp
            {{- with $job.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir:
            sizeLimit: 1Gi
        {{- with $job.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end -}}
