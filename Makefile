# Feedbox: every task by name. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
GOLANGCI_VERSION := v2.15.0
GOFUMPT_VERSION  := v0.12.0
GREMLINS_VERSION := v0.6.0
TOOLS := $(CURDIR)/.cache/bin
RESULTS := $(CURDIR)/.cache/results
PACKAGES := ./...

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the tasks
	@awk 'BEGIN {FS = ":.*## "} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-24s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: dev
dev: ## emulators, API, relay and demo subscriber in one process
	go run ./cmd/feedbox-dev

.PHONY: build
build: ## both binaries into bin/
	go build -trimpath -o bin/ ./cmd/...

DIST := dist
.PHONY: dist
dist: ## both programs for linux, macOS and Windows, amd64 and arm64, into dist/ with checksums
	rm -rf $(DIST) && mkdir -p $(DIST)
	for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do \
	  os=$${platform%/*} arch=$${platform#*/} end=; [ $$os = windows ] && end=.exe; \
	  for program in feedbox feedbox-dev; do \
	    CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch go build -trimpath -ldflags="-s -w" -o $(DIST)/$${program}_$${os}_$$arch$$end ./cmd/$$program; \
	  done; \
	done
	cd $(DIST) && sha256sum feedbox* > SHA256SUMS

.PHONY: test
test: ## all tests: go test ./...
	go test $(PACKAGES)

.PHONY: race
race: ## go test ./... under the race detector
	tests/race.sh go test $(PACKAGES)

.PHONY: stress
stress: ## three rounds of all tests at -cpu 1,2,8, in random order, beside a load of 8; RACE=yes adds the race detector
	tests/stress.sh $(PACKAGES)

.PHONY: vet
vet: ## go vet
	go vet $(PACKAGES)

$(TOOLS)/golangci-lint-$(GOLANGCI_VERSION):
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(TOOLS)/golangci-lint $@

$(TOOLS)/gofumpt-$(GOFUMPT_VERSION):
	GOBIN=$(TOOLS) go install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)
	mv $(TOOLS)/gofumpt $@

.PHONY: lint
lint: $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION) ## golangci-lint with .golangci.yml
	$(TOOLS)/golangci-lint-$(GOLANGCI_VERSION) run $(PACKAGES)

.PHONY: fmt
fmt: $(TOOLS)/gofumpt-$(GOFUMPT_VERSION) ## format every Go file
	$(TOOLS)/gofumpt-$(GOFUMPT_VERSION) -w $$(git ls-files '*.go')

.PHONY: fmt-check
fmt-check: $(TOOLS)/gofumpt-$(GOFUMPT_VERSION) ## fail if a Go file is not formatted
	@out=$$($(TOOLS)/gofumpt-$(GOFUMPT_VERSION) -l $$(git ls-files '*.go')); \
	  if [ -n "$$out" ]; then echo "not formatted (make fmt):"; echo "$$out"; exit 1; fi

.PHONY: browser
browser: ## the operations page in headless Chromium, with checkers of HTML and accessibility
	go test -tags browser -count=1 -v ./tests/page | grep -vE '^ +--- PASS|^=== '

.PHONY: conformance-cosmos
conformance-cosmos: ## the own suites of azcosmos and (a third) azure-cosmos for Python, the JavaScript, Python, Java and .NET SDKs against cosmosemu
	go test -tags conformance -count=1 -v ./tests/conformance/cosmos | grep -vE '^ +--- PASS|^=== '

.PHONY: conformance-rust
conformance-rust: ## the own suites of azure_data_cosmos and azure_data_cosmos_driver for Rust against cosmosemu
	go test -tags conformance,rust -count=1 -timeout 3h -v -run TestRustSuites ./tests/conformance/cosmos | grep -vE '^ +--- PASS|^=== '

.PHONY: conformance-servicebus
conformance-servicebus: ## azservicebus' own live tests, Go CDK's, Dapr's, the JavaScript, Python and Java SDKs, Celery, JMS, Proton and rhea against busemu
	go run ./tests/conformance/servicebus

