// Package hook runs one hook process from stdin to exit: it reads the call, gathers the facts that the verdict needs
// and no more, and carries the verdict out. All I/O of the hook is here, all decisions are in package capgate.
//
// One deadline, counted from the start of the process, holds whatever blocks: stdin, locks, the disk, and the reader
// of our answer. What is not known by then cannot be counted, and the table says what becomes of that. A panic is
// recovered and denies. Nothing but one JSON object is ever written to stdout, and none in part where the system tells how
// much the client's pipe holds.
package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/scope"
)

// Process is the outside world of one hook run.
type Process struct {
	Start  time.Time // of the process
	Client client.Client
	Lookup capgate.Lookup
	// Args and EnvFile are what the hook's entry says of its configuration: variables that it gives by --env, and the path
	// of its environment file, "" = none.
	Args    map[string]string
	EnvFile string

	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Room reports whether Stdout takes n bytes whole even if nobody reads; nil = it does.
	Room func(n int) bool
	// Exit ends the process at once, even while another goroutine is stuck in a system call.
	Exit func(status int)
}

// Run judges the call on stdin and ends the process through Exit. It does not return unless Exit does.
func (p Process) Run() {
	r := &run{Process: p, release: func() {}}
	r.facts.Now = p.Start
	watchdog := r.configure()
	defer watchdog.Stop()
	defer func() { r.release() }()
	if _, more := r.facts.Next(); !more && !r.watchesSessions() {
		r.Exit(r.say(decision{})) // all is off, before the call is read
		return
	}
	defer func() {
		if fault := recover(); fault != nil {
			r.finish(r.denyFault(fault))
		}
	}()
	r.finish(r.judge())
}

// run is the state that the judging goroutine shares with the watchdog.
type run struct {
	Process

	mu      sync.Mutex
	facts   capgate.Facts
	payload []byte
	call    client.Call
	decided *decision // what the answer will be, once it is known
	claimed bool      // somebody is answering
	release func()    // lets an operator's halt go on that waits for this call
}

// decision is a verdict with what the log says of it.
type decision struct {
	verdict gates.Verdict
	facts   capgate.Facts
	id      string // "" for a plain pass, which is not logged
}

// judge gathers facts until the table decides. Each stage's facts are published before the next is begun, so that the
// watchdog always knows what is being awaited.
func (r *run) judge() decision {
	payload, err := r.readStdin()
	facts := r.facts
	if errors.Is(err, capgate.ErrOverdue) {
		return r.lateDecision(facts)
	}
	facts.Known = capgate.StagePayload
	var call client.Call
	if facts.PayloadErr = err; err == nil {
		call, facts.PayloadErr = r.Client.Decode(payload, r.Lookup)
		if other, known := Clients[call.Speaks]; known { // another client runs this entry, too
			r.mu.Lock()
			r.Client = other
			r.mu.Unlock()
			call, facts.PayloadErr = other.Decode(payload, r.Lookup)
		}
	}
	facts.Call, facts.ClientPID, facts.Parent = call.Call, call.PID, call.Parent
	r.publish(facts, call)
	if call.Silent {
		r.sessionEvent(call, facts)
		return decision{facts: facts}
	}
	ctx, cancel := context.WithDeadline(context.Background(), r.Start.Add(facts.Deadline()-2*grace(facts)))
	defer cancel()
	for {
		stage, more := facts.Next()
		if !more {
			return r.decide(capgate.Decide(facts), facts)
		}
		facts = Gather(ctx, facts, stage)
		r.publish(facts, call)
	}
}

func (r *run) publish(f capgate.Facts, c client.Call) {
	r.mu.Lock()
	r.facts, r.call = f, c
	r.mu.Unlock()
}

// decide completes the verdict with its id and does what it asks for besides the answer.
func (r *run) decide(judged capgate.Decision, f capgate.Facts) decision {
	d := decision{verdict: judged.Verdict, facts: f}
	r.beat(judged, f)
	if f.Cleared {
		state, _ := f.Config.StateDir()
		_ = scope.Follow(state, f.Call.Session, f.ClientPID, f.Now) // should the client's own word of it never come
	}
	if f.Parent != "" && (f.Inherited || gates.StartsAgents(f.Call.Tool)) {
		state, _ := f.Config.StateDir()
		_ = scope.Inherit(state, f.Call.Session, f.Parent) // for the agents that this one starts, which name it alone
	}
	switch {
	case judged.Verdict.Code == capgate.CodeAdmitted:
		d.id = decisionlog.NewID(f.Now)
	case judged.Row.Code == capgate.CodeMarkerExpired:
		state, _ := f.Config.StateDir()
		if removed, err := scope.Remove(state, f.Marker); err == nil && removed && d.verdict.Outcome == gates.Pass {
			d.id = decisionlog.NewID(f.Now)
			d.verdict.Reason = fmt.Sprintf("marker of run %s is %v old, TTL %v: removed", f.Marker.Run, f.Marker.Age(f.Now).Round(time.Second), f.TTL())
		}
	}
	return identified(d)
}

