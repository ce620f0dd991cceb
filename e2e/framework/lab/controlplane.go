// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// auditPolicy records one line per request.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules: [{level: Metadata}]
`

// auditLog is relative to the cluster's folder: see watchdogScript.
const auditLog = "audit.log"

// AuditLog returns the path of the audit log: one JSON object per line and request. It exists if the options ask for it, and
// disappears with the lab.
func (c *Cluster) AuditLog() string {
	return filepath.Join(c.folder, auditLog)
}

// apiServer authenticates by static tokens and tokens of service accounts, and authorizes by RBAC and, where there is a
// node, by the authorizer of nodes.
func (c *Cluster) apiServer() *Process {
	address := c.address()
	ready := func(ctx context.Context) error {
		for _, path := range []string{"/readyz", "/api/v1/namespaces/default"} { // /readyz does not wait for the namespace
			if err := getOK(ctx, c.credentials.transport(), address+path, c.credentials.adminToken); err != nil {
				return err
			}
		}
		return nil
	}
	authorizers := "RBAC"
	if c.Node != nil {
		authorizers = "Node,RBAC"
	}
	argv := []string{
		c.binaries.apiServer,
		"--cert-dir=.",
		"--tls-cert-file=" + c.credentials.certificateFile,
		"--tls-private-key-file=" + c.credentials.keyFile,
		"--token-auth-file=" + c.credentials.tokenFile,
		"--authorization-mode=" + authorizers,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.credentials.serviceAccountKeyFile,
		"--service-account-signing-key-file=" + c.credentials.serviceAccountKeyFile,
		"--service-cluster-ip-range=" + Joined(c.ServiceCIDRs),
		"--etcd-servers=unix://" + c.socket("client"),
		"--allow-privileged=true",
		"--profiling=false",
		"--shutdown-watch-termination-grace-period=1s", // else a stop takes a minute while anyone watches
	}
	argv = append(argv, c.listenArgs()...)
	if c.options.Audit {
		argv = append(argv, "--audit-policy-file="+c.credentials.auditPolicyFile, "--audit-log-path="+auditLog)
	}
	return c.process("kube-apiserver", ready, append(argv, c.options.APIServerArgs...)...)
}

// listenArgs returns the arguments that say where the API server is. On the loopback interface it does not keep up the
// endpoints of Service default/kubernetes: Kubernetes refuses loopback addresses there.
func (c *Cluster) listenArgs() []string {
	primary6 := c.ServiceCIDRs[0].Addr().Is6() // the advertised address must be of the primary family
	if c.machine != nil {
		advertise := c.machine.addresses[0]
		if primary6 {
			advertise = c.machine.addresses[1]
		}
		return []string{
			"--bind-address=::",
			"--secure-port=" + machinePort,
			"--advertise-address=" + advertise.String(),
			"--kubelet-preferred-address-types=InternalIP", // else it looks for the node's name in DNS
		}
	}
	advertise := "127.0.0.1"
	if primary6 {
		advertise = "::1"
	}
	return []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.port.number),
		"--advertise-address=" + advertise,
		"--endpoint-reconciler-type=none",
	}
}

// advertised is an address that etcd insists on and a single member never dials.
const advertised = "http://127.0.0.1:1"

// dataFolder is relative to the cluster's folder: see watchdogScript.
const dataFolder = "etcd"

// etcd listens on Unix sockets only, so it takes no ports.
func (c *Cluster) etcd() *Process {
	client, peer := c.socket("client"), c.socket("peer")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", client)
	}
	ready := func(ctx context.Context) error {
		return getOK(ctx, &http.Transport{DisableKeepAlives: true, DialContext: dial}, "http://etcd/readyz", "")
	}
	return c.process("etcd", ready, c.binaries.etcd,
		"--name=lab",
		"--data-dir="+dataFolder,
		"--listen-client-urls=unix://"+client,
		"--advertise-client-urls="+advertised,
		"--listen-peer-urls=unix://"+peer,
		"--initial-advertise-peer-urls="+advertised,
		"--initial-cluster=lab="+advertised,
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
}

// socket returns the path of a Unix socket. It is in the lab's folder, not the cluster's, to be short.
func (c *Cluster) socket(purpose string) string {
	return filepath.Join(c.labFolder, strconv.Itoa(c.index)+"."+purpose)
}

// RestartControllers starts the controllers, anew where they run, and returns when they work: one that has not begun to ends where
// the API server is down at that moment.
func (c *Cluster) RestartControllers(ctx context.Context) error {
	if err := c.ControllerManager.Stop(ctx); err != nil {
		return fmt.Errorf("restarting the controllers of cluster %s: %w", c.Name, err)
	}
	return c.startControllers(ctx)
}

// startControllers returns when the controllers work, which is when the objects that they create exist.
func (c *Cluster) startControllers(ctx context.Context) error {
	cl, err := c.Client(nil)
	if err != nil {
		return err
	}
	made := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}}
	for range startAttempts {
		if err := client.IgnoreNotFound(cl.Delete(ctx, made)); err != nil {
			return fmt.Errorf("starting the controllers of cluster %s: %w", c.Name, err)
		}
		if err = c.ControllerManager.Start(ctx); !errors.Is(err, errExited) {
			return err
		}
	}
	return err
}

// controllerManager runs the controllers under the service accounts that they have in a real cluster, so policies that
// name these can be tested. It is ready when the default service account of namespace default exists, which one of the
// controllers makes.
func (c *Cluster) controllerManager(kubeconfig string) *Process {
	ready := func(ctx context.Context) error {
		url := c.address() + "/api/v1/namespaces/default/serviceaccounts/default"
		return getOK(ctx, c.credentials.transport(), url, c.credentials.adminToken)
	}
	return c.process("kube-controller-manager", ready, c.binaries.controllerManager,
		"--kubeconfig="+kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.credentials.serviceAccountKeyFile,
		"--root-ca-file="+c.credentials.certificateFile,
		"--controllers="+strings.Join(c.options.Controllers, ","),
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--profiling=false",
	)
}

// readyTimeout is how long one check of a process may take.
const readyTimeout = 2 * time.Second

// getOK returns nil if the server answers a GET with 200.
func getOK(ctx context.Context, transport *http.Transport, url, token string) error {
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %s", resp.Status, notReady(string(body)))
}

// notReady returns those checks of a /readyz that failed, or all of the body if it is not of that form.
func notReady(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "[-]") {
			failed = append(failed, strings.TrimSpace(line))
		}
	}
	if len(failed) == 0 {
		return strings.TrimSpace(body)
	}
	return strings.Join(failed, "; ")
}
