package gates

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const costs = "Subagents add latency and cost. Approve only when delegation materially helps."

func TestAdmissionAsksOnceForAllChildren(t *testing.T) {
	batch := `{"context":"c","tasks":[{"name":"a","agent":"scout","task":"Look\n\taround   here."},{"agent":"scout","task":""},{"name":"c"}]}`
	for _, c := range []struct{ name, tool, input, want string }{
		{"Agent", "Agent", `{"description":"find jokes","prompt":"Run the helper.","subagent_type":"joke-finder"}`,
			"Spawn 1 subagent?\n\n- find jokes [joke-finder]: Run the helper.\n\n" + costs},
		{"Agent with a name", "Agent", `{"name":"n","description":"d","prompt":"p","subagent_type":"t"}`, "Spawn 1 subagent?\n\n- n [t]: p\n\n" + costs},
		{"Agent with nothing", "Agent", `{}`, "Spawn 1 subagent?\n\n- spawn 1 [default]: (task not provided)\n\n" + costs},
		{"Workflow", "Workflow", `{"script":"a()\nb()"}`, "Spawn 1 subagent?\n\n- workflow of any number of agents [workflow-subagent]: a() b()\n\n" + costs},
		{"Workflow of a saved name", "Workflow", `{"name":"n"}`, "Spawn 1 subagent?\n\n- workflow of any number of agents [workflow-subagent]: the saved workflow n\n\n" + costs},
		{"Workflow, what runs comes first", "Workflow", `{"script":"a()","name":"n","scriptPath":"/x.js"}`,
			"Spawn 1 subagent?\n\n- workflow of any number of agents [workflow-subagent]: runs the script at /x.js; not run, but named as well: the saved workflow n; a()\n\n" + costs},
		{"Workflow, a name before a script", "Workflow", `{"script":"a()","name":"n","scriptPath":""}`,
			"Spawn 1 subagent?\n\n- workflow of any number of agents [workflow-subagent]: runs the saved workflow n; not run, but named as well: a()\n\n" + costs},
		{"Oh My Pi, flat", "task", `{"name":"x","agent":"scout","task":"go"}`, "Spawn 1 subagent?\n\n- x [scout]: go\n\n" + costs},
		{"Oh My Pi, batch", "task", batch, "Spawn 3 subagents?\n\n- a [scout]: Look around here.\n\n- spawn 2 [scout]: (task not provided)\n\n- c [default]: (task not provided)\n\n" + costs},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Admission(AdmissionAsk)(Call{Tool: c.tool, Input: json.RawMessage(c.input), Attended: Attended})
			require.Equal(t, Verdict{Outcome: Ask, Code: CodeAdmissionAsk, Reason: c.want}, v)
		})
	}
}

func TestAdmissionModes(t *testing.T) {
	for _, c := range []struct {
		name string
		mode AdmissionMode
		call Call
		code string
	}{
		{"off", AdmissionOff, Call{Tool: "Agent", Attended: Absent}, ""},
		{"no mode", "", Call{Tool: "Agent"}, ""},
		{"a tool that spawns nothing", AdmissionDeny, Call{Tool: "Read"}, ""},
		{"deny", AdmissionDeny, Call{Tool: "Agent", Attended: Attended}, CodeAdmissionDenied},
		{"interactive", AdmissionAsk, Call{Tool: "Agent", Attended: Attended}, CodeAdmissionAsk},
		{"it is not known who is there", AdmissionAsk, Call{Tool: "Agent"}, CodeAdmissionAsk},
		{"headless", AdmissionAsk, Call{Tool: "Agent", Attended: Absent}, CodeAdmissionNoUI},
		{"dontAsk", AdmissionAsk, Call{Tool: "Agent", Attended: Attended, Mode: "dontAsk"}, CodeAdmissionNoUI},
		{"bypassPermissions still shows a dialog", AdmissionAsk, Call{Tool: "Agent", Attended: Attended, Mode: "bypassPermissions"}, CodeAdmissionAsk},
		{"Oh My Pi without a UI", AdmissionAsk, Call{Tool: "task", Attended: Absent}, CodeAdmissionNoUI},
		{"Oh My Pi, not known", AdmissionAsk, Call{Tool: "task"}, CodeAdmissionNoUI},
		{"a word that is no mode asks", "Off", Call{Tool: "Agent", Attended: Attended}, CodeAdmissionAsk},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Admission(c.mode)(c.call)
			require.Equal(t, c.code, v.Code)
			switch c.code {
			case CodeAdmissionNoUI:
				if c.call.Tool == "task" {
					require.Equal(t, "Spawning subagents requires explicit user approval in an interactive OMP session. Do not retry: go on in the current agent, and tell the user that an operator can admit a subagent beforehand with `capgate admit`.", v.Reason)
				} else {
					require.Contains(t, v.Reason, "go on in the current agent")
					require.Contains(t, v.Reason, "capgate admit")
				}
			case CodeAdmissionAsk:
				require.Equal(t, Ask, v.Outcome)
			}
		})
	}
}

