//go:build live

package live_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
	"github.com/capgate/capgate/gates"
)

// installSDK tries it once for all tests.
var installSDK = sync.OnceValues(func() (string, error) {
	cache, err := live.CacheDir()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), live.InstallTimeout)
	defer cancel()
	return live.InstallSDK(ctx, cache)
})

// Under the Agent SDK the client says that nobody attends, and puts a question to the host all the same.
func TestLiveSDKTheHostIsAskedAboutSubagents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer string
		asked, runs  bool
	}{
		{"the host says yes", "allow", true, true},
		{"the host says no", "deny", true, false},
		{"the host cannot be asked", "", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main":   {agent("joke-finder", "PROGRAM:finder"), live.Say("done")},
				"finder": {live.Say("finder done")},
			})
			sdk, err := installSDK()
			unavailable(t, err)
			writeFinder(t, s)
			withInstall(ctx, t, s, "--scope", "project", "--subagents", "joke-finder", "--admission", "ask")
			got, err := s.SDK(ctx, sdk, live.SDKRun{Prompt: "PROGRAM:main", AllowedTools: everyTool, Sources: []string{"project"}, Answer: c.answer})
			unavailable(t, err)
			require.Equal(t, "done", got.Result)
			result := oneResult(t, s.Model, "main", "Agent")
			require.Equal(t, !c.runs, result.IsError, result.Text)
			require.Equal(t, c.runs, len(s.Model.Of("finder")) > 0)
			if !c.asked {
				require.Empty(t, got.Asked)
				return
			}
			require.Len(t, got.Asked, 1)
			require.Equal(t, "Agent", got.Asked[0].Tool)
			require.Equal(t, gates.AdmissionText([]gates.Spawn{{Name: "probe", Type: "joke-finder", Task: "PROGRAM:finder"}}), got.Asked[0].Reason)
		})
	}
}
