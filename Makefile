# Copyright The Tombolo Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Everything builds with Go, git and make. A C compiler is used, where there is one, for the race detector only.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Extra flags for go test: make test TESTFLAGS='-run TestX -v'
TESTFLAGS ?=
# The share of mutants that the tests of the pure packages must kill, in percent.
MUTATION_MIN ?= 92
# ARCHITECTURE.md lists the pure packages. The tests of some do not kill as many mutants yet.
PURE_PACKAGES = $(shell sed -n '/^Pure packages /,/^Packages with /p' ARCHITECTURE.md | grep -oE '(^- |\. )`[a-z0-9/]+`:' | tr -d '`:' | sed -E 's/^(- |\. )/.\//')
MUTATION_LATER := ./internal/corefile ./internal/importing ./internal/proxy ./internal/record ./internal/sources \
	./internal/gateway/pool ./internal/gateway/stream ./internal/gateway/wire ./e2e/chaos/oracle
MUTATION_PACKAGES ?= $(filter-out $(MUTATION_LATER),$(PURE_PACKAGES))
# Extra flags for the images: make images IMAGEFLAGS='-version=v1.2.3 -repository=registry.example.com/team'
IMAGEFLAGS ?=

TOOLS := $(CURDIR)/bin/tools
GOLANGCI := $(TOOLS)/golangci-lint
GOVULNCHECK := $(TOOLS)/govulncheck
HELM := $(CURDIR)/bin/helm
GOFUMPT := $(TOOLS)/gofumpt
CONTROLLER_GEN := $(TOOLS)/controller-gen
CRD_REF_DOCS := $(TOOLS)/crd-ref-docs
GREMLINS := $(TOOLS)/gremlins
MUTATION := $(TOOLS)/mutation
BENCHSTAT := $(TOOLS)/benchstat

