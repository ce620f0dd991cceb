// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// answers are those of a DNS server, one after the other. The last one is repeated.
type answers []error

func (a *answers) LookupTXT(ctx context.Context, name string) ([]string, error) {
	if name != "dns-version.clusterset.local." {
		return nil, errors.New("another name")
	}
	next := (*a)[0]
	if len(*a) > 1 {
		*a = (*a)[1:]
	}
	if errors.Is(next, context.DeadlineExceeded) {
		<-ctx.Done()
	}
	return []string{"1.0.0"}, next
}

// TestZoneProbe: the metric follows the DNS. Each change is logged once.
func TestZoneProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logged := 0
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "resolves"})
		p := &zoneProbe{
			&answers{nil, nil, &net.DNSError{IsNotFound: true}, context.DeadlineExceeded, errors.New("server misbehaving"), nil}, gauge,
			funcr.New(func(string, string) { logged++ }, funcr.Options{}),
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Start(ctx) }()
		for i, want := range []float64{1, 1, 0, 0, 0, 1} {
			if i == 4 {
				time.Sleep(zoneTimeout) //nolint:forbidigo // the clock of a synctest bubble: one query is not answered
			}
			synctest.Wait()
			if got := testutil.ToFloat64(gauge); got != want {
				t.Errorf("after query %d: %v, want %v", i, got, want)
			}
			time.Sleep(zoneInterval) //nolint:forbidigo // the clock of a synctest bubble
		}
		check.Equal(t, "changes that are logged", 3, logged)
		cancel()
		check.Must(t, <-ended)
	})
}

// TestClusterResolver: only the DNS that the cluster's pods use is queried.
func TestClusterResolver(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]bool{
		"search tombolo-system.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n": true,
		"nameserver 10.0.0.1\nsearch a.svc.example.org svc.example.org":                                                     true,
		"nameserver 10.0.0.1\nsearch example.org\n":                                                                         false,
		"# search svc.cluster.local\n":                                                                                      false,
		"":                                                                                                                  false,
	} {
		check.Equal(t, config, want, isOfCluster(config))
	}
	if clusterResolver(Options{ClusterDNS: NoClusterDNS}) != nil || clusterResolver(Options{AgentCluster: &rest.Config{}}) != nil {
		t.Error("a DNS is queried that is not to be, or that is of another cluster")
	}
	if clusterResolver(Options{ClusterDNS: "192.0.2.1:53", AgentCluster: &rest.Config{}}) == nil {
		t.Error("the given DNS is not queried")
	}
}
