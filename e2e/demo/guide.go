// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

var guideTemplate = template.Must(template.New("guide").Parse(`
All of this goes on running until "make demo-down". To look around:

  export HUB={{.Hub}}
  export A={{.A}}
  export B={{.B}}

  {{.Kubectl}} --kubeconfig $B -n demo get serviceimports,services,endpointslices
  {{.Kubectl}} --kubeconfig $HUB get members,heartbeats,publishedservices --all-namespaces
  dig @127.0.0.1 -p {{.Port}} +short web.demo.svc.clusterset.local
  dig @127.0.0.1 -p {{.Port}} +short db-0.cluster-a.db.demo.svc.clusterset.local AAAA
  dig @127.0.0.1 -p {{.Port}} +short _sql._tcp.db.demo.svc.clusterset.local SRV

Let cluster-b export its own web as well, whose ports differ, and read what both clusters say about it:

  {{.Kubectl}} --kubeconfig $B apply -f {{.Export}}
  {{.Kubectl}} --kubeconfig $A -n demo get serviceexport web -o yaml

Withdraw it in cluster-a, and see what stays:

  {{.Kubectl}} --kubeconfig $A -n demo delete serviceexport web
  {{.Kubectl}} --kubeconfig $B -n demo get endpointslices

The logs of the agents and of CoreDNS are in {{.Logs}}
`))

// guide returns what there is to try.
func (s *stage) guide() (string, error) {
	export := serviceExport("web")
	export.APIVersion, export.Kind = "multicluster.x-k8s.io/v1beta1", "ServiceExport"
	manifest, err := yaml.Marshal(export)
	if err != nil {
		return "", err
	}
	file := filepath.Join(s.lab.Folder(), "export-web.yaml")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(s.b.dns)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = guideTemplate.Execute(&text, map[string]string{
		"Hub": s.hub.Kubeconfig(), "A": s.a.cluster.Kubeconfig(), "B": s.b.cluster.Kubeconfig(),
		"Port": port, "Export": file, "Kubectl": kubectl(),
		"Logs": filepath.Join(s.lab.Folder(), "cluster-*", "*.log"),
	})
	return text.String(), err
}

// kubectl returns the user's, or the one beside the other programs.
func kubectl() string {
	if _, err := exec.LookPath("kubectl"); err == nil {
		return "kubectl"
	}
	if path, err := findProgram("kubectl"); err == nil {
		return path
	}
	return "kubectl"
}
