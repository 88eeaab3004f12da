package look

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/client/omp"
	"github.com/capgate/capgate/capgate/control"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/scope"
)

// NewExplain returns the command explain.
func NewExplain(a *cli.App) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:     "explain [ID]",
		GroupID: cli.GroupOperator,
		Short:   "Say why a call was judged as it was, and what would change it",
		Long: `Says which row of the decision table held, every input that was looked at, and what would change the verdict.

With an ID, the one at the end of a reason or in capgate log, it explains that decision from the log, and says how the
same call would be judged now.

Without one it reads a hook payload from standard input and judges it as the hook would, in this shell's environment;
nothing is logged, no marker is removed, and the exit status is 0 whatever the verdict.`,
		Example: `  capgate explain 01JD8XJ6S0W5T0V9Z1Q2R3M4N5
  CAPGATE_ENABLED=1 capgate explain < payload.json
  CAPGATE_ENABLED=1 capgate explain --client omp < question.json`,
		Args: cli.AtMostOneArg("one id"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return explainID(a, cmd, args[0])
			}
			return explainPayload(a, cmd, name)
		}),
	}
	cli.ClientFlag(cmd, &name, "whose payload is on standard input")
	return cmd
}

func explainID(a *cli.App, cmd *cobra.Command, id string) error {
	r, err := find(a, id)
	if err != nil {
		return err
	}
	e := explanation{ID: r.ID, At: r.At, Outcome: r.Outcome, Code: r.Code, Reason: r.Reason, Inputs: recorded(r)}
	e.fill()

	if e.Row > 0 { // inputs are not logged, so the gates cannot be asked again
		f, err := facts(a, true)
		if err != nil {
			return err
		}
		f.Config.Enabled, f.Config.DisableGates = "1", "1" // the hook that wrote the record was on, whatever this shell says
		f.Known = capgate.StagePayload
		f.Call = gates.Call{Session: r.Session, Tool: r.Tool, AgentID: r.AgentID, AgentType: r.AgentType, UseID: r.ToolUseID}
		if r.Client == client.OMP {
			f.Call.CountsAs, f.Call.Untyped = omp.CountsAs(f.Call), true
		}
		now := judge(a, cmd, f, "")
		e.Now = &now
	}
	if a.AsJSON {
		return a.JSON(e)
	}
	a.Printf("decision %s at %s\n", e.ID, cli.Stamp(e.At))
	printExplanation(a.Printer, e)
	if e.Now != nil {
		a.Printf("\nThe same call now: %s (%s)\n", e.Now.Outcome, e.Now.Code)
		if e.Now.Code != e.Code {
			a.Printf("  %s\n", e.Now.Why)
		}
	}
	return nil
}

// find looks for a decision in the log of each installation, and leaves the command at the one that has it.
func find(a *cli.App, id string) (r decisionlog.Record, err error) {
	states, err := a.StateDirs()
	if err != nil {
		return r, err
	}
	for _, state := range states {
		r, err = decisionlog.Find(state, id)
		if err == nil {
			a.StateFlag = cli.Text(state)
			return r, nil
		}
		if !errors.Is(err, decisionlog.ErrNotFound) {
			return r, err
		}
	}
	return r, fmt.Errorf("no decision %s in %s: the log keeps about 30 MiB, and a hook without a state directory cannot write to it", id, strings.Join(states, " or "))
}

