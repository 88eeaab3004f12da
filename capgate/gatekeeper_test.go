package capgate

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// outside is a world without files: what each stage would read.
type outside struct {
	env        map[string]string
	spec       string // text of the spec file
	specErr    error
	armed      bool     // the session is armed, for a run whose budget is spent
	admitted   string   // id of an admission that lets the call's spawns through
	used       []string // types that were admitted in the session, and started
	usedErr    error
	admissible []string // types of which an admission would let one start
	writes     []gates.FileWrite
}

// judge gathers facts as the hook does, and notes what it had to read.
func (o outside) judge(t *testing.T, call gates.Call, payloadErr error) (Decision, []Stage) {
	t.Helper()
	f := Facts{Config: LoadConfig(fromMap(o.env)), Now: now}
	var read []Stage
	for {
		stage, more := f.Next()
		if !more {
			return Decide(f), read
		}
		require.Less(t, len(read), 10, "it asks without end")
		read = append(read, stage)
		f.Known = stage
		switch stage {
		case StagePayload:
			f.Call, f.PayloadErr = call, payloadErr
		case StageSpec:
			if f.NeedsSpec() {
				f.SpecErr = o.specErr
				if o.specErr == nil {
					var err error
					f.Spec, err = gates.ParseSpec([]byte(o.spec))
					require.NoError(t, err)
				}
			}
			if f.NeedsAdmitted() {
				f.Admitted, f.AdmittedErr = o.used, o.usedErr
			}
			if f.NeedsAdmissible() {
				f.Admissible = o.admissible
			}
			f.Writes, f.Protected = o.writes, gates.Protected{StateDir: "/state"}
		case StageMarker:
			f.MarkerErr = scope.ErrNone
			if o.armed {
				f.Marker, f.MarkerErr = scope.Marker{Session: "s-1", Run: "r", StartedAt: now, ModTime: now}, nil
			}
		case StageLedger:
			f.Budget = ledger.Budget{Run: "r", Used: 1, Limit: 1}
		case StageAdmission:
			f.AdmittedBy = o.admitted
		}
	}
}

// Environments of the table below. Each has a state directory.
func env(pairs ...string) map[string]string {
	e := map[string]string{"CAPGATE_DATA_DIR": "/state"}
	for i := 0; i+1 < len(pairs); i += 2 {
		e[pairs[i]] = pairs[i+1]
	}
	return e
}

const (
	list     = "CAPGATE_ALLOWED_SUBAGENTS"
	specFile = "CAPGATE_SPEC"
	admit    = "CAPGATE_ADMISSION"
	specText = `{"subagents":{"finder":{"tools":["Read"]}}%s}`
)

func spec(more string) string { return fmt.Sprintf(specText, more) }

// Calls of the table below.
var (
	finder    = gates.Call{Session: "s-1", Tool: "Agent", UseID: "t-1", Input: []byte(`{"subagent_type":"finder","prompt":"p","run_in_background":false}`)}
	inBack    = gates.Call{Session: "s-1", Tool: "Agent", UseID: "t-2", Input: []byte(`{"subagent_type":"finder","prompt":"p"}`)}
	stranger  = gates.Call{Session: "s-1", Tool: "Agent", Input: []byte(`{"subagent_type":"general-purpose"}`)}
	shell     = gates.Call{Session: "s-1", Tool: "Bash", Input: []byte(`{"command":"ls"}`)}
	subShell  = gates.Call{Session: "s-1", Tool: "Bash", AgentID: "a1", AgentType: "finder"}
	foreign   = gates.Call{Session: "s-1", Tool: "Read", AgentID: "a1", AgentType: "general-purpose"}
	reading   = gates.Call{Session: "s-1", Tool: "Read"}
	searching = gates.Call{Session: "s-1", Tool: "WebSearch"}
	writing   = gates.Call{Session: "s-1", Tool: "Write", Input: []byte(`{"file_path":"/state/x"}`)}
)

