package capgate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/capgate/capgate/gates"
)

// Codes of verdicts that are neither the cap's nor a single gate's.
const (
	CodeGatesUnparsable = "gates-unparsable" // the gates are on and the payload is no call
	CodeSpecUnreadable  = "spec-unreadable"  // the spec is named but cannot be used
	CodeGatesOverdue    = "gates-overdue"    // the deadline passed before the gates had judged the spawn
	CodeAdmitted        = "admitted"         // an operator had admitted the spawn beforehand
)

// Decision is what becomes of a call, and what it rests on.
type Decision struct {
	Verdict gates.Verdict // of the cap and all gates together
	Row     Row           // of the cap's table
	Gates   []Judged      // each gate that was asked, in the order in which reasons are shown; the cap is among them
}

// Judged is one gate's verdict.
type Judged struct {
	Gate    string // "payload", "spec", "deadline", "type", "named", "caller", "bash", "guard", "cap", "foreground" or "admission"
	Verdict gates.Verdict
}

// Decide judges a call by the cap and by every gate, on facts of which [Facts.Next] wants no more.
func Decide(f Facts) Decision {
	row, _ := Table.Decide(f)
	d := f.decision(row)
	if f.AdmittedBy != "" && d.Verdict.Outcome == gates.Pass {
		d.Verdict = gates.Verdict{Code: CodeAdmitted, Reason: "admitted beforehand by " + f.AdmittedBy} // a pass that is logged
	}
	return d
}

// decision joins the verdicts of the cap, whose row is known, and of every gate.
func (f *Facts) decision(row Row) Decision {
	d := Decision{Row: row, Gates: f.judged(row)}
	verdicts := make([]gates.Verdict, len(d.Gates))
	for i, j := range d.Gates {
		verdicts[i] = j.Verdict
	}
	d.Verdict = Combine(verdicts...)
	return d
}

// judged asks the cap, whose row is known, and every gate that is on, in the order in which reasons are shown.
func (f *Facts) judged(row Row) []Judged {
	var all []Judged
	add := func(name string, v gates.Verdict) { all = append(all, Judged{name, v}) }
	if row.Code == CodeHalted || row.Code == CodeConfigUnreadable { // nothing else matters then
		add("cap", row.Verdict(*f))
		return all
	}
	on := f.Config.GatesActive()
	switch {
	case !on:
	case f.PayloadErr != nil:
		add("payload", gates.Verdict{Outcome: gates.Deny, Code: CodeGatesUnparsable, Reason: fmt.Sprintf(
			"capgate: this call cannot be judged, because %s. Do not retry: go on without this tool, and tell the user.", f.unreadable())})
		on = false
	case f.SpecErr != nil:
		add("spec", f.specUnreadable())
		on = false
	}
	if on && f.Late && gates.StartsAgents(f.Call.Tool) {
		add("deadline", f.spawnOverdue())
	}
	declares := on && f.Config.Declares()
	allowed := f.allowed()
	if declares && !f.Late {
		add("type", gates.Type(allowed)(f.Call))
	}
	if on && !f.Late {
		add("named", gates.Named()(f.Call))
	}
	if declares {
		add("caller", gates.Caller(allowed)(f.Call))
		add("bash", f.bash(allowed)(f.Call))
	}
	if f.NeedsAdmitted() && f.PayloadErr == nil {
		add("caller", f.callerAdmitted())
	}
	if f.Config.GuardActive() {
		add("guard", f.guard())
	}
	add("cap", row.Verdict(*f))
	if declares && !f.Late {
		add("foreground", gates.Foreground(allowed, f.foreground())(f.Call))
	}
	if on && !f.Late {
		v := gates.Verdict{}
		if f.AdmittedBy == "" {
			v = gates.Admission(f.AdmissionMode())(f.Call)
		}
		add("admission", v)
	}
	return all
}

// unreadable says why there is no call.
func (f *Facts) unreadable() string {
	if errors.Is(f.PayloadErr, ErrOverdue) {
		return f.PayloadErr.Error()
	}
	return fmt.Sprintf("what the client sent of it cannot be read (%v)", f.PayloadErr)
}

// foreground is the spec's word about the foreground, where there is one.
func (f *Facts) foreground() gates.ForegroundMode {
	if f.Config.Spec != "" {
		return f.Spec.Foreground
	}
	return gates.ForegroundRewrite
}

// bash is the gate on the shell, with the advice that can be followed: to delegate, where a declared subagent may start.
func (f *Facts) bash(allowed []string) gates.Gate {
	switch {
	case len(allowed) == 0:
		return gates.BashAlone("no subagent is declared in this session")
	case f.foreground().Refused(f.Call):
		return gates.BashAlone("none can start in the foreground of this session until " + `the user sets CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1 in the env block of the client's settings`)
	case f.NeedsAdmissible() && !slices.ContainsFunc(allowed, func(t string) bool { return slices.Contains(f.Admissible, t) }):
		return gates.BashAlone("none may start in this session that an operator has not admitted beforehand (`capgate admit`)")
	}
	return gates.Bash()
}

