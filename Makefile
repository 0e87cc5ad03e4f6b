# What each target is for: make help.
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
GO          ?= go
BIN         := $(CURDIR)/bin
BUILD       := $(CURDIR)/build

GOLANGCI_VERSION := v2.14.0
GREMLINS_VERSION := v0.6.0
NFPM_VERSION     := v2.45.2
GOLANGCI := $(BIN)/golangci-lint-$(GOLANGCI_VERSION)
GREMLINS := $(BIN)/gremlins-$(GREMLINS_VERSION)
NFPM     := $(BIN)/nfpm-$(NFPM_VERSION)

# The race detector waits a second in each process that ends; scripts start hundreds.
export GORACE ?= atexit_sleep_ms=20

# The packages whose rules are pure enough for mutation testing.
MUTANTS ?= ./envelope ./adapter ./graph ./message
# The systems that the command must build on; lint builds them all.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
# Packages with tests that hold statements; the report counts only those. Of the
# command, whose scripts take longer than everything else, those tests alone.
COMMAND    = github.com/parley-hub/parley/cmd/parley
HOLDING    = $$($(GO) list -e -test -f '{{if .ForTest}}{{range .Imports}}{{if eq . "github.com/parley-hub/parley/conformance/spec"}}{{$$.ForTest}}{{end}}{{end}}{{end}}' ./... | sort -u | grep -vx $(COMMAND))
STATEMENTS = { $(GO) test -json $(TESTFLAGS) $(HOLDING); $(GO) test -json $(TESTFLAGS) -run '^TestStatement' $(COMMAND); } | $(GO) run ./conformance/report -interop '$(BUILD)/conformance/*.jsonl'

.DEFAULT_GOAL := help
.PHONY: help build run test race power lint fmt bench conformance conformance-json mutants interop interop-% console console-dev console-soak release-snapshot packages tools soak docs readme-images ci

help: ## show this list
	@grep -hE '^[a-z0-9%-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  %-18s %s\n", $$1, $$2}'

build: ## build the command into bin/parley
	$(GO) build -o $(BIN)/parley ./cmd/parley

run: ## start a hub on ./parley-data
	$(GO) run ./cmd/parley serve

test: ## run all tests, as the README says
	$(GO) test ./...

race: ## run all tests with the race detector, in random order
	$(GO) test -race -shuffle=on ./...

power: ## what a loss of power leaves of a cluster, on a file system made for it (FUSE: Linux)
	$(GO) test -tags fuse $(TESTFLAGS) -run 'Power' ./journal/cluster
	$(GO) test -tags fuse $(TESTFLAGS) ./internal/lossyfs

lint: $(GOLANGCI) ## run the linters, check go.mod, build for every platform
	$(GOLANGCI) run ./...
	$(GO) mod tidy -diff
	@for system in $(PLATFORMS); do \
		echo "GOOS=$${system%/*} GOARCH=$${system#*/} $(GO) build ./cmd/parley"; \
		GOOS=$${system%/*} GOARCH=$${system#*/} CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -o /dev/null ./cmd/parley; \
	done

fmt: $(GOLANGCI) ## format with gofumpt
	$(GOLANGCI) fmt ./...

bench: build ## measure everything that parley bench knows, against its targets
	@for name in $$($(BIN)/parley bench --list); do $(BIN)/parley bench $$name --check; done

conformance: ## count the statements that tests hold; V=1 lists them
	@$(STATEMENTS) $(if $(V),-v)

conformance-json: ## the same as JSON (make -s conformance-json)
	@$(STATEMENTS) -json

mutants: $(GREMLINS) ## mutation testing of the pure packages; not part of ci
	$(GO) run ./internal/mutants -gremlins $(GREMLINS) -reasons internal/mutants/survivors.txt -min 0.85 $(MUTANTS)

interop: ## run every suite under interop/ against a real hub
	@for dir in interop/*/; do if [ -f $$dir/Makefile ]; then $(MAKE) -C $$dir test; fi; done

interop-%: ## run one suite, such as make interop-ag2 or interop-agh
	$(MAKE) -C interop/$* test

console: ## check, build and test the console in a real browser
	$(MAKE) -C console all

console-soak: ## the console after an hour of events, idle for a minute, before 100,000 channels
	$(MAKE) -C console soak

console-dev: ## the console from its sources, against a running hub (PARLEY_HUB)
	$(MAKE) -C console dev

release-snapshot: $(NFPM) ## build binaries, archives, packages, SBOMs and sums into build/release
	$(GO) run ./internal/release -nfpm $(NFPM) -out $(BUILD)/release -platforms '$(PLATFORMS)'

packages: release-snapshot ## install, start, upgrade and remove what release-snapshot built (as root)
	GO=$(GO) packaging/test $(NFPM)

tools: ## install Debian's packages that interop, console and packages need (as root)
	$(MAKE) -C interop/terminal tmux
	$(MAKE) -C console chromium
	packaging/tools

soak: ## the heavy suites at 50 times their size (PARLEY_SCALE=N to change)
	PARLEY_SCALE=$${PARLEY_SCALE:-50} $(GO) test -count=1 -timeout 24h ./...

readme-images: ## record the pictures of the README: parley demo, and the console where its script is
	@mkdir -p docs/images
	$(GO) run ./internal/demo/picture docs/images/demo
	@if [ -x console/readme-images.sh ]; then console/readme-images.sh; fi

docs: ## write the generated pages again
	$(GO) run ./cmd/parley config reference > docs/config.md
	PARLEY_UPDATE=1 $(GO) test -count=1 -run 'TestErrorsPage|TestCommandReference|TestDialectsPage' ./cmd/parley
	PARLEY_UPDATE=1 $(GO) test -count=1 -run TestEventsPage ./dialect/hpd/wire
	PARLEY_UPDATE=1 $(GO) test -count=1 -run TestRoutesPage ./dialect/hpd

ci: ## what the build server runs
	.ci/run

$(GOLANGCI):
	GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(BIN)/golangci-lint $@

$(GREMLINS):
	GOBIN=$(BIN) $(GO) install github.com/go-gremlins/gremlins/cmd/gremlins@$(GREMLINS_VERSION)
	mv $(BIN)/gremlins $@

$(NFPM):
	GOBIN=$(BIN) $(GO) install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)
	mv $(BIN)/nfpm $@
