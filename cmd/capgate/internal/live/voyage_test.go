//go:build live

package live_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// The maintainer of a plugin follows docs/migrate/voyage.md step by step: its own marker, VOYAGE_ names only, and turns that
// are recorded after they were taken.
func TestLiveVoyageChangesOver(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "migrate", "voyage.md"))
	require.NoError(t, err)
	page := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^<!-- live: ([a-z.]+) -->\n```(?:sh|json)\n((?:.*\n)*?)```$").FindAllStringSubmatch(string(text), -1) {
		page[m[1]] = m[2]
	}
	require.Len(t, page, 5)
	loop := func(block string, dimension string) live.Step {
		return shell("run_id=storm dimension=" + dimension + "\n" + page[block])
	}
	voyage := filepath.Join(t.TempDir(), "voyage")
	built := freshBuild(t)
	writeLive(t, filepath.Join(voyage, ".claude-plugin", "plugin.json"), `{"name":"voyage","version":"5.9.1"}`)
	writeLive(t, filepath.Join(voyage, "hooks", "hooks.json"), page["hooks.json"])
	require.NoError(t, os.MkdirAll(filepath.Join(voyage, "bin"), 0o700))
	for _, name := range []string{"capgate", "capgate-hook"} {
		program, err := os.ReadFile(filepath.Join(built, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(voyage, "bin", name), program, 0o700))
	}

	steps := []live.Step{search, loop("arm", "")} // the first search is in no scope yet
	for _, dimension := range strings.Fields("law law law law history history history history") {
		steps = append(steps, search, loop("turn", dimension))
	}
	steps = append(steps, search, shell("capgate status"), loop("turn", "law"), loop("disarm", ""), search, live.Say("wrote it up"))
	ctx, s := startLive(t, live.Programs{"main": steps, "off": {loop("arm", ""), search, live.Say("done")}})
	writeLive(t, filepath.Join(s.Home, ".claude", "settings.json"), page["settings.json"])
	got, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:main", AllowedTools: []string{"Bash", "WebSearch"}, Args: []string{"--plugin-dir", voyage}})
	require.NoError(t, err)
	require.Equal(t, "wrote it up", got.Result, got.Stderr)

	requireDenials(t, s.Model, "main", "WebSearch", []bool{9: true, 10: false})
	said := s.Model.ResultsOf("main", "Bash")
	require.Len(t, said, 12)
	require.Contains(t, said[8].Text, "turn 8 of 8 (run storm, dimension history)")
	require.Contains(t, said[9].Text, "8 of 8  hook: heard")
	require.Regexp(t, `cap +on`, said[9].Text)
	require.Contains(t, said[10].Text, "Exit code 2")
	require.Contains(t, said[10].Text, "spent (8 of 8, run storm)")
	require.False(t, said[11].IsError, said[11].Text)

	// The switch, in the settings of who runs the loop: the run is spent, and its session armed.
	writeLive(t, filepath.Join(s.Home, ".claude", "settings.json"), `{"env":{"VOYAGE_STORM_ENABLED":"1","VOYAGE_DISABLE_CAP_HOOK":"1"}}`)
	_, err = s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:off", AllowedTools: []string{"Bash", "WebSearch"}, Args: []string{"--plugin-dir", voyage}})
	require.NoError(t, err)
	requireDenials(t, s.Model, "off", "WebSearch", []bool{false})
}
