package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/gates"
)

const spawnFinder = `{"session_id":"` + session + `","hook_event_name":"PreToolUse","tool_name":"Agent","tool_use_id":"toolu_1","tool_input":{"description":"d","prompt":"p","subagent_type":"joke-finder"}}`

// gated is a world whose allow list is joke-finder and joke-critic; the cap is off.
func gated(t *testing.T, set ...string) *world {
	w := newWorld(t)
	delete(w.env, "CAPGATE_ENABLED")
	w.env["CAPGATE_ALLOWED_SUBAGENTS"] = "joke-finder, joke-critic"
	for i := 0; i < len(set); i += 2 {
		w.env[set[i]] = set[i+1]
	}
	require.NoError(t, os.MkdirAll(w.state, 0o700))
	return w
}

func (w *world) spec(text string) *world {
	path := filepath.Join(w.t.TempDir(), "spec.json")
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
	delete(w.env, "CAPGATE_ALLOWED_SUBAGENTS")
	w.env["CAPGATE_SPEC"] = path
	return w
}

// said is the one JSON object on stdout.
type said struct {
	HookSpecificOutput struct {
		HookEventName            string          `json:"hookEventName"`
		PermissionDecision       string          `json:"permissionDecision"`
		PermissionDecisionReason string          `json:"permissionDecisionReason"`
		UpdatedInput             json.RawMessage `json:"updatedInput"`
	} `json:"hookSpecificOutput"`
}

func (w *world) requireSaid(r result) said {
	w.t.Helper()
	require.Equal(w.t, 0, r.exit, r.stderr)
	require.Empty(w.t, r.stderr)
	dec := json.NewDecoder(strings.NewReader(r.stdout))
	dec.DisallowUnknownFields()
	var s said
	require.NoError(w.t, dec.Decode(&s))
	require.False(w.t, dec.More())
	require.Equal(w.t, "PreToolUse", s.HookSpecificOutput.HookEventName)
	require.NotEqual(w.t, "allow", s.HookSpecificOutput.PermissionDecision)
	return s
}

// requireReason holds a deny of a gate to its exact words, which the id follows.
func (w *world) requireReason(r result, code, reason string) {
	w.t.Helper()
	require.Equal(w.t, 2, r.exit)
	require.Empty(w.t, r.stdout)
	text, _, found := strings.Cut(r.stderr, " [capgate ")
	require.True(w.t, found, r.stderr)
	require.Equal(w.t, reason, text)
	require.Equal(w.t, code, w.code())
}

