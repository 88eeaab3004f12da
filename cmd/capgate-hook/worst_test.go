package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/gates"
)

// The worst cases that a model or a client can make: what is long, deep, repeated, or many, at the tools that are looked into.
// However long the judgement would take, the hook ends by its deadline, says one JSON object or nothing, and says why where it
// blocks.
//
// `make worst` runs them at full size, 100 MB or a million of each, against the default deadline plus 50 ms, and prints how long each
// took. A plain `go test` takes a hundredth and looks at the answers only: how long they take on a busy machine says nothing.

const (
	worstVariable = "CAPGATE_WORST" // 1: at full size and against the clock
	worstSlack    = 50 * time.Millisecond
)

// scaled returns a size for the run.
func scaled(full int) int {
	if os.Getenv(worstVariable) == "1" {
		return full
	}
	return full / 100
}

// victim is a tool with what makes an input of it worth a look: members that are its own, and the one with a free text.
type victim struct {
	client, tool, members, text, repeated string
}

var victims = []victim{
	{"claude", "Agent", `"subagent_type":"joke-finder"`, "prompt", `"run_in_background":true`},
	{"omp", "task", `"agent":"joke-finder"`, "task", `"agent":"joke-finder"`},
	{"claude", "Write", `"file_path":"a"`, "content", `"file_path":"a"`},
	{"claude", "MultiEdit", `"file_path":"a"`, "file_path", `"edits":[{"new_string":"a"}]`},
	{"omp", "edit", `"path":"a"`, "input", `"path":"a"`},
	{"omp", "ast_edit", `"path":"a"`, "paths", `"paths":["a","b"]`},
	{"omp", "grep", `"paths":["a"]`, "path", `"paths":["a"]`},
	{"claude", "WebSearch", `"query":"q"`, "query", `"query":"q"`},
}

// worst is one case.
type worst struct {
	name, client string
	payload      string
	stdin        io.Reader         // in place of the payload
	unread       bool              // nobody reads stdout
	env          map[string]string // on top of the usual one
}

// object is a JSON object with the members, which may be followed by a comma.
func object(members ...string) string {
	return "{" + strings.TrimSuffix(strings.Join(members, ","), ",") + "}"
}

func asked(client, tool, input string, more ...string) string {
	members := append([]string{fmt.Sprintf(`"session_id":%q,"cwd":"/work","has_ui":true,"tool_name":%q,"tool_use_id":"u"`, session, tool)}, more...)
	if client == "claude" {
		members = append(members, `"hook_event_name":"PreToolUse"`)
	}
	return object(append(members, `"tool_input":`+input)...)
}

