// Command suite is `make live`: it installs the pinned clients into the cache, runs the live tests, and says at the end
// which clients ran and what was skipped, with the reason. What is skipped has not passed. With CAPGATE_LIVE_REQUIRED=1
// nothing may be skipped.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cache, err := live.CacheDir()
	if err != nil {
		return err
	}
	installing, cancel := context.WithTimeout(ctx, live.InstallTimeout)
	defer cancel()
	_, missing := live.Install(installing, cache)
	if missing != nil && (!errors.Is(missing, live.ErrUnavailable) || os.Getenv("CAPGATE_LIVE_REQUIRED") == "1") {
		return missing
	}
	dir, err := os.MkdirTemp("", "capgate-live-suite")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	starts := filepath.Join(dir, "starts")

	test := exec.CommandContext(ctx, "go", "test", "-tags", "live", "-run", "Live", "-count=1", "-timeout", "16m", "-json", "./cmd/capgate/internal/live/...")
	test.Env = append(os.Environ(), live.StartsVariable+"="+starts)
	if missing != nil {
		test.Env = append(test.Env, live.UnavailableVariable+"="+missing.Error()) // they need not try again
	}
	test.Stderr = os.Stderr
	out, err := test.StdoutPipe()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := test.Start(); err != nil {
		return err
	}
	t, err := follow(out, os.Stdout)
	if ended := test.Wait(); err == nil {
		err = ended
	}
	raw, _ := os.ReadFile(starts) // not there: none was started
	t.print(os.Stdout, string(raw), time.Since(began))
	if err == nil && t.failed > 0 {
		err = errors.New("tests failed")
	}
	if err == nil && t.passed == 0 && len(t.skipped) == 0 {
		err = errors.New("there was no test")
	}
	return err
}

// tally is what became of the tests that have no subtests, by name.
type tally struct {
	passed, failed int
	skipped        map[string][]string // by reason
}

// event is a line of `go test -json`.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

// follow reads the events, and prints a line for each test that has ended, and all that a failed one has written.
func follow(events io.Reader, w io.Writer) (tally, error) {
	t := tally{skipped: map[string][]string{}}
	output := map[string][]string{}
	parents := map[string]bool{}
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			_, _ = fmt.Fprintln(w, lines.Text()) // of the go command itself
			continue
		}
		if e.Action == "run" {
			for name, _, ok := cut(e.Test); ok; name, _, ok = cut(name) {
				parents[name] = true
			}
		}
		ended := e.Action == "pass" || e.Action == "fail" || e.Action == "skip"
		switch {
		case e.Output != "":
			output[e.Test] = append(output[e.Test], e.Output)
			continue
		case !ended:
			continue
		case e.Action == "fail":
			_, _ = fmt.Fprint(w, strings.Join(output[e.Test], ""))
		}
		if e.Test == "" || parents[e.Test] {
			continue
		}
		_, _ = fmt.Fprintf(w, "%-4s %6.1fs %s\n", e.Action, e.Elapsed, e.Test)
		switch e.Action {
		case "pass":
			t.passed++
		case "fail":
			t.failed++
		case "skip":
			why := reason(output[e.Test])
			t.skipped[why] = append(t.skipped[why], e.Test)
		}
		delete(output, e.Test)
	}
	return t, lines.Err()
}

// cut splits the last element off a subtest's name.
func cut(name string) (parent, last string, ok bool) {
	i := strings.LastIndex(name, "/")
	if i < 0 {
		return "", "", false
	}
	return name[:i], name[i+1:], true
}

// reason finds what a skipped test has said, which is "    file.go:12: the reason".
func reason(output []string) string {
	for _, line := range output {
		if at, text, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.Contains(at, ".go:") {
			return text
		}
	}
	return "no reason given"
}

// print sums up. starts is a line for each start of a client by the harness.
func (t tally) print(w io.Writer, starts string, took time.Duration) {
	skipped := 0
	for _, names := range t.skipped {
		skipped += len(names)
	}
	_, _ = fmt.Fprintf(w, "\nlive: %d passed, %d failed, %d skipped in %v\n", t.passed, t.failed, skipped, took.Round(time.Second))
	for _, client := range live.Names() {
		var ways []string
		for _, way := range live.Ways {
			if n := strings.Count(starts, client+": "+way+"\n"); n > 0 {
				ways = append(ways, fmt.Sprintf("%d %s", n, way))
			}
		}
		if len(ways) == 0 {
			ways = []string{"DID NOT RUN"}
		}
		_, _ = fmt.Fprintf(w, "live: %s: %s\n", client, strings.Join(ways, ", "))
	}
	for _, why := range slices.Sorted(maps.Keys(t.skipped)) {
		names := t.skipped[why]
		if more := len(names) - 8; more > 0 {
			names = append(slices.Clone(names[:8]), fmt.Sprintf("and %d more", more))
		}
		_, _ = fmt.Fprintf(w, "live: SKIPPED, %s: %s\n", why, strings.Join(names, ", "))
	}
}