func inTeam(kind string) gates.Call {
	return gates.Call{Session: "s-1", Tool: "Agent", UseID: "t-1", Input: []byte(`{"subagent_type":"` + kind + `","name":"mate"}`), Teams: true}
}

func attended(c gates.Call, p gates.Presence) gates.Call { c.Attended = p; return c }

// The combination of the cap and all gates, over environment, spec and call.
func TestDecideOverEnvironmentSpecAndCall(t *testing.T) {
	stateX := []gates.FileWrite{{Path: "/state/x"}}
	for _, c := range []struct {
		name    string
		outside outside
		call    gates.Call
		err     error
		outcome gates.Outcome
		code    string // "" = a plain pass, whichever row of the cap it is
		read    []Stage
	}{
		// Nothing is read that is not needed.
		{"all is off", outside{env: env()}, searching, nil, gates.Pass, "", nil},
		{"everything switched off, whatever is on", outside{env: env("CAPGATE_DISABLE", "1", "CAPGATE_ENABLED", "1", list, "finder", admit, "deny"), armed: true}, stranger, nil, gates.Pass, "", nil},
		{"the cap alone, outside any scope", outside{env: env("CAPGATE_ENABLED", "1")}, searching, nil, gates.Pass, "", []Stage{StagePayload, StageSpec, StageMarker}},
		{"the cap alone, another tool", outside{env: env("CAPGATE_ENABLED", "1"), armed: true}, reading, nil, gates.Pass, "", []Stage{StagePayload, StageSpec}},
		{"the cap alone, at the cap", outside{env: env("CAPGATE_ENABLED", "1"), armed: true}, searching, nil, gates.Deny, CodeBudgetSpent, []Stage{StagePayload, StageSpec, StageMarker, StageLedger}},
		{"the gates alone read no marker", outside{env: env(list, "finder"), armed: true}, searching, nil, gates.Pass, "", []Stage{StagePayload, StageSpec}},
		{"an unparsable payload needs nothing more", outside{env: env(list, "finder", "CAPGATE_ENABLED", "1")}, gates.Call{}, errDisk, gates.Deny, CodeGatesUnparsable, []Stage{StagePayload}},

		// A list.
		{"a declared type", outside{env: env(list, "finder,critic")}, finder, nil, gates.Pass, "", nil},
		{"an undeclared type", outside{env: env(list, "finder,critic")}, stranger, nil, gates.Deny, gates.CodeType, nil},
		{"a list without a name declares none", outside{env: env(list, ",")}, finder, nil, gates.Deny, gates.CodeType, nil},
		{"the background is rewritten", outside{env: env(list, "finder")}, inBack, nil, gates.Rewrite, gates.CodeForeground, nil},
		{"a caller of an undeclared type", outside{env: env(list, "finder")}, foreign, nil, gates.Deny, gates.CodeCaller, nil},
		{"the main thread's shell", outside{env: env(list, "finder")}, shell, nil, gates.Deny, gates.CodeBash, nil},
		{"a declared subagent's shell", outside{env: env(list, "finder")}, subShell, nil, gates.Pass, "", nil},
		{"a list starts no question", outside{env: env(list, "finder")}, attended(finder, gates.Attended), nil, gates.Pass, "", nil},
		{"the gates' kill switch", outside{env: env(list, "finder", "CAPGATE_DISABLE_GATES", "1")}, stranger, nil, gates.Pass, "", nil},
		{"the cap's kill switch leaves the gates on", outside{env: env(list, "finder", "CAPGATE_DISABLE_CAP", "1")}, stranger, nil, gates.Deny, gates.CodeType, nil},
		{"the gates speak before the cap", outside{env: env(list, "finder", "CAPGATE_ENABLED", "1"), armed: true}, stranger, nil, gates.Deny, gates.CodeType, nil},
		{"a declared type at the cap", outside{env: env(list, "finder", "CAPGATE_ENABLED", "1"), armed: true}, finder, nil, gates.Deny, CodeBudgetSpent, nil},
		{"an unparsable payload with the cap alone", outside{env: env("CAPGATE_ENABLED", "1")}, gates.Call{}, errDisk, gates.Pass, "", []Stage{StagePayload}},

		// Where agent teams are on no agent gets a name.
		{"a name under a list", outside{env: env(list, "finder")}, inTeam("finder"), nil, gates.Deny, gates.CodeNamedSpawn, nil},
		{"a name under admission alone", outside{env: env(admit, "ask"), admitted: "01J"}, inTeam("finder"), nil, gates.Deny, gates.CodeNamedSpawn, []Stage{StagePayload, StageSpec}},
		{"a name with an undeclared type", outside{env: env(list, "critic")}, inTeam("finder"), nil, gates.Deny, gates.CodeType, nil},
		{"a name with the gates off", outside{env: env("CAPGATE_ENABLED", "1")}, inTeam("finder"), nil, gates.Pass, "", nil},

		// A spec; it wins over the list.
		{"declared in the spec", outside{env: env(specFile, "/s"), spec: spec("")}, finder, nil, gates.Pass, "", nil},
		{"declared in the list only", outside{env: env(specFile, "/s", list, "general-purpose"), spec: spec("")}, stranger, nil, gates.Deny, gates.CodeType, nil},
		{"the spec's foreground off", outside{env: env(specFile, "/s"), spec: spec(`,"foreground":"off"`)}, inBack, nil, gates.Pass, "", nil},
		{"the spec's foreground rewrite", outside{env: env(specFile, "/s"), spec: spec(`,"foreground":"rewrite"`)}, inBack, nil, gates.Rewrite, gates.CodeForeground, nil},
		{"the spec's foreground require, interactive", outside{env: env(specFile, "/s"), spec: spec(`,"foreground":"require"`)}, attended(inBack, gates.Attended), nil, gates.Deny, gates.CodeForegroundRequired, nil},
		{"the spec's admission ask", outside{env: env(specFile, "/s"), spec: spec(`,"admission":"ask"`)}, finder, nil, gates.Ask, gates.CodeAdmissionAsk, nil},
		{"the spec's admission deny", outside{env: env(specFile, "/s"), spec: spec(`,"admission":"deny"`)}, finder, nil, gates.Deny, gates.CodeAdmissionDenied, nil},
		{"a rewrite rides along with the question", outside{env: env(specFile, "/s"), spec: spec(`,"admission":"ask"`)}, inBack, nil, gates.Ask, gates.CodeAdmissionAsk, nil},

		// The environment's word about admission wins over the spec's.
		{"the environment switches the spec's admission off", outside{env: env(specFile, "/s", admit, "off"), spec: spec(`,"admission":"deny"`)}, finder, nil, gates.Pass, "", nil},
		{"the environment asks where the spec does not", outside{env: env(specFile, "/s", admit, "ask"), spec: spec("")}, finder, nil, gates.Ask, gates.CodeAdmissionAsk, nil},
		{"the environment denies where the spec asks", outside{env: env(specFile, "/s", admit, "deny"), spec: spec(`,"admission":"ask"`)}, finder, nil, gates.Deny, gates.CodeAdmissionDenied, nil},
		{"a word that is no mode asks", outside{env: env(admit, "of")}, finder, nil, gates.Ask, gates.CodeAdmissionAsk, nil},
		{"admission alone asks about any type", outside{env: env(admit, "ask")}, stranger, nil, gates.Ask, gates.CodeAdmissionAsk, []Stage{StagePayload, StageSpec, StageAdmission}},
		{"admission alone leaves the shell alone", outside{env: env(admit, "ask")}, shell, nil, gates.Pass, "", []Stage{StagePayload, StageSpec}},
		{"asking alone leaves callers alone", outside{env: env(admit, "ask")}, foreign, nil, gates.Pass, "", nil},

		// Denied without a list: an agent that was started all the same can do nothing, unless it was admitted.
		{"an agent that nobody admitted", outside{env: env(admit, "deny"), used: []string{"finder"}}, foreign, nil, gates.Deny, gates.CodeCallerNotAdmitted, []Stage{StagePayload, StageSpec}},
		{"an agent of a type that was admitted and started", outside{env: env(admit, "deny"), used: []string{"finder"}}, subShell, nil, gates.Pass, "", nil},
		{"an agent without a type", outside{env: env(admit, "deny"), used: []string{"finder"}}, gates.Call{Tool: "Read", AgentID: "a1", Untyped: true}, nil, gates.Deny, gates.CodeCallerNotAdmitted, nil},
		{"the main thread", outside{env: env(admit, "deny")}, shell, nil, gates.Pass, "", nil},
		{"admissions that cannot be read", outside{env: env(admit, "deny"), used: []string{"finder"}, usedErr: errDisk}, subShell, nil, gates.Deny, gates.CodeCallerNotAdmitted, nil},
		{"a list says who may be", outside{env: env(admit, "deny", list, "finder")}, subShell, nil, gates.Pass, "", nil},
		{"so does a spec", outside{env: env(specFile, "/s"), spec: spec(`,"admission":"deny"`)}, subShell, nil, gates.Pass, "", nil},
		{"the gates' kill switch lets agents go on", outside{env: env(admit, "deny", "CAPGATE_DISABLE_GATES", "1")}, foreign, nil, gates.Pass, "", nil},
		{"admission off alone switches nothing on", outside{env: env(admit, "off")}, stranger, nil, gates.Pass, "", nil},
		{"nobody can be asked", outside{env: env(admit, "ask")}, attended(finder, gates.Absent), nil, gates.Deny, gates.CodeAdmissionNoUI, nil},

		// Admissions, which are looked up only where nothing else stands against the call.
		{"admitted past a question", outside{env: env(admit, "ask"), admitted: "01J"}, finder, nil, gates.Pass, CodeAdmitted, []Stage{StagePayload, StageSpec, StageAdmission}},
		{"admitted past a denial", outside{env: env(admit, "deny"), admitted: "01J"}, finder, nil, gates.Pass, CodeAdmitted, nil},
		{"admitted where nobody can be asked", outside{env: env(admit, "ask"), admitted: "01J"}, attended(finder, gates.Absent), nil, gates.Pass, CodeAdmitted, nil},
		{"an admission does not allow a type", outside{env: env(list, "finder", admit, "ask"), admitted: "01J"}, stranger, nil, gates.Deny, gates.CodeType, []Stage{StagePayload, StageSpec}},
		{"an admission does not lift the cap", outside{env: env("CAPGATE_ENABLED", "1", admit, "ask"), admitted: "01J", armed: true}, finder, nil, gates.Deny, CodeBudgetSpent, []Stage{StagePayload, StageSpec, StageMarker, StageLedger}},
		{"an admitted spawn still goes to the foreground", outside{env: env(list, "finder", admit, "ask"), admitted: "01J"}, inBack, nil, gates.Rewrite, gates.CodeForeground, nil},
		{"without a state directory there is no admission", outside{env: map[string]string{admit: "deny"}, admitted: "01J"}, finder, nil, gates.Deny, gates.CodeAdmissionDenied, []Stage{StagePayload, StageSpec}},

		// A spec that cannot be used.
		{"a spawn under an unreadable spec", outside{env: env(specFile, "/s"), specErr: fs.ErrNotExist}, finder, nil, gates.Deny, CodeSpecUnreadable, nil},
		{"the shell under it", outside{env: env(specFile, "/s"), specErr: errDisk}, shell, nil, gates.Deny, CodeSpecUnreadable, nil},
		{"a subagent's shell under it", outside{env: env(specFile, "/s"), specErr: errDisk}, subShell, nil, gates.Deny, CodeSpecUnreadable, nil},
		{"other tools under it", outside{env: env(specFile, "/s"), specErr: errDisk}, reading, nil, gates.Pass, "", nil},
		{"a subagent's other tools under it", outside{env: env(specFile, "/s"), specErr: errDisk}, foreign, nil, gates.Pass, "", nil},
		{"no admission is used up under it", outside{env: env(specFile, "/s", admit, "ask"), specErr: errDisk, admitted: "01J"}, finder, nil, gates.Deny, CodeSpecUnreadable, []Stage{StagePayload, StageSpec}},

		// Guard is on with the cap or the gates.
		{"a write with the cap on", outside{env: env("CAPGATE_ENABLED", "1"), writes: stateX}, writing, nil, gates.Deny, gates.CodeGuardState, []Stage{StagePayload, StageSpec}},
		{"a write with the gates on", outside{env: env(list, "finder"), writes: stateX}, writing, nil, gates.Deny, gates.CodeGuardState, nil},
		{"a write with the gates' kill switch and the cap on", outside{env: env("CAPGATE_ENABLED", "1", list, "finder", "CAPGATE_DISABLE_GATES", "1"), writes: stateX}, writing, nil, gates.Deny, gates.CodeGuardState, nil},
		{"a write with all off", outside{env: env("CAPGATE_DISABLE_CAP", "1", "CAPGATE_ENABLED", "1"), writes: stateX}, writing, nil, gates.Pass, "", nil},
		{"settings are asked about", outside{env: env("CAPGATE_ENABLED", "1"), writes: []gates.FileWrite{{Path: "/h/.claude/settings.json", Settings: true}}}, writing, nil, gates.Ask, gates.CodeGuardSettings, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, read := c.outside.judge(t, c.call, c.err)
			require.Equal(t, c.outcome, d.Verdict.Outcome, d.Verdict.Code)
			switch {
			case c.code != "":
				require.Equal(t, c.code, d.Verdict.Code)
			default:
				require.Equal(t, gates.Pass, d.Verdict.Outcome)
				require.Empty(t, d.Verdict.Reason)
			}
			if len(c.read) > 0 {
				require.Equal(t, c.read, read)
			}
			if c.outcome == gates.Ask || c.outcome == gates.Deny {
				require.NotEmpty(t, d.Verdict.Reason)
			}
			if c.code == CodeAdmitted {
				require.Equal(t, "admitted beforehand by 01J", d.Verdict.Reason)
			}
		})
	}
}

