// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command playground runs two complete clusters with Tombolo installed, for people to play with. Linux and root.
//
//	playground up    starts them and leaves them running
//	playground down  ends them
//	playground env   prints where they are, for a shell to evaluate
//
// From the environment: LAB names the playground, so that several can stand side by side; DNS is the plugin that serves the
// clusterset's names, clusterset (the default) or kubernetes.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tombolo-mcs/tombolo/e2e/framework/background"
	"github.com/tombolo-mcs/tombolo/e2e/framework/complete"
)

// serveCommand is what up starts. It is not for users.
const serveCommand = "serve"

func main() { background.Main("playground", command) }

func command(ctx context.Context, args []string) error {
	name := cmp.Or(os.Getenv("LAB"), "playground")
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		return fmt.Errorf("LAB=%s: %s", name, strings.Join(msgs, "; "))
	}
	variant, err := variantOf(os.Getenv("DNS"))
	if err != nil {
		return err
	}
	lab, err := background.New("lab-" + name)
	if err != nil {
		return err
	}
	if len(args) != 1 {
		return errors.New("usage: playground up | down | env")
	}
	switch args[0] {
	case "up":
		return lab.Up(ctx, os.Stdout, serveCommand)
	case "down":
		return lab.Down(ctx, os.Stdout)
	case "env":
		s, err := lab.Running()
		if errors.Is(err, background.ErrNotUp) {
			return fmt.Errorf("%w: start one with make lab-up", err)
		}
		if err == nil {
			fmt.Printf("export KUBECONFIG=%s\n", s.Variables["KUBECONFIG"])
		}
		return err
	case serveCommand:
		return serve(ctx, lab, variant)
	}
	return fmt.Errorf("unknown command %q: it is up, down or env", args[0])
}

// variantOf returns the clusterset whose names this plugin serves.
func variantOf(plugin string) (complete.Variant, error) {
	v := complete.Variant{Name: "playground", Installer: complete.ByCommand, DNS: complete.DNS(cmp.Or(plugin, string(complete.OurPlugin)))}
	if v.DNS != complete.OurPlugin && v.DNS != complete.CoreDNSPlugin {
		return v, fmt.Errorf("DNS=%s: must be %s, the plugin of ours, or %s, CoreDNS' own", plugin, complete.OurPlugin, complete.CoreDNSPlugin)
	}
	return v, nil
}

// serve runs the clusters until ctx ends.
func serve(ctx context.Context, l *background.Lab, v complete.Variant) error {
	server, err := l.Serve()
	if err != nil {
		return err
	}
	err = run(ctx, server, v)
	if err != nil && !errors.Is(err, background.ErrInterrupted) {
		fmt.Fprintf(server, "\n%v\n", err) // nobody reads it once all was ready; the log has it
	}
	return errors.Join(err, server.Close())
}

func run(ctx context.Context, server *background.Server, v complete.Variant) error {
	begin := time.Now()
	set, err := complete.Start(ctx, complete.Options{
		Variant: v,
		Members: []string{"a", "b"},
		Log: func(format string, args ...any) {
			fmt.Fprintf(server, "%5.1f s  %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
		},
	})
	if err != nil {
		return interrupted(ctx, err)
	}
	err = offer(ctx, server, set)
	return errors.Join(err, set.Close())
}

// offer shows what there is and waits until ctx ends.
func offer(ctx context.Context, server *background.Server, set *complete.Clusterset) error {
	if err := set.LoadConformanceImages(ctx); err != nil {
		return interrupted(ctx, err)
	}
	var guide strings.Builder
	err := guideTemplate.Execute(&guide, map[string]string{
		"Kubeconfig": set.Kubeconfig, "Path": set.Path(), "Folder": set.Folder(), "Image": complete.ProbeImage,
	})
	if err != nil {
		return err
	}
	if err := server.Ready(background.State{Guide: guide.String(), Variables: map[string]string{"KUBECONFIG": set.Kubeconfig}}); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

var guideTemplate = template.Must(template.New("guide").Parse(`
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
