package capgate

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// Codes of the cap's table. They are stable: logs, documents and tests name them.
const (
	CodeKillSwitch       = "kill-switch"
	CodeConfigUnreadable = "config-unreadable"
	CodeHalted           = "halted"
	CodeNotEnabled       = "not-enabled"
	CodeUnparsable       = "unparsable"
	CodeToolNotCapped    = "tool-not-capped"
	CodeNoSession        = "no-session"
	CodeNoStateDir       = "no-state-dir"
	CodeNoMarker         = "no-marker"
	CodeMarkerExpired    = "marker-expired"
	CodeMarkerUnreadable = "marker-unreadable"
	CodeLedgerUnreadable = "ledger-unreadable"
	CodeRunUnknown       = "run-unknown"
	CodeBudgetSpent      = "budget-spent"
	CodeWithinBudget     = "within-budget"
)

// Row is one line of the cap's decision table: the first row that holds wins.
type Row struct {
	Code      string
	Outcome   gates.Outcome // Pass or Deny
	Condition string        // in words, for the reference
	Why       string        // why it is that way round
	Change    string        // what would change the verdict
	Needs     Stage         // what must have been read before the row can be judged

	needs  func(*Facts) Stage // where that depends on the facts; nil = Needs
	holds  func(*Facts) bool
	reason func(*Facts) string // what happened and what to do, for a deny
}

// changeKillSwitch is said of both rows of one code.
const changeKillSwitch = "unset CAPGATE_DISABLE and CAPGATE_DISABLE_CAP (or VOYAGE_DISABLE_CAP_HOOK), or end an off with capgate on"

// Rows is a decision table.
type Rows []Row

