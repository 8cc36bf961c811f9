{{/* The pod of a DaemonSet. Takes root, one and suffix. */}}
{{- define "capture-canary.pod" -}}
{{- $root := .root -}}
{{- $one := .one -}}
{{- $set := $root.Values.daemonSet -}}
{{- $host := $root.Values.host -}}
{{- $npus := $root.Values.npus -}}
{{- $probes := eq $one.mode "probe" -}}
{{- $asRoot := or $probes $host.inspect (not (empty $host.state)) -}}
{{- $state := $host.state | default (ternary "/var/lib/capture-canary" "" $probes) -}}
{{- $asks := include "capture-canary.asks" (dict "root" $root "one" $one) -}}
serviceAccountName: {{ include "capture-canary.serviceAccountName" $root }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- include "capture-canary.pullSecrets" $root }}
{{- if $host.pid }}
hostPID: true
{{- end }}
{{- if $set.hostNetwork }}
hostNetwork: true
{{- end }}
{{- with $set.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with (ternary ($npus.runtimeClassName | default $set.runtimeClassName) $set.runtimeClassName $probes) }}
runtimeClassName: {{ . }}
{{- end }}
{{- with $set.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
terminationGracePeriodSeconds: {{ $set.terminationGracePeriodSeconds }}
securityContext:
  {{- $pod := dict "seccompProfile" (dict "type" "RuntimeDefault") }}
  {{- if $asRoot }}
  {{- $pod = merge $pod (dict "runAsUser" 0 "runAsGroup" 0) }}
  {{- else }}
  {{- $pod = merge $pod (dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "fsGroup" 65532) }}
  {{- end }}
  {{- if $probes }}
  {{- $pod = merge $pod (dict "supplementalGroups" (list $npus.group)) }}
  {{- end }}
  {{- toYaml (mergeOverwrite $pod $set.podSecurityContext) | nindent 2 }}
{{- with (mergeOverwrite (dict) $set.nodeSelector $one.nodeSelector (ternary $set.firstPool.nodeSelector dict (eq $one.pool "first"))) }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "capture-canary.affinity" (dict "set" $set "one" $one) | fromYaml }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $set.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $set.extraInitContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: canary
    image: {{ $one.image }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args:
      - run
      - --config=/etc/capture-canary/config/config.yaml
      {{- with $set.extraArgs }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    env:
      - name: NODE_NAME
        valueFrom:
          fieldRef:
            fieldPath: spec.nodeName
      - name: HOST_IP
        valueFrom:
          fieldRef:
            fieldPath: status.hostIP
      - name: HOME
        value: /tmp
      {{- if $probes }}
      {{- with $npus.exporter }}
      - name: CAPTURE_CANARY_GATE__NPU_EXPORTER
        value: {{ . | quote }}
      {{- end }}
      {{- with $npus.visibleDevices }}
      - name: ASCEND_VISIBLE_DEVICES
        value: {{ . | quote }}
      {{- end }}
      {{- end }}
      {{- with $set.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with $set.extraEnvFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    ports:
      - name: metrics
        containerPort: 9877
        protocol: TCP
    {{- $scheme := ternary "HTTPS" "HTTP" $root.Values.web.tls }}
    startupProbe:
      {{- toYaml (mergeOverwrite (dict "httpGet" (dict "path" "/healthz" "port" "metrics" "scheme" $scheme) "failureThreshold" 30 "periodSeconds" 2 "timeoutSeconds" 5) $set.startupProbe) | nindent 6 }}
    livenessProbe:
      {{- toYaml (mergeOverwrite (dict "httpGet" (dict "path" "/healthz" "port" "metrics" "scheme" $scheme) "failureThreshold" 6 "periodSeconds" 30 "timeoutSeconds" 5) $set.livenessProbe) | nindent 6 }}
    readinessProbe:
      {{- toYaml (mergeOverwrite (dict "httpGet" (dict "path" "/readyz" "port" "metrics" "scheme" $scheme) "periodSeconds" 15 "timeoutSeconds" 5) $set.readinessProbe) | nindent 6 }}
    resources:
      {{- $resources := deepCopy $set.resources }}
      {{- if and $probes $npus.resource }}
      {{- $given := dict $npus.resource (toString $npus.count) }}
      {{- $resources = mergeOverwrite $resources (dict "limits" (mergeOverwrite (deepCopy ($resources.limits | default dict)) $given) "requests" (mergeOverwrite (deepCopy ($resources.requests | default dict)) $given)) }}
      {{- end }}
      {{- toYaml $resources | nindent 6 }}
    securityContext:
      {{- $capabilities := dict "drop" (list "ALL") }}
      {{- if $host.inspect }}
      {{- $capabilities = merge $capabilities (dict "add" (list "SYS_PTRACE")) }}
      {{- end }}
      {{- toYaml (mergeOverwrite (dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" $capabilities) $set.securityContext) | nindent 6 }}
    volumeMounts:
      - name: config
        mountPath: /etc/capture-canary/config
        readOnly: true
      - name: state
        mountPath: /var/lib/capture-canary
      - name: run
        mountPath: /run/capture-canary
      - name: tmp
        mountPath: /tmp
      {{- if $asks }}
      - name: kubernetes
        mountPath: /var/lib/capture-canary/kubernetes
      {{- end }}
      {{- if and $root.Values.config.servers $root.Values.config.servers.kubernetes }}
      - name: token
        mountPath: /var/run/secrets/kubernetes.io/serviceaccount
        readOnly: true
      {{- end }}
      {{- if $root.Values.web.existingSecret }}
      - name: web
        mountPath: /etc/capture-canary/web
        readOnly: true
      {{- end }}
      {{- if $host.traces }}
      - name: traces
        mountPath: /run/capture-canary/traces
        readOnly: true
      {{- end }}
      {{- if $host.driver }}
      - name: driver
        mountPath: /usr/local/Ascend/driver
        readOnly: true
      {{- end }}
      {{- if $host.npuSmi }}
      - name: npu-smi
        mountPath: /usr/local/bin/npu-smi
        readOnly: true
      {{- end }}
      {{- if $host.logs }}
      - name: logs
        mountPath: {{ $host.logs }}
        readOnly: true
      {{- end }}
      {{- with $set.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
  {{- if $asks }}
  {{- include "capture-canary.k8sContainer" (dict "root" $root "one" $one) | nindent 2 }}
  {{- end }}
  {{- with $set.extraContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumes:
  - name: config
    configMap:
      name: {{ include "capture-canary.fullname" $root }}{{ .suffix }}
  - name: state
    {{- if $state }}
    hostPath:
      path: {{ $state }}
      type: DirectoryOrCreate
    {{- else }}
    emptyDir:
      sizeLimit: 256Mi
    {{- end }}
  - name: run
    {{- if $probes }}
    hostPath: # the lock: one probe at a time on a node, whoever begins it
      path: /run/capture-canary
      type: DirectoryOrCreate
    {{- else }}
    emptyDir:
      sizeLimit: 64Mi
    {{- end }}
  - name: tmp
    emptyDir:
      sizeLimit: 256Mi
  {{- if $asks }}
  - name: kubernetes
    emptyDir:
      sizeLimit: 4Mi
  {{- end }}
  {{- if or $asks (and $root.Values.config.servers $root.Values.config.servers.kubernetes) }}
  - name: token
    projected:
      sources:
        - serviceAccountToken:
            path: token
            expirationSeconds: 3607
        - configMap:
            name: kube-root-ca.crt
            items:
              - key: ca.crt
                path: ca.crt
        - downwardAPI:
            items:
              - path: namespace
                fieldRef:
                  fieldPath: metadata.namespace
  {{- end }}
  {{- with $root.Values.web.existingSecret }}
  - name: web
    secret:
      secretName: {{ . }}
  {{- end }}
  {{- with $host.traces }}
  - name: traces
    hostPath:
      path: {{ . }}
      type: DirectoryOrCreate
  {{- end }}
  {{- with $host.driver }}
  - name: driver
    hostPath:
      path: {{ . }}
      type: Directory
  {{- end }}
  {{- with $host.npuSmi }}
  - name: npu-smi
    hostPath:
      path: {{ . }}
      type: File
  {{- end }}
  {{- with $host.logs }}
  - name: logs
    hostPath:
      path: {{ . }}
      type: Directory
  {{- end }}
  {{- with $set.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The affinity of a DaemonSet's pods: that of the values; those of the rest stay off the first pool's nodes. */}}
{{- define "capture-canary.affinity" -}}
{{- $affinity := deepCopy .set.affinity -}}
{{- if eq .one.pool "rest" -}}
{{- range $key, $value := .set.firstPool.nodeSelector -}}
{{- $not := dict "key" $key "operator" "NotIn" "values" (list $value) -}}
{{- $node := $affinity.nodeAffinity | default dict -}}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default (dict "nodeSelectorTerms" (list dict)) -}}
{{- $terms := list -}}
{{- range $term := $required.nodeSelectorTerms -}}
{{- $terms = append $terms (merge (dict "matchExpressions" (append ($term.matchExpressions | default list) $not)) $term) -}}
{{- end -}}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) -}}
{{- $_ := set $affinity "nodeAffinity" $node -}}
{{- end -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}
