package capgate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/control"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// inScope returns facts of a capped call in a session that is armed for a run with 3 of 8 turns used.
func inScope(change ...func(*Facts)) Facts {
	f := Facts{
		Config: Config{Enabled: "1", DataDir: "/state"},
		Now:    now,
		Known:  StageLedger,
		Call:   gates.Call{Session: "s-1", Tool: "WebSearch"},
		Marker: scope.Marker{Session: "s-1", Run: "storm-42", StartedAt: now.Add(-time.Hour), ModTime: now.Add(-time.Hour)},
		Budget: ledger.Budget{Run: "storm-42", Used: 3, Limit: 8},
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

var errDisk = errors.New("disk on fire")

// tableCases has one or more cases for each row of the table. The first of a row is its own: it fails when the row is
// removed.
var tableCases = []struct {
	code string
	name string
	with func(*Facts)
}{
	{CodeKillSwitch, "the switch for everything, halted and the settings unreadable", func(f *Facts) {
		f.Config.Disable, f.Config.Problem, f.Halt = "1", errDisk, &control.Word{}
	}},
	{CodeConfigUnreadable, "a capped tool, whatever else", func(f *Facts) { f.Config = Config{Problem: errDisk} }},
	{CodeConfigUnreadable, "a tool that starts agents and is not capped", func(f *Facts) {
		f.Config.Problem, f.Config.CapTools, f.Call.Tool = errDisk, "X", "Workflow"
	}},
	{CodeConfigUnreadable, "a shell", func(f *Facts) { f.Config, f.Call.Tool = Config{Problem: errDisk}, "PowerShell" }},
	{CodeConfigUnreadable, "a payload that does not say", func(f *Facts) { f.Config, f.PayloadErr = Config{Problem: errDisk}, errDisk }},
	{CodeConfigUnreadable, "the cap's own switch", func(f *Facts) { f.Config.Problem, f.Config.DisableCap = errDisk, "1" }},
	{CodeNotEnabled, "another tool, and the settings unreadable", func(f *Facts) { f.Config, f.Call.Tool = Config{Problem: errDisk}, "Read" }},
	{CodeHalted, "any tool", func(f *Facts) { f.Halt, f.Call.Tool = &control.Word{}, "Read" }},
	{CodeHalted, "the gates alone are on", func(f *Facts) { f.Halt, f.Config = &control.Word{}, Config{AllowedSubagents: "a"} }},
	{CodeHalted, "a payload that cannot be read", func(f *Facts) { f.Halt, f.PayloadErr = &control.Word{}, errDisk }},
	{CodeHalted, "the settings unreadable, another tool", func(f *Facts) {
		f.Halt, f.Config, f.Call.Tool = &control.Word{}, Config{Problem: errDisk}, "Read"
	}},
	{CodeKillSwitch, "the cap's own switch, halted, and no gate is on", func(f *Facts) { f.Halt, f.Config.DisableCap = &control.Word{}, "1" }},
	{CodeNotEnabled, "halted, and nothing is on", func(f *Facts) { f.Halt, f.Config.Enabled = &control.Word{}, "" }},
	{CodeKillSwitch, "the cap's own switch, at a spent budget", func(f *Facts) { f.Config.DisableCap = "1"; f.Budget.Used = 8 }},
	{CodeKillSwitch, "the switch for everything", func(f *Facts) { f.Config.Disable = "1"; f.Config.Enabled = "" }},
	{CodeNotEnabled, "unset, at a spent budget", func(f *Facts) { f.Config.Enabled = ""; f.Budget.Used = 8 }},
	{CodeNotEnabled, "true is not 1", func(f *Facts) { f.Config.Enabled = "true" }},
	{CodeUnparsable, "stdin was no JSON, with no state directory", func(f *Facts) {
		f.PayloadErr, f.Call, f.Config.DataDir, f.Config.CapTools = errDisk, gates.Call{}, "", ","
	}},
	{CodeToolNotCapped, "Write at a spent budget", func(f *Facts) { f.Call.Tool = "Write"; f.Budget.Used = 8 }},
	{CodeToolNotCapped, "a name is the whole of a tool's", func(f *Facts) { f.Call.Tool = "WebSearches"; f.Budget.Used = 8 }},
	{CodeToolNotCapped, "a list replaces the default one", func(f *Facts) { f.Config.CapTools = "Bash"; f.Budget.Used = 8 }},
	{CodeNoSession, "none, with no state directory", func(f *Facts) { f.Call.Session = ""; f.Config.DataDir = "" }},
	{CodeNoSession, "a path", func(f *Facts) { f.Call.Session = "../x"; f.Budget.Used = 8 }},
	{CodeNoSession, "null as a word", func(f *Facts) { f.Call.Session = "null"; f.Budget.Used = 8 }},
	{CodeNoStateDir, "unset", func(f *Facts) { f.Config.DataDir = "" }},
	{CodeNoStateDir, "relative", func(f *Facts) { f.Config.DataDir = "state" }},
	{CodeNoStateDir, "not a directory", func(f *Facts) { f.Marker, f.MarkerErr = scope.Marker{}, fmt.Errorf("x: %w", scope.ErrState) }},
	{CodeNoMarker, "not armed", func(f *Facts) {
		f.Marker, f.MarkerErr, f.Budget.Used = scope.Marker{}, fmt.Errorf("x: %w", scope.ErrNone), 8
	}},
	{CodeMarkerExpired, "older than six hours, at a spent budget", func(f *Facts) {
		f.Marker.StartedAt, f.Budget.Used = now.Add(-DefaultScopeTTL-time.Nanosecond), 8
	}},
	{CodeMarkerExpired, "and so is the newest entry of its run", func(f *Facts) {
		f.Marker.StartedAt, f.Budget.LastAt = now.Add(-7*time.Hour), now.Add(-DefaultScopeTTL-time.Nanosecond)
	}},
	{CodeMarkerExpired, "the ledger cannot answer", func(f *Facts) {
		f.Marker.StartedAt, f.LedgerErr, f.Budget = now.Add(-7*time.Hour), ledger.ErrCorrupt, ledger.Budget{}
	}},
	{CodeMarkerExpired, "its run is not in the ledger", func(f *Facts) {
		f.Marker.StartedAt, f.LedgerErr, f.Budget = now.Add(-7*time.Hour), ledger.ErrRunUnknown, ledger.Budget{}
	}},
	{CodeMarkerExpired, "unreadable and old", func(f *Facts) {
		f.Marker = scope.Marker{ModTime: now.Add(-7 * time.Hour)}
		f.MarkerErr = fmt.Errorf("x: %w", scope.ErrUnreadable)
	}},
	{CodeLedgerUnreadable, "old, and the ledger is busy: it may tell of a newer turn", func(f *Facts) {
		f.Marker.StartedAt, f.LedgerErr, f.Budget = now.Add(-7*time.Hour), fmt.Errorf("x: %w", ledger.ErrBusy), ledger.Budget{}
	}},
	{CodeLedgerUnreadable, "old, and the ledger did not answer before the deadline", func(f *Facts) {
		f.Marker.StartedAt, f.LedgerErr, f.Budget = now.Add(-7*time.Hour), fmt.Errorf("x: %w", ErrOverdue), ledger.Budget{}
	}},
	{CodeMarkerUnreadable, "unreadable and fresh", func(f *Facts) {
		f.Marker = scope.Marker{ModTime: now.Add(-time.Hour)}
		f.MarkerErr = fmt.Errorf("x: %w", scope.ErrUnreadable)
	}},
	{CodeMarkerUnreadable, "unreadable and of unknown age", func(f *Facts) {
		f.Marker, f.MarkerErr = scope.Marker{}, fmt.Errorf("x: %w", scope.ErrUnreadable)
	}},
	{CodeLedgerUnreadable, "missing", func(f *Facts) { f.LedgerErr = ledger.ErrMissing }},
	{CodeLedgerUnreadable, "busy", func(f *Facts) { f.LedgerErr = ledger.ErrBusy }},
	{CodeLedgerUnreadable, "damaged", func(f *Facts) { f.LedgerErr = ledger.ErrCorrupt }},
	{CodeLedgerUnreadable, "newer", func(f *Facts) { f.LedgerErr = ledger.ErrNewerFormat }},
	{CodeLedgerUnreadable, "replaced", func(f *Facts) { f.LedgerErr = ledger.ErrAnchorLost }},
	{CodeLedgerUnreadable, "anything else", func(f *Facts) { f.LedgerErr = errDisk }},
	{CodeRunUnknown, "the marker names a run that was never opened", func(f *Facts) {
		f.LedgerErr, f.Budget = fmt.Errorf("x: %w", ledger.ErrRunUnknown), ledger.Budget{Limit: 8}
	}},
	{CodeBudgetSpent, "at the limit", func(f *Facts) { f.Budget.Used = 8 }},
	{CodeBudgetSpent, "an old marker whose run goes on", func(f *Facts) {
		f.Marker.StartedAt, f.Budget.LastAt, f.Budget.Used = now.Add(-24*time.Hour), now.Add(-DefaultScopeTTL), 8
	}},
	{CodeBudgetSpent, "closed in an open turn", func(f *Facts) { f.Budget.Used, f.Budget.Open, f.Budget.Closed = 8, 1, true }},
	{CodeWithinBudget, "at the limit, and the last turn is open", func(f *Facts) { f.Budget.Used, f.Budget.Open = 8, 1 }},
	{CodeWithinBudget, "at the limit, one of two open turns has ended", func(f *Facts) { f.Budget.Used, f.Budget.Open = 8, 1 }},
	{CodeBudgetSpent, "above the limit", func(f *Facts) { f.Budget.Used = 9 }},
	{CodeBudgetSpent, "limit 1", func(f *Facts) { f.Budget.Used, f.Budget.Limit = 1, 1 }},
	{CodeBudgetSpent, "closed with turns left", func(f *Facts) { f.Budget.Closed = true }},
	{CodeWithinBudget, "one below the limit", func(f *Facts) { f.Budget.Used = 7 }},
	{CodeWithinBudget, "exactly as old as the TTL", func(f *Facts) { f.Marker.StartedAt = now.Add(-DefaultScopeTTL) }},
	{CodeWithinBudget, "nothing used", func(f *Facts) { f.Budget.Used = 0 }},
}

func (rows Rows) code(f Facts) string {
	row, _ := rows.Decide(f)
	return row.Code
}

func TestTableRows(t *testing.T) {
	for _, c := range tableCases {
		t.Run(c.code+"/"+c.name, func(t *testing.T) {
			f := inScope(c.with)
			row, done := Table.Decide(f)
			require.True(t, done)
			require.Equal(t, c.code, row.Code)
			v := row.Verdict(f)
			switch {
			case row.Code == CodeHalted:
				require.Regexp(t, `^capgate: .*[dD]o not retry\. Stop here and tell the user\.$`, v.Reason)
			case row.Outcome == gates.Deny:
				require.Regexp(t, `^capgate: .*[dD]o not retry\. Write up what you have`, v.Reason)
			default:
				require.Equal(t, gates.Pass, v.Outcome)
				require.Empty(t, v.Reason)
			}
		})
	}
}

// Removing any row must change the verdict of its own case: no row is dead, and none goes untested.
func TestRemovingARowIsNoticed(t *testing.T) {
	for i, row := range Table {
		t.Run(row.Code, func(t *testing.T) {
			for _, c := range tableCases {
				f := inScope(c.with)
				if held, _ := Table.Decide(f); held.Condition != row.Condition {
					continue
				}
				mutant := slices.Delete(slices.Clone(Table), i, i+1)
				if got := mutant.code(f); got != row.Code {
					return
				}
			}
			require.Fail(t, "no case notices")
		})
	}
}

// The table without its last row must not grant by accident.
func TestATableWithoutAnAnswerDenies(t *testing.T) {
	row, done := Table[:len(Table)-1].Decide(inScope())
	require.True(t, done)
	require.Equal(t, gates.Deny, row.Outcome)
	require.Contains(t, row.Verdict(inScope()).Reason, "fault of capgate")
}

// What is not known yet is asked for in the order of cost, and no stage is read that the verdict does not need.
func TestStagesAreReadOnlyAsFarAsNeeded(t *testing.T) {
	for _, c := range []struct {
		name  string
		known Stage
		with  func(*Facts)
		need  Stage
		code  string // "" = not decided
	}{
		{"kill switch needs no payload", StageConfig, func(f *Facts) { f.Config.DisableCap = "1" }, 0, CodeKillSwitch},
		{"not enabled needs no payload", StageConfig, func(f *Facts) { f.Config.Enabled = "" }, 0, CodeNotEnabled},
		{"enabled needs the payload", StageConfig, nil, StagePayload, ""},
		{"a tool that is not capped needs no marker", StagePayload, func(f *Facts) { f.Call.Tool = "Read" }, 0, CodeToolNotCapped},
		{"without a state directory the payload is needed all the same", StageConfig, func(f *Facts) { f.Config.DataDir = "" }, StagePayload, ""},
		{"no state directory needs no marker", StagePayload, func(f *Facts) { f.Config.DataDir = "" }, 0, CodeNoStateDir},
		{"a capped tool needs what is declared, which is nothing here", StagePayload, nil, StageSpec, ""},
		{"and then the marker", StageSpec, nil, StageMarker, ""},
		{"outside any scope the ledger is not opened", StageMarker, func(f *Facts) { f.MarkerErr = scope.ErrNone }, 0, CodeNoMarker},
		{"an old marker is no older than its run, which the ledger knows", StageMarker, func(f *Facts) { f.Marker.StartedAt = now.Add(-7 * time.Hour) }, StageLedger, ""},
		{"an old marker that names no run needs no ledger", StageMarker, func(f *Facts) {
			f.Marker, f.MarkerErr = scope.Marker{ModTime: now.Add(-7 * time.Hour)}, scope.ErrUnreadable
		}, 0, CodeMarkerExpired},
		{"in scope the ledger is read", StageMarker, nil, StageLedger, ""},
		{"the ledger decides", StageLedger, nil, 0, CodeWithinBudget},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := inScope(func(f *Facts) {
				f.Known = c.known
				if c.known < StageMarker {
					f.Marker = scope.Marker{}
				}
				if c.with != nil {
					c.with(f)
				}
			})
			f.Config.Disable, f.Config.DisableGates = "", "1"
			stage, more := f.Next()
			row, settled := Table.Decide(f)
			require.Equal(t, c.code != "", settled)
			if !settled {
				require.True(t, more)
				require.Equal(t, c.need, stage)
				return
			}
			require.Equal(t, c.code, row.Code)
		})
	}
}

