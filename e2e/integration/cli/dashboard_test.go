// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// openedDashboard is the page of a running command, without a browser. tools/dashboard opens it in one.
type openedDashboard struct {
	*http.Client
	address string
	updates *bufio.Scanner
}

type dashboardUpdate struct {
	Members  []assess.MemberStatus
	Problems []assess.Problem
	Services []struct{ Name, Imports string }
}

// openDashboard runs the command until the test ends, when it must have an exit code.
func (s *surveyed) openDashboard(t *testing.T, flags string, code int) *openedDashboard {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		args := append([]string{"dashboard", "--kubeconfig", s.kubeconfig}, strings.Fields(flags)...) // the last --kubeconfig counts
		ended <- cli.Run(ctx, release, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: writer, ErrOut: writer})
		_ = writer.Close() // never fails
	}()
	t.Cleanup(func() {
		cancel()
		if got := <-ended; got != code {
			t.Errorf("dashboard %s ends with %d, want %d", flags, got, code)
		}
	})
	output := bufio.NewScanner(reader)
	for output.Scan() && !strings.HasPrefix(output.Text(), "http://127.0.0.1:") {
		t.Log(output.Text())
	}
	link, err := url.Parse(output.Text())
	lab.Must(t, err)
	go func() { _, _ = io.Copy(io.Discard, reader) }() // until the command ends
	jar, err := cookiejar.New(nil)
	lab.Must(t, err)
	d := &openedDashboard{Client: &http.Client{Jar: jar}, address: "http://" + link.Host}
	d.get(t, "/?token="+link.Query().Get("token"), nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.address+"/api/events", http.NoBody)
	lab.Must(t, err)
	response, err := d.Do(request)
	lab.Must(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	d.updates = bufio.NewScanner(response.Body)
	d.updates.Buffer(nil, 1<<20)
	return d
}

// get decodes a response, unless into is nil.
func (d *openedDashboard) get(t *testing.T, path string, into any) {
	t.Helper()
	text, err := lab.Get(t.Context(), d.Client, d.address+path)
	lab.Must(t, err)
	if into != nil {
		lab.Must(t, json.Unmarshal(text, into))
	}
}

// await reads updates until one is as wanted.
func (d *openedDashboard) await(t *testing.T, what string, wanted func(dashboardUpdate) bool) {
	t.Helper()
	var last string
	found := make(chan bool, 1)
	go func() {
		for d.updates.Scan() {
			text, ok := strings.CutPrefix(d.updates.Text(), "data: ")
			var update dashboardUpdate
			if last = text; ok && json.Unmarshal([]byte(text), &update) == nil && wanted(update) {
				found <- true
				return
			}
		}
		found <- false
	}()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	select {
	case ok := <-found:
		if !ok {
			t.Fatalf("the updates end before %s; the last one: %s", what, last)
		}
	case <-ctx.Done():
		t.Fatalf("no update with %s", what)
	}
}

// testDashboard: the page gets what status shows, what changes in the hub and in members, and the details of a service. A user who may
// not read a kind sees that.
func (s *surveyed) testDashboard(t *testing.T) {
	d := s.openDashboard(t, "--all-contexts", cli.ExitOK)
	d.await(t, "the services", func(u dashboardUpdate) bool {
		return len(u.Members) == 2 && len(u.Services) == 3 && about(assess.ReasonConflict, "", "shop/web")(u.Problems)
	})
	ghost := framework.Export(framework.Key{Namespace: "shop", Name: "ghost"})
	s.create(t, "west", ghost)
	d.await(t, "the problem of an export without a Service", func(u dashboardUpdate) bool {
		return about(assess.ReasonExportInvalid, "west", "shop/ghost")(u.Problems)
	})
	s.serve(t, "west", "ghost", "10.2.0.9", 80)
	d.await(t, "the new service, imported by both members", func(u dashboardUpdate) bool {
		return slices.ContainsFunc(u.Services, func(s struct{ Name, Imports string }) bool { return s.Name == "ghost" && s.Imports == "dd" })
	})
	var details struct {
		Service     *assess.ServiceStatus
		Explanation *explain.Explanation
	}
	d.get(t, "/api/service?namespace=shop&name=web", &details)
	if details.Service == nil || len(details.Service.Conflicts) != 1 || details.Explanation == nil || len(details.Explanation.LostPorts) == 0 {
		t.Errorf("the details are %+v", details)
	}
	var traced trace.Result
	d.get(t, "/api/trace?namespace=shop&name=slow", &traced)
	if traced.Broken() != nil || !slices.ContainsFunc(traced.Steps, func(s trace.Step) bool {
		return s.Cluster == "west" && s.Hop == trace.HopImport && s.State == trace.OK
	}) {
		t.Errorf("the trace is %+v", traced)
	}
	lab.Must(t, s.client(t, "west").Delete(t.Context(), ghost))
	lab.Must(t, s.client(t, "west").Delete(t.Context(), framework.Service(framework.Key{Namespace: "shop", Name: "ghost"})))
	lab.Must(t, s.client(t, "west").Delete(t.Context(), framework.Slice(framework.Service(framework.Key{Namespace: "shop", Name: "ghost"}), "1", "10.2.0.9")))
	for _, name := range []string{"east", "west"} {
		s.awaitCount(t, name, &mcsv1beta1.ServiceImportList{}, 3)
	}
	t.Run("rights", s.testDashboardRights)
}

// testDashboardRights: a user who may not list ServiceImports in a member gets the rest, and the reason.
func (s *surveyed) testDashboardRights(t *testing.T) {
	account := metav1.ObjectMeta{Namespace: "shop", Name: "viewer"}
	list := []string{"get", "list", "watch"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-viewer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "services"}, Verbs: list},
		{APIGroups: []string{"about.k8s.io"}, Resources: []string{"clusterproperties"}, Verbs: list},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: list},
		{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"servicecidrs"}, Verbs: list},
		{APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"serviceexports"}, Verbs: list},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-viewer"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	for _, object := range []client.Object{&corev1.ServiceAccount{ObjectMeta: account}, role, binding} {
		s.create(t, "west", object)
		t.Cleanup(func() { _ = s.client(t, "west").Delete(context.Background(), object) })
	}
	config, err := s.Cluster("west").ServiceAccountConfig(t.Context(), account.Namespace, account.Name)
	lab.Must(t, err)
	file, err := clientcmd.LoadFromFile(s.kubeconfig)
	lab.Must(t, err)
	file.AuthInfos["viewer"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["viewer"] = &clientcmdapi.Context{Cluster: "west", AuthInfo: "viewer"}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	lab.Must(t, clientcmd.WriteToFile(*file, kubeconfig))
	d := s.openDashboard(t, "--contexts viewer --hub-context hub --kubeconfig "+kubeconfig, cli.ExitIncomplete)
	d.await(t, "the reason why nothing is known of the imports", func(u dashboardUpdate) bool {
		return slices.ContainsFunc(u.Problems, func(p assess.Problem) bool {
			return p.Reason == assess.ReasonMemberUnreadable && p.Member == "west" && strings.Contains(p.Message, "ServiceImport") && strings.Contains(p.Message, "forbidden")
		}) && len(u.Services) == 3
	})
}