func TestTheQuestionCarriesTheRewrite(t *testing.T) {
	d, _ := outside{env: env(specFile, "/s"), spec: spec(`,"admission":"ask"`)}.judge(t, inBack, nil)
	require.JSONEq(t, `{"subagent_type":"finder","prompt":"p","run_in_background":false}`, string(d.Verdict.Input))
}

// What was asked, in the order in which reasons are shown, is told to who wants an explanation.
func TestEveryGateThatWasAskedIsListed(t *testing.T) {
	for _, c := range []struct {
		outside outside
		err     error
		want    []string
	}{
		{outside{env: env("CAPGATE_ENABLED", "1")}, nil, []string{"guard", "cap"}},
		{outside{env: env(admit, "ask")}, nil, []string{"named", "guard", "cap", "admission"}},
		{outside{env: env(list, "finder")}, nil, []string{"type", "named", "caller", "bash", "guard", "cap", "foreground", "admission"}},
		{outside{env: env(specFile, "/s"), specErr: errDisk}, nil, []string{"spec", "guard", "cap"}},
		{outside{env: env(list, "finder")}, errDisk, []string{"payload", "guard", "cap"}},
		{outside{env: env()}, nil, []string{"cap"}},
	} {
		d, _ := c.outside.judge(t, stranger, c.err)
		var asked []string
		for _, j := range d.Gates {
			asked = append(asked, j.Gate)
		}
		require.Equal(t, c.want, asked)
	}
}

