// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// exampleOfAStatefulSet: examples/statefulset-headless, in a and b. A pod of b reaches each pod of a by its name, and a pod of a
// those of b.
func exampleOfAStatefulSet(s *scene) {
	rendered, err := s.Kubectl(s.Context(), "", "kustomize", "examples/statefulset-headless")
	lab.Must(s, err)
	rendered = strings.ReplaceAll(rendered, "namespace: shop", "namespace: "+s.namespace)
	for _, p := range s.members() {
		_, err := s.Kubectl(s.Context(), rendered, "--context", p.cluster.Name, "apply", "-f", "-")
		lab.Must(s, err)
	}
	for from, to := range map[string]string{"a": "b", "b": "a"} {
		p := s.in(from)
		p.awaitPods("db", 2)
		p.awaitImport("db", "a", "b")
		for _, pod := range []string{"db-0", "db-1"} {
			name := fmt.Sprintf("%s.%s.%s", pod, to, s.name("db"))
			p.within(podWaitLimit, "an answer of "+name+" in cluster "+from, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				got, err := s.Kubectl(ctx, "", "--context", from, "-n", s.namespace, "exec", "db-0", "--", "socat", "-u", "TCP4:"+name+":5432", "-")
				if err == nil && strings.TrimSpace(got) != pod {
					err = fmt.Errorf("it is %q", got)
				}
				return err
			})
		}
	}
}