func worstCases() []worst {
	million, megabytes, many := scaled(1_000_000), scaled(100_000_000), scaled(100_000)
	distinct := func(value string) string {
		var b strings.Builder
		for i := range million {
			fmt.Fprintf(&b, `"k%07d":%s,`, i, value)
		}
		return b.String()
	}
	keys := distinct("0")
	var all []worst
	add := func(name, client, payload string) {
		all = append(all, worst{name: name, client: client, payload: payload})
	}
	for _, v := range victims {
		for _, c := range []struct{ shape, input string }{
			{"members", object(keys + v.members)},
			{"repeated", object(v.members, strings.Repeat(v.repeated+",", million))},
			{"depth", object(v.members, `"z":`+strings.Repeat("[", million)+strings.Repeat("]", million))},
			{"deep objects", object(v.members, `"z":`+strings.Repeat(`{"a":[`, million)+strings.Repeat("]}", million))},
			{"deep text", object(v.members, `"`+v.text+`":`+strings.Repeat("[", million)+`"x"`+strings.Repeat("]", million))},
			{"length", object(v.members, `"`+v.text+`":"`+strings.Repeat("x", megabytes)+`"`)},
			{"words", object(v.members, `"`+v.text+`":"`+strings.Repeat("a, b\u00fc;", megabytes/8)+`"`)},
			{"escapes", object(v.members, `"`+v.text+`":"`+strings.Repeat(`\u0041`, megabytes/6)+`"`)},
			{"lines", object(v.members, `"`+v.text+`":"`+strings.Repeat(`MV a\n`, megabytes/6)+`"`)},
			{"texts", object(v.members, `"`+v.text+`":[`+strings.Repeat(`"a",`, megabytes/4)+`"b"]`)},
			{"a cut", `{` + v.members + `,"` + v.text + `":"` + strings.Repeat("x", megabytes)},
		} {
			add(v.tool+", "+c.shape, v.client, asked(v.client, v.tool, c.input))
		}
	}
	paths := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	tasks := func(n int) string { return `{"tasks":[` + paths(`{"agent":"joke-finder","name":"%d"},`, n) + `]}` }
	add("task, 100,000 agents", "omp", asked("omp", "task", tasks(many)))
	add("task, 20,000 agents in less than a MiB", "omp", asked("omp", "task", tasks(20_000)))
	add("task, a million agents without a type", "omp", asked("omp", "task", `{"tasks":[`+strings.Repeat(`{},`, million)+`{}]}`))
	add("edit, 100,000 edits", "omp", asked("omp", "edit", `{"edits":[`+paths(`{"path":"d/f%d"},`, many)+`]}`))
	add("edit, 100,000 files in a patch", "omp", asked("omp", "edit", `{"input":"`+paths(`*** Update File: d/f%d\n`, many)+`"}`))
	add("ast_edit, 100,000 paths", "omp", asked("omp", "ast_edit", `{"paths":[`+paths(`"d/f%d",`, many)+`]}`))
	add("ast_edit, 100,000 paths in a text", "omp", asked("omp", "ast_edit", `{"path":"`+paths(`d/f%d;`, many)+`"}`))
	add("grep, 100,000 paths", "omp", asked("omp", "grep", `{"paths":[`+paths(`"d/f%d",`, many)+`]}`))
	for _, c := range []struct{ shape, path string }{
		{"up and down", "a" + strings.Repeat("/../a", megabytes/5)},
		{"dots", strings.Repeat("./", megabytes/2) + "a"},
		{"schemes", strings.Repeat("file://", megabytes/7) + "a"},
		{"some schemes", strings.Repeat("file://", 140_000) + "a"},
		{"percents", "file:///" + strings.Repeat("%41", 300_000)},
		{"a glob's dots", "a/*" + strings.Repeat("/..", 300_000)},
		{"down 200,000", strings.Repeat("a/../", 200_000) + "b"},
	} {
		add("Write, "+c.shape, "claude", asked("claude", "Write", `{"file_path":"`+c.path+`"}`))
		add("ast_edit, "+c.shape, "omp", asked("omp", "ast_edit", `{"path":"`+c.path+`"}`))
	}
	long := strings.Repeat("x", megabytes)
	for _, field := range []string{"agent_type", "session_id", "cwd", "tool_use_id", "tool_name", "permission_mode", "hook_event_name"} {
		add("a long "+field, "claude", asked("claude", "Agent", `{"subagent_type":"joke-finder"}`, `"agent_id":"a"`, `"`+field+`":"`+long+`"`))
	}
	add("a long subagent_type", "claude", asked("claude", "Agent", `{"subagent_type":"`+long+`"}`))
	add("a subagent_type of less than a MiB", "claude", asked("claude", "Agent", `{"subagent_type":"`+strings.Repeat(`\u0007`, 170_000)+`"}`))
	add("a million fields", "claude", object(keys+`"tool_name":"Agent"`))
	add("a long beginning", "claude", strings.Repeat(" ", megabytes)+`{}`)
	add("a long end", "claude", asked("claude", "Agent", `{}`)+strings.Repeat(" ", megabytes)+"x")
	add("brackets", "claude", strings.Repeat("[", megabytes))
	prompt := func(n int, more string) string {
		return asked("claude", "Agent", `{"subagent_type":"joke-finder","prompt":"`+strings.Repeat("x", n)+more+`"}`)
	}
	all = append(all,
		worst{name: "Agent, a prompt of 1,000,000 bytes", client: "claude", payload: prompt(1_000_000, "")},
		worst{name: "Agent, a prompt of 1,000,000 bytes, rewritten", client: "claude", payload: prompt(1_000_000, ""), env: map[string]string{"CAPGATE_ADMISSION": "off"}},
		worst{name: "a client that does not read, a long rewrite", client: "claude", payload: prompt(1_000_000, ""), unread: true, env: map[string]string{"CAPGATE_ADMISSION": "off"}},
		worst{name: "a client that does not read, a rewrite over 1 MiB", client: "claude", payload: prompt(1<<20-70, ""), unread: true, env: map[string]string{"CAPGATE_ADMISSION": "off"}},
		worst{name: "a client that does not read, a question", client: "omp", payload: asked("omp", "task", tasks(20_000)), unread: true},
		worst{name: "a client that sends slowly", client: "claude", stdin: &slowly{strings.NewReader(prompt(5_000, ""))}},
		worst{name: "a client that sends no end", client: "claude", stdin: endless{}},
	)
	return all
}

