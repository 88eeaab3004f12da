package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/capgate/omp"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/scope"
)

func newExplainCmd(a *cli.App) *cobra.Command {
	var client string
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
			return explainPayload(a, cmd, client)
		}),
	}
	cmd.Flags().StringVar(&client, "client", hook.Claude.Name, "whose payload is on standard input: claude or omp")
	return cmd
}

// explanation is what `explain --json` prints.
type explanation struct {
	ID      string          `json:"id,omitempty"`
	At      time.Time       `json:"at"`
	Outcome string          `json:"outcome"`
	Code    string          `json:"code"`
	Cap     string          `json:"cap,omitempty"`   // the code of the cap's row
	Row     int             `json:"row"`             // of the cap's table, from 1; 0 where it is not known
	Gates   []explainedGate `json:"gates,omitempty"` // each gate that was asked, the cap among them
	Reason  string          `json:"reason,omitempty"`
	Why     string          `json:"why"`
	Change  string          `json:"change"`
	Inputs  []explainedFact `json:"inputs"`
	Rows    []explainedRow  `json:"rows"`
	Now     *explanation    `json:"now,omitempty"` // the same call judged now, where an id was asked for
}

// explainedFact is one input that was looked at.
type explainedFact struct {
	Stage string `json:"stage"`
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from,omitempty"`
}

type explainedGate struct {
	Gate    string `json:"gate"`
	Outcome string `json:"outcome"`
	Code    string `json:"code,omitempty"`
}

type explainedRow struct {
	Row       int    `json:"row"`
	Code      string `json:"code"`
	State     string `json:"state"` // "no", "held" or "not asked"
	Condition string `json:"condition"`
}

// fill completes the parts that follow from the codes.
func (e *explanation) fill() {
	if e.Cap == "" {
		e.Cap = e.Code // of a logged decision one code is known
	}
	e.Row = 1 + slices.IndexFunc(capgate.Table, func(r capgate.Row) bool { return r.Code == e.Cap })
	switch why, change := capgate.CodeMeaning(e.Code); {
	case why != "":
		e.Why, e.Change = why, change
	default:
		e.Why, e.Change = "this version does not know the code", "nothing is known of it"
	}
	for i, row := range capgate.Table {
		state := "not asked"
		switch {
		case e.Row == i+1:
			state = "held"
		case i+1 < e.Row:
			state = "no"
		}
		e.Rows = append(e.Rows, explainedRow{Row: i + 1, Code: row.Code, State: state, Condition: row.Condition})
	}
}

func explainID(a *cli.App, cmd *cobra.Command, id string) error {
	state, err := a.StateDir()
	if err != nil {
		return err
	}
	r, err := decisionlog.Find(state, id)
	if errors.Is(err, decisionlog.ErrNotFound) {
		return fmt.Errorf("no decision %s in %s: the log keeps about 30 MiB, and a hook without a state directory cannot write to it", id, state)
	}
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
		if r.Client == hook.OMP.Name {
			f.Call.CountsAs = omp.CountsAs(f.Call)
		}
		now := judge(a, cmd, f, "")
		e.Now = &now
	}
	if a.AsJSON {
		return a.JSON(e)
	}
	a.Printf("decision %s at %s\n", e.ID, cli.Stamp(e.At))
	printExplanation(a, e)
	if e.Now != nil {
		a.Printf("\nThe same call now: %s (%s)\n", e.Now.Outcome, e.Now.Code)
		if e.Now.Code != e.Code {
			a.Printf("  %s\n", e.Now.Why)
		}
	}
	return nil
}

// recorded lists what the log kept of a decision's inputs.
func recorded(r decisionlog.Record) []explainedFact {
	facts := []explainedFact{
		{Stage: "payload", Name: "session", Value: r.Session},
		{Stage: "payload", Name: "tool", Value: r.Tool},
		{Stage: "payload", Name: "agent_id", Value: r.AgentID},
		{Stage: "payload", Name: "agent_type", Value: r.AgentType},
		{Stage: "payload", Name: "tool_use_id", Value: r.ToolUseID},
		{Stage: "marker", Name: "run", Value: r.Run},
	}
	if r.Used != nil && r.Limit != nil {
		facts = append(facts, explainedFact{Stage: "ledger", Name: "used", Value: strconv.FormatInt(*r.Used, 10)},
			explainedFact{Stage: "ledger", Name: "limit", Value: strconv.FormatInt(*r.Limit, 10)})
	}
	return slices.DeleteFunc(facts, func(f explainedFact) bool { return f.Value == "" })
}

