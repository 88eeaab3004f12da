//go:build live

package live_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/client/omp"
	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// fakeHook is a hook that logs what it is asked and answers by what the call holds: VARIANT:name runs the shell code of
// that name, any other call passes.
type fakeHook struct {
	file, log string
}

func newFakeHook(t *testing.T, variants map[string]string) fakeHook {
	t.Helper()
	dir := t.TempDir()
	for name, code := range variants {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(code+"\n"), 0o600))
	}
	h := fakeHook{file: filepath.Join(dir, "it's a \"hook\""), log: filepath.Join(dir, "calls.jsonl")}
	script := fmt.Sprintf(`#!/bin/sh
call=$(cat)
printf '%%s\n' "$call" >> '%s'
name=$(expr "$call" : '.*VARIANT:\([a-z0-9-]*\)')
test -z "$name" || exec sh '%s'/"$name"
echo '{"outcome":"pass"}'
`, h.log, dir)
	require.NoError(t, os.WriteFile(h.file, []byte(script), 0o700))
	return h
}

// question is what the extension asked.
type question struct {
	Session   string          `json:"session_id"`
	Tool      string          `json:"tool_name"`
	UseID     string          `json:"tool_use_id"`
	Input     json.RawMessage `json:"tool_input"`
	HasUI     *bool           `json:"has_ui"`
	Cwd       string          `json:"cwd"`
	AgentID   string          `json:"agent_id"`
	AgentType string          `json:"agent_type"`
}

func (h fakeHook) questions(t *testing.T) []question {
	t.Helper()
	raw, err := os.ReadFile(h.log)
	require.NoError(t, err)
	var all []question
	for line := range strings.Lines(string(raw)) {
		var q question
		require.NoError(t, json.Unmarshal([]byte(line), &q))
		all = append(all, q)
	}
	return all
}

// writeExtension puts the extension where -e finds it.
func writeExtension(t *testing.T, s *live.Sandbox, hook string, env map[string]string) string {
	t.Helper()
	file := filepath.Join(s.Home, "capgate.ts")
	require.NoError(t, os.WriteFile(file, omp.Extension(hook, env, ""), 0o600))
	return file
}

// bash is a call of the shell that the fake hook answers by the variant. The command would say that it ran.
func bash(variant string) live.Use {
	return live.Use{Tool: "bash", Input: live.M{"command": "echo ran VARIANT:" + variant}}
}

const asksForTwo = `echo '{"outcome":"ask","title":"Spawn 2 subagents?","message":"- Alpha [task]: one\\n- Beta [task]: two\\nApprove only when delegation materially helps."}'`

