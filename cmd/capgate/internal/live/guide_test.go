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

// The command of docs/guide.md, as a person types it: the model does what the command tells it, with the tools that the
// command allows and no others. The eighth turn searches, in an agent as well, and nothing does once it has ended.
func TestLiveGuideTheResearchCommand(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "guide.md"))
	require.NoError(t, err)
	_, command, _ := strings.Cut(string(text), "```markdown\n")
	command, _, found := strings.Cut(command, "\n```")
	require.True(t, found)
	lines := regexp.MustCompile("`(capgate [^`]*)`").FindAllStringSubmatch(command, -1)
	require.Len(t, lines, 4, "open, begin, end, close")
	typed := func(i int, dimension string) live.Step { // what the command says to type
		return shell(strings.NewReplacer("RUN", "research-1", "DIMENSION", dimension).Replace(lines[i][1]))
	}
	foreground := live.M{"run_in_background": false}
	steps := []live.Step{typed(0, "")}
	for range 4 {
		steps = append(steps, typed(1, "law"), search, typed(2, "law"))
	}
	for range 3 {
		steps = append(steps, typed(1, "history"), search, typed(2, "history"))
	}
	steps = append(steps,
		typed(1, "history"), search, agent("general-purpose", "PROGRAM:leaf", foreground), typed(2, "history"),
		search, typed(1, "law"),
		live.Call("Write", live.M{"file_path": "research.md", "content": "eight turns' worth"}), typed(3, ""), live.Say("written up"))
	ctx, s := startLive(t, live.Programs{"main": steps, "leaf": {search, live.Say("leaf done")}})
	x := withInstall(ctx, t, s)
	writeLive(t, filepath.Join(s.Work, ".claude", "commands", "research.md"), command+"\n")

	got, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "/research PROGRAM:main the history of a law"})
	require.NoError(t, err)
	require.Equal(t, "written up", got.Result, got.Stderr)
	requireDenials(t, s.Model, "main", "WebSearch", []bool{7: false, 8: true})
	requireDenials(t, s.Model, "leaf", "WebSearch", []bool{false})
	said := s.Model.ResultsOf("main", "Bash")
	require.Len(t, said, 1+2*8+1+1)
	require.Contains(t, said[15].Text, "turn 8 of 8 begun (run research-1, dimension history)")
	require.Contains(t, said[17].Text, "turn budget spent (8 of 8, run research-1)")
	require.Contains(t, said[18].Text, "session "+got.Session+" is disarmed")
	require.FileExists(t, filepath.Join(s.Work, "research.md"))
	x.requireUsed("research-1", 8, 8)
}
