.DEFAULT_GOAL := help
.PHONY: help build test long race soak fuzz bench lint fmt generate verify cover demo kafka-e2e clean

GO      ?= go
BIN     := bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# Built into bin/ at the version that .ci/lint/go.mod names; nothing is installed outside the checkout.
GOLANGCI := $(BIN)/golangci-lint

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

build: ## build the dispatcher into bin/
	$(GO) build -ldflags "-X main.version=$(VERSION)" -o $(BIN)/dispatcher ./cmd/dispatcher

test: ## run the fast tests: every guarantee, in two to three minutes on two cores
	$(GO) test ./...

long: ## run every test in full, with fresh seeds
	LONG_TESTS=1 $(GO) test -timeout 60m $$($(GO) list ./... | grep -v '/cmd/dispatcher$$')
	LONG_TESTS=1 $(GO) test -timeout 60m ./cmd/dispatcher

race: ## run the fast tests under the race detector, in random order
	$(GO) test -timeout 20m -race -shuffle=on ./...

soak: ## run the fast tests RUNS times (50), four packages at a time; print what failed
	.ci/soak.sh $(or $(RUNS),50)

# go test -fuzz measures the coverage of every package below a target, which takes minutes to compile.
# What is to be covered is this module, so only its packages are compiled that way.
fuzz: ## run each fuzz target for FUZZTIME (10s, or a count such as 10000x)
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
	  $(GO) test -c -gcflags='dispatcher/...=-d=libfuzzer' -o $(BIN)/fuzz.test $$dir || exit 1; \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(f .*/\1/p' $$dir/*_test.go); do \
	    echo "$$dir $$target"; \
	    (cd $$dir && $(abspath $(BIN))/fuzz.test -test.run '^$$' -test.fuzz "^$$target$$" \
	      -test.fuzztime $(or $(FUZZTIME),10s) -test.fuzzminimizetime 10x \
	      -test.fuzzcachedir "$$($(GO) env GOCACHE)/fuzz/$$dir") || exit 1; \
	  done; done

bench: build ## measure the dispatcher against its floor, then the Go benchmarks
	$(BIN)/dispatcher bench
	$(GO) test -run '^$$' -bench . -benchmem ./...

lint: $(GOLANGCI) ## run golangci-lint
	$(GOLANGCI) run ./...

fmt: $(GOLANGCI) ## format the code
	$(GOLANGCI) fmt ./...

$(GOLANGCI): .ci/lint/go.mod .ci/lint/go.sum
	cd .ci/lint && $(GO) build -o $(abspath $@) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

generate: ## bring generated files up to date
	$(GO) mod tidy
	cd .ci/deploy && $(GO) mod tidy
	cd .ci/browser && $(GO) mod tidy
	$(GO) generate ./...

verify: generate fmt lint ## regenerate, format, lint; fail when that changes a file
	git diff --exit-code

cover: ## test coverage by package
	$(GO) test -coverprofile=$(BIN)/cover.out ./... && $(GO) tool cover -func=$(BIN)/cover.out | tail -1

demo: ## show the main job
	$(GO) run ./cmd/dispatcher demo

kafka-e2e: ## end-to-end test against a real Apache Kafka (needs Java 17 and Maven)
	.ci/kafka-e2e

clean: ## remove what make has built
	rm -rf $(BIN)