// beat notes that the hook works for an armed session, whatever the tool, and counts the capped calls that pass. Nothing
// depends on the note's success.
func (r *run) beat(judged capgate.Decision, f capgate.Facts) {
	state, ok := f.Config.StateDir()
	armed := judged.Row.Needs == capgate.StageLedger
	if judged.Row.Code == capgate.CodeToolNotCapped && ok {
		armed = isArmed(state, f.Call.Session)
	}
	if armed {
		passed := judged.Row.Code == capgate.CodeWithinBudget && judged.Verdict.Outcome != gates.Deny
		_ = scope.Touch(state, f.Call.Session, f.Now, passed)
	}
}

// isArmed takes one look: the marker is not read.
func isArmed(state, session string) bool {
	path := scope.Path(state, session)
	if path == "" {
		return false
	}
	_, err := os.Lstat(path)
	return err == nil
}

// lateDecision judges a call of which the next stage was not read in time.
func (r *run) lateDecision(f capgate.Facts) decision {
	f = f.Overdue()
	return identified(decision{verdict: capgate.Decide(f).Verdict, facts: f})
}

// identified gives every decision that is not a plain pass the id under which it is logged and explained.
func identified(d decision) decision {
	if d.verdict.Outcome != gates.Pass {
		d.id = decisionlog.NewID(d.facts.Now)
	}
	if d.verdict.Outcome == gates.Deny {
		d.verdict.Reason = capgate.WithID(d.verdict.Reason, d.id)
	}
	return d
}

func (r *run) denyFault(fault any) decision {
	r.mu.Lock()
	f, silent := r.facts, r.call.Silent
	r.mu.Unlock()
	if silent {
		return decision{facts: f}
	}
	return identified(decision{facts: f, verdict: gates.Verdict{
		Outcome: gates.Deny,
		Code:    capgate.CodePanic,
		Reason:  fmt.Sprintf("capgate: internal fault (%v), so the call cannot be judged. Do not retry. Report it and go on without this tool.", fault),
	}})
}

// finish logs and answers, unless the watchdog has begun to: then it waits for the end of the process.
func (r *run) finish(d decision) {
	r.mu.Lock()
	if r.claimed {
		r.mu.Unlock()
		select {}
	}
	r.decided = &d
	r.mu.Unlock()

	r.log(d)

	r.mu.Lock()
	if r.claimed {
		r.mu.Unlock()
		select {}
	}
	r.claimed = true
	r.mu.Unlock()
	r.Exit(r.say(d))
}

// untold is the answer where another one could not be given: silence would let the call go on as it is.
var untold = client.Answer{
	Stderr: []byte("capgate: the answer could not be given to the client, so the call is blocked. Do not retry.\n"), Exit: client.ExitBlock,
}

// say writes the answer and returns the exit status. Where stdout does not take the whole of what is to be asked or rewritten,
// the call is blocked. A reason that stderr does not take changes nothing.
func (r *run) say(d decision) int {
	a := r.Client.Encode(d.verdict)
	if n := len(a.Stdout); n > 0 {
		if r.Room != nil && !r.Room(n) {
			a = untold
		} else if written, err := r.Stdout.Write(a.Stdout); err != nil || written < n {
			a = untold
		}
	}
	if len(a.Stderr) > 0 {
		_, _ = r.Stderr.Write(a.Stderr)
	}
	return a.Exit
}

// unsaid returns the exit status of an answer that could not be written in time. Where it is stdout that did not take it, stderr may
// take the reason.
func (r *run) unsaid(d decision) int {
	a := r.Client.Encode(d.verdict)
	if len(a.Stdout) == 0 {
		return a.Exit
	}
	told := make(chan struct{})
	go func() {
		_, _ = r.Stderr.Write(untold.Stderr)
		close(told)
	}()
	select {
	case <-told:
	case <-time.After(grace(d.facts) / 2):
	}
	return untold.Exit
}

// log appends the decision to the log, best effort.
func (r *run) log(d decision) {
	state, ok := d.facts.Config.StateDir()
	if d.id == "" || !ok {
		return
	}
	_ = decisionlog.Append(state, d.record(r.Client.Name()))
}

func (d decision) record(client string) decisionlog.Record {
	rec := decisionlog.Record{
		ID: d.id, At: d.facts.Now.UTC(), Client: client,
		Code: d.verdict.Code, Outcome: d.verdict.Outcome.String(), Reason: d.verdict.Reason,
		Session: d.facts.Call.Session, Run: d.facts.Marker.Run, Tool: d.facts.Call.Tool,
		AgentID: d.facts.Call.AgentID, AgentType: d.facts.Call.AgentType, ToolUseID: d.facts.Call.UseID, Admission: d.facts.AdmittedBy,
	}
	if d.facts.Budget.Limit > 0 {
		rec.Used, rec.Limit = &d.facts.Budget.Used, &d.facts.Budget.Limit
	}
	return rec
}