// recorded lists what the log kept of a decision's inputs.
func recorded(r decisionlog.Record) []fact {
	facts := []fact{
		{Stage: "payload", Name: "session", Value: r.Session},
		{Stage: "payload", Name: "tool", Value: r.Tool},
		{Stage: "payload", Name: "agent_id", Value: r.AgentID},
		{Stage: "payload", Name: "agent_type", Value: r.AgentType},
		{Stage: "payload", Name: "tool_use_id", Value: r.ToolUseID},
		{Stage: "marker", Name: "run", Value: r.Run},
	}
	if r.Used != nil && r.Limit != nil {
		facts = append(facts, fact{Stage: "ledger", Name: "used", Value: strconv.FormatInt(*r.Used, 10)},
			fact{Stage: "ledger", Name: "limit", Value: strconv.FormatInt(*r.Limit, 10)})
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" })
}

func explainPayload(a *cli.App, cmd *cobra.Command, name string) error {
	if err := cli.CheckClient(name); err != nil {
		return err
	}
	if cli.IsTerminal(a.Stdin) {
		return cli.Usagef("explain needs an id, or a payload on standard input: capgate explain < payload.json")
	}
	payload, err := io.ReadAll(a.Stdin)
	if err != nil {
		return fmt.Errorf("read the payload: %w", err)
	}
	f, err := facts(a, false)
	if err != nil {
		return err
	}
	call, err := hook.Clients[name].Decode(payload, a.Lookup)
	f.Known = capgate.StagePayload
	f.Call, f.PayloadErr = call.Call, err
	e := judge(a, cmd, f, call.Event)
	if call.Silent {
		e = explanation{
			At: e.At, Outcome: "pass", Why: "only PreToolUse is judged, this is " + call.Event, Change: "nothing", Inputs: e.Inputs,
		}
	}
	if a.AsJSON {
		return a.JSON(e)
	}
	printExplanation(a.Printer, e)
	return nil
}

// facts returns the configuration as facts: the hook's, which has no default for the state directory, or with
// defaults as the other commands have them. --state and --ledger count in both.
func facts(a *cli.App, defaults bool) (capgate.Facts, error) {
	c, err := a.Config()
	if err != nil {
		return capgate.Facts{}, err
	}
	if defaults || a.StateFlag != "" {
		if c.DataDir, err = a.StateDir(); err != nil {
			return capgate.Facts{}, err
		}
	}
	if a.LedgerFlag != "" {
		if c.Ledger, err = a.LedgerPath(); err != nil {
			return capgate.Facts{}, err
		}
	}
	f := capgate.Facts{Config: c, Now: a.Now()}
	if state, ok := c.StateDir(); ok && c.GuardActive() {
		said := control.Read(state, f.Now)
		f.Config, f.Halt = c.Under(said.Off), said.Halt
	}
	return f, nil
}

// judge decides as the hook does, without doing anything about it.
func judge(a *cli.App, cmd *cobra.Command, f capgate.Facts, event string) explanation {
	ctx, cancel := a.Context(cmd)
	defer cancel()
	for {
		stage, more := f.Next()
		switch {
		case more && stage == capgate.StageAdmission:
			f.Known = stage // taking it would use it up
			state, _ := f.Config.StateDir()
			if ids, ok := admission.Would(state, hook.AdmissionCall(f.Call), f.Now); ok {
				f.AdmittedBy = strings.Join(ids, ",")
			}
			continue
		case more:
			f = hook.Gather(ctx, f, stage)
			continue
		}
		d := capgate.Decide(f)
		e := explanation{
			At: f.Now.UTC(), Outcome: d.Verdict.Outcome.String(), Code: d.Verdict.Code, Reason: d.Verdict.Reason,
			Inputs: lookedAt(a, f, event), Cap: d.Row.Code,
		}
		for _, j := range d.Gates {
			e.Gates = append(e.Gates, gate{Gate: j.Gate, Outcome: j.Verdict.Outcome.String(), Code: j.Verdict.Code})
		}
		e.fill()
		return e
	}
}

// lookedAt lists the facts that were gathered.
func lookedAt(a *cli.App, f capgate.Facts, event string) []fact {
	var facts []fact
	add := func(stage, name, value string) {
		facts = append(facts, fact{Stage: stage, Name: name, Value: value})
	}
	for _, v := range capgate.Variables(a.Settings()) {
		if v.Value != "" {
			facts = append(facts, fact{Stage: "environment", Name: v.Name, Value: v.Value, From: v.From})
		}
	}
	if f.Config.EnvFile != "" {
		add("environment", "file", f.Config.EnvFile)
	}
	if f.Config.Problem != nil {
		add("environment", "error", f.Config.Problem.Error())
	}
	if said := a.Power(); said.Off != nil {
		add("environment", "off", said.Off.OffText())
	}
	if f.Halt != nil {
		add("environment", "halt", f.Halt.HaltText())
	}
	if f.Known >= capgate.StagePayload {
		if f.PayloadErr != nil {
			add("payload", "error", f.PayloadErr.Error())
		}
		add("payload", "event", event)
		add("payload", "session", f.Call.Session)
		add("payload", "tool", f.Call.Tool)
		add("payload", "agent_id", f.Call.AgentID)
		add("payload", "agent_type", f.Call.AgentType)
	}
	if f.MarkerErr != nil || !f.Marker.ModTime.IsZero() {
		state, _ := f.Config.StateDir()
		add("marker", "file", scope.Path(state, f.Call.Session))
		if f.MarkerErr != nil {
			add("marker", "error", f.MarkerErr.Error())
		} else {
			add("marker", "run", f.Marker.Run)
			add("marker", "started", cli.Stamp(f.Marker.StartedAt))
		}
		if !f.Marker.ModTime.IsZero() {
			add("marker", "age", fmt.Sprintf("%v of %v", f.Marker.Age(f.Now).Round(time.Second), f.TTL()))
		}
		if f.Marker.Anchor != nil {
			add("marker", "anchor", fmt.Sprintf("entry %d of ledger %.12s…", f.Marker.Anchor.Seq, f.Marker.Anchor.Ledger))
		}
	}
	if f.LedgerErr != nil || f.Budget.Limit > 0 {
		if path, err := f.Config.LedgerPath(); err == nil {
			add("ledger", "file", path)
		}
		if f.LedgerErr != nil {
			add("ledger", "error", f.LedgerErr.Error())
		} else {
			add("ledger", "used", strconv.FormatInt(f.Budget.Used, 10))
			add("ledger", "limit", strconv.FormatInt(f.Budget.Limit, 10))
			add("ledger", "closed", strconv.FormatBool(f.Budget.Closed))
		}
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" })
}