.PHONY: conformance-api
conformance-api: ## Schemathesis against the contacts API: all checks, 5,000 examples and more
	tests/conformance/api/run.sh

.PHONY: adopter
adopter: ## the order service of tests/adopter: a module of its own, built on the public packages
	cd tests/adopter && go vet ./... && go test -count=1 ./...

.PHONY: spec
spec: ## the TLA+ specification of leases, relay and commits, checked by TLC (Java and Maven)
	go run ./tests/spec
	go run ./tests/spec -traces 3

.PHONY: spec-traces
spec-traces: ## recorded runs of all simulations and of crash tests, checked against the specification
	go run ./tests/spec -traces 25 -system

.PHONY: bicep-check
bicep-check: ## parse the Bicep and check every resource against Azure's types
	tests/infra/bicep-check.sh

.PHONY: module
module: ## give the module the path of your repository: MODULE=github.com/you/feedbox
	go run ./tests/module -to "$(MODULE)"

.PHONY: module-check
module-check: ## vet and test a copy of the repository under another module path
	go test -count=1 ./tests/module -build

.PHONY: bench
bench: ## every figure of tests/bench/README.md beside its floor, in one run
	mkdir -p $(RESULTS)
	go run ./tests/bench -json $(RESULTS)/bench.json

.PHONY: growth
growth: ## what an operation costs as the system grows
	mkdir -p $(RESULTS)
	go run ./tests/bench -growth -json $(RESULTS)/growth.json

# The default is what a machine of two cores and 6 GB can hold; SCALE_RANGES=10000 SCALE_HOSTS=40
# measures many ranges. changefeed/README.md has the figures.
SCALE_RANGES := 2000
SCALE_HOSTS := 400
SCALE_PHASE := 30s
.PHONY: scale
scale: ## a change feed processor of 2,000 ranges and 400 hosts in virtual time (others: SCALE_RANGES, SCALE_HOSTS, SCALE_PHASE)
	GOGC=100 GOMEMLIMIT=6GiB SCALE_RANGES=$(SCALE_RANGES) SCALE_HOSTS=$(SCALE_HOSTS) SCALE_PHASE=$(SCALE_PHASE) \
	  go test -count=1 -timeout 3h -v -run '^TestScale' ./changefeed
	SCALE_RANGES=1000 SCALE_HOSTS=40 SCALE_GROWTH=1h GOGC=100 GOMEMLIMIT=6GiB \
	  go test -count=1 -timeout 3h -v -run '^TestScaleGrowth' ./changefeed

.PHONY: mutants
mutants: ## take each safeguard away and see a test turn red
	go run ./tests/mutants

$(TOOLS)/gremlins-$(GREMLINS_VERSION):
	GOBIN=$(TOOLS) go install github.com/go-gremlins/gremlins/cmd/gremlins@$(GREMLINS_VERSION)
	mv $(TOOLS)/gremlins $@

# One package at a time, by its own tests at a few seeds; each mutant has
# MUTATION_TIMEOUT times as long as these tests take. MUTATION_FLAGS are more flags of
# gremlins, for example -E 'message[.]go' to leave files out. On a busy machine a longer
# time tells a slow build from a mutant that hangs. See tests/mutants/MUTATION.md.
PKG := ./application/relay
MUTATION_TIMEOUT := 20
MUTATION_FLAGS :=
.PHONY: mutation
mutation: $(TOOLS)/gremlins-$(GREMLINS_VERSION) ## change each operator of one package, PKG=./application/relay, and see a test fail
	mkdir -p $(RESULTS)
	GOFLAGS="$$(go env GOFLAGS) -trimpath -vet=off" CHANGEFEED_SEEDS=2 CHANGEFEED_WIRE_SEEDS=1 CHANGEFEED_CYCLES=1 SIM_SEEDS=1 SIM_MINUTES=1 \
	$(TOOLS)/gremlins-$(GREMLINS_VERSION) unleash --workers 2 --timeout-coefficient $(MUTATION_TIMEOUT) \
	  --invert-logical --invert-loopctrl --invert-assignments --remove-self-assignments $(MUTATION_FLAGS) \
	  --output $(RESULTS)/mutation$(subst /,-,$(PKG:.%=%)).json $(PKG)