func TestTasksAreCutAt240Characters(t *testing.T) {
	for _, c := range []struct{ name, task, want string }{
		{"240 stay", strings.Repeat("a", 240), strings.Repeat("a", 240)},
		{"241 are cut to 237 and three dots", strings.Repeat("a", 241), strings.Repeat("a", 237) + "..."},
		{"characters, not bytes", strings.Repeat("漢", 240), strings.Repeat("漢", 240)},
		{"10 kB", strings.Repeat("ü", 5000), strings.Repeat("ü", 237) + "..."},
		{"UTF-16 units, as JavaScript counts", strings.Repeat("😀", 121), strings.Repeat("😀", 118) + "..."},
		{"120 of two units stay", strings.Repeat("😀", 120), strings.Repeat("😀", 120)},
		{"no half of a character", strings.Repeat("a", 236) + strings.Repeat("😀", 3), strings.Repeat("a", 236) + "..."},
		{"folded first", strings.Repeat("a \n\t", 100), strings.TrimSpace(strings.Repeat("a ", 100))},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := AdmissionText([]Spawn{{Name: "n", Type: "t", Task: c.task}})
			require.Equal(t, "Spawn 1 subagent?\n\n- n [t]: "+c.want+"\n\n"+costs, text)
		})
	}
}

func TestABatchOfFiftyHasALineForEach(t *testing.T) {
	spawns := make([]Spawn, 50)
	for i := range spawns {
		spawns[i] = Spawn{Type: "scout", Task: strings.Repeat("x", 10_000)}
	}
	lines := strings.Split(AdmissionText(spawns), "\n")
	require.Len(t, lines, 103)
	require.Equal(t, "Spawn 50 subagents?", lines[0])
	for i, line := range lines[1:] {
		switch {
		case i%2 == 0:
			require.Empty(t, line)
		case i < 101:
			require.True(t, strings.HasPrefix(line, fmt.Sprintf("- spawn %d [scout]: xxx", i/2+1)), line)
		}
	}
	require.Equal(t, costs, lines[102])
}

// What a model writes cannot add entries to the question, end its field or hide a part of it.
func TestNothingCanBeForged(t *testing.T) {
	for name, hostile := range map[string]string{
		"a line break and an entry": "x\n- innocent [scout]: nothing",
		"carriage return":           "x\r- innocent [scout]: nothing",
		"line separators":           "x\u2028- a [b]: c\u2029- d [e]: f\u0085- g",
		"ANSI escapes":              "x\x1b[2J\x1b[1A\x1b[8mhidden\x1b]0;title\x07",
		"C1 controls":               "x\u009b2J",
		"bidi controls":             "x\u202e\u2066gnihton\u2069\u200f",
		"zero width":                "s\u200bc\u200do\ufeffut\u00ad\u2060",
		"tag characters":            "x\U000e0041\U000e007f",
		"blank letters":             "\u3164\u115f\u2800\uffa0",
		"backspaces":                "evil\b\b\b\bgood",
		"NUL":                       "a\x00b",
		"invalid UTF-8":             "a\xff\xfe",
		"a type of its own":         "x [scout]: harmless",
	} {
		t.Run(name, func(t *testing.T) {
			text := AdmissionText([]Spawn{{Name: hostile, Type: hostile, Task: hostile}, {Name: "second", Type: "t", Task: "u"}})
			lines := strings.Split(text, "\n\n")
			require.Len(t, lines, 4)
			require.Equal(t, 6, strings.Count(text, "\n"))
			require.Equal(t, "- second [t]: u", lines[2])
			require.True(t, utf8.ValidString(text))
			for _, r := range strings.ReplaceAll(text, "\n", "") {
				require.False(t, unicode.IsControl(r) || unicode.Is(unicode.Cf, r), "%q in %q", r, text)
			}
			front, _, _ := strings.Cut(lines[1], "]:")
			require.Equal(t, 1, strings.Count(front, "["), lines[1])
		})
	}
}