func TestTheReasonOfAnUnreadableSpecSaysWhy(t *testing.T) {
	d, _ := outside{env: env(specFile, "/s"), specErr: errDisk}.judge(t, finder, nil)
	require.Contains(t, d.Verdict.Reason, errDisk.Error())
	late := Facts{Config: LoadConfig(fromMap(env(specFile, "/s"))), Now: now, Known: StagePayload, Call: finder}.Overdue()
	require.Contains(t, Decide(late).Verdict.Reason, "could not be told within 2s")
	late.Config, late.Call = LoadConfig(fromMap(env(admit, "deny"))), foreign
	require.Equal(t, gates.CodeCallerNotAdmitted, Decide(late).Verdict.Code, "admissions that were not read in time")
	require.Contains(t, Decide(Facts{Config: LoadConfig(fromMap(env(list, "a"))), Known: StagePayload, PayloadErr: errDisk}).Verdict.Reason, errDisk.Error())
}

// The spec is read for the calls that it has a say in, and for no others.
func TestTheSpecIsReadForSpawnsShellsAndSubagents(t *testing.T) {
	for _, c := range []struct {
		call gates.Call
		want bool
	}{{finder, true}, {shell, true}, {foreign, true}, {reading, false}, {searching, false}, {writing, false}} {
		f := Facts{Config: LoadConfig(fromMap(env(specFile, "/s"))), Call: c.call}
		require.Equal(t, c.want, f.NeedsSpec(), c.call.Tool)
		f.Config.Spec, f.Config.AllowedSubagents = "", "finder"
		require.False(t, f.NeedsSpec(), "there is none")
		f.Config.Spec, f.Config.DisableGates = "/s", "1"
		require.False(t, f.NeedsSpec(), "the gates are off")
	}
}

