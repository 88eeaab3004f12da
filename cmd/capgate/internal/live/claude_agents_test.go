//go:build live

package live_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// Hooks of type "agent" start an agent that the client gives an id and no type. It can do nothing unless its type,
// hook-agent, is declared. Such a hook stands in settings, or in a skill that the model starts.
func TestLiveClaudeTheAgentOfAHookCanDoNothingUndeclared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, declared string
		main           []live.Step
		bySkill        bool
	}{
		{"in settings", "joke-finder", []live.Step{live.Say("done")}, false},
		{"in settings, declared", "joke-finder,hook-agent", []live.Step{live.Say("done")}, false},
		{"in a skill", "joke-finder", []live.Step{live.Call("Skill", live.M{"skill": "hooked"}), live.Call("Read", live.M{"file_path": "there"}), live.Say("done")}, true},
		{"in a skill, declared", "joke-finder,hook-agent", []live.Step{live.Call("Skill", live.M{"skill": "hooked"}), live.Call("Read", live.M{"file_path": "there"}), live.Say("done")}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main":   c.main,
				"hooked": {live.Call("Bash", live.M{"command": "touch ran"}), live.Call("StructuredOutput", live.M{"ok": true}), live.Say("hooked done")},
			})
			writeLive(t, filepath.Join(s.Work, ".claude", "skills", "hooked", "SKILL.md"), "---\nname: hooked\ndescription: brings a hook\n"+
				"hooks:\n  PostToolUse:\n    - matcher: Read\n      hooks:\n        - type: agent\n          prompt: \"PROGRAM:hooked\"\n---\nA skill.\n")
			writeLive(t, filepath.Join(s.Work, "there"), "text")
			writeFinder(t, s)
			x := withInstall(ctx, t, s, "--subagents", c.declared)
			run := live.ClaudeRun{Prompt: "PROGRAM:main", AllowedTools: append(everyTool, "Read")}
			if !c.bySkill {
				run.Settings = live.M{"hooks": live.M{"Stop": []live.M{{"hooks": []live.M{{"type": "agent", "prompt": "PROGRAM:hooked"}}}}}}
			}
			got, err := s.ClaudeHeadless(ctx, run)
			require.NoError(t, err)
			require.Equal(t, "done", got.Result)
			result := oneResult(t, s.Model, "hooked", "Bash")
			require.Equal(t, c.declared == "joke-finder", result.IsError, result.Text)
			if c.declared == "joke-finder" {
				require.Contains(t, result.Text, `not to "hook-agent"`)
				require.NoFileExists(t, filepath.Join(s.Work, "ran"))
				records := x.decisions()
				require.NotEmpty(t, records)
				require.Equal(t, "caller", records[0].Code)
				return
			}
			require.FileExists(t, filepath.Join(s.Work, "ran"))
		})
	}
}
