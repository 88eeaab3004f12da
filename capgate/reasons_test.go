package capgate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/gates"
)

// session is one client under some gates, as a reason has to suit it.
type session struct {
	name    string
	client  string
	outside outside
	late    Stage             // the last one that was read in time; 0 = all were
	err     error             // of the payload
	change  func(*gates.Call) // what the client says of each call
}

func allowing(types ...string) string {
	var subagents []string
	for _, t := range types {
		subagents = append(subagents, fmt.Sprintf("%q:{}", t))
	}
	return `{"subagents":{` + strings.Join(subagents, ",") + `}%s}`
}

// sessions are both clients under the combinations of gates whose advice could go against one another.
func sessions() (all []session) {
	human := func(c *gates.Call) { c.Attended = gates.Attended }
	nobody := func(c *gates.Call) { c.Attended = gates.Absent }
	held := func(c *gates.Call) { human(c); c.NoBackground = true }
	two := allowing("finder", "critic")
	for _, name := range []string{client.Claude, client.OMP} {
		add := func(title string, o outside, change func(*gates.Call)) {
			all = append(all, session{name: title, client: name, outside: o, change: change})
		}
		add("a list, a human there", outside{env: env(list, "finder,critic")}, held)
		add("an empty list", outside{env: env(list, ",")}, human)
		add("a spec that requires the foreground, in a terminal", outside{env: env(specFile, "/s"), spec: fmt.Sprintf(two, `,"foreground":"require"`)}, human)
		add("a list, asking, a human there", outside{env: env(list, "finder,critic", admit, "ask")}, held)
		add("a list, asking, nobody there", outside{env: env(list, "finder,critic", admit, "ask")}, nobody)
		add("a list, asking, nobody there, one is admitted", outside{env: env(list, "finder,critic", admit, "ask"), admissible: []string{"finder"}}, nobody)
		add("a list, denying", outside{env: env(list, "finder,critic", admit, "deny")}, held)
		add("a list, denying, one is admitted", outside{env: env(list, "finder,critic", admit, "deny"), admissible: []string{"finder"}}, held)
		add("a list, denying, one that is not declared is admitted", outside{env: env(list, "finder,critic", admit, "deny"), admissible: []string{"general-purpose"}}, held)
		add("asking alone, nobody there", outside{env: env(admit, "ask")}, nobody)
		add("denying alone", outside{env: env(admit, "deny")}, held)
		add("denying alone, the admissions unreadable", outside{env: env(admit, "deny"), usedErr: errDisk}, held)
		add("a list and the cap, spent", outside{env: env(list, "finder,critic", "CAPGATE_ENABLED", "1"), armed: true}, held)
		add("a spec that cannot be used", outside{env: env(specFile, "/s"), specErr: fmt.Errorf("spec /s: %w", errDisk)}, held)
		all = append(all,
			session{name: "a list, in agent teams", client: name, outside: outside{env: env(list, "finder,critic")}, change: func(c *gates.Call) { held(c); c.Teams = name == client.Claude }},
			session{name: "a list, too late", client: name, outside: outside{env: env(list, "finder,critic")}, change: held, late: StagePayload},
			session{name: "a list and the cap, too late for the marker", client: name, outside: outside{env: env(list, "finder,critic", "CAPGATE_ENABLED", "1")}, change: held, late: StageSpec},
			session{name: "a list, an unreadable call", client: name, outside: outside{env: env(list, "finder,critic")}, change: held, err: gates.ErrSyntax},
		)
	}
	return all
}

// said are calls that a model makes, by what they want.
func said(name string) (calls []gates.Call, names []string) {
	add := func(what string, c gates.Call, omp string, input string) {
		if name == client.OMP {
			c.Tool, c.Untyped = omp, true
			if input != "" {
				c.Input = []byte(input)
			}
		}
		c.Session = "s-1"
		calls, names = append(calls, c), append(names, what)
	}
	spawn := func(input string) gates.Call { return gates.Call{Tool: "Agent", Input: []byte(input)} }
	long := strings.Repeat("x", 5000)
	add("start a declared agent", spawn(`{"subagent_type":"finder","run_in_background":false}`), "task", `{"agent":"finder"}`)
	add("start another", spawn(`{"subagent_type":"general-purpose"}`), "task", `{"agent":"general-purpose"}`)
	add("start one without a type", spawn(`{}`), "task", `{"tasks":[]}`)
	add("start one with a type of 5,000 characters", spawn(`{"subagent_type":"`+long+`"}`), "task", `{"agent":"`+long+`"}`)
	add("start one with a name", spawn(`{"subagent_type":"finder","name":"mate","run_in_background":false}`), "task", `{"agent":"finder","name":"mate"}`)
	add("start one with an input of over 1 MiB", spawn(`{"subagent_type":"finder","prompt":"`+strings.Repeat("x", gates.MaxSpawnInput)+`"}`), "task", `{"agent":"finder","task":"`+strings.Repeat("x", gates.MaxSpawnInput)+`"}`)
	add("use the shell", gates.Call{Tool: "Bash"}, "bash", "")
	add("search", gates.Call{Tool: "WebSearch", CountsAs: "WebSearch"}, "web_search", "")
	add("an agent of another type reads", gates.Call{Tool: "Read", AgentID: "a1", AgentType: "general-purpose"}, "read", "")
	add("an agent with a type of 5,000 characters reads", gates.Call{Tool: "Read", AgentID: "a1", AgentType: long}, "read", "")
	add("an agent without a type uses the shell", gates.Call{Tool: "Bash", AgentID: "a1"}, "bash", "")
	if name == client.Claude {
		add("start a workflow", gates.Call{Tool: "Workflow", Input: []byte(`{"script":"s"}`)}, "", "")
		add("the agent of a hook reads", gates.Call{Tool: "Read", AgentID: "hook-agent-1"}, "", "")
	}
	return calls, names
}

