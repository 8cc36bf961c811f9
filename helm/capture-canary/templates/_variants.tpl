{{/* Which DaemonSets there are, and what each of them is. */}}

{{/*
The DaemonSets, as a YAML map by suffix of their names: variant, mode, image, nodeSelector, config, pool.
None enabled: one without a CANN. With a first pool each is there twice.
*/}}
{{- define "capture-canary.daemonSets" -}}
{{- $root := . -}}
{{- $chosen := dict -}}
{{- range $name, $variant := .Values.variants -}}
{{- if $variant.enabled -}}
{{- $_ := set $chosen $name $variant -}}
{{- end -}}
{{- end -}}
{{- if not $chosen -}}
{{- $chosen = dict "" dict -}}
{{- end -}}
{{- $found := dict -}}
{{- range $name, $variant := $chosen -}}
{{- range $pool := (ternary (list "rest" "first") (list "all") (not (empty $root.Values.daemonSet.firstPool.nodeSelector))) -}}
{{- $one := dict
      "variant" $name
      "pool" $pool
      "mode" ($variant.mode | default $root.Values.mode)
      "image" (include "capture-canary.variantImage" (dict "root" $root "name" $name "variant" $variant "pool" $pool))
      "nodeSelector" ($variant.nodeSelector | default dict)
      "config" ($variant.config | default dict) -}}
{{- $_ := set $found (printf "%s%s" (ternary "" (printf "-%s" $name) (empty $name)) (ternary "-first" "" (eq $pool "first"))) $one -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* The image of a variant: what it leaves open comes from `image`. A first pool on another version has no digest yet. */}}
{{- define "capture-canary.variantImage" -}}
{{- $general := .root.Values.image -}}
{{- $own := .variant.image | default dict -}}
{{- $other := ternary .root.Values.daemonSet.firstPool.version "" (eq .pool "first") -}}
{{- $tag := printf "%s-%s" ($other | default (include "capture-canary.version" .root)) (.variant.cell | default .root.Values.cell) -}}
{{- $image := dict
      "registry" ($own.registry | default $general.registry)
      "repository" ($own.repository | default $general.repository)
      "tag" (ternary "" ($own.tag | default (ternary $general.tag "" (empty .name))) (not (empty $other)))
      "digest" (ternary "" ($own.digest | default (ternary $general.digest "" (empty .name))) (not (empty $other))) -}}
{{- include "capture-canary.image" (dict "root" .root "image" $image "tag" $tag) -}}
{{- end -}}

{{/* The settings of a DaemonSet's daemon. Takes root and one. */}}
{{- define "capture-canary.config" -}}
{{- $config := mergeOverwrite (deepCopy .root.Values.config) (deepCopy .one.config) -}}
{{- $own := dict "mode" .one.mode "paused" .root.Values.paused "listen" ":9877" -}}
{{- if and (eq .one.mode "probe") (or .root.Values.npus.resource .root.Values.npus.assumeExclusive) -}}
{{- $own = merge $own (dict "gate" (dict "assume_exclusive" true)) -}}
{{- end -}}
{{- if .root.Values.host.inspect -}}
{{- $own = merge $own (dict "servers" (dict "inspect" true)) -}}
{{- end -}}
{{- if .root.Values.web.existingSecret -}}
{{- $own = merge $own (dict "web" (dict "config_file" "/etc/capture-canary/web/web.yaml")) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $config $own) -}}
{{- end -}}

{{/* What is wrong between values, beyond what the schema sees. */}}
{{- define "capture-canary.validate" -}}
{{- $root := . -}}
{{- $selectors := list -}}
{{- range $suffix, $one := include "capture-canary.daemonSets" . | fromYaml -}}
{{- if ne $one.pool "first" -}}
{{- $selector := $one.nodeSelector | toJson -}}
{{- if has $selector $selectors -}}
{{- fail (printf "variants.%s.nodeSelector: another variant has the same nodes" $one.variant) -}}
{{- end -}}
{{- $selectors = append $selectors $selector -}}
{{- end -}}
{{- $where := ternary "" (printf " (variant %s)" $one.variant) (empty $one.variant) -}}
{{- $emulated := or $root.Values.config.emulate $one.config.emulate -}}
{{- if and (ne $one.mode "observe") (empty $one.variant) (not $emulated) -}}
{{- fail (printf "mode: %s needs a CANN: enable one of `variants`" $one.mode) -}}
{{- end -}}
{{- if and (eq $one.mode "probe") (not $emulated) -}}
{{- if not (or $root.Values.npus.visibleDevices $root.Values.npus.cdiDevices $root.Values.npus.resource) -}}
{{- fail (printf "mode: probe%s needs NPUs: set one of npus.visibleDevices, npus.cdiDevices, npus.resource" $where) -}}
{{- end -}}
{{- if not (or $root.Values.npus.exporter $root.Values.npus.resource $root.Values.npus.assumeExclusive) -}}
{{- fail (printf "mode: probe%s would skip every probe, as other users of the NPUs cannot be seen: set npus.exporter or npus.assumeExclusive" $where) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What a DaemonSet is called on metrics and in selectors. */}}
{{- define "capture-canary.pool" -}}
{{- trimPrefix "-" . | default "all" -}}
{{- end -}}
