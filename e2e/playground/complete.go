// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/complete"
)

// labNetworks are the networks of the clusters, by the value of NETWORKS.
var labNetworks = map[string]map[string]string{"": nil, "separate": {"a": "left", "b": "right"}}

// labUp starts two complete clusters whose names this plugin serves, in these networks.
func labUp(plugin string, networks map[string]string) start {
	installation := complete.Installation{Installer: complete.ByCommand, DNS: complete.DNS(plugin)}
	return func(ctx context.Context, out io.Writer) (state, func(error) error, error) {
		begin := time.Now()
		set, err := complete.Start(ctx, complete.Options{
			Members:       []string{"a", "b"},
			Networks:      networks,
			Installations: map[string]complete.Installation{"a": installation, "b": installation},
			Log: func(format string, args ...any) {
				fmt.Fprintf(out, "%5.1f s  %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
			},
		})
		if err != nil {
			return state{}, func(failed error) error { return failed }, err
		}
		stop := func(failed error) error { return errors.Join(failed, set.Close()) }
		if err := set.LoadImages(ctx, "socat", "netshoot"); err != nil { // for the conformance suite of mcs-api
			return state{}, stop, err
		}
		var guide strings.Builder
		err = labGuide.Execute(&guide, map[string]string{
			"Kubeconfig": set.Kubeconfig, "Path": set.Path(), "Folder": set.Folder(), "Image": complete.ProbeImage,
		})
		return state{Guide: guide.String(), Variables: map[string]string{"KUBECONFIG": set.Kubeconfig}}, stop, err
	}
}

var labGuide = template.Must(template.New("guide").Parse(`
Two complete clusters, contexts a and b, and a hub go on running until "make lab-down". To look around:

  export KUBECONFIG={{.Kubeconfig}}
  export PATH={{.Path}}:$PATH

  kubectl --context a get pods -A -o wide
  kubectl --context hub get members,heartbeats -A

Export a service of a, and ask it from b. There is no registry: pods run {{.Image}}.

  for c in a b; do kubectl --context $c create namespace demo; done
  kubectl --context a -n demo create deployment web --image={{.Image}} -- /probe serve -tcp 8080
  kubectl --context a -n demo expose deployment web --port=80 --target-port=8080
  kubectl --context a apply -f - <<END
  apiVersion: multicluster.x-k8s.io/v1beta1
  kind: ServiceExport
  metadata: {namespace: demo, name: web}
  END
  kubectl --context b -n demo run ask --rm -i --restart=Never --image={{.Image}} -- ask web.demo.svc.clusterset.local:80

The logs of kubelets, API servers and all are in {{.Folder}}/*/*.log
`))
