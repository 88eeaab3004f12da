package look

import (
	"fmt"
	"slices"
	"time"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// explanation is what `explain --json` prints.
type explanation struct {
	ID      string       `json:"id,omitempty"`
	At      time.Time    `json:"at"`
	Outcome string       `json:"outcome"`
	Code    string       `json:"code"`
	Cap     string       `json:"cap,omitempty"`   // the code of the cap's row
	Row     int          `json:"row"`             // of the cap's table, from 1; 0 where it is not known
	Gates   []gate       `json:"gates,omitempty"` // each gate that was asked, the cap among them
	Reason  string       `json:"reason,omitempty"`
	Why     string       `json:"why"`
	Change  string       `json:"change"`
	Inputs  []fact       `json:"inputs"`
	Rows    []row        `json:"rows"`
	Now     *explanation `json:"now,omitempty"` // the same call judged now, where an id was asked for
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
	for i, r := range capgate.Table {
		state := "not asked"
		switch {
		case e.Row == i+1:
			state = "held"
		case i+1 < e.Row:
			state = "no"
		}
		e.Rows = append(e.Rows, row{Row: i + 1, Code: r.Code, State: state, Condition: r.Condition})
	}
}

// fact is one input that was looked at.
type fact struct {
	Stage string `json:"stage"`
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from,omitempty"`
}

type gate struct {
	Gate    string `json:"gate"`
	Outcome string `json:"outcome"`
	Code    string `json:"code,omitempty"`
}

type row struct {
	Row       int    `json:"row"`
	Code      string `json:"code"`
	State     string `json:"state"` // "no", "held" or "not asked"
	Condition string `json:"condition"`
}

func printExplanation(out *cli.Printer, e explanation) {
	out.Printf("%s  %s", e.Outcome, cli.OrDash(e.Code))
	if e.Row > 0 && e.Cap == e.Code {
		out.Printf("  (row %d: %s)", e.Row, capgate.Table[e.Row-1].Condition)
	}
	out.Printf("\n\n")
	if e.Reason != "" {
		out.Printf("reason  %s\n", e.Reason)
	}
	out.Printf("why     %s\nchange  %s\n\nlooked at\n", e.Why, e.Change)
	var facts [][]string
	for _, f := range e.Inputs {
		value := f.Value
		if f.From != "" && f.From != f.Name {
			value += " (from " + f.From + ")"
		}
		facts = append(facts, []string{"  " + f.Stage, f.Name, value})
	}
	out.Table(facts...)
	if len(e.Gates) > 1 {
		out.Printf("\ngates\n")
		var asked [][]string
		for _, g := range e.Gates {
			asked = append(asked, []string{"  " + g.Gate, g.Outcome, g.Code})
		}
		out.Table(asked...)
	}
	if e.Row == 0 {
		return
	}
	out.Printf("\nthe cap's table\n")
	var rows [][]string
	for _, r := range e.Rows {
		rows = append(rows, []string{fmt.Sprintf("  %2d", r.Row), r.Code, r.State, r.Condition})
	}
	out.Table(rows...)
}
