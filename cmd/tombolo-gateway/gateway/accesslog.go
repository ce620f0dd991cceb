// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"log/slog"

	"github.com/tombolo-mcs/tombolo/internal/gateway/forward"
)

// accessLog returns a function that writes a line for each stream that has ended (G11); nil if there is no logger.
func accessLog(logger *slog.Logger) forward.AccessLog {
	if logger == nil {
		return nil
	}
	return func(a forward.Access) {
		service, client, peer := "", "", "gateway"
		if a.Stream.Service != "" {
			service = a.Stream.Namespace + "/" + a.Stream.Service
		}
		if a.Stream.Client.IsValid() {
			client = a.Stream.Client.String()
		}
		if a.Direction == forward.Exporting {
			peer = "backend"
		}
		logger.LogAttrs(context.Background(), slog.LevelInfo, "stream",
			slog.String("direction", string(a.Direction)), slog.String("service", service), slog.String("hostname", a.Stream.Hostname), slog.Int("port", int(a.Stream.Port)),
			slog.String("cluster", string(a.Cluster)), slog.String(peer, a.Peer), slog.String("client", client),
			slog.String("namespace", a.Stream.ClientNamespace), slog.String("serviceAccount", a.Stream.ServiceAccount),
			slog.Int64("sent", a.Sent), slog.Int64("received", a.Received), slog.Float64("seconds", a.Duration.Seconds()),
			slog.String("result", string(a.Result)))
	}
}