// Every reason, for every client under every combination of gates, is in one file that people read as a whole: none may name
// what is not there, advise what another gate denies, or leave a retry open.
func TestEveryReason(t *testing.T) {
	var b strings.Builder
	b.WriteString("Every reason for a denial, as go test ./capgate -run TestEveryReason -update writes it.\nCalls that pass are left out.\n")
	for _, s := range sessions() {
		fmt.Fprintf(&b, "\n# %s: %s\n\n", client.Title(s.client), s.name)
		calls, names := said(s.client)
		canStart, advised := false, false
		by, order := map[string][]string{}, []string(nil)
		for i, c := range calls {
			if s.change(&c); c.AgentID != "" && s.client == client.OMP {
				c.Attended = gates.Absent
			}
			var d Decision
			switch {
			case s.late > 0:
				d = Decide(Facts{Config: LoadConfig(fromMap(s.outside.env)), Now: now, Known: s.late, Call: c}.Overdue())
			default:
				d, _ = s.outside.judge(t, c, s.err)
			}
			v := d.Verdict
			if names[i] == "start a declared agent" {
				canStart = v.Outcome != gates.Deny || len(s.outside.admissible) > 0 && s.outside.admissible[0] == "finder"
			}
			advised = advised || strings.Contains(v.Reason, " to delegate ")
			if v.Outcome != gates.Deny {
				continue
			}
			text := fmt.Sprintf("%s: %s", v.Code, v.Reason)
			if _, known := by[text]; !known {
				order = append(order, text)
			}
			by[text] = append(by[text], names[i])
			requireReason(t, s, v.Reason)
		}
		for _, text := range order {
			fmt.Fprintf(&b, "%s\n\t%s\n", strings.Join(by[text], "; "), text)
		}
		// The run's budget is not read for a call of the shell, which it does not bind: what it says of the agent is final.
		require.False(t, advised && !canStart && !s.outside.armed && s.late == 0, "%s %s: it advises to delegate, and no agent can start", s.client, s.name)
	}
	fmt.Fprintf(&b, "\n# Any client: what the table denies\n\n")
	for _, c := range tableCases {
		row, _ := Table.Decide(inScope(c.with))
		if v := row.Verdict(inScope(c.with)); v.Outcome == gates.Deny {
			fmt.Fprintf(&b, "%s\n\t%s: %s\n", c.name, v.Code, v.Reason)
			requireReason(t, session{name: c.name, client: client.Claude}, v.Reason)
			requireReason(t, session{name: c.name, client: client.OMP}, v.Reason)
		}
	}
	fmt.Fprintf(&b, "\n# Any client: what the guard says of a write\n\n")
	ours := gates.Protected{StateDir: "/state", Spec: "/s/spec.json", Programs: []string{"/b/capgate"}, Files: []string{"/h/capgate.env"}}
	for _, c := range []struct {
		name  string
		write gates.FileWrite
	}{
		{"into the state directory", gates.FileWrite{Path: "/state/ledger.db"}},
		{"the environment file", gates.FileWrite{Path: "/h/capgate.env"}},
		{"the program", gates.FileWrite{Path: "/b/capgate"}},
		{"the spec", gates.FileWrite{Path: "/s/spec.json"}},
		{"more paths than are looked at", gates.FileWrite{Any: true}},
		{"by a name of each process's own", gates.FileWrite{Path: "/proc/self/cwd/x", PerProcess: true}},
		{"settings of a client", gates.FileWrite{Path: "/h/.claude/settings.json", Settings: true}},
	} {
		for _, there := range []bool{true, false} {
			presence, word := gates.Absent, "nobody there"
			if there {
				presence, word = gates.Attended, "a human there"
			}
			v := gates.Guard(ours, []gates.FileWrite{c.write})(gates.Call{Tool: "Write", Attended: presence})
			require.NotEqual(t, gates.Pass, v.Outcome, c.name)
			if v.Outcome == gates.Ask {
				fmt.Fprintf(&b, "%s, %s\n\t%s asks: %s\n", c.name, word, v.Code, v.Reason)
				continue
			}
			if !there {
				fmt.Fprintf(&b, "%s, %s\n\t%s: %s\n", c.name, word, v.Code, v.Reason)
				requireReason(t, session{name: c.name, client: client.Claude}, v.Reason)
			}
		}
	}
	path := filepath.Join("testdata", "reasons.txt")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(have), b.String(), "stale: go test ./capgate -run TestEveryReason -update, and read what has changed")
}

func requireReason(t *testing.T, s session, reason string) {
	t.Helper()
	where := s.client + ", " + s.name + ": " + reason
	require.LessOrEqual(t, len(reason), 700, where)
	ends := false
	for _, word := range []string{"o not retry", "This is final", "do the task directly", "to delegate to one of them instead"} {
		ends = ends || strings.Contains(reason, word)
	}
	require.True(t, ends, "a retry is left open: %s", where)
	require.LessOrEqual(t, strings.Count(reason+" ", ". "), 3, "sentences: %s", where)
	for _, word := range map[string][]string{
		client.Claude: {"OMP", "task tool"}, client.OMP: {"Agent tool", "CLAUDE_", "Claude", "Agent teams"},
	}[s.client] {
		require.NotContains(t, reason, word, where)
	}
	for _, word := range []string{"payload", "deadline", "stage", "%!"} {
		require.NotContains(t, reason, word, where)
	}
}
