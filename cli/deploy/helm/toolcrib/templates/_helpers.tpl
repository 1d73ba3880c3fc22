{{- define "toolcrib.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "toolcrib.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "toolcrib.labels" -}}
{{ include "toolcrib.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "toolcrib.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ required "image.digest or image.tag: name the image" .Values.image.tag }}{{ end }}
{{- end }}

{{- define "toolcrib.securityContext" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "toolcrib.mounts" -}}
{{- /* A file by itself: every user can write the folder of a whole volume, and such settings are refused. */}}
- {name: settings, mountPath: /etc/toolcrib/config.toml, subPath: config.toml, readOnly: true}
- {name: state, mountPath: /var/lib}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "toolcrib.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ if .root.Values.tls.existingSecret }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}