# Faults run at FEEDBOX_FAULT_SCALE of their full counts: 0.05 in CI, 1 in a night.
# Every part runs even if one fails; the records of all become the table of tests/faults/README.md.
# REPEAT=no leaves out tests that go test ./... runs at the same counts. Packages that wait for
# real processes run beside packages that compute.
REPEAT := yes
ALREADY_RUN := $(if $(filter no,$(REPEAT)),-skip='^TestFeedboxDev.*$$')
.PHONY: faults
faults: ## the whole system under every fault, simulated and with real processes
	rm -rf $(RESULTS)/faults && mkdir -p $(RESULTS)/faults
	export FEEDBOX_RESULTS=$(RESULTS)/faults FEEDBOX_FAULT_SCALE=$${FEEDBOX_FAULT_SCALE:-0.05}; failed=0; \
	go test -count=1 -timeout 1h -tags failpoint ./infrastructure/process/failpoint || failed=1; \
	go test -count=1 -timeout 3h -tags faults $(ALREADY_RUN) ./tests/crash ./tests/faults ./tests/pairs ./tests/sim || failed=1; \
	if [ $(REPEAT) = yes ]; then \
	  go test -count=1 -timeout 1h -run RepeatedCreates ./tests/api || failed=1; \
	  go test -count=1 -timeout 1h ./changefeed ./changefeed/cosmosfeed || failed=1; \
	  go test -count=1 -timeout 1h -run Failover ./infrastructure/store/postgres || failed=1; \
	fi; \
	exit $$failed

.PHONY: truth
truth: ## in each kind of outage, feedbox lag, page, /readyz, metrics and alerts agree
	FEEDBOX_FAULT_SCALE=1 go test -count=1 -tags faults -v -run TestEveryPlaceShowsAnOutage ./tests/crash

.PHONY: nightly
nightly: ## what takes hours: the whole check without stamps, all faults at full count, 1,000 seeds, whole suites, every mutant, other random choices each night; writes the tables
	failed=0; \
	seed=$$(date +%s); echo "FEEDBOX_SEED=$$seed FEEDBOX_TEST_SEED=$$seed"; export FEEDBOX_SEED=$$seed FEEDBOX_TEST_SEED=$$seed; \
	STAMPS=ignore .ci/run || failed=1; \
	FEEDBOX_FAULT_SCALE=1 BROKER_KILLS=50 CHANGEFEED_SEEDS=1000 CHANGEFEED_WIRE_SEEDS=200 CHANGEFEED_CYCLES=200 FAILOVER_CYCLES=50 $(MAKE) faults || failed=1; \
	go run ./tests/reliability -results $(RESULTS)/faults || failed=1; \
	FEEDBOX_PARKED_KEYS=500 go test -count=1 -timeout 60m -run 'TestRefusedEventsPark|TestWithServer/consumer/refused' ./infrastructure/broker/... || failed=1; \
	FEEDBOX_FAULT_SCALE=1 FEEDBOX_PARKED_KEYS=25000 go test -count=1 -timeout 4h -tags faults -run TestConsumersKilledAtRandom ./tests/crash || failed=1; \
	FEEDBOX_CONFORMANCE=full $(MAKE) conformance-cosmos || failed=1; \
	$(MAKE) conformance-rust || failed=1; \
	go run ./tests/conformance/servicebus -suite python-tests || failed=1; \
	go run ./tests/spec -nightly || failed=1; \
	go run ./tests/spec -traces 1000 -system || failed=1; \
	go run ./tests/spec -traces 1 -mutants || failed=1; \
	go run ./tests/mutants || failed=1; \
	exit $$failed

.PHONY: notice
notice: ## write NOTICE, the licences of the modules in our programs
	go test -count=1 -run TestNOTICE ./tests/docs -update

.PHONY: check
check: ## exactly what CI runs
	.ci/run
