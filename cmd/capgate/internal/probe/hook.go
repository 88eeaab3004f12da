package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/client/omp"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
	"github.com/capgate/capgate/gates"
)

// NewHook returns the hidden command probe-hook.
func NewHook(a *cli.App) *cobra.Command {
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
			os.Exit(answer(a.Outside, args))
			return nil
		}),
	}
}

// answer records a call, answers it and returns the exit status. What goes wrong is no reason to hold up a call.
func answer(o cli.Outside, args []string) (status int) {
	defer func() {
		if recover() != nil {
			status = 0
		}
	}()
	if len(args) == 0 {
		return 0
	}
	payload, err := io.ReadAll(io.LimitReader(o.Stdin, maxPayload))
	if err != nil {
		return 0
	}
	forOMP := len(args) == 3 && args[1] == "--client" && args[2] == client.OMP
	c := parseCall(payload)
	answered := c.planned(forOMP)
	record(args[0], recordedCall{Time: o.Now().UTC(), Answered: answered, Payload: payload})
	if forOMP {
		v := gates.Verdict{}
		switch answered {
		case wordDeny:
			v = gates.Verdict{Outcome: gates.Deny, Reason: reasonPlanned}
		case wordAsk:
			v = gates.Verdict{Outcome: gates.Ask, Reason: "capgate probe\n" + reasonPlanned} // a dialog's title, and its text
		}
		_, _ = o.Stdout.Write(omp.Encode(v))
		return 0
	}
	var answer map[string]any
	switch answered {
	case wordExit2:
		fmt.Fprintln(o.Stderr, reasonPlanned)
		return 2
	case wordDeny, wordAsk:
		answer = map[string]any{"permissionDecision": answered, "permissionDecisionReason": reasonPlanned}
	case wordRewrite:
		answer = map[string]any{"updatedInput": c.rewritten()}
	default:
		return 0
	}
	answer["hookEventName"] = settings.Judged
	_ = json.NewEncoder(o.Stdout).Encode(map[string]any{"hookSpecificOutput": answer})
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

// maxPayload bounds what the probe's hook reads of a payload, in bytes. Of a longer one nothing is known, and it passes.
const maxPayload = 1 << 20