// The deadline: whatever was being awaited, an enabled cap denies with the code for "cannot count".
func TestOverdueIsCannotCount(t *testing.T) {
	for known := StageConfig; known <= StageMarker; known++ {
		t.Run("after "+known.String(), func(t *testing.T) {
			f := Facts{Config: Config{Enabled: "1", DataDir: "/state"}, Now: now, Known: known}
			if known >= StagePayload {
				f.Call = gates.Call{Session: "s-1", Tool: "WebSearch"}
			}
			if known >= StageMarker {
				f.Marker = inScope().Marker
			}
			f = f.Overdue()
			row, done := Table.Decide(f)
			require.True(t, done)
			require.Equal(t, CodeLedgerUnreadable, row.Code)
			require.ErrorIs(t, f.LedgerErr, ErrOverdue)
			require.Contains(t, row.Verdict(f).Reason, "could not be read within 2s")
		})
	}
	t.Run("what the ledger said stands", func(t *testing.T) {
		require.Equal(t, CodeWithinBudget, Table.code(inScope().Overdue()))
	})
	t.Run("a kill switch still passes", func(t *testing.T) {
		f := Facts{Config: Config{Enabled: "1", DisableCap: "1"}}.Overdue()
		require.Equal(t, CodeKillSwitch, Table.code(f))
	})
}