func TestLiveOMPTheExtensionDoesWhatTheHookSaysAndBlocksWithoutAnAnswer(t *testing.T) {
	cases := []struct{ variant, code, want string }{
		{"pass", `echo '{"outcome":"pass"}'`, "ran VARIANT:pass"},
		{"pass-and-more", `echo '{"outcome":"pass","id":"X","other":[1]}'; echo noise >&2`, "ran VARIANT:pass-and-more"},
		{"deny", `echo '{"outcome":"deny","reason":"capgate: spent <8 of 8>. [capgate 01]","id":"01"}'`, "capgate: spent <8 of 8>. [capgate 01]"},
		{"ask", asksForTwo, "This call requires explicit user approval in an interactive OMP session."},
		{"crash", `echo '{"outcome":"pass"}'; echo boom >&2; exit 3`, `ended with status 3, saying "boom"`},
		{"claude", `echo reason >&2; exit 2`, `ended with status 2, saying "reason"`},
		{"killed", `echo '{"outcome":"pass"}'; kill -9 $$`, "ended with SIGKILL"},
		{"hang", `exec sleep 60`, "has not answered within 1300 ms"},
		{"half", `printf '{"outcome":"pass"'`, `gave no verdict but "{\"outcome\":\"pass\""`},
		{"twice", `echo '{"outcome":"pass"}{"outcome":"pass"}'`, "gave no verdict"},
		{"empty", `:`, `gave no verdict but ""`},
		{"null", `echo null`, "gave no verdict"},
		{"list", `echo '[{"outcome":"pass"}]'`, "gave no verdict"},
		{"text", `echo pass`, "gave no verdict"},
		{"outcome", `echo '{"outcome":"allow"}'`, "gave no verdict"},
		{"unexplained", `echo '{"outcome":"deny"}'`, "gave no verdict"},
		{"untitled", `echo '{"outcome":"ask","message":"m"}'`, "gave no verdict"},
		{"endless", `while echo '{"outcome":"pass"}'; do :; done`, "does not stop answering"},
	}
	variants := map[string]string{}
	var uses []live.Use
	for _, c := range cases {
		variants[c.variant] = c.code
		uses = append(uses, bash(c.variant))
	}
	ctx, s := startLive(t, live.Programs{"main": {live.Calls(uses...), batch("never"), live.Say("done")}})
	hook := newFakeHook(t, variants)
	got, err := s.OMPHeadless(ctx, live.OMPRun{
		Prompt: "PROGRAM:main", Extension: writeExtension(t, s, hook.file, map[string]string{"CAPGATE_DEADLINE_MS": "300"}),
	})
	require.NoError(t, err)
	require.Zero(t, got.Exit, got.Stderr)
	require.Contains(t, got.Stdout, "done", "the session goes on")
	spawn := oneResult(t, s.Model, "main", "task")
	require.True(t, spawn.IsError)
	require.Contains(t, spawn.Text, "Spawning subagents requires explicit user approval in an interactive OMP session.")
	results := map[string]live.Result{}
	for _, r := range s.Model.ResultsOf("main", "bash") {
		results[r.UseID] = r
	}
	ids := slices.Sorted(maps.Keys(results)) // in the order of the calls
	require.Len(t, ids, len(cases))
	for i, c := range cases {
		t.Run(c.variant, func(t *testing.T) {
			got := results[ids[i]]
			require.Contains(t, got.Text, c.want)
			require.Equal(t, !strings.HasPrefix(c.variant, "pass"), got.IsError)
			// What is neither a verdict nor the lack of a human is a fault, and says so.
			fault := c.variant != "deny" && c.variant != "ask" && got.IsError
			require.Equal(t, fault, strings.Contains(got.Text, "an operator has to look, beginning with `capgate doctor`"))
		})
	}
}

func TestLiveOMPWithoutItsHookEveryCallIsBlocked(t *testing.T) {
	ctx, s := startLive(t, live.Programs{"main": {
		live.Calls(bash("pass"), live.Use{Tool: "write", Input: live.M{"path": "a.txt", "content": "x"}}),
		live.Say("done"),
	}})
	gone := filepath.Join(s.Home, "no such hook")
	got, err := s.OMPHeadless(ctx, live.OMPRun{Prompt: "PROGRAM:main", Extension: writeExtension(t, s, gone, nil)})
	require.NoError(t, err)
	require.Contains(t, got.Stdout, "done")
	results := s.Model.Results()
	require.Len(t, results, 2)
	for _, r := range results {
		require.True(t, r.IsError)
		require.Contains(t, r.Text, gone+" cannot be run: ")
		require.Contains(t, r.Text, "capgate doctor")
	}
	require.NoFileExists(t, filepath.Join(s.Work, "a.txt"))
}

// batch spawns two agents in one call.
func batch(prompt string) live.Step {
	return live.Call("task", live.M{"context": "VARIANT:ask", "tasks": []live.M{
		{"name": "Alpha", "agent": "task", "task": prompt}, {"name": "Beta", "task": prompt},
	}})
}

// finish is how an agent ends.
var finish = live.Call("yield", live.M{"data": "found nothing"})

func TestLiveOMPADialogDecidesAboutTheWholeBatch(t *testing.T) {
	ctx, s := startLive(t, live.Programs{
		"refused": {batch("PROGRAM:leaf"), live.Say("done")},
		"granted": {batch("PROGRAM:leaf"), live.Call("hub", live.M{"op": "wait"}), live.Say("done")},
		"leaf":    {live.Call("bash", live.M{"command": "echo leaf"}), finish},
	})
	hook := newFakeHook(t, map[string]string{"ask": asksForTwo})
	client, err := s.OMPRPC(ctx, live.OMPRun{Extension: writeExtension(t, s, hook.file, nil)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })

	for _, yes := range []bool{false, true} {
		program := map[bool]string{false: "refused", true: "granted"}[yes]
		require.NoError(t, client.Prompt("PROGRAM:"+program))
		dialog, err := client.Dialog()
		require.NoError(t, err)
		require.Equal(t, "Spawn 2 subagents?", dialog.Title)
		require.Equal(t, "- Alpha [task]: one\n- Beta [task]: two\nApprove only when delegation materially helps.", dialog.Message)
		require.NoError(t, client.Answer(dialog, yes))
		require.NoError(t, client.Settled())
		result := oneResult(t, s.Model, program, "task")
		require.Equal(t, !yes, result.IsError)
		if !yes {
			require.Contains(t, result.Text, "User did not approve the subagent spawn. Continue in the current agent or ask again only if delegation is necessary.")
			require.Empty(t, s.Model.Of("leaf"))
		}
	}
	require.NotEmpty(t, s.Model.Of("leaf"))
	for _, q := range hook.questions(t) {
		require.Equal(t, client.Session, q.Session)
		require.NotNil(t, q.HasUI)
		require.Equal(t, q.AgentID == "", *q.HasUI, "there is a dialog on the main agent, never in a subagent")
	}
}