func TestEachGateThroughTheHook(t *testing.T) {
	const bash = "Bash is only available to dedicated subagents, not the main agent directly — use the Agent tool to delegate to one of them instead."
	typed := func(named string) string {
		return `Delegation is only available for "joke-finder"/"joke-critic" in this session, not "` + named + `" - do the task directly with your own tools instead of spawning another agent for it.`
	}
	t.Run("type", func(t *testing.T) {
		w := gated(t)
		w.requireReason(w.hook(payload(t, "PreToolUse-Agent-main.json")), gates.CodeType, typed("general-purpose"))
		w.requireReason(w.hook(payload(t, "PreToolUse-Agent-main-3.json")), gates.CodeType, typed("(unset)"))
		w.requireReason(w.hook(payload(t, "PreToolUse-Workflow-main.json")), gates.CodeType, typed("workflow-subagent"))
	})
	t.Run("caller", func(t *testing.T) {
		w := gated(t)
		w.requireDeny(w.hook(payload(t, "PreToolUse-Bash-general-purpose.json")), gates.CodeCaller)
		w.requireDeny(w.hook(payload(t, "PreToolUse-ToolSearch-general-purpose.json")), gates.CodeCaller)
		w.requirePass(w.hook(payload(t, "PreToolUse-Bash-joke-finder.json")))
	})
	t.Run("bash", func(t *testing.T) {
		w := gated(t)
		w.requireReason(w.hook(payload(t, "PreToolUse-Bash-main.json")), gates.CodeBash, bash)
	})
	t.Run("foreground", func(t *testing.T) {
		w := gated(t)
		s := w.requireSaid(w.hook(payload(t, "PreToolUse-Agent-main-2.json")))
		require.Empty(t, s.HookSpecificOutput.PermissionDecision)
		require.Equal(t, `{"description":"find jokes","prompt":"Run the helper.","subagent_type":"joke-finder","run_in_background":false}`,
			string(s.HookSpecificOutput.UpdatedInput))
		require.Equal(t, gates.CodeForeground, w.code())
	})
	t.Run("foreground required, interactive", func(t *testing.T) {
		w := gated(t, "CLAUDE_CODE_SESSION_ATTENDED", "1").spec(`{"subagents":{"joke-finder":{}},"foreground":"require"}`)
		w.requireDeny(w.hook(spawnFinder), gates.CodeForegroundRequired)
		w.env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] = "1"
		w.requireSaid(w.hook(spawnFinder))
	})
	t.Run("admission", func(t *testing.T) {
		w := gated(t, "CAPGATE_ADMISSION", "ask", "CLAUDE_CODE_SESSION_ATTENDED", "1")
		s := w.requireSaid(w.hook(spawnFinder))
		require.Equal(t, "ask", s.HookSpecificOutput.PermissionDecision)
		require.Equal(t, "Spawn 1 subagent?\n\n- d [joke-finder]: p\n\nSubagents add latency and cost. Approve only when delegation materially helps.",
			s.HookSpecificOutput.PermissionDecisionReason)
		require.Equal(t, gates.CodeAdmissionAsk, w.code())
		w.env["CLAUDE_CODE_SESSION_ATTENDED"] = "0"
		w.requireDeny(w.hook(spawnFinder), gates.CodeAdmissionNoUI)
		w.env["CAPGATE_ADMISSION"] = "deny"
		w.requireDeny(w.hook(spawnFinder), gates.CodeAdmissionDenied)
	})
	t.Run("admission without a list", func(t *testing.T) {
		w := gated(t, "CAPGATE_ADMISSION", "ask", "CLAUDE_CODE_SESSION_ATTENDED", "0")
		delete(w.env, "CAPGATE_ALLOWED_SUBAGENTS")
		w.requireDeny(w.hook(payload(t, "PreToolUse-Agent-main.json")), gates.CodeAdmissionNoUI)
		w.requirePass(w.hook(payload(t, "PreToolUse-Bash-main.json")))
	})
}

func TestTheAllowListTurnsTheGatesOn(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(env map[string]string)
		deny bool
	}{
		{"unset", func(env map[string]string) { delete(env, "CAPGATE_ALLOWED_SUBAGENTS") }, false},
		{"empty", func(env map[string]string) { env["CAPGATE_ALLOWED_SUBAGENTS"] = "" }, false},
		{"a lone comma is an empty list", func(env map[string]string) { env["CAPGATE_ALLOWED_SUBAGENTS"] = "," }, true},
		{"another type", func(env map[string]string) { env["CAPGATE_ALLOWED_SUBAGENTS"] = "scout" }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := gated(t)
			c.set(w.env)
			r := w.hook(spawnFinder)
			if c.deny {
				w.requireDeny(r, gates.CodeType)
			} else {
				w.requirePass(r)
			}
		})
	}
	t.Run("a spec's list is used where both are given", func(t *testing.T) {
		w := gated(t).spec(`{"subagents":{"scout":{}}}`)
		w.env["CAPGATE_ALLOWED_SUBAGENTS"] = "joke-finder"
		w.requireDeny(w.hook(spawnFinder), gates.CodeType)
	})
}

// A spec that is named but cannot be used denies spawns and the main thread's shell, and says which file.
func TestAnUnusableSpecDeniesSpawnsAndTheShell(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"missing": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"empty":   func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) },
		"wrong": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte(`{"subagent":{}}`), 0o600))
		},
		"a directory": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o700))
		},
		"too large": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 2<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := gated(t).spec(`{"subagents":{"joke-finder":{}}}`)
			spoil(t, w.env["CAPGATE_SPEC"])
			for _, p := range []string{
				spawnFinder, payload(t, "PreToolUse-Bash-main.json"), payload(t, "PreToolUse-Workflow-main.json"),
				payload(t, "PreToolUse-Bash-general-purpose.json"), // whose type may not be declared
			} {
				r := w.hook(p)
				w.requireDeny(r, capgate.CodeSpecUnreadable)
				require.Contains(t, r.stderr, w.env["CAPGATE_SPEC"])
			}
			w.requirePass(w.hook(payload(t, "PreToolUse-Write-main.json")))
			w.requirePass(w.hook(payload(t, "PreToolUse-WebSearch-general-purpose.json")))
		})
	}
	t.Run("a relative path", func(t *testing.T) {
		w := gated(t, "CAPGATE_SPEC", "spec.json")
		r := w.hook(spawnFinder)
		w.requireDeny(r, capgate.CodeSpecUnreadable)
		require.Contains(t, r.stderr, "name an absolute one")
	})
}

