package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/omp"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/gates"
)

// Words of the probe: each names what its hook answers to the command that holds it. They stand in the prompts, too.
const (
	wordExit2   = "exit2"   // blocked by exit status 2
	wordDeny    = "deny"    // blocked by a JSON deny
	wordRewrite = "rewrite" // goes on with another input
	wordPass    = "pass"    // goes on
	wordAsk     = "ask"     // a human is to be asked
	wordSpawn   = "spawn"   // the same, for a subagent of Oh My Pi
)

// rewritten is what the command with wordRewrite becomes.
const rewritten = "capgate-probe-rewritten"

// callsFile is the file, in the directory that the hook is given, that takes one line for each payload.
const callsFile = "calls.jsonl"

// maxProbePayload bounds what the probe's hook reads of a payload, in bytes. Of a longer one nothing is known, and it passes.
const maxProbePayload = 1 << 20

func newProbeHookCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:    "probe-hook DIR [--client omp]",
		Hidden: true,
		Short:  "Answer one tool call of a client that is being probed (what capgate probe makes a client run)",
		Long: `Reads one hook event from standard input, adds it as one line to calls.jsonl in DIR, and answers the commands of
capgate probe as planned. Every other call passes: the exit status is 2 for the one command that is to be blocked by it,
else 0, whatever happens.`,
		Example:            `  echo '{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}' | capgate probe-hook /tmp`,
		DisableFlagParsing: true,
		RunE: a.Do(func(_ *cobra.Command, args []string) error {
			os.Exit(probeHook(a, args))
			return nil
		}),
	}
}

// probeHook records a call, answers it and returns the exit status. What goes wrong is no reason to hold up a call.
func probeHook(a *cli.App, args []string) (status int) {
	defer func() {
		if recover() != nil {
			status = 0
		}
	}()
	if len(args) == 0 {
		return 0
	}
	payload, err := io.ReadAll(io.LimitReader(a.Stdin, maxProbePayload))
	if err != nil {
		return 0
	}
	forOMP := len(args) == 3 && args[1] == "--client" && args[2] == "omp"
	c := parseCall(payload)
	answered := c.planned(forOMP)
	record(args[0], recordedCall{Time: a.Now().UTC(), Answered: answered, Payload: payload})
	if forOMP {
		v := gates.Verdict{}
		switch answered {
		case wordDeny:
			v = gates.Verdict{Outcome: gates.Deny, Reason: reasonPlanned}
		case wordAsk:
			v = gates.Verdict{Outcome: gates.Ask, Reason: "capgate probe\n" + reasonPlanned} // a dialog's title, and its text
		}
		_, _ = a.Stdout.Write(omp.Encode(v))
		return 0
	}
	var answer map[string]any
	switch answered {
	case wordExit2:
		fmt.Fprintln(a.Stderr, reasonPlanned)
		return 2
	case wordDeny, wordAsk:
		answer = map[string]any{"permissionDecision": answered, "permissionDecisionReason": reasonPlanned}
	case wordRewrite:
		answer = map[string]any{"updatedInput": c.rewritten()}
	default:
		return 0
	}
	answer["hookEventName"] = "PreToolUse"
	_ = json.NewEncoder(a.Stdout).Encode(map[string]any{"hookSpecificOutput": answer})
	return 0
}

const reasonPlanned = "capgate probe stops this call, as planned. Do not retry it: go on with the next step."

// recordedCall is one line of callsFile. An Oh My Pi tool result is recorded by an extension, in the same form.
type recordedCall struct {
	Time     time.Time       `json:"time"`
	Answered string          `json:"answered,omitempty"` // a word; "" for what is not answered
	Payload  json.RawMessage `json:"payload"`
}

// record appends one line, in one write.
func record(dir string, r recordedCall) {
	line, err := json.Marshal(r)
	if err != nil { // the payload is no JSON
		r.Payload, _ = json.Marshal(fmt.Sprintf("%d bytes that are no JSON", len(r.Payload)))
		line, _ = json.Marshal(r)
	}
	f, err := os.OpenFile(filepath.Join(dir, callsFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(append(line, '\n'))
	_ = f.Close()
}

// probeCall is a recorded call as the answers need it.
type probeCall struct {
	Line     int // in callsFile, from 1
	Answered string

	Event     string          `json:"hook_event_name"` // PreToolUse, PostToolUse; Oh My Pi: "" and tool_result
	AgentID   string          `json:"agent_id"`
	AgentType string          `json:"agent_type"`
	Tool      string          `json:"tool_name"`
	UseID     string          `json:"tool_use_id"`
	Input     json.RawMessage `json:"tool_input"`
	Response  json.RawMessage `json:"tool_response"`
	IsError   bool            `json:"is_error"` // of a tool_result

	Transcript string `json:"transcript_path"`
}

// parseCall reads what it can of a payload.
func parseCall(payload []byte) (c probeCall) {
	_ = json.Unmarshal(bytes.TrimPrefix(payload, []byte("\ufeff")), &c)
	return c
}

func (c probeCall) before() bool { return c.Event == "PreToolUse" || c.Event == "" && c.Tool != "" }
func (c probeCall) after() bool  { return c.Event == "PostToolUse" || c.Event == "tool_result" }
func (c probeCall) shell() bool {
	return c.Tool == "Bash" || c.Tool == "bash" || c.Tool == "PowerShell"
}
func (c probeCall) spawns() bool { return c.Tool == "Agent" || c.Tool == "Task" || c.Tool == "task" }

var probeWords = regexp.MustCompile(`\bcapgate-probe-([a-z0-9]+)\b`)

// word returns the word of one of the probe's own commands, "" for any other call. A command with several of them is none.
func (c probeCall) word() string {
	switch {
	case c.Tool == "task" && strings.Contains(string(c.Input), "capgate-probe-"+wordSpawn):
		return wordSpawn
	case !c.shell():
		return ""
	}
	found := probeWords.FindAllStringSubmatch(c.command(), -1)
	if len(found) != 1 || !strings.HasPrefix(strings.TrimSpace(c.command()), "echo ") {
		return ""
	}
	return found[0][1]
}

func (c probeCall) command() string {
	var input struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(c.Input, &input)
	return input.Command
}

// planned returns the word for how the call is answered.
func (c probeCall) planned(forOMP bool) string {
	if !c.before() {
		return ""
	}
	switch word := c.word(); {
	case word == wordDeny:
		return wordDeny
	case forOMP && word == wordSpawn:
		return wordAsk
	case !forOMP && (word == wordExit2 || word == wordRewrite || word == wordAsk):
		return word
	}
	return wordPass
}

// rewritten is the input with another command.
func (c probeCall) rewritten() map[string]any {
	input := map[string]any{}
	_ = json.Unmarshal(c.Input, &input)
	input["command"] = "echo " + rewritten
	return input
}

// ours says that nothing but the probe's own words can be in the call's input and output.
func (c probeCall) ours() bool {
	return c.word() != "" || c.shell() && strings.TrimSpace(c.command()) == "echo "+rewritten ||
		c.spawns() && bytes.Contains(c.Input, []byte("capgate-probe"))
}
