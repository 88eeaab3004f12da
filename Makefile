# The interface to the project: `make demo` does the main job, `make test` runs the tests.

# Not PIE, no cgo: each costs the hook two fifths of an empty program's run time at every start (docs/performance.md).
GOBUILD = CGO_ENABLED=0 go build -trimpath -buildmode=exe -ldflags '-s -w'
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 1m

.PHONY: build demo test live unit race vet lint cross bench worst fuzz update clean

# A copy starts faster than the file that the linker wrote, by about 0.8 ms where we measured it.
build:
	@mkdir -p bin/linked
	$(GOBUILD) -o bin/linked/capgate ./cmd/capgate
	$(GOBUILD) -o bin/linked/capgate-hook ./cmd/capgate-hook
	@for name in capgate capgate-hook; do cp bin/linked/$$name bin/$$name.new && mv bin/$$name.new bin/$$name; done

# demo plays a research loop against its cap, on recorded calls of the real client.
demo: build
	sh testdata/demo.sh bin

# test is everything that needs no network once the modules and the linter are there.
test: lint cross unit race

# live runs cmd/capgate/internal/live: the real clients, installed with npm into .cache/live, against a model on loopback. It says
# which of them ran.
# What cannot run here is skipped with its reason; CAPGATE_LIVE_REQUIRED=1 makes it a failure.
live:
	go run ./cmd/capgate/internal/live/suite

unit:
	go test ./...

# -short leaves out of the race run what is about processes rather than goroutines.
# The race detector needs a C compiler.
race:
	@if command -v "$$(go env CC)" >/dev/null 2>&1; then \
		CGO_ENABLED=1 go test -race -short ./...; \
	else \
		echo "race: skipped, there is no C compiler ($$(go env CC))"; \
	fi

vet:
	@test -z "$$(gofmt -l .)" || { echo "gofmt needed:"; gofmt -l .; exit 1; }
	go vet ./... ./testdata/bench ./testdata/bench/empty
	go vet -tags live ./...

lint: vet
	go run $(STATICCHECK) -tags live ./... ./testdata/bench ./testdata/bench/empty

# cross compiles the tests, too, for the other systems.
cross:
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go vet ./...
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go vet ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go build -o /dev/null ./cmd/capgate
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go build -o /dev/null ./cmd/capgate

# bench prints ratios of whole processes, each with both figures of the same run.
bench: build
	go run ./testdata/bench -bin bin

# worst runs the hook on the worst inputs that a model or a client can make, at full size, and prints how long each takes. It fails where one
# takes longer than the deadline and 50 ms, which says something on an idle machine only.
worst:
	cd cmd/capgate-hook && CAPGATE_WORST=1 go test -run TestTheWorstCasesEndInTime -count=1 -timeout 30m

# fuzz runs every fuzz target for FUZZTIME.
fuzz:
	@for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "== $$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

# update regenerates the documents that tests compare, and what scripts expect with cmp.
update:
	go test ./capgate -run "TestReference|TestEveryReason" -update
	go test ./cmd/capgate -run TestScripts -update

clean:
	rm -rf bin .cache
