// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

func TestMetadata(t *testing.T) {
	w := newWorld(t, options{})
	for name, want := range map[string]string{
		"cluster.local.":                            "not ours",
		"clusterset.local.":                         "",
		"pod.clusterset.local.":                     "",
		"a.b.c.d.e.svc.clusterset.local.":           "",
		"svc.clusterset.local.":                     "kind=svc",
		"shop.svc.clusterset.local.":                "kind=svc namespace=shop",
		"WEB.shop.svc.clusterset.local.":            "kind=svc namespace=shop service=web",
		"_tcp.web.shop.svc.clusterset.local.":       "kind=svc namespace=shop protocol=tcp service=web",
		"_http._tcp.web.shop.svc.clusterset.local.": "kind=svc namespace=shop port-name=http protocol=tcp service=web",
		"east.db.shop.svc.clusterset.local.":        "cluster=east kind=svc namespace=shop service=db",
		"db-0.east.db.shop.svc.clusterset.local.":   "cluster=east endpoint=db-0 kind=svc namespace=shop service=db",
	} {
		question := request.Request{Req: new(dns.Msg).SetQuestion(name, dns.TypeA)}
		ctx := w.cs.Metadata(metadata.ContextWithMetadata(t.Context()), question)
		var got []string
		for _, label := range []string{"cluster", "endpoint", "kind", "namespace", "port-name", "protocol", "service"} {
			f := metadata.ValueFunc(ctx, "clusterset/"+label)
			if f == nil {
				got = []string{"not ours"}
				break
			}
			if value := f(); value != "" {
				got = append(got, label+"="+value)
			}
		}
		check.Equal(t, name, want, strings.Join(got, " "))
	}
}