# The modules beside the product's own; those with Go files of their own are vetted, linted and tested too.
TOOL_MODULES := $(patsubst %/go.mod,%,$(wildcard tools/*/go.mod))
CODE_MODULES := $(foreach m,$(TOOL_MODULES),$(if $(wildcard $(m)/*.go),$(m)))

# The API servers of the control-plane lab: built into bin/, or the user's own.
ASSETS_DIR := $(or $(KUBEBUILDER_ASSETS),$(CURDIR)/bin)

# The race detector needs a C compiler that finds its headers. Asked only by the targets that test.
find-cc = for c in "$${CC:-cc}" cc gcc clang; do if echo '\#include <stdlib.h>' | "$$c" -E - >/dev/null 2>&1; then echo "$$c"; break; fi; done

# Programs, tests (e2e/framework/lab.Build too) and linters compile in one way: what one of them has compiled is there for the others. Only
# the race detector needs another.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath $(filter-out -trimpath,$(GOFLAGS))

# The sources that people write.
GO_FILES = find . -name '*.go' -not -path './bin/*' -not -path './out/*' -not -path '*/.*/*' -not -name 'zz_generated*'

.PHONY: help
help: # list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z][a-z0-9-]*:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Build

.PHONY: build
build: ## build every command of cmd/ into bin/
	@for d in cmd/*/; do \
		[ -d "$$d" ] || { echo "nothing in cmd/ yet"; exit 0; }; \
		echo "build $$d"; go build -o "bin/$$(basename "$$d")" "./$$d"; \
	done

.PHONY: assets
assets: # build the API servers of the control-plane lab (4 minutes once), or use KUBEBUILDER_ASSETS
	@tools/assets/build.sh

.PHONY: images
images: ## build OCI archives of the images in out/, without a daemon (IMAGEFLAGS=)
	@cd tools/images && go run . build -out='$(CURDIR)/out' $(IMAGEFLAGS)

.PHONY: images-check
images-check: images # build the archives, verify what is in them, and that a build of the commit gives the same bytes
	@cd tools/images && go run . check -out='$(CURDIR)/out' $(IMAGEFLAGS)

# make release-snapshot RELEASE=v1.2.3 as a release does it, from the commit: changes that are not committed are not in it.
RELEASE ?= v0.0.0-snapshot
.PHONY: release-snapshot
release-snapshot: ## build all files of a release in out/release (RELEASE=)
	@export SOURCE_DATE_EPOCH="$$(git log -1 --format=%ct)"; \
	cd tools/release && go run . build -version='$(RELEASE)' -out='$(CURDIR)/out/release'

.PHONY: stamp
stamp: # write the version of a release into the sources, or "dev" after it (RELEASE=)
	@cd tools/release && go run . stamp -version='$(RELEASE)'

# What complete clusters run beyond the control planes.
LAB_PROGRAMS := kube-scheduler kube-proxy kubelet containerd containerd-shim-runc-v2 ctr

.PHONY: lab-assets
lab-assets: assets kubectl $(HELM) ## build what complete clusters run: Kubernetes, containerd, images (10 minutes once; Linux, root)
	@tools/assets/packages.sh
	@tools/assets/build.sh $(LAB_PROGRAMS)
	@go build -o bin/ ./cmd/kubectl-clusterset ./e2e/framework/probe
	@cd tools/images && go run . lab -out='$(CURDIR)/bin/images'

.PHONY: lab-up
lab-up: lab-assets ## start two complete clusters for you to explore; lab-env, lab-down (Linux, root; LAB=name, DNS=kubernetes, NETWORKS=separate)
	@go build -o bin/playground ./e2e/playground && bin/playground lab up

.PHONY: lab-down
lab-down: # stop what lab-up started (LAB=name)
	@go run ./e2e/playground lab down

.PHONY: lab-env
lab-env: # print where the clusters of lab-up are, for a shell to evaluate (LAB=name)
	@go run ./e2e/playground lab env

##@ Demo

.PHONY: demo-binaries
demo-binaries: assets
	@echo "build tombolo-agent, tombolo-gateway and coredns (a minute or two the first time)"
	@go build -o bin/ ./cmd/tombolo-agent ./cmd/coredns ./cmd/tombolo-gateway

.PHONY: demo
demo: demo-binaries ## start control planes, export, import, ask DNS, show the answers, stop (DNS=kubernetes: with CoreDNS' own plugin)
	@KUBEBUILDER_ASSETS='$(ASSETS_DIR)' go run ./e2e/playground demo run

.PHONY: demo-up
demo-up: demo-binaries ## the same, left running for you to explore; demo-env, ask, demo-down
	@KUBEBUILDER_ASSETS='$(ASSETS_DIR)' go run ./e2e/playground demo up

.PHONY: demo-down
demo-down: # stop what demo-up started
	@go run ./e2e/playground demo down

.PHONY: demo-env
demo-env: # print where the clusters of demo-up are, for a shell to evaluate
	@go run ./e2e/playground demo env

.PHONY: ask
TYPE ?= A
ask: # ask the DNS of demo-up's cluster-b: make ask NAME=web.demo.svc.clusterset.local TYPE=AAAA
	@go run ./e2e/playground demo ask '$(NAME)' '$(TYPE)'

.PHONY: kubectl
kubectl: # build kubectl into bin/ (2 minutes once)
	@tools/assets/build.sh kubectl

##@ Test

# The product, and the tests in whose process agents run, which take longest, so they are the first; the others start programs, or test the
# tests. Tests wait for API servers most of the time, so three of a package run at once, also on two cores, and those of four packages
# without the race detector.
TESTPARALLEL := -parallel 3
RACE_PACKAGES := ./e2e/integration/agent ./cmd/... ./controllers/... ./coredns-plugin/... ./manifests/... ./internal/... ./pkg/...
.PHONY: test
test: assets kubectl $(HELM) demo-binaries ## all tests that need no root, the product with the race detector if there is a C compiler
	@cc="$$($(find-cc))"; \
	if [ -n "$$cc" ]; then gotest="env CGO_ENABLED=1 CC=$$cc go test -race"; else gotest="go test"; echo "no C compiler: tests run without the race detector"; fi; \
	rm -rf '$(SCRAPES)'; export KUBEBUILDER_ASSETS='$(ASSETS_DIR)' SCRAPES='$(SCRAPES)'; \
	echo "$$gotest $(RACE_PACKAGES)"; \
	code=0; $$gotest -count=1 -timeout 30m $(TESTPARALLEL) $(TESTFLAGS) $(RACE_PACKAGES) || code=1; \
	others="$$(go list ./... | grep -vxF "$$(go list $(RACE_PACKAGES))")"; \
	echo "go test, without the race detector, of the" $$(wc -w <<<"$$others") "other packages"; \
	go test -count=1 -timeout 30m -p 4 $(TESTPARALLEL) $(TESTFLAGS) $$others || code=1; \
	for m in $(filter-out tools/dashboard,$(CODE_MODULES)); do echo "go test ./... in $$m"; (cd "$$m" && go test -count=1 -timeout 5m $(TESTFLAGS) ./...) || code=1; done; \
	exit $$code

.PHONY: manifests-check
manifests-check: assets kubectl $(HELM) # an API server takes every kustomization, and each right in them is used
	@export KUBEBUILDER_ASSETS='$(ASSETS_DIR)'; \
	go test -count=1 -timeout 20m ./manifests/... ./e2e/framework/audit ./e2e/integration/install; \
	go test -count=1 -timeout 20m -run '^Test(Rights|Managed)$$' ./e2e/integration/agent ./e2e/integration/dns

.PHONY: installations-check
installations-check: assets kubectl $(HELM) # install by each way over all that each other one has left, and walk the recipes on each; make test has one of them
	@KUBEBUILDER_ASSETS='$(ASSETS_DIR)' INSTALLATIONS=all go test -v -count=1 -timeout 30m -run '^Test((Hub)?Installations|Recipes)$$' ./e2e/integration/cli

.PHONY: charts-check
charts-check: # lint the Helm charts, and compare what they render with the kustomizations; make test does it too
	@cd tools/charts && go test -count=1 ./...

.PHONY: dashboard-check
dashboard-check: assets ## open the page of "kubectl clusterset dashboard" in Chromium (installs it: Debian, root; SCREENSHOTS=docs/images)
	@tools/dashboard/browser.sh
	@cd tools/dashboard && KUBEBUILDER_ASSETS='$(ASSETS_DIR)' SCREENSHOTS='$(abspath $(SCREENSHOTS))' go test -v -count=1 -timeout 10m ./...

# Where make test leaves the metrics of an agent, a gateway and a DNS server, for monitoring-check, which uses
# them once: a second run scrapes again.
SCRAPES := $(CURDIR)/out/scrapes
.PHONY: trace-check
trace-check: assets # break services at 50 hops drawn at random, and have "kubectl clusterset trace" name each (SEED=)
	@KUBEBUILDER_ASSETS='$(ASSETS_DIR)' go test -v -count=1 -timeout 30m -run '^TestTrace$$' ./e2e/integration/trace -args -draws=50 -seed=$(or $(SEED),0)

.PHONY: monitoring-check
monitoring-check: ## check that metrics of alerts and dashboard exist in the scrapes of make test, and that the runbook has the alerts
	@[ -e '$(SCRAPES)/dns.prom' ] && [ -e '$(SCRAPES)/gateway.prom' ] || { $(MAKE) assets; \
		KUBEBUILDER_ASSETS='$(ASSETS_DIR)' SCRAPES='$(SCRAPES)' go test -count=1 -timeout 10m ./e2e/integration/monitoring ./e2e/integration/gateway; }
	@cd tools/monitoring && go run . -root='$(CURDIR)' -scrapes='$(SCRAPES)' && rm -r '$(SCRAPES)'

# make e2e STORY='an exported service' runs one story, and skips the lab's own tests.
STORY ?=
E2EFLAGS ?=
# How many of the stories that keep to their own namespace run at a time, and of the documents. These build kubectl-clusterset at the same
# time, so it must be there and up to date.
E2E_PARALLEL ?= 4
# make e2e OLDEST=no does without the oldest Kubernetes supported. No other lab runs it.
OLDEST ?= yes
OLDEST_PROGRAMS := $(addprefix oldest/,kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet)
.PHONY: e2e
e2e: lab-assets ## run the users' stories on complete clusters with pods and traffic (Linux, root; STORY=)
	@[ '$(OLDEST)' = no ] || tools/assets/build.sh $(OLDEST_PROGRAMS)
	@export TOMBOLO_E2E=1 OLDEST='$(OLDEST)' STORY='$(STORY)'; \
	if [ -z "$$STORY" ]; then go test -count=1 -timeout 10m -run "Complete|TestArea" ./e2e/framework/lab ./e2e/framework/wan; fi; \
	go build -o bin/ ./cmd/kubectl-clusterset; \
	go test -v -count=1 -timeout 40m -parallel '$(E2E_PARALLEL)' -run '^TestStories$$' $(E2EFLAGS) ./e2e/stories

BEFORE := $(CURDIR)/out/before
# build_before builds the programs and images of an earlier version in the folder BEFORE: $(call build_before,version)
define build_before
	@rm -rf '$(BEFORE)' && mkdir -p '$(BEFORE)/bin' && git archive '$(1)' | tar -x -C '$(BEFORE)'
	@ln -s $(addprefix '$(CURDIR)'/bin/,etcd helm kubectl probe) '$(BEFORE)/bin'
	@cd '$(BEFORE)' && go build -o bin/ ./cmd/kubectl-clusterset && cd tools/images && go run . lab -repository=localhost/before -out='$(BEFORE)/bin/images'
endef

# make upgrade-check UPGRADE_FROM=v1.2.3 begins with another version. Without history, git fetch --unshallow gets it.
UPGRADE_FROM ?= 8cff8c78a28581aa712437c4d48a10834b43b22d
.PHONY: upgrade-check
upgrade-check: lab-assets ## upgrade complete clusters under load from an earlier version to this one and back, and install over what other ways have left (Linux, root; UPGRADE_FROM=)
	$(call build_before,$(UPGRADE_FROM))
	@trap "rm -rf '$(BEFORE)'" EXIT; TOMBOLO_E2E=1 UPGRADE_FROM='$(BEFORE)' go test -v -count=1 -timeout 40m -run '^Test(Upgrade|Installers)$$' ./e2e/stories

# The default is the last commit whose gateways block on sockets. make gateway-versions-check GATEWAYS_FROM=HEAD^ STORY='suspended' begins
# with another one, and runs one story.
GATEWAYS_FROM ?= 8cff8c78a28581aa712437c4d48a10834b43b22d
.PHONY: gateway-versions-check
gateway-versions-check: lab-assets ## run the stories of separate networks while the gateways of one cluster are of an earlier version (Linux, root; GATEWAYS_FROM=, STORY=)
	$(call build_before,$(GATEWAYS_FROM))
	@trap "rm -rf '$(BEFORE)'" EXIT; go build -o bin/ ./cmd/kubectl-clusterset; \
	TOMBOLO_E2E=1 GATEWAYS_FROM='$(BEFORE)' STORY='$(STORY)' go test -v -count=1 -timeout 40m -parallel '$(E2E_PARALLEL)' -run '^TestStories$$/^networks$$' ./e2e/stories

# The suite is not a Go module that can be required, so it comes from a clone: make conformance MCS_API_DIR=../mcs-api
# NETWORKS=separate omits the tests that cannot pass between networks (e2e/README.md). CONFORMANCE_FLAGS= runs them, too.
MCS_API_DIR ?=
CONFORMANCE_FLAGS ?= $(if $(filter separate,$(NETWORKS)),-ginkgo.label-filter='!(DNS && Headless)')
CONFORMANCE_REPORT := out/conformance$(addprefix -,$(NETWORKS))
.PHONY: conformance
conformance: ## run the conformance suite of a clone of mcs-api on complete clusters (MCS_API_DIR=, NETWORKS=separate, CONFORMANCE_FLAGS=)
	@[ -f '$(MCS_API_DIR)/conformance/go.mod' ] || { echo "MCS_API_DIR='$(MCS_API_DIR)' is no clone of github.com/kubernetes-sigs/mcs-api: it has no conformance/go.mod"; exit 1; }
	@export LAB=conformance; $(MAKE) lab-up; trap '$(MAKE) lab-down' EXIT; eval "$$($(MAKE) -s lab-env)"; \
	mkdir -p out; cd '$(MCS_API_DIR)/conformance'; rm -f report.html report.yaml; code=0; \
	go test -v -count=1 -timeout 40m . -args -contexts a,b $$([ -t 1 ] || echo -ginkgo.no-color) $(CONFORMANCE_FLAGS) || code=$$?; \
	for kind in html yaml; do \
		[ ! -f "report.$$kind" ] || { mv "report.$$kind" "$(CURDIR)/$(CONFORMANCE_REPORT).$$kind"; echo "report: $(CONFORMANCE_REPORT).$$kind"; }; \
	done; cd '$(CURDIR)'; exit $$code

# make chaos CHAOS_SEED=7 repeats a run. CHAOS_FAULTS='hub restarted,quota used up' injects only these, and CHAOS_TIME=15m
# injects faults for so long. CHAOS_FAULTS is passed in the environment, since names contain apostrophes.
CHAOS_SEED ?=
CHAOS_TIME ?=
.PHONY: chaos
chaos: assets ## inject each fault while services change; an independent checker watches (25 minutes; CHAOS_SEED=, CHAOS_TIME=)
	@export CHAOS=1 CHAOS_SEED='$(CHAOS_SEED)' CHAOS_TIME='$(CHAOS_TIME)' KUBEBUILDER_ASSETS='$(ASSETS_DIR)'; \
	mkdir -p out; go test -v -count=1 -timeout 40m -parallel 3 -run '^Test(Chaos|AgentWithout(Networks|Grants)|GatewayFaults)$$' -artifacts -outputdir '$(CURDIR)/out' ./e2e/chaos

# make chaos-bugs CHAOS_BUGS=imports-lose-addresses tries this patch only; several are separated by commas.
CHAOS_BUGS ?= 1
.PHONY: chaos-bugs
chaos-bugs: assets ## put each bug of e2e/chaos/bugs into a copy of the product; the checker, or the test that the bug names, must find it (20 minutes)
	@CHAOS_BUGS='$(CHAOS_BUGS)' KUBEBUILDER_ASSETS='$(ASSETS_DIR)' go test -v -count=1 -timeout 30m -run '^TestBugs' ./e2e/chaos

# make soak SOAK_TIME=8h goes on for longer.
SOAK_TIME ?= 30m
.PHONY: soak
soak: assets ## inject random faults for SOAK_TIME (30m): nothing may be wrong, and agents may not grow
	@export SOAK_TIME='$(SOAK_TIME)' CHAOS_SEED='$(CHAOS_SEED)' KUBEBUILDER_ASSETS='$(ASSETS_DIR)'; \
	mkdir -p out; go test -v -count=1 -timeout 12h -run '^TestSoak$$' -artifacts -outputdir '$(CURDIR)/out' ./e2e/chaos

# How long each fuzz target is fuzzed.
FUZZTIME ?= 1m
.PHONY: fuzz
fuzz: ## run all fuzz targets, one after the other (FUZZTIME=5m each)
	@grep -rEo --include='*_test.go' --exclude-dir=bin --exclude-dir=out '^func Fuzz[A-Za-z]+' . | sort | while IFS=: read -r file target; do \
		target="$${target#func }"; package="$$(dirname "$$file")"; \
		echo "fuzz $$target of $$package"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime '$(FUZZTIME)' -fuzzminimizetime 10s "$$package" </dev/null || exit 1; \
	done

.PHONY: spec-coverage
spec-coverage: ## list the tests for each line of docs/spec.md; fail on a gap
	@go run ./tools/speccoverage

# make bench-dns BENCHFLAGS='-rounds 1 -duration 1s' for a quick result.
BENCHFLAGS ?=
.PHONY: bench-dns
bench-dns: assets $(BENCHSTAT) ## compare the DNS plugin with CoreDNS' own (Linux, two cores, dnsperf; some minutes)
	@go build -o bin/bench-dns ./e2e/bench/dns
	@KUBEBUILDER_ASSETS='$(ASSETS_DIR)' taskset -c 1 bin/bench-dns $(BENCHFLAGS)
	@$(BENCHSTAT) -col /who out/bench-dns.txt

# make bench-gateway BENCHFLAGS='-rounds 1 -rows connect,burst.*' for a quick result of some rows. REFERENCE=HEAD^ also measures the gateways
# of another commit in the same rounds: one whose benchmark knows the row burst.
REFERENCE ?=
REFERENCE_FOLDER := $(CURDIR)/out/reference
.PHONY: bench-gateway
bench-gateway: assets $(BENCHSTAT) ## compare a pair of gateways with a pair of HAProxy, and with another commit (Linux, haproxy; root for the paths with a delay; an hour; REFERENCE=)
	@go build -o bin/bench-gateway ./e2e/bench/gateway && go build -o bin/ ./cmd/tombolo-gateway
	@rm -rf '$(REFERENCE_FOLDER)'; [ -z '$(REFERENCE)' ] || { mkdir -p '$(REFERENCE_FOLDER)/bin' && git archive '$(REFERENCE)' | tar -x -C '$(REFERENCE_FOLDER)' && \
		cd '$(REFERENCE_FOLDER)' && go build -o bin/ ./e2e/bench/gateway ./cmd/tombolo-gateway; }
	@trap "rm -rf '$(REFERENCE_FOLDER)'" EXIT; KUBEBUILDER_ASSETS='$(ASSETS_DIR)' bin/bench-gateway $(if $(REFERENCE),-before '$(REFERENCE_FOLDER)/bin') $(BENCHFLAGS)
	@$(BENCHSTAT) -col /who out/bench-gateway.txt
	@$(if $(findstring -rows,$(BENCHFLAGS)),,$(MAKE) bench-networks BENCHFLAGS=)

# make bench-propagation SIZE=100 ROUNDS=1 for a quick result. 0: the default size and rounds.
SIZE ?= 0
ROUNDS ?= 0
BENCH_PARTS := latency fanout restart reconnect scale propagation networks policy
.PHONY: bench bench-members $(addprefix bench-,$(BENCH_PARTS))
bench: ## compare agents with a bare client on the same API servers; bench-latency and others run one part (ROUNDS=)
	@$(MAKE) -k -j1 $(addprefix bench-,$(BENCH_PARTS))

bench-latency: # how long a change and a new export take to another cluster
bench-fanout: # how many requests a change causes on the API servers, with up to 16 members
bench-restart: # how long a restarted agent takes until it is in sync, and what it uses when idle
bench-reconnect: # how 100 members reconnect to a hub that was restarted
bench-members: # the hub with 10, 100, 300 and 1,000 members; BENCHFLAGS='-services 500 -rate 5' for less than 24 GB
bench-scale: # one agent of 30, with 75,000 endpoints; SIZE=10000: of 100, with 250,000, of which 325 change per second
bench-networks: # the control plane of imports over gateways, beside flat imports
bench-policy: # what a change of endpoints costs an importer with a policy
bench-propagation: # how many services per second are exported and imported
bench-members $(addprefix bench-,$(BENCH_PARTS)): bench-%: bench-build $(BENCHSTAT)
	@KUBEBUILDER_ASSETS='$(ASSETS_DIR)' bin/bench-agent -size '$(SIZE)' -rounds '$(ROUNDS)' $(BENCHFLAGS) $*
	@$(BENCHSTAT) -col /who out/bench-$*.txt

.PHONY: bench-check
bench-check: assets # run each part of the benchmark with a small size, and check that slow agents are noticed
	@BENCH_CHECK=1 KUBEBUILDER_ASSETS='$(ASSETS_DIR)' go test -v -count=1 -timeout 20m -run '^TestParts$$' ./e2e/bench/agent

# How long each of these runs, or how often, as in 1s or 100x.
BENCHTIME ?= 1s
.PHONY: bench-go
bench-go: ## measure time and allocations of the pure functions (BENCHTIME=)
	@mkdir -p out; go test -run '^$$' -bench '^Benchmark(Merge|Render|Plan|Encode|Decode)$$' -benchtime '$(BENCHTIME)' -benchmem \
		./internal/merge ./internal/render ./internal/plan ./internal/record | tee out/bench-go.txt

.PHONY: bench-build
bench-build: assets
	@echo "build tombolo-agent and the benchmark"
	@go build -o bin/ ./cmd/tombolo-agent
	@go build -o bin/bench-agent ./e2e/bench/agent

.PHONY: mutation
mutation: $(GREMLINS) $(MUTATION) ## change the pure packages on purpose; the tests must fail (many minutes)
	@$(MUTATION) -gremlins=$(GREMLINS) -min=$(MUTATION_MIN) -known=tools/mutation/README.md $(MUTATION_PACKAGES)

##@ Check

.PHONY: fmt
fmt: $(GOFUMPT) ## format the sources
	@$(GO_FILES) -print0 | xargs -0 -r $(GOFUMPT) -w

.PHONY: fmt-check
fmt-check: $(GOFUMPT) # fail if a source is not formatted
	@bad="$$($(GO_FILES) -print0 | xargs -0 -r $(GOFUMPT) -l)"; \
	if [ -n "$$bad" ]; then printf 'not formatted (make fmt):\n%s\n' "$$bad"; exit 1; fi

.PHONY: vet
vet: # go vet
	@go vet ./...
	@for m in $(CODE_MODULES); do echo "go vet ./... in $$m"; (cd "$$m" && go vet ./...); done

.PHONY: lint
lint: $(GOLANGCI) ## run golangci-lint (.golangci.yml)
	@$(GOLANGCI) run ./...
	@for m in $(CODE_MODULES); do echo "lint $$m"; (cd "$$m" && $(GOLANGCI) run --config='$(CURDIR)/.golangci.yml' ./...); done

.PHONY: vulncheck
vulncheck: $(GOVULNCHECK) # list the known vulnerabilities of the code that the product calls (asks vuln.go.dev)
	@$(GOVULNCHECK) ./cmd/... ./coredns-plugin/...

.PHONY: generate
generate: $(CONTROLLER_GEN) $(CRD_REF_DOCS) ## write deepcopy functions, CRDs, references of docs and files of charts; generate-check compares only
	@tools/codegen/generate.sh $(CONTROLLER_GEN) $(CRD_REF_DOCS) .

.PHONY: generate-check
generate-check: $(CONTROLLER_GEN) $(CRD_REF_DOCS) # fail if a generated file is stale (nothing in the tree is touched)
	@tools/codegen/check.sh $(CONTROLLER_GEN) $(CRD_REF_DOCS)

.PHONY: docs-check
docs-check: ## fail if a document has a dead link, an unknown name, a block that no test runs, or a word that is not used
	@go run ./e2e/docs/check

.PHONY: tidy-check
tidy-check: # fail if a go.mod or go.sum is not tidy
	@for m in . $(TOOL_MODULES); do echo "go mod tidy -diff in $$m"; (cd "$$m" && go mod tidy -diff); done

##@ Clean

.PHONY: clean
clean: ## remove bin/ and out/
	@chmod -R u+w bin out 2>/dev/null || true
	@rm -rf bin out

##@ Tools: each from a module of its own, built once into bin/tools

$(GOLANGCI): tools/lint/go.sum
	@echo "build golangci-lint (2 minutes, once)"
	@cd tools/lint && go build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(GOFUMPT): tools/lint/go.sum
	@echo "build gofumpt"
	@cd tools/lint && go build -o $@ mvdan.cc/gofumpt

$(GOVULNCHECK): tools/lint/go.sum
	@echo "build govulncheck"
	@cd tools/lint && go build -o $@ golang.org/x/vuln/cmd/govulncheck

$(HELM): tools/charts/go.sum
	@echo "build helm (a minute, once)"
	@cd tools/charts && go build -o $@ helm.sh/helm/v4/cmd/helm

$(CONTROLLER_GEN): tools/codegen/go.sum
	@echo "build controller-gen"
	@cd tools/codegen && go build -o $@ sigs.k8s.io/controller-tools/cmd/controller-gen

$(CRD_REF_DOCS): tools/codegen/go.sum
	@echo "build crd-ref-docs"
	@cd tools/codegen && go build -o $@ github.com/elastic/crd-ref-docs

$(GREMLINS): tools/mutation/go.sum
	@echo "build gremlins"
	@cd tools/mutation && go build -o $@ github.com/go-gremlins/gremlins/cmd/gremlins

$(MUTATION): $(wildcard tools/mutation/*.go)
	@cd tools/mutation && go build -o $@ .

$(BENCHSTAT): tools/benchstat/go.sum
	@echo "build benchstat"
	@cd tools/benchstat && go build -o $@ golang.org/x/perf/cmd/benchstat