// The dialog shows the message as it is, a line each: what a task says cannot hide there behind markup.
func TestLiveOMPTheDialogOnAScreen(t *testing.T) {
	lines := []string{"- Alpha [task]: **one** <!-- two --> `three` [four](five) ~~six~~ <b>seven</b>", "- Beta [task]: # eight", "Approve only when it helps."}
	question, err := json.Marshal(live.M{"outcome": "ask", "title": "Spawn 2 subagents?", "message": strings.Join(lines, "\n")})
	require.NoError(t, err)
	ctx, s := startLive(t, live.Programs{"main": {batch("PROGRAM:leaf"), live.Say("all done")}})
	hook := newFakeHook(t, map[string]string{"ask": "cat <<'END'\n" + string(question) + "\nEND"})
	terminal, err := s.OMPTerminal(ctx, live.OMPRun{Prompt: "PROGRAM:main", Extension: writeExtension(t, s, hook.file, nil)})
	unavailable(t, err)
	t.Cleanup(func() { require.NoError(t, terminal.Close()) })
	_, err = terminal.WaitFor(`(?s)Spawn 2 subagents\?.*❯ Yes\b`)
	require.NoError(t, err, "yes is preselected")
	for _, line := range lines {
		_, err = terminal.WaitFor(`(?m)^│ ` + regexp.QuoteMeta(line) + ` *│$`) // not a look at once: the client redraws
		require.NoError(t, err)
	}
	require.NoError(t, terminal.SendKeys("Down"))
	_, err = terminal.WaitFor("❯ No")
	require.NoError(t, err)
	require.NoError(t, terminal.SendKeys("Enter"))
	_, err = terminal.WaitFor("all done")
	require.NoError(t, err)
	require.Contains(t, oneResult(t, s.Model, "main", "task").Text, "User did not approve the subagent spawn.")
}