// Facts that are not complete deny, should they ever be decided on.
func TestDecidingTooEarlyDenies(t *testing.T) {
	d := Decide(Facts{Config: LoadConfig(fromMap(env("CAPGATE_ENABLED", "1"))), Known: StagePayload, Call: searching})
	require.Equal(t, gates.Deny, d.Verdict.Outcome)
	require.Equal(t, CodeLedgerUnreadable, d.Verdict.Code)
}

func TestWhereTheLedgerIs(t *testing.T) {
	for _, c := range []struct{ data, ledger, want, err string }{
		{"/state", "", "/state/ledger.db", ""},
		{"/state", "/elsewhere/../l.db", "/l.db", ""},
		{"/state", "l.db", "", "relative path"},
		{"/state", "etcd://host", "", "not supported by this build"},
	} {
		path, err := Config{DataDir: c.data, Ledger: c.ledger}.LedgerPath()
		require.Equal(t, c.want, path)
		if c.err == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.err)
		}
	}
}

// Every code that a decision can have is explained, and no other is.
func TestEveryCodeHasAMeaning(t *testing.T) {
	for _, r := range Table {
		why, change := CodeMeaning(r.Code)
		require.Equal(t, r.Why, why)
		require.Equal(t, r.Change, change)
	}
	for _, c := range Codes {
		why, change := CodeMeaning(c.Code)
		require.Equal(t, c.Rule, why)
		require.Equal(t, c.Change, change)
	}
	why, change := CodeMeaning("nonsense")
	require.Empty(t, why+change)
}

