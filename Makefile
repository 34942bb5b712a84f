# Feedbox: every task by name. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
GOLANGCI_VERSION := v2.15.0
GOFUMPT_VERSION  := v0.12.0
TOOLS := $(CURDIR)/.cache/bin
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

.PHONY: test
test: ## the README's test command
	go test $(PACKAGES)

.PHONY: race
race: ## all tests under the race detector, but those that only start other processes
	go test -race $$(go list $(PACKAGES) | grep -vE '^feedbox/tests/(api|cli|e2e)$$')
	go test -race -run PowerLoss ./tests/e2e

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

.PHONY: conformance-cosmos
conformance-cosmos: ## azcosmos' own emulator suite and the JavaScript SDK against cosmosemu
	go test -tags conformance -count=1 -v ./tests/conformance/cosmos | grep -vE '^ +--- PASS|^=== '

.PHONY: conformance-servicebus
conformance-servicebus: ## azservicebus' own live tests against busemu
	go run ./tests/conformance/servicebus

.PHONY: bicep-check
bicep-check: ## parse the Bicep and check every resource against Azure's types
	tests/infra/bicep-check.sh

.PHONY: bench
bench: ## the backlog through the relay, beside its floors
	go run ./tests/bench/relay -pack
	go run ./tests/bench/relay

.PHONY: check
check: ## exactly what CI runs
	.ci/run
