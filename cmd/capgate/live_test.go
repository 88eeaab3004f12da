//go:build live

package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// The live tests run the real clients: `go test -tags live -run Live ./cmd/capgate`. Where those cannot be installed
// the tests are skipped by name, or fail, with CAPGATE_LIVE_REQUIRED=1.

// liveTimeout bounds one test's clients. Installation, once, has its own time.
const liveTimeout = 2 * time.Minute

// startLive returns a sandbox whose clients talk to a model that runs the programs.
func startLive(t *testing.T, programs live.Programs) (context.Context, *live.Sandbox) {
	t.Helper()
	cache, err := live.CacheDir()
	require.NoError(t, err)
	installing, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	clients, err := live.Install(installing, cache)
	unavailable(t, err)
	model, err := live.StartModel(programs)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, model.Close()) })
	sandbox, err := live.NewSandbox(t.TempDir(), clients, model)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), liveTimeout)
	t.Cleanup(cancel)
	return ctx, sandbox
}

// unavailable skips the test where a client or tool is missing, and fails it for any other error.
func unavailable(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, live.ErrUnavailable) && os.Getenv("CAPGATE_LIVE_REQUIRED") != "1" {
		t.Skip(err)
	}
	require.NoError(t, err)
}

// oneResult returns the only result of the program's calls of a tool.
func oneResult(t *testing.T, model *live.Model, program, tool string) live.Result {
	t.Helper()
	results := model.ResultsOf(program, tool)
	require.Len(t, results, 1, "%s of %s; all: %v", tool, program, model.Results())
	return results[0]
}
