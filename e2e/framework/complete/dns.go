// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// clusterDNS returns a cluster's own DNS as kubeadm installs it, but for the limits of memory and what a lab has no use
// for: it forwards nowhere, looks for a new Corefile more often, and has records of 5 s in place of 30: who waits for a
// change waits for the old answer to end. It ends as ours does, in the longer time: a question that comes from a port which the
// machine still takes for a connection to the old pod gets no answer, and the stories ask each question once.
func (c *Clusterset) clusterDNS(cluster *lab.Cluster) []byte {
	return fmt.Appendf(nil, clusterDNSManifest, DNSImage, cluster.DNSAddress())
}

const clusterDNSManifest = `
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: kube-system, name: coredns}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: system:coredns}
rules:
- {apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: system:coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: coredns}]
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: kube-system, name: coredns}
data:
  Corefile: |
    .:53 {
        errors
        health {
            lameduck 15s # three times what it takes until the pod is not ready
        }
        ready
        kubernetes cluster.local in-addr.arpa ip6.arpa {
            pods insecure
            fallthrough in-addr.arpa ip6.arpa
            ttl 5
        }
        prometheus :9153
        cache 30
        loop
        reload 2s 1s
        loadbalance
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: kube-system, name: coredns, labels: {k8s-app: kube-dns}}
spec:
  replicas: 2
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      dnsPolicy: Default
      containers:
      - name: coredns
        image: %[1]s
        imagePullPolicy: IfNotPresent
        securityContext: {runAsUser: 0} # to listen on port 53
        args: [-conf, /etc/coredns/Corefile]
        ports:
        - {name: dns, containerPort: 53, protocol: UDP}
        - {name: dns-tcp, containerPort: 53, protocol: TCP}
        readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 1, failureThreshold: 5} # a busy machine is no reason to end DNS
        livenessProbe: {httpGet: {path: /health, port: 8080}, initialDelaySeconds: 60, timeoutSeconds: 5}
        volumeMounts: [{name: config, mountPath: /etc/coredns, readOnly: true}]
      volumes:
      - name: config
        configMap: {name: coredns, items: [{key: Corefile, path: Corefile}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: kube-system, name: kube-dns, labels: {k8s-app: kube-dns}}
spec:
  clusterIP: %[2]s
  selector: {k8s-app: kube-dns}
  ports:
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
`

// resolveAt sends a question from the machine of a cluster. It returns the line that "probe resolve" prints.
func (c *Clusterset) resolveAt(ctx context.Context, cluster *lab.Cluster, address, kind, name string) (string, error) {
	server := net.JoinHostPort(address, "53")
	out, err := cluster.Run(ctx, c.programs.probe, "resolve", "-server", server, "-type", kind, name)
	return string(out), err
}

// dnsWaitLimit is what the pods of DNS may take to start, and CoreDNS to notice its new Corefile.
const dnsWaitLimit = 3 * time.Minute

// AwaitDNS returns when every pod of a cluster's DNS serves the clusterset: each notices its new Corefile by itself.
func (c *Clusterset) AwaitDNS(ctx context.Context, cluster *lab.Cluster) error {
	err := lab.Await(ctx, time.Second, dnsWaitLimit, func(ctx context.Context) error {
		err := c.servesClusterset(ctx, cluster)
		if err != nil {
			err = errors.Join(err, c.nudgeDNS(ctx, cluster))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the DNS of cluster %s does not serve the clusterset: %w", cluster.Name, err)
	}
	return nil
}

// servesClusterset reports whether all pods of a cluster's DNS know the clusterset's zone.
func (c *Clusterset) servesClusterset(ctx context.Context, cluster *lab.Cluster) error {
	pods, err := c.Kubectl(ctx, "", "--context", cluster.Name, "-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns",
		"-o", "jsonpath={.items[*].status.podIP}")
	if err != nil {
		return err
	}
	if pods == "" {
		return errors.New("none of its pods has an address")
	}
	for _, address := range strings.Fields(pods) {
		answer, err := c.resolveAt(ctx, cluster, address, "TXT", "dns-version.clusterset.local.")
		if err != nil {
			return err
		}
		if !strings.Contains(answer, "NOERROR") {
			return fmt.Errorf("pod %s says %s", address, answer)
		}
	}
	return nil
}

// nudgeDNS has the kubelet check the pods of a cluster's DNS now. Else it hands a new Corefile on when it checks them
// anyway, within a minute or so.
func (c *Clusterset) nudgeDNS(ctx context.Context, cluster *lab.Cluster) error {
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	_, err := c.Kubectl(ctx, "", "--context", cluster.Name, "-n", "kube-system", "annotate", "--overwrite", "pods", "-l", "k8s-app=kube-dns",
		"e2e.tombolo-mcs.io/checked-at="+now)
	return err
}
