# gladhand needs nothing but Go. `make test` installs what the tests use beside
# it; `make help` lists the rest.

GO ?= go

.PHONY: help build test test-deps long bench lint cross vuln

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

build: ## the binary, ./gladhand
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o gladhand ./cmd/gladhand

test: test-deps ## all tests, with the race detector
	GLADHAND_INTEROP=require $(GO) test -race ./...

test-deps: ## install what the tests use: strace, socat, ripgrep, and two Node clients in a cache
	@sh .ci/test-deps

long: test-deps ## the property, race and crash tests in their long form
	$(GO) test -race -timeout 30m ./session ./daemon -args -long

bench: ## measure against the budgets (docs/benchmarks.md)
	$(GO) run ./bench

lint: ## formatting, vet, staticcheck
	@test -z "$$(gofmt -l .)" || { echo 'gofmt would change:'; gofmt -l .; exit 1; }
	@test -z "$$($(GO) run mvdan.cc/gofumpt@v0.12.0 -l .)" || { echo 'gofumpt would change:'; $(GO) run mvdan.cc/gofumpt@v0.12.0 -l .; exit 1; }
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

cross: ## what runs elsewhere compiles
	GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) vet ./...

vuln: ## known faults in what we link
	@sh .ci/vuln