func TestOverdueNamesWhatWasAwaited(t *testing.T) {
	for known, want := range map[Stage]string{
		StageConfig: "the call", StagePayload: "what is declared", StageSpec: "the session's marker", StageMarker: "the ledger", StageLedger: "", StageAdmission: "",
	} {
		f := Facts{Known: known}.Overdue()
		require.Equal(t, StageAdmission, f.Known)
		errs := errors.Join(f.PayloadErr, f.SpecErr, f.MarkerErr, f.LedgerErr)
		if want == "" {
			require.NoError(t, errs)
			continue
		}
		require.ErrorIs(t, errs, ErrOverdue)
		require.ErrorContains(t, f.LedgerErr, want)
		require.Equal(t, known < StagePayload, f.PayloadErr != nil)
		require.Equal(t, known < StageSpec, f.SpecErr != nil)
		require.Equal(t, known < StageSpec, f.AdmittedErr != nil)
		require.Equal(t, known < StageMarker, f.MarkerErr != nil)
	}
}

func TestStagesHaveNames(t *testing.T) {
	var names []string
	for s := StageConfig; s <= StageAdmission; s++ {
		names = append(names, s.String())
	}
	require.Equal(t, []string{"environment", "payload", "spec", "marker", "ledger", "admission"}, names)
}