func FuzzAdmissionText(f *testing.F) {
	f.Add("name", "type", "task")
	f.Add("a\n- b [c]: d", "x]: y", strings.Repeat("\u202e\x1b", 300))
	f.Fuzz(func(t *testing.T, name, kind, task string) {
		text := AdmissionText([]Spawn{{Name: name, Type: kind, Task: task}, {Name: task, Type: name, Task: kind}})
		lines := strings.Split(text, "\n\n")
		require.Len(t, lines, 4)
		require.Equal(t, 6, strings.Count(text, "\n"))
		require.Equal(t, "Spawn 2 subagents?", lines[0])
		require.Equal(t, costs, lines[3])
		require.True(t, utf8.ValidString(text))
		for _, line := range lines[1:3] {
			require.Regexp(t, `^- [^\[\]]+ \[[^\[\]]+\]: .`, line)
			require.False(t, strings.ContainsFunc(line, hidden), "%q", line)
		}
	})
}

// Whatever a model writes, each agent has one line, and nothing in it is invisible.
func TestNothingInAQuestionCanHideOrAddALine(t *testing.T) {
	text := AdmissionText([]Spawn{{Name: " a\n\tb ", Type: "c\u2028d\x01e\x02f", Task: " g \r\n h "}, {}})
	require.Equal(t, "Spawn 2 subagents?\n\n"+
		`- a b [c d\x01e\x02f]: g h`+"\n\n"+
		"- spawn 2 [default]: (task not provided)\n\n"+
		"Subagents add latency and cost. Approve only when delegation materially helps.", text)
	require.Equal(t, `a\u2028b\u2029c\u115fd\u3164e\u034ff`, Visible("a\u2028b\u2029c\u115fd\u3164e\u034ff"))
	require.Equal(t, `\x01a\x02b`, Visible("\x01a\x02b"))
}

func TestOutcomesHaveNames(t *testing.T) {
	for outcome, want := range map[Outcome]string{Pass: "pass", Rewrite: "rewrite", Ask: "ask", Deny: "deny", 99: "deny"} {
		require.Equal(t, want, outcome.String())
	}
	require.Equal(t, []string{"a", ""}, SpawnTypes(Call{Tool: "task", Input: []byte(`{"tasks":[{"agent":"a"},{}]}`)}))
}

// The dialog of the article, letter by letter.
func TestTheQuestionIsTheArticles(t *testing.T) {
	require.Equal(t, "Approve subagent spawn?", AdmissionTitle)
	require.Equal(t, `Spawn 2 subagents?

- ScoutCode [scout]: Inspect the relevant code paths.

- ReviewRisk [reviewer]: Review the proposed change for safety risks.

Subagents add latency and cost. Approve only when delegation materially helps.`, AdmissionText([]Spawn{
		{Name: "ScoutCode", Type: "scout", Task: " Inspect the\n relevant\tcode\ufeff paths."},
		{Name: "ReviewRisk", Type: "reviewer", Task: "Review the proposed change for safety risks."},
	}))
}

// Whatever is named beside what a workflow runs is in the question, however long the one before it is.
func TestALongPathHidesNothingThatAWorkflowNames(t *testing.T) {
	long := func(c string) string { return strings.Repeat(c, 1000) }
	text := AdmissionText(Spawns(Call{Tool: "Workflow", Input: json.RawMessage(`{"scriptPath":"` + long("p") + `","name":"` + long("n") + `","script":"` + long("s") + `"}`)}))
	for _, want := range []string{"runs the script at ppp", "the saved workflow nnn", "sss..."} {
		require.Contains(t, text, want)
	}
}