// NeedsAdmissible reports whether a subagent could start only by an admission, and the call is one on the shell whose reason
// advises to start one.
func (f *Facts) NeedsAdmissible() bool {
	if !f.Config.GatesActive() || !f.Config.Declares() || !gates.Shell(f.Call.Tool) || f.Call.AgentID != "" {
		return false
	}
	switch f.AdmissionMode() {
	case gates.AdmissionOff:
		return false
	case gates.AdmissionAsk:
		return !f.Call.CanAsk()
	}
	return true
}

// AdmissionMode is the environment's, where it names one, else the spec's. A word that is no mode asks.
func (f *Facts) AdmissionMode() gates.AdmissionMode {
	switch m := gates.AdmissionMode(f.Config.Admission); m {
	case "":
		if f.Config.Spec != "" {
			return f.Spec.Admission
		}
		return gates.AdmissionOff
	case gates.AdmissionOff, gates.AdmissionDeny:
		return m
	}
	return gates.AdmissionAsk
}

// allowed is the list of types that may be spawned: the spec's, where there is one, else the environment's.
func (f *Facts) allowed() []string {
	if f.Config.Spec != "" {
		return f.Spec.Allowed()
	}
	return f.Config.AllowedSubagents.Names()
}

// NeedsSpec reports whether the spec has a say in the call: it spawns, runs a shell on the main thread, or is made by a
// subagent.
func (f *Facts) NeedsSpec() bool {
	return f.Config.GatesActive() && f.Config.Spec != "" &&
		(gates.StartsAgents(f.Call.Tool) || gates.Shell(f.Call.Tool) || f.Call.AgentID != "")
}

// spawnOverdue denies a spawn that the gates had no time for. What they judge is in the call's input, and that is not looked into
// again once the deadline has passed: it may be what took so long.
func (f *Facts) spawnOverdue() gates.Verdict {
	return gates.Verdict{Outcome: gates.Deny, Code: CodeGatesOverdue, Reason: fmt.Sprintf(
		"capgate: this call would start subagents, and could not be judged within %v. Do not retry: go on in the current agent.", f.Deadline())}
}

// NeedsAdmitted reports whether the call is judged by what was admitted in its session: a subagent makes it, spawns are
// denied, and no list says which types there may be.
func (f *Facts) NeedsAdmitted() bool {
	return f.Config.GatesActive() && !f.Config.Declares() && f.AdmissionMode() == gates.AdmissionDeny && f.Call.AgentID != ""
}

// callerAdmitted judges by what was admitted. What is not known was not.
func (f *Facts) callerAdmitted() gates.Verdict {
	if f.AdmittedErr == nil {
		return gates.CallerAdmitted(f.Admitted)(f.Call)
	}
	return gates.Verdict{Outcome: gates.Deny, Code: gates.CodeCallerNotAdmitted, Reason: fmt.Sprintf(
		"capgate: subagents are switched off in this session, and which were admitted cannot be told: %v. Do not retry: finish with what you have, and tell the user that an operator has to look, beginning with `capgate doctor`.", f.AdmittedErr)}
}

// guard asks the guard. Where it could not be told in time which file is written, the write does not happen.
func (f *Facts) guard() gates.Verdict {
	if gates.Writes(f.Call.Tool) && errors.Is(f.SpecErr, ErrOverdue) {
		return gates.Verdict{Outcome: gates.Deny, Code: gates.CodeGuardState, Reason: fmt.Sprintf(
			"capgate: it could not be told within %v which file this writes. Do not retry with the same path: write elsewhere.", f.Deadline())}
	}
	return gates.Guard(f.Protected, f.Writes)(f.Call)
}

// specUnreadable denies what would need the spec's word: every spawn, and the shell. That of a subagent, too: whether its
// type is declared is not known.
func (f *Facts) specUnreadable() gates.Verdict {
	if !gates.StartsAgents(f.Call.Tool) && !gates.Shell(f.Call.Tool) {
		return gates.Verdict{}
	}
	if errors.Is(f.SpecErr, ErrOverdue) {
		return gates.Verdict{Outcome: gates.Deny, Code: CodeSpecUnreadable, Reason: fmt.Sprintf(
			"capgate: this call is denied, because it could not be told within %v whether it may be made. Do not retry: go on without it, and tell the user.", f.Deadline())}
	}
	return gates.Verdict{Outcome: gates.Deny, Code: CodeSpecUnreadable, Reason: fmt.Sprintf(
		"capgate: subagents and the shell are denied, because their spec cannot be used: %v. This holds until an operator mends it (`capgate spec check`): do not retry, go on without them and tell the user.", f.SpecErr)}
}