// The hook is asked about every call, in whatever agent, with the main session's id and the agent's own.
func TestLiveOMPWhatTheHookIsTold(t *testing.T) {
	spawn := func(name, prompt string) live.Step {
		return live.Call("task", live.M{"context": "c", "tasks": []live.M{{"name": name, "task": prompt}}})
	}
	wait := live.Call("hub", live.M{"op": "wait"})
	ctx, s := startLive(t, live.Programs{
		"main": {
			live.Calls(
				live.Use{Tool: "read", Input: live.M{"path": "http://127.0.0.1:9/page"}},
				live.Use{Tool: "write", Input: live.M{"path": "xd://web_search", "content": `{"query":"nested"}`}},
				live.Use{Tool: "eval", Input: live.M{"language": "js", "code": "return await tool.web_search({query:'by code'})"}},
			),
			live.Call("eval", live.M{"language": "js", "code": "return await (await agent('PROGRAM:coded')).wait()"}),
			spawn("Outer", "PROGRAM:outer"), wait, live.Say("done"),
		},
		"outer": {live.Call("bash", live.M{"command": "echo outer"}), spawn("Inner", "PROGRAM:inner"), wait, finish},
		"inner": {live.Call("bash", live.M{"command": "echo inner"}), finish},
		"coded": {live.Call("bash", live.M{"command": "echo coded"}), finish},
	})
	hook := newFakeHook(t, nil)
	client, err := s.OMPRPC(ctx, live.OMPRun{Extension: writeExtension(t, s, hook.file, nil)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	require.NoError(t, client.Prompt("PROGRAM:main"))
	require.NoError(t, client.Settled())

	var main, agents []string
	ids := map[string]bool{}
	for _, q := range hook.questions(t) {
		require.Equal(t, client.Session, q.Session, "the main session's id in every agent")
		require.Equal(t, s.Work, q.Cwd)
		require.NotEmpty(t, q.UseID)
		if q.AgentID == "" {
			require.Empty(t, q.AgentType)
			main = append(main, q.Tool)
			if q.Tool == "task" {
				require.JSONEq(t, `{"context":"c","tasks":[{"name":"Outer","agent":"task","task":"PROGRAM:outer"}]}`, string(q.Input), "the type is filled in")
			}
			continue
		}
		ids[q.AgentID] = true
		require.Equal(t, "task", q.AgentType)
		if q.Tool == "bash" {
			agents = append(agents, string(q.Input))
		}
	}
	slices.Sort(main)
	require.Equal(t, []string{"eval", "eval", "hub", "read", "task", "web_search", "web_search", "write"}, main)
	require.Len(t, ids, 3, "an id for each agent")
	require.ElementsMatch(t, []string{`{"command":"echo outer"}`, `{"command":"echo inner"}`, `{"command":"echo coded"}`}, agents)
}

// An agent of an earlier process, woken by a message, is judged as one of the session that it belongs to. It loads only
// extensions that are installed: -e does not reach it.
func TestLiveOMPARevivedAgentBelongsToItsSession(t *testing.T) {
	ctx, s := startLive(t, live.Programs{
		"main": {
			live.Call("task", live.M{"context": "c", "tasks": []live.M{{"name": "Alpha", "task": "PROGRAM:leaf"}}}),
			live.Call("hub", live.M{"op": "wait"}), live.Say("done"),
		},
		"leaf":  {live.Call("bash", live.M{"command": "echo first"}), finish},
		"wake":  {live.Call("hub", live.M{"op": "send", "to": "Alpha", "message": "PROGRAM:again", "await": true}), live.Say("woken")},
		"again": {live.Call("bash", live.M{"command": "echo second"}), live.Say("again done")},
	})
	hook := newFakeHook(t, nil)
	installed := filepath.Join(s.Home, ".omp", "agent", "extensions", "capgate.ts")
	require.NoError(t, os.MkdirAll(filepath.Dir(installed), 0o700))
	require.NoError(t, os.WriteFile(installed, omp.Extension(hook.file, nil, ""), 0o600))
	session := ""
	for _, run := range []struct {
		program string
		args    []string
	}{{"main", nil}, {"wake", []string{"--continue"}}} {
		client, err := s.OMPRPC(ctx, live.OMPRun{Args: run.args})
		require.NoError(t, err)
		if session != "" {
			require.Equal(t, session, client.Session, "continued")
		}
		session = client.Session
		require.NoError(t, client.Prompt("PROGRAM:"+run.program))
		require.NoError(t, client.Settled())
		require.NoError(t, client.Close())
	}
	require.Contains(t, oneResult(t, s.Model, "again", "bash").Text, "second")
	var first, second question
	for _, q := range hook.questions(t) {
		switch string(q.Input) {
		case `{"command":"echo first"}`:
			first = q
		case `{"command":"echo second"}`:
			second = q
		}
	}
	require.NotEmpty(t, first.AgentID)
	require.Equal(t, first.AgentID, second.AgentID)
	require.Equal(t, "task", second.AgentType)
	require.Equal(t, session, second.Session)
}

// A gap of the client, kept here so that we hear when it closes (docs/coverage.md): in plan mode subagents get no
// extensions, so nothing that they do is judged. The call that starts them is.
func TestLiveOMPInPlanModeSubagentsAreNotSeen(t *testing.T) {
	ctx, s := startLive(t, live.Programs{
		"main": {
			live.Call("task", live.M{"context": "c", "tasks": []live.M{{"name": "Alpha", "agent": "scout", "task": "PROGRAM:leaf"}}}),
			live.Call("hub", live.M{"op": "wait"}), live.Say("done"),
		},
		"leaf": {live.Call("web_search", live.M{"query": "q"}), live.Say("found")},
	})
	hook := newFakeHook(t, nil)
	_, err := s.OMPHeadless(ctx, live.OMPRun{
		Prompt: "PROGRAM:main", Extension: writeExtension(t, s, hook.file, nil), Args: []string{"--plan-yolo"},
	})
	require.NoError(t, err)
	require.False(t, oneResult(t, s.Model, "leaf", "web_search").IsError)
	var seen []string
	for _, q := range hook.questions(t) {
		seen = append(seen, q.Tool)
	}
	require.Equal(t, []string{"task", "hub"}, seen)
}
