// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Each refusal is reported with its stream, also that of a malformed OPEN. Fields of an OPEN that this version does not know are not kept.
// spec: G6, G11, G12
func TestRefusalsAreReported(t *testing.T) {
	listener := serve(t, echo)
	both := trusts(t, "east", "west")
	foreign := web
	foreign.Service = "other"
	foreign.Skipped = append([]byte{100, 0, 200}, make([]byte, 200)...)
	for name, test := range map[string]struct {
		frame []byte
		code  wire.Code
		want  wire.Open
	}{
		"not exported": {wire.Append(nil, wire.TypeOpen, 1, foreign.Encode()), wire.CodeNotExported, wire.Open{Namespace: web.Namespace, Service: "other"}},
		"malformed":    {wire.Append(nil, wire.TypeOpen, 1, []byte{129}), wire.CodeMalformedOpen, wire.Open{}},
	} {
		t.Run(name, func(t *testing.T) {
			type refused struct {
				cluster clusterset.ClusterID
				request wire.Open
				code    wire.Code
			}
			reported := make(chan refused, 1)
			_, gateway := exporterWith(t, func(e *Exporter) {
				e.Refused = func(cluster clusterset.ClusterID, request wire.Open, refusal *wire.Refusal) {
					reported <- refused{cluster, request, refusal.Code}
				}
			}, both["west"], listener.Addr())
			conn := peer(t, both["east"], gateway)
			check.Must(t, conn.SendFrames(test.frame))
			got := <-reported
			check.Equal(t, "cluster", clusterset.ClusterID("east"), got.cluster)
			check.Equal(t, "code", test.code, got.code)
			check.Equal(t, "service", test.want.Namespace+"/"+test.want.Service, got.request.Namespace+"/"+got.request.Service)
			check.Equal(t, "fields that are not known", 0, len(got.request.Skipped))
		})
	}
}
