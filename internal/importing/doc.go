// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package importing decides what one cluster imports of one service. It is pure.
//
//	observed := gather(key)                  // controllers/imports: reads only
//	for range Rounds {
//		plan := importing.PlanOf(observed)   // this package
//		outcome := apply(plan)               // controllers/imports: stage by stage, as long as each change ends as planned
//		observed = observed.With(plan, outcome)
//		if plan.IsLast && all has ended as planned { break }
//	}
//
// What an API server assigns (cluster IPs), what an allocator reserves (listening ports, virtual IPs) and what anybody refuses come back
// as observations, so the conditions, Events and metrics of an import have one source: a Plan.
//
// The order of the files is that of the data: observed.go, view.go, gateways.go and headless.go (what follows from the
// observation alone), decide.go and routing.go (which endpoints the import has), plan.go (what differs), refused.go, conditions.go
// and events.go (what is reported), with.go (the next observation).
package importing
