package gates

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A spawn with more input than is read is denied by each gate that would have to read it, and says so.
func TestASpawnWithALongerInputThanIsReadIsDenied(t *testing.T) {
	input := func(size int) json.RawMessage {
		const front, back = `{"subagent_type":"joke-finder","agent":"joke-finder","prompt":"`, `"}`
		return json.RawMessage(front + strings.Repeat("x", size-len(front)-len(back)) + back)
	}
	declared := append([]string{WorkflowType}, jokes...)
	for name, gate := range map[string]Gate{
		"type": Type(declared), "foreground": Foreground(declared, ForegroundRewrite), "foreground required": Foreground(declared, ForegroundRequire),
		"ask": Admission(AdmissionAsk), "deny": Admission(AdmissionDeny),
	} {
		for _, tool := range []string{"Agent", "Task", "Workflow", "task"} {
			if strings.HasPrefix(name, "foreground") && !strings.EqualFold(tool, "agent") && tool != "Task" {
				continue
			}
			v := gate(Call{Tool: tool, Input: input(MaxSpawnInput + 1), Attended: Attended})
			require.Equal(t, Deny, v.Outcome, "%s, %s", name, tool)
			require.Equal(t, CodeSpawnTooLong, v.Code)
			require.Contains(t, v.Reason, "1048577 bytes long")
			require.Contains(t, v.Reason, "more than 1048576")
			require.NotEqual(t, CodeSpawnTooLong, gate(Call{Tool: tool, Input: input(MaxSpawnInput), Attended: Attended}).Code)
		}
		require.Equal(t, Verdict{}, gate(Call{Tool: "Write", Input: input(MaxSpawnInput + 1)}), "starts nothing")
	}
	require.Equal(t, Verdict{}, Foreground(jokes, ForegroundOff)(Call{Tool: "Agent", Input: input(MaxSpawnInput + 1)}))
	require.Equal(t, Verdict{}, Admission(AdmissionOff)(Call{Tool: "Agent", Input: input(MaxSpawnInput + 1)}))
}

func TestTheToolsThatStartAgents(t *testing.T) {
	for tool, want := range map[string]bool{"Agent": true, "Task": true, "Workflow": true, "task": true, "agent": false, "Bash": false, "": false} {
		require.Equal(t, want, StartsAgents(tool), tool)
		require.Equal(t, want, len(Spawns(Call{Tool: tool})) > 0, tool)
	}
}

// The types of all agents are judged, however many there are; the question lists as many as a person reads.
func TestABatchIsJudgedWholeAndListedInPart(t *testing.T) {
	batch := func(n int, last string) Call {
		return Call{Tool: "task", Attended: Attended, Input: json.RawMessage(
			`{"tasks":[` + strings.Repeat(`{"agent":"joke-finder"},`, n-1) + `{"agent":"` + last + `"}]}`)}
	}
	require.Equal(t, Verdict{}, Type(jokes)(batch(20_000, "joke-critic")))
	require.Equal(t, CodeType, Type(jokes)(batch(20_000, "scout")).Code)

	lines := func(n int) []string {
		return strings.Split(Admission(AdmissionAsk)(batch(n, "joke-critic")).Reason, "\n\n")
	}
	fifty := lines(50)
	require.Len(t, fifty, 52)
	require.Equal(t, "- spawn 50 [joke-critic]: (task not provided)", fifty[50])
	more := lines(51)
	require.Len(t, more, 53)
	require.Equal(t, "Spawn 51 subagents?", more[0])
	require.Equal(t, "- spawn 50 [joke-finder]: (task not provided)", more[50])
	require.Equal(t, "- and 1 more that are not listed", more[51])
	require.Equal(t, "- and 19950 more that are not listed", lines(20_000)[51])
}

// Whatever names too many paths, or too long ones, names any; a little less is looked at.
func TestACallThatNamesMorePathsThanAreLookedAtNamesAny(t *testing.T) {
	list := func(format, between string, n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, between)
	}
	const mib = 1 << 20
	for _, c := range []struct {
		name, tool string
		fits, over string
	}{
		{"many in a list", "Write", `{"file_path":[` + list(`"f%d"`, ",", 500) + `]}`, `{"file_path":[` + list(`"f%d"`, ",", 501) + `]}`},
		{"many in lists in a list", "NotebookEdit", `{"notebook_path":[[` + list(`"f%d"`, "],[", 500) + `]]}`, `{"notebook_path":[[` + list(`"f%d"`, "],[", 501) + `]]}`},
		{"many in paths", "edit", `{"paths":[` + list(`"f%d"`, ",", 500) + `]}`, `{"paths":[` + list(`"f%d"`, ",", 501) + `]}`},
		{"many in edits", "edit", `{"edits":[` + list(`{"path":"f%d"}`, ",", 500) + `]}`, `{"edits":[` + list(`{"path":"f%d"}`, ",", 501) + `]}`},
		{"many renamed", "edit", `{"edits":[` + list(`{"rename":"f%d"}`, ",", 500) + `]}`, `{"edits":[` + list(`{"rename":"f%d"}`, ",", 501) + `]}`},
		{"many in a patch", "edit", `{"input":"` + list(`MV f%d`, `\n`, 500) + `"}`, `{"input":"` + list(`MV f%d`, `\n`, 501) + `"}`},
		{"many in a text", "ast_edit", `{"path":"` + list(`f%d`, `;`, 499) + `"}`, `{"path":"` + list(`f%d`, `;`, 500) + `"}`},
		{"many in a list in a text", "ast_edit", `{"path":"[` + list(`\"f%d\"`, `\n`, 100) + `]"}`, `{"path":"[` + list(`\"f%d\"`, `\n`, 501) + `]"}`},
		{"a long one", "Write", `{"file_path":"` + strings.Repeat("a", mib) + `"}`, `{"file_path":"` + strings.Repeat("a", mib+1) + `"}`},
		{"a long one", "write", `{"path":"` + strings.Repeat("a", mib) + `"}`, `{"path":"` + strings.Repeat("a", mib+1) + `"}`},
		{"long ones together", "edit", `{"paths":["b` + strings.Repeat("a", mib/2-1) + `","` + strings.Repeat("a", mib/2) + `"]}`,
			`{"paths":["b` + strings.Repeat("a", mib/2) + `","` + strings.Repeat("a", mib/2) + `"]}`},
		{"long as it is written", "edit", `{"path":` + strings.Repeat(" ", MaxPaths) + `[]}`, `{"path":[` + strings.Repeat(" ", MaxPaths) + `]}`},
		{"wrapped often", "write", `{"path":"` + strings.Repeat("file://", 8) + `a"}`, `{"path":"` + strings.Repeat("file://", 9) + `a"}`},
	} {
		t.Run(c.name+", "+c.tool, func(t *testing.T) {
			fits := WritePaths(Call{Tool: c.tool, Input: json.RawMessage(c.fits)})
			require.NotContains(t, fits, AnyPath)
			over := WritePaths(Call{Tool: c.tool, Input: json.RawMessage(c.over)})
			require.NotEmpty(t, over)
			require.Equal(t, AnyPath, over[len(over)-1])
			require.LessOrEqual(t, len(over), MaxWrites+1)
		})
	}
	require.Equal(t, []string{"a"}, WritePaths(Call{Tool: "edit", Input: json.RawMessage(`{"input":"` + strings.Repeat(`MV a\n`, 5000) + `"}`)}), "each once")
	v := Guard(Protected{}, []FileWrite{{Any: true}})(Call{Tool: "edit"})
	require.Equal(t, Deny, v.Outcome)
	require.Contains(t, v.Reason, "more than 500 files")
}