func TestAnUnparsablePayloadDeniesWhileTheGatesAreOn(t *testing.T) {
	w := gated(t)
	for _, p := range []string{"", "{", "[]", spawnFinder + "x"} {
		w.requireDeny(w.hook(p), capgate.CodeGatesUnparsable)
	}
	w.env["CAPGATE_DISABLE_GATES"] = "1"
	w.requirePass(w.hook("{"))
}

// Each kill switch does what its row says and nothing else. The world denies by the cap, by type and by the guard.
func TestKillSwitches(t *testing.T) {
	search, spawn := call(session, "WebSearch"), payload(t, "PreToolUse-Agent-main.json")
	for _, c := range []struct {
		name                 string
		set                  map[string]string
		search, spawn, write bool // denied
	}{
		{"none", nil, true, true, true},
		{"the cap's", map[string]string{"CAPGATE_DISABLE_CAP": "1"}, false, true, true},
		{"the gates'", map[string]string{"CAPGATE_DISABLE_GATES": "1"}, true, true, true}, // the spawn by the cap
		{"both", map[string]string{"CAPGATE_DISABLE_GATES": "1", "CAPGATE_DISABLE_CAP": "1"}, false, false, false},
		{"everything", map[string]string{"CAPGATE_DISABLE": "1"}, false, false, false},
		{"true is not 1", map[string]string{"CAPGATE_DISABLE": "true", "CAPGATE_DISABLE_GATES": "true", "CAPGATE_DISABLE_CAP": "true"}, true, true, true},
		{"gates without the cap", map[string]string{"CAPGATE_ENABLED": ""}, false, true, true},
		{"the cap without gates", map[string]string{"CAPGATE_ALLOWED_SUBAGENTS": ""}, true, true, true},
		{"neither", map[string]string{"CAPGATE_ALLOWED_SUBAGENTS": "", "CAPGATE_ENABLED": ""}, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
			w.env["CAPGATE_ALLOWED_SUBAGENTS"] = "joke-finder"
			maps.Copy(w.env, c.set)
			write := writes("Write", filepath.Join(w.state, "ledger.db"))
			for payload, denied := range map[string]bool{search: c.search, spawn: c.spawn, write: c.write} {
				r := w.hook(payload)
				if !denied {
					w.requirePass(r)
					continue
				}
				require.Equal(t, 2, r.exit, payload)
			}
		})
	}
	t.Run("the reason is the first in the order of gates", func(t *testing.T) {
		w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
		w.env["CAPGATE_ALLOWED_SUBAGENTS"], w.env["CAPGATE_ADMISSION"] = "joke-finder", "deny"
		w.requireDeny(w.hook(spawn), gates.CodeType)
		w.requireDeny(w.hook(spawnFinder), capgate.CodeBudgetSpent)
		w.env["CAPGATE_DISABLE_CAP"] = "1"
		w.requireDeny(w.hook(spawnFinder), gates.CodeAdmissionDenied)
	})
}

func TestAskAndRewriteAreOneAnswer(t *testing.T) {
	w := gated(t, "CAPGATE_ADMISSION", "ask", "CLAUDE_CODE_SESSION_ATTENDED", "1")
	s := w.requireSaid(w.hook(spawnFinder))
	require.Equal(t, "ask", s.HookSpecificOutput.PermissionDecision)
	require.Equal(t, `{"description":"d","prompt":"p","subagent_type":"joke-finder","run_in_background":false}`, string(s.HookSpecificOutput.UpdatedInput))

	// With the cap within its budget the answer is the same, and at the cap it is the cap's.
	w.open("r", 1, 1).arm(session, "r")
	w.env["CAPGATE_ENABLED"] = "1"
	w.requireSaid(w.hook(spawnFinder))
	w.turns("r", 1)
	w.requireDeny(w.hook(spawnFinder), capgate.CodeBudgetSpent)
}