func explainPayload(a *cli.App, cmd *cobra.Command, client string) error {
	c, ok := hook.Clients[client]
	if !ok {
		return cli.Usagef("--client is %q: it takes %s", client, cli.OneOf(slices.Sorted(maps.Keys(hook.Clients))))
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
	call, err := c.Decode(payload, a.Lookup)
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
	printExplanation(a, e)
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
	return capgate.Facts{Config: c, Now: a.Now()}, nil
}

// judge decides as the hook does, without doing anything about it.
func judge(a *cli.App, cmd *cobra.Command, f capgate.Facts, event string) explanation {
	ctx, cancel := a.Context(cmd)
	defer cancel()
	for {
		d, need, done := capgate.Decide(f)
		switch {
		case !done && need == capgate.StageAdmission:
			f.Known = need // taking it would use it up
			state, _ := f.Config.StateDir()
			if ids, ok := admission.Would(state, f.Call.Session, f.Call.UseID, gates.SpawnTypes(f.Call), f.Now); ok {
				f.AdmittedBy = strings.Join(ids, ",")
			}
			continue
		case !done:
			f = hook.Gather(ctx, f, need)
			continue
		}
		e := explanation{
			At: f.Now.UTC(), Outcome: d.Verdict.Outcome.String(), Code: d.Verdict.Code, Reason: d.Verdict.Reason,
			Inputs: lookedAt(a, f, event), Cap: d.Row.Code,
		}
		for _, j := range d.Gates {
			e.Gates = append(e.Gates, explainedGate{Gate: j.Gate, Outcome: j.Verdict.Outcome.String(), Code: j.Verdict.Code})
		}
		e.fill()
		return e
	}
}

// lookedAt lists the facts that were gathered.
func lookedAt(a *cli.App, f capgate.Facts, event string) []explainedFact {
	var facts []explainedFact
	add := func(stage, name, value string) {
		facts = append(facts, explainedFact{Stage: stage, Name: name, Value: value})
	}
	for _, v := range capgate.Variables(a.Lookup) {
		if v.Value != "" {
			facts = append(facts, explainedFact{Stage: "environment", Name: v.Name, Value: v.Value, From: v.From})
		}
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
	return slices.DeleteFunc(facts, func(f explainedFact) bool { return f.Value == "" })
}

func printExplanation(a *cli.App, e explanation) {
	a.Printf("%s  %s", e.Outcome, cli.OrDash(e.Code))
	if e.Row > 0 && e.Cap == e.Code {
		a.Printf("  (row %d: %s)", e.Row, capgate.Table[e.Row-1].Condition)
	}
	a.Printf("\n\n")
	if e.Reason != "" {
		a.Printf("reason  %s\n", e.Reason)
	}
	a.Printf("why     %s\nchange  %s\n\nlooked at\n", e.Why, e.Change)
	var facts [][]string
	for _, f := range e.Inputs {
		value := f.Value
		if f.From != "" && f.From != f.Name {
			value += " (from " + f.From + ")"
		}
		facts = append(facts, []string{"  " + f.Stage, f.Name, value})
	}
	a.Table(facts...)
	if len(e.Gates) > 1 {
		a.Printf("\ngates\n")
		var asked [][]string
		for _, g := range e.Gates {
			asked = append(asked, []string{"  " + g.Gate, g.Outcome, g.Code})
		}
		a.Table(asked...)
	}
	if e.Row == 0 {
		return
	}
	a.Printf("\nthe cap's table\n")
	var rows [][]string
	for _, r := range e.Rows {
		rows = append(rows, []string{fmt.Sprintf("  %2d", r.Row), r.Code, r.State, r.Condition})
	}
	a.Table(rows...)
}