// A write of which it cannot be told in time where it goes does not happen; other tools are not held up by that.
func TestAWriteThatCannotBeResolvedInTimeIsDenied(t *testing.T) {
	for tool, want := range map[string]gates.Outcome{"Write": gates.Deny, "edit": gates.Deny, "Read": gates.Pass} {
		f := Facts{Config: Config{Enabled: "1", DataDir: "/state"}, Now: now, Known: StagePayload, Call: gates.Call{Session: "s", Tool: tool}}.Overdue()
		_, more := f.Next()
		require.False(t, more)
		require.Equal(t, want, Decide(f).Verdict.Outcome, tool)
	}
}

func TestCombineTakesTheStrongestAndTheFirstAmongEquals(t *testing.T) {
	pass := gates.Verdict{Code: "pass"}
	rewrite := gates.Verdict{Outcome: gates.Rewrite, Code: "rewrite", Input: []byte(`{"a":1}`)}
	ask := gates.Verdict{Outcome: gates.Ask, Code: "ask", Reason: "sure?"}
	deny := gates.Verdict{Outcome: gates.Deny, Code: "deny", Reason: "no"}
	deny2 := gates.Verdict{Outcome: gates.Deny, Code: "deny2", Reason: "never"}
	for _, c := range []struct {
		name string
		in   []gates.Verdict
		want gates.Verdict
	}{
		{"nothing judged", nil, gates.Verdict{}},
		{"passes keep the first code", []gates.Verdict{pass, {Code: "other"}}, pass},
		{"rewrite beats pass", []gates.Verdict{pass, rewrite}, rewrite},
		{"ask beats rewrite and carries it", []gates.Verdict{rewrite, ask}, gates.Verdict{Outcome: gates.Ask, Code: "ask", Reason: "sure?", Input: rewrite.Input}},
		{"in either order", []gates.Verdict{ask, rewrite}, gates.Verdict{Outcome: gates.Ask, Code: "ask", Reason: "sure?", Input: rewrite.Input}},
		{"deny beats ask and drops the rewrite", []gates.Verdict{rewrite, ask, deny}, deny},
		{"the first of two denies", []gates.Verdict{pass, deny, deny2}, deny},
		{"the first of two rewrites", []gates.Verdict{rewrite, {Outcome: gates.Rewrite, Code: "later", Input: []byte(`{}`)}, ask},
			gates.Verdict{Outcome: gates.Ask, Code: "ask", Reason: "sure?", Input: rewrite.Input}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, Combine(c.in...))
		})
	}
}