// slowly gives a byte at a time.
type slowly struct{ io.Reader }

func (s *slowly) Read(p []byte) (int, error) {
	time.Sleep(20 * time.Millisecond)
	return s.Reader.Read(p[:1])
}

// endless gives braces, and no end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '{'
	}
	return len(p), nil
}

func TestTheWorstCasesEndInTime(t *testing.T) {
	strict := os.Getenv(worstVariable) == "1"
	deadline := time.Minute
	if strict {
		deadline = 2 * time.Second
	}
	shared := newWorld(t).open("r", 8, 1).turns("r", 3).arm(session, "r")
	for _, c := range worstCases() {
		t.Run(c.name, func(t *testing.T) {
			w := world{t: t, state: shared.state, args: []string{"--client", c.client}, env: maps.Clone(shared.env)}
			maps.Copy(w.env, map[string]string{
				"CAPGATE_ALLOWED_SUBAGENTS": "joke-finder", "CAPGATE_ADMISSION": "ask", "CLAUDE_CODE_SESSION_ATTENDED": "1",
				"CAPGATE_DEADLINE_MS": fmt.Sprint(deadline.Milliseconds()),
			})
			maps.Copy(w.env, c.env)
			if c.stdin != nil && !strict {
				w.env["CAPGATE_DEADLINE_MS"] = "300" // it is waited for
			}
			r := w.worst(c)
			if strict {
				fmt.Printf("| %s | %s | %.0f ms |\n", c.name, r.outcome(), r.took.Seconds()*1000)
			}
			require.Contains(t, []int{0, 2}, r.exit)
			require.Equal(t, r.exit == 2, r.stderr != "", r.stderr)
			if r.stdout != "" {
				require.NoError(t, gates.Members([]byte(r.stdout), func(string, []byte) {}), "%.200s", r.stdout)
			}
			if strict {
				require.Less(t, r.took, deadline+worstSlack)
			}
		})
	}
}

// outcome says in a word what became of the call.
func (r result) outcome() string {
	switch text := r.stdout + r.stderr; {
	case text == "" || strings.HasPrefix(text, `{"outcome":"pass"`):
		return "passes"
	case strings.Contains(text, "before the deadline"), strings.Contains(text, "was not read in time"):
		return "too late: denied"
	case r.exit == 2, strings.HasPrefix(text, `{"outcome":"deny"`):
		return "denied"
	case strings.Contains(text, `"permissionDecision":"ask"`), strings.HasPrefix(text, `{"outcome":"ask"`):
		return "asks"
	}
	return "is rewritten"
}

// worst runs the hook on a case. Where nobody reads stdout, what it left there is read after its end.
func (w *world) worst(c worst) result {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := w.command(ctx)
	cmd.Stdin = c.stdin
	if c.stdin == nil {
		cmd.Stdin = strings.NewReader(c.payload)
	}
	cmd.WaitDelay = time.Millisecond // the rest of what it is sent is not waited for
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var left *os.File
	if c.unread {
		r, write, err := os.Pipe()
		require.NoError(w.t, err)
		defer func() { _ = r.Close() }()
		left, cmd.Stdout = r, write
	}
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	require.NotNil(w.t, cmd.ProcessState, "%v", err)
	if c.unread {
		require.NoError(w.t, cmd.Stdout.(*os.File).Close())
		_, err := out.ReadFrom(left)
		require.NoError(w.t, err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String(), took}
}
