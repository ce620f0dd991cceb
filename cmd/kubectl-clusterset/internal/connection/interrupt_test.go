// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestChanges: after a request that can have changed a cluster, whatever its answer, an interrupted command is to be run again.
func TestChanges(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]bool{
		"GET /api/v1/namespaces/shop/services":                                      false,
		"PATCH /api/v1/namespaces/shop/services/web?fieldManager=x":                 true,
		"PATCH /api/v1/namespaces/shop/services/web?dryRun=All&fieldManager=x":      false,
		"PUT /api/v1/namespaces/kube-system/configmaps/coredns":                     true,
		"POST /apis/hub.tombolo-mcs.io/v1alpha1/namespaces/member-a/members":        true,
		"DELETE /api/v1/namespaces/tombolo-system":                                  true,
		"PATCH /api/v1/namespaces/tombolo-system/pods/tombolo-check?fieldManager=x": false,
		"DELETE /api/v1/namespaces/tombolo-system/pods/tombolo-check":               false,
		"POST /api/v1/namespaces/default/serviceaccounts/default/token":             false,
		"PATCH /api/v1/namespaces/default/serviceaccounts/token?fieldManager=x":     true,
	} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			ctx, changed := NoteChanges(t.Context())
			method, path, _ := strings.Cut(request, " ")
			r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1:0"+path, http.NoBody)
			check.Must(t, err)
			if response, err := noted(http.DefaultTransport).RoundTrip(r); err == nil {
				t.Error("something answers", response.Body.Close())
			}
			check.Equal(t, "it has begun to change something", want, changed.Load())
		})
	}
}