func TestReasonEndsWithItsIDAndIsBounded(t *testing.T) {
	const id = "01JD0000000000000000000000"
	for _, c := range []struct{ name, in, want string }{
		{"plain", "capgate: no.", "capgate: no. [capgate " + id + "]"},
		{"control characters are shown", "run a\x1b[2Jb\nc\u202ed", `run a\x1b[2Jb\nc\u202ed [capgate ` + id + "]"},
		{"invalid UTF-8 is replaced", "run \xff", "run \ufffd [capgate " + id + "]"},
		{"other scripts stay", "run ünï 漢字 🙂", "run ünï 漢字 🙂 [capgate " + id + "]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, WithID(c.in, id))
		})
	}
	fits := strings.Repeat("x", MaxReason-len(" [capgate "+id+"]"))
	require.Equal(t, fits+" [capgate "+id+"]", WithID(fits, id), "what just fits is not cut")
	for _, long := range []string{strings.Repeat("x", 5000), strings.Repeat("漢", 5000), strings.Repeat("\x01", 5000)} {
		got := WithID(long, id)
		require.LessOrEqual(t, len(got), MaxReason)
		require.Greater(t, len(got), MaxReason-8)
		require.True(t, utf8.ValidString(got))
		require.True(t, strings.HasSuffix(got, "… [capgate "+id+"]"))
	}
}

func TestTheReasonWithoutAStateDirectorySaysWhatIsWrongWithIt(t *testing.T) {
	for want, with := range map[string]func(*Facts){
		"no state directory is set (CAPGATE_DATA_DIR)":                    func(f *Facts) { f.Config.DataDir = "" },
		"CAPGATE_DATA_DIR is not an absolute path (state)":                func(f *Facts) { f.Config.DataDir = "./state/" },
		"x: " + scope.ErrState.Error() + ". This holds until an operator": func(f *Facts) { f.MarkerErr = fmt.Errorf("x: %w", scope.ErrState) },
	} {
		f := inScope(with)
		row, _ := Table.Decide(f)
		require.Contains(t, row.Verdict(f).Reason, want)
	}
}

func TestSpentReasonIsTheDocumentedOne(t *testing.T) {
	f := inScope(func(f *Facts) { f.Budget.Used = 8 })
	row, _ := Table.Decide(f)
	require.Equal(t, "capgate: turn budget spent (8 of 8, run storm-42). This is final for this run: do not retry. Write up what you have.",
		row.Verdict(f).Reason)
}