// Table is the cap's decision table. Its last row always holds.
var Table = Rows{
	{
		Code: CodeKillSwitch, Outcome: gates.Pass,
		Condition: "everything is off (`CAPGATE_DISABLE` is `1`, or `capgate off` is in force)",
		Why:       "the operator's way out",
		Change:    changeKillSwitch,
		holds:     func(f *Facts) bool { return f.Config.Disable.On() },
	},
	{
		Code: CodeConfigUnreadable, Outcome: gates.Deny,
		Condition: "the entry's environment file cannot be read, and the tool is capped, starts agents or is a shell, or the payload does not say",
		Why:       "what is switched on there is not known",
		Change:    "mend the file that the reason names, or switch everything off with CAPGATE_DISABLE=1",
		needs:     func(f *Facts) Stage { return f.payloadIf(f.Config.Problem != nil) },
		holds: func(f *Facts) bool {
			return f.Config.Problem != nil && (f.PayloadErr != nil || f.Config.Caps(f.Call) || gates.StartsAgents(f.Call.Tool) || gates.Shell(f.Call.Tool))
		},
		reason: func(f *Facts) string {
			return fmt.Sprintf("this call is denied because the settings that bound it cannot be read: %v. This holds until an operator mends them: do not retry. Write up what you have and tell the user.", f.Config.Problem)
		},
	},
	{
		Code: CodeHalted, Outcome: gates.Deny,
		Condition: "an operator has said `capgate halt`, and the cap or the gates are on; every tool, an unreadable payload, too",
		Why:       "stop means stop",
		Change:    "capgate halt --lift",
		needs:     func(f *Facts) Stage { return f.payloadIf(f.halted()) },
		holds:     func(f *Facts) bool { return f.halted() },
		reason: func(f *Facts) string {
			return fmt.Sprintf("an operator has halted every tool call (%s). This is final: do not retry. Stop here and tell the user.", f.Halt.Reason)
		},
	},
	{
		Code: CodeKillSwitch, Outcome: gates.Pass,
		Condition: "the cap is off (`CAPGATE_DISABLE_CAP` is `1`, or `capgate off --cap` is in force)",
		Why:       "the operator's way out",
		Change:    changeKillSwitch,
		holds:     func(f *Facts) bool { return f.Config.CapOff() },
	},
	{
		Code: CodeNotEnabled, Outcome: gates.Pass,
		Condition: "not enabled (`CAPGATE_ENABLED` is not `1`)",
		Why:       "default off: no loop runs",
		Change:    "set CAPGATE_ENABLED=1 in the client's environment",
		holds:     func(f *Facts) bool { return !f.Config.Enabled.On() },
	},
	{
		Code: CodeUnparsable, Outcome: gates.Pass, Needs: StagePayload,
		Condition: "stdin empty or unparsable",
		Why:       "not evidence of a loop turn",
		Change:    "send one JSON object on stdin",
		holds:     func(f *Facts) bool { return f.PayloadErr != nil && !errors.Is(f.PayloadErr, ErrOverdue) },
	},
	{
		Code: CodeToolNotCapped, Outcome: gates.Pass, Needs: StagePayload,
		Condition: "tool is not capped (`CAPGATE_CAP_TOOLS`: names and globs, in any case; default WebSearch, WebFetch, Agent, Task, Workflow)",
		Why:       "Read, Write, Edit stay open to write up the result",
		Change:    "name the tool in CAPGATE_CAP_TOOLS",
		holds:     func(f *Facts) bool { return f.PayloadErr == nil && !f.Config.Caps(f.Call) },
	},
	{
		Code: CodeNoSession, Outcome: gates.Pass, Needs: StagePayload,
		Condition: "no session id, or one that no marker can have",
		Why:       "as `unparsable`",
		Change:    "send a session_id of 1 to 128 characters out of A-Z a-z 0-9 . _ -, not starting with a dot",
		holds:     func(f *Facts) bool { return f.PayloadErr == nil && !scope.ValidSession(f.Call.Session) },
	},
	{
		Code: CodeNoStateDir, Outcome: gates.Deny, Needs: StageMarker,
		Condition: "no state directory (`CAPGATE_DATA_DIR` unset, not an absolute path, not a directory, or not searchable)",
		Why:       "a budget control that cannot count must not grant",
		Change:    "set CAPGATE_DATA_DIR to an absolute directory that the hook's user can read",
		holds: func(f *Facts) bool {
			_, ok := f.Config.StateDir()
			return f.PayloadErr == nil && (!ok || errors.Is(f.MarkerErr, scope.ErrState))
		},
		reason: func(f *Facts) string {
			return cannotCount(noStateDir(f), "This holds until an operator mends CAPGATE_DATA_DIR")
		},
	},
	{
		Code: CodeNoMarker, Outcome: gates.Pass, Needs: StageMarker,
		Condition: "no marker for this session",
		Why:       "never deny a session for another's spending",
		Change:    "arm the session: capgate scope open --session ID --run RUN --max-conv-turns N --max-dimensions N",
		holds:     func(f *Facts) bool { return errors.Is(f.MarkerErr, scope.ErrNone) },
	},
	{
		Code: CodeMarkerExpired, Outcome: gates.Pass, Needs: StageMarker,
		Condition: "marker older than the TTL (`CAPGATE_SCOPE_TTL_MS`), and so is the newest entry of its run where the ledger can tell (one that is only busy may yet); or from further in the future than that; the marker is removed",
		Why:       "a crashed run must not deny for ever",
		Change:    "arm the session again with capgate scope open; a run that goes on keeps its sessions armed: each turn that is counted renews them",
		// The ledger is asked about old markers only.
		needs: func(f *Facts) Stage {
			if f.expired(time.Time{}) && f.MarkerErr == nil {
				return StageLedger
			}
			return StageMarker
		},
		holds: func(f *Facts) bool {
			// A ledger that is only busy may yet tell of a newer turn: the call is denied and the marker stays. One that
			// cannot answer leaves newest zero: then the marker's own time counts alone.
			busy := errors.Is(f.LedgerErr, ledger.ErrBusy) || errors.Is(f.LedgerErr, ErrOverdue)
			return f.expired(time.Time{}) && !busy && f.expired(f.Budget.LastAt)
		},
	},
	{
		Code: CodeMarkerUnreadable, Outcome: gates.Deny, Needs: StageMarker,
		Condition: "marker there and fresh, but unreadable",
		Why:       "in scope, cannot count",
		Change:    "arm the session again with capgate scope open, or disarm it with capgate scope close",
		holds:     func(f *Facts) bool { return f.MarkerErr != nil && !errors.Is(f.MarkerErr, ErrOverdue) },
		reason: func(f *Facts) string {
			return cannotCount(f.MarkerErr.Error(), "This holds until an operator arms the session anew")
		},
	},
	{
		Code: CodeLedgerUnreadable, Outcome: gates.Deny, Needs: StageLedger,
		Condition: "ledger missing, locked past the deadline, damaged, of a newer schema, or without the entry the marker is anchored to; also whenever the deadline passes first",
		Why:       "as `no-state-dir`",
		Change:    "run capgate ledger verify, put the ledger back or mend what it names, then arm the session again",
		holds:     func(f *Facts) bool { return f.LedgerErr != nil && !errors.Is(f.LedgerErr, ledger.ErrRunUnknown) },
		reason: func(f *Facts) string {
			return cannotCount(f.LedgerErr.Error(), "This holds until an operator has looked at it (`capgate doctor`, `capgate ledger verify`)")
		},
	},
	{
		Code: CodeRunUnknown, Outcome: gates.Deny, Needs: StageLedger,
		Condition: "the marker's run is not in the ledger",
		Why:       "as `no-state-dir`",
		Change:    "open the run with the command that arms the session: capgate scope open",
		holds:     func(f *Facts) bool { return f.LedgerErr != nil },
		reason: func(f *Facts) string {
			return cannotCount(fmt.Sprintf("run %s is not in the ledger", f.Marker.Run), "This holds until an operator arms the session anew")
		},
	},
	{
		Code: CodeBudgetSpent, Outcome: gates.Deny, Needs: StageLedger,
		Condition: "spent turns ≥ limit (a turn that is open is not spent), or the run is closed and takes no more turns",
		Why:       "the bound",
		Change:    "grant turns with capgate run grant RUN --turns N --reason TEXT (not to a closed run), or end the scope with capgate scope close",
		holds:     func(f *Facts) bool { return f.Budget.Spent() },
		reason: func(f *Facts) string {
			if f.Budget.Closed {
				return fmt.Sprintf("run %s is closed (%d of %d turns used) and takes no more. This is final for this run: do not retry. Write up what you have.",
					f.Marker.Run, f.Budget.Used, f.Budget.Limit)
			}
			return fmt.Sprintf("turn budget spent (%d of %d, run %s). This is final for this run: do not retry. Write up what you have.",
				f.Budget.Used, f.Budget.Limit, f.Marker.Run)
		},
	},
	{
		Code: CodeWithinBudget, Outcome: gates.Pass, Needs: StageLedger,
		Condition: "otherwise",
		Why:       "the run has turns left",
		Change:    "nothing has to: the call passes until the run's last turn has ended",
		holds:     func(*Facts) bool { return true },
	},
}

// payloadIf is the stage of a row that needs the call only where its condition may hold: an event on which nothing may be
// said is no tool call.
func (f *Facts) payloadIf(needed bool) Stage {
	if needed {
		return StagePayload
	}
	return StageConfig
}

// halted reports whether a halt is in force for what is on here.
func (f *Facts) halted() bool { return f.Halt != nil && f.Config.GuardActive() }

// expired reports whether the marker has expired, with the time of its run's newest entry. Without any time there is no
// age: such a marker is unreadable, not expired.
func (f *Facts) expired(newest time.Time) bool {
	return !f.Marker.ModTime.IsZero() && f.Marker.Expired(f.Now, f.TTL(), newest)
}

func noStateDir(f *Facts) string {
	switch _, ok := f.Config.StateDir(); {
	case f.Config.DataDir == "":
		return "no state directory is set (CAPGATE_DATA_DIR)"
	case !ok:
		return fmt.Sprintf("CAPGATE_DATA_DIR is not an absolute path (%s)", filepath.Clean(f.Config.DataDir))
	}
	return f.MarkerErr.Error()
}

func cannotCount(cause, until string) string {
	return fmt.Sprintf("turns cannot be counted: %s. %s: do not retry. Write up what you have and tell the user.", cause, until)
}