// Silence would let the call go on: where the question or the rewrite cannot be written, the call is blocked.
func TestAnAnswerThatCannotBeWrittenBlocks(t *testing.T) {
	for name, env := range map[string][]string{
		"a question": {"CAPGATE_ADMISSION", "ask", "CLAUDE_CODE_SESSION_ATTENDED", "1"}, "a rewrite": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := gated(t, env...)
			w.env["CAPGATE_DEADLINE_MS"] = "500"
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Skip("no /dev/full here")
			}
			defer func() { _ = full.Close() }()
			cmd := w.command(t.Context())
			cmd.Stdin, cmd.Stdout = strings.NewReader(spawnFinder), full
			_ = cmd.Run()
			require.Equal(t, 2, cmd.ProcessState.ExitCode())
		})
	}
}

func writes(tool, path string) string {
	text, err := json.Marshal(map[string]any{
		"session_id": session, "hook_event_name": "PreToolUse", "tool_name": tool, "cwd": "/tmp",
		"tool_input": map[string]string{"file_path": path, "notebook_path": path, "content": "x"},
	})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestGuardSeesThroughNames(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").spec(`{"subagents":{}}`)
	dir := t.TempDir()
	link := func(name, target string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.Symlink(target, path))
		return path
	}
	settings := filepath.Join(dir, "settings.json")
	require.NoError(t, os.WriteFile(settings, []byte(`{"hooks":{"PreToolUse":[{"hooks":[{"command":"/usr/bin/capgate-hook"}]}]}}`), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "other"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other", "settings.json"), []byte(`{}`), 0o600))
	for _, c := range []struct{ name, path, code string }{
		{"the ledger", filepath.Join(w.state, "ledger.db"), gates.CodeGuardState},
		{"a marker that is not there yet", filepath.Join(w.state, "trekresearch-loop-scope", "new.json"), gates.CodeGuardState},
		{"with dots", filepath.Join(w.state, "x") + "/../ledger.db", gates.CodeGuardState},
		{"through a link to the directory", filepath.Join(link("a", w.state), "ledger.db"), gates.CodeGuardState},
		{"through a link to the file", link("b", filepath.Join(w.state, "ledger.db")), gates.CodeGuardState},
		{"through a link to what is not there yet", link("c", filepath.Join(w.state, "new.json")), gates.CodeGuardState},
		{"through two links", link("d", filepath.Join(dir, "c")), gates.CodeGuardState},
		{"through a relative link", link("e", mustRel(dir, w.state)+"/decisions.jsonl"), gates.CodeGuardState},
		{"a directory that is not there yet", filepath.Join(dir, "a", "deep", "er", "x"), gates.CodeGuardState},
		{"relative to the session", mustRel("/tmp", w.state) + "/ledger.db", gates.CodeGuardState},
		{"the spec", w.env["CAPGATE_SPEC"], gates.CodeGuardSpec},
		{"a link to the spec", link("f", w.env["CAPGATE_SPEC"]), gates.CodeGuardSpec},
		{"settings with the hook", settings, gates.CodeGuardSettings},
		{"a link to them", link("g", settings), gates.CodeGuardSettings},
		{"settings without the hook", filepath.Join(dir, "other", "settings.json"), ""},
		{"settings that are not there yet", filepath.Join(dir, "none", "settings.json"), ""},
		{"a loop of links", func() string { link("h", filepath.Join(dir, "i")); return link("i", filepath.Join(dir, "h")) }(), ""},
		{"somewhere else", filepath.Join(dir, "x.md"), ""},
		{"no path", "", ""},
	} {
		for _, tool := range []string{"Write", "Edit", "MultiEdit", "NotebookEdit"} {
			t.Run(c.name+"/"+tool, func(t *testing.T) {
				w := &world{t: t, state: w.state, env: w.env}
				r := w.hook(writes(tool, c.path))
				switch c.code {
				case "":
					w.requirePass(r)
				case gates.CodeGuardSettings:
					require.Equal(t, "ask", w.requireSaid(r).HookSpecificOutput.PermissionDecision)
				default:
					w.requireDeny(r, c.code)
				}
			})
		}
	}
	w.requirePass(w.hook(payload(t, "PreToolUse-Write-main.json")))
}

func mustRel(base, path string) string {
	base, err := filepath.EvalSymlinks(base)
	if err != nil {
		panic(err)
	}
	rel, err := filepath.Rel(base, path)
	if err != nil {
		panic(err)
	}
	return rel
}

func (w *world) admit(uses int, kind string) string {
	now := time.Now().UTC()
	id := decisionlog.NewID(now)
	require.NoError(w.t, admission.Add(w.t.Context(), w.state, admission.Admission{
		ID: id, Type: kind, Uses: uses, Reason: "test", At: now, Until: now.Add(time.Hour),
	}))
	return id
}

func spawnWith(use string) string { return strings.Replace(spawnFinder, "toolu_1", use, 1) }

// An admission lets spawns through without a prompt, also unattended, and what it lets through is still moved to the
// foreground, and logged under the admission's id.
func TestAdmittedBeforehand(t *testing.T) {
	for _, env := range [][]string{
		{"CAPGATE_ADMISSION", "ask", "CLAUDE_CODE_SESSION_ATTENDED", "0"},
		{"CAPGATE_ADMISSION", "ask", "CLAUDE_CODE_SESSION_ATTENDED", "1"},
		{"CAPGATE_ADMISSION", "deny"},
	} {
		w := gated(t, env...)
		id := w.admit(1, "joke-finder")
		for range 2 { // two copies of one hook run for one call
			s := w.requireSaid(w.hook(spawnWith("toolu_a")))
			require.Empty(t, s.HookSpecificOutput.PermissionDecision)
			require.NotEmpty(t, s.HookSpecificOutput.UpdatedInput)
		}
		last, err := decisionlog.Last(w.state, 1)
		require.NoError(t, err)
		require.Equal(t, id, last[0].Admission)
		r := w.hook(strings.Replace(spawnWith("toolu_a"), `"prompt":"p"`, `"prompt":"q"`, 1))
		require.NotEqual(t, "", r.stdout+r.stderr, "the id alone does not make it the same call")
		r = w.hook(spawnWith("toolu_b"))
		require.NotEqual(t, "", r.stdout+r.stderr, "used up")
	}
	t.Run("a plain pass is logged, too", func(t *testing.T) {
		w := gated(t, "CAPGATE_ADMISSION", "deny")
		delete(w.env, "CAPGATE_ALLOWED_SUBAGENTS")
		id := w.admit(1, "joke-finder")
		w.requirePass(w.hook(spawnFinder))
		last, err := decisionlog.Last(w.state, 1)
		require.NoError(t, err)
		require.Equal(t, capgate.CodeAdmitted, last[0].Code)
		require.Equal(t, "pass", last[0].Outcome)
		require.Equal(t, id, last[0].Admission)
	})
	t.Run("it is not used up by a call that is denied anyway", func(t *testing.T) {
		w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
		w.env["CAPGATE_ADMISSION"] = "deny"
		w.admit(1, "joke-finder")
		w.requireDeny(w.hook(spawnFinder), capgate.CodeBudgetSpent)
		all, err := admission.List(w.state)
		require.NoError(t, err)
		require.Empty(t, all[0].Spent)
	})
	t.Run("it does not stand above the type gate", func(t *testing.T) {
		w := gated(t, "CAPGATE_ADMISSION", "deny")
		w.admit(1, "general-purpose")
		w.requireDeny(w.hook(payload(t, "PreToolUse-Agent-main.json")), gates.CodeType)
	})
}

func TestExactlyAsManySpawnsAsWereAdmitted(t *testing.T) {
	const uses = 10
	w := gated(t, "CAPGATE_ADMISSION", "deny")
	w.admit(uses, "joke-finder")
	var mu sync.Mutex
	var wg sync.WaitGroup
	through := 0
	for i := range uses + 20 {
		wg.Go(func() {
			r := w.hook(spawnWith(fmt.Sprintf("toolu_%d", i)))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r.exit == 0:
				through++
			case !strings.Contains(r.stderr, "switched off"):
				t.Errorf("exit %d: %s", r.exit, r.stderr)
			}
		})
	}
	wg.Wait()
	require.Equal(t, uses, through)
}

func (w *world) ask(payload string) string {
	w.t.Helper()
	w.args = []string{"--client", "omp"}
	r := w.hook(payload)
	require.Equal(w.t, 0, r.exit)
	require.Empty(w.t, r.stderr)
	require.True(w.t, json.Valid([]byte(r.stdout)), r.stdout)
	return r.stdout
}

func TestOhMyPiIsAlwaysAnsweredOnStdout(t *testing.T) {
	const batch = `{"session_id":"` + session + `","tool_name":"task","tool_use_id":"t1","tool_input":{"tasks":[{"name":"a","agent":"scout","task":"look"},{"agent":"scout"}]},"has_ui":%v}`
	search := `{"session_id":"` + session + `","tool_name":"web_search","tool_input":{"query":"x"}}`
	w := newWorld(t).open("r", 1, 1).arm(session, "r")
	require.JSONEq(t, `{"outcome":"pass"}`, w.ask(search))
	w.turns("r", 1)
	require.Contains(t, w.ask(search), `"reason":"capgate: turn budget spent (1 of 1, run r)`)
	require.Contains(t, w.ask(fmt.Sprintf(batch, true)), "turn budget spent")
	require.Contains(t, w.ask(`{"session_id":"`+session+`","tool_name":"read","tool_input":{"path":"https://example.org"}}`), "turn budget spent")
	require.JSONEq(t, `{"outcome":"pass"}`, w.ask(`{"session_id":"`+session+`","tool_name":"read","tool_input":{"path":"README.md"}}`))
	require.JSONEq(t, `{"outcome":"pass"}`, w.ask(strings.Replace(search, session, "another", 1)))

	w = gated(t, "CAPGATE_ADMISSION", "ask")
	w.env["CAPGATE_ALLOWED_SUBAGENTS"] = "scout"
	require.JSONEq(t, `{"outcome":"ask","title":"Approve subagent spawn?","message":"Spawn 2 subagents?\n\n- a [scout]: look\n\n- spawn 2 [scout]: (task not provided)\n\nSubagents add latency and cost. Approve only when delegation materially helps."}`,
		w.ask(fmt.Sprintf(batch, true)))
	require.Contains(t, w.ask(fmt.Sprintf(batch, false)), "Spawning subagents requires explicit user approval in an interactive OMP session.")
	require.Contains(t, w.ask(`{"session_id":"s","tool_name":"bash","tool_input":{"command":"ls"}}`), "Bash is only available to dedicated subagents")
	require.JSONEq(t, `{"outcome":"pass"}`, w.ask(`{"session_id":"s","tool_name":"bash","agent_id":"x","agent_type":"scout","tool_input":{}}`))
	require.Contains(t, w.ask(`nonsense`), `"outcome":"deny"`)

	require.Contains(t, w.ask(`{"session_id":"s","tool_name":"write","cwd":"/","tool_input":{"path":"`+w.state+`/x"}}`), "written by capgate and its operator only")
	require.Contains(t, w.ask(`{"session_id":"s","tool_name":"edit","cwd":"`+w.state+`","tool_input":{"paths":["/tmp/a","ledger.db"]}}`), "written by capgate and its operator only")

	w.env = map[string]string{}
	require.JSONEq(t, `{"outcome":"pass"}`, w.ask(search), "off")
}

func TestAWronglyWiredHookBlocks(t *testing.T) {
	for _, args := range [][]string{{"--client"}, {"--client", "vim"}, {"--help"}, {"hook"}, {"--env", "X"}, {"--env", "=1"}, {"--client", "omp", "x"}} {
		w := newWorld(t)
		w.args = args
		r := w.hook(call(session, "WebSearch"))
		require.Equal(t, 2, r.exit)
		require.Empty(t, r.stdout)
		require.Contains(t, r.stderr, "unknown arguments")
	}
}
