package omp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/gates"
)

// decode reads a question as gates see it.
func decode(payload []byte) (gates.Call, error) {
	c, err := Client{}.Decode(payload, nil)
	return c.Call, err
}

// Questions as the extension put them on Oh My Pi 18.1.21, with the ids shortened.
const (
	fromMain = `{"session_id":"01a22d49-bdb1","tool_name":"task","tool_use_id":"toolu_01","tool_input":{"context":"c","tasks":[{"name":"Alpha","agent":"task","task":"t"}]},"has_ui":true,"cwd":"/w"}`
	fromSub  = `{"session_id":"01a22d49-bdb1","tool_name":"bash","tool_use_id":"toolu_02","tool_input":{"command":"ls"},"has_ui":false,"cwd":"/w","agent_id":"01a22d49-c30e","agent_type":"task"}`
)

func TestDecodeReadsWhatTheExtensionSends(t *testing.T) {
	call, err := decode([]byte(fromMain))
	require.NoError(t, err)
	require.Equal(t, gates.Call{
		Session: "01a22d49-bdb1", Tool: "task", UseID: "toolu_01", Attended: gates.Attended, Dir: "/w", CountsAs: "Agent", Untyped: true,
		Input: json.RawMessage(`{"context":"c","tasks":[{"name":"Alpha","agent":"task","task":"t"}]}`),
	}, call)

	call, err = decode([]byte(fromSub))
	require.NoError(t, err)
	require.Equal(t, gates.Call{
		Session: "01a22d49-bdb1", Tool: "bash", UseID: "toolu_02", Attended: gates.Absent, Dir: "/w",
		Input: json.RawMessage(`{"command":"ls"}`), AgentID: "01a22d49-c30e", AgentType: "task", Untyped: true,
	}, call)
}

func TestOnlyABooleanTellsWhetherThereIsAUI(t *testing.T) {
	for value, want := range map[string]gates.Presence{
		"true": gates.Attended, "false": gates.Absent, `"true"`: gates.Unknown, "null": gates.Unknown, "1": gates.Unknown,
		`true,"has_ui":0`: gates.Unknown, `0,"has_ui":true`: gates.Attended,
	} {
		call, err := decode([]byte(`{"has_ui":` + value + `}`))
		require.NoError(t, err)
		require.Equal(t, want, call.Attended, value)
	}
	call, err := decode([]byte(`{}`))
	require.NoError(t, err)
	require.Equal(t, gates.Unknown, call.Attended)
}

func TestOddQuestionsAreJudgedBySessionAndToolAllTheSame(t *testing.T) {
	deep := strings.Repeat(`[{"a":`, 20_000) + "1" + strings.Repeat("}]", 20_000)
	for name, payload := range map[string]string{
		"byte order mark":          "\ufeff" + `{"session_id":"s","tool_name":"T"}`,
		"unknown fields":           `{"x":{"session_id":"other"},"session_id":"s","y":[1],"tool_name":"T"}`,
		"repeated keys":            `{"session_id":"other","tool_name":"Other","session_id":"s","tool_name":"T"}`,
		"escapes":                  `{"session\u005fid":"\u0073","tool_n\u0061me":"T"}`,
		"a very deep input":        `{"session_id":"s","tool_input":` + deep + `,"tool_name":"T"}`,
		"names inside the input":   `{"session_id":"s","tool_name":"T","tool_input":{"session_id":"other"}}`,
		"lone surrogate elsewhere": `{"session_id":"s","tool_input":{"a":"\ud800"},"tool_name":"T"}`,
	} {
		t.Run(name, func(t *testing.T) {
			call, err := decode([]byte(payload))
			require.NoError(t, err)
			require.Equal(t, "s", call.Session)
			require.Equal(t, "T", call.Tool)
		})
	}
}

func TestAFieldOfAnotherTypeIsEmpty(t *testing.T) {
	for _, value := range []string{"null", "7", "true", "[]", `{"a":"s"}`} {
		call, err := decode([]byte(strings.ReplaceAll(`{"session_id":V,"tool_name":V,"tool_use_id":V,"agent_id":V,"agent_type":V,"cwd":V}`, "V", value)))
		require.NoError(t, err)
		require.Equal(t, gates.Call{Untyped: true}, call)
	}
}

func TestUnparsableQuestions(t *testing.T) {
	for _, payload := range []string{"", " \r\n", "\ufeff"} {
		_, err := decode([]byte(payload))
		require.ErrorIs(t, err, client.ErrEmpty)
	}
	for _, payload := range []string{"null", "[]", "hello", fromMain + "{}", fromMain[1:]} {
		_, err := decode([]byte(payload))
		require.ErrorIs(t, err, gates.ErrSyntax)
	}
	for cut := 1; cut < len(fromSub); cut++ {
		_, err := decode([]byte(fromSub[:cut]))
		require.ErrorIs(t, err, gates.ErrSyntax, "cut at %d", cut)
	}
	call, _ := decode([]byte(fromSub[:len(fromSub)-1]))
	require.Equal(t, "01a22d49-bdb1", call.Session, "what came before the cut is kept")
}

func TestEncode(t *testing.T) {
	input := json.RawMessage(`{}`)
	for _, c := range []struct {
		name string
		v    gates.Verdict
		want string
	}{
		{"pass", gates.Verdict{Code: "x", Reason: "not shown"}, `{"outcome":"pass"}`},
		{"deny", gates.Verdict{Outcome: gates.Deny, Reason: `no "more"`}, `{"outcome":"deny","reason":"no \"more\""}`},
		{"deny with an id", gates.Verdict{Outcome: gates.Deny, Reason: "no [x] [capgate 01JD]"}, `{"outcome":"deny","reason":"no [x] [capgate 01JD]","id":"01JD"}`},
		{"an id is at the end", gates.Verdict{Outcome: gates.Deny, Reason: "[capgate 01JD] no"}, `{"outcome":"deny","reason":"[capgate 01JD] no"}`},
		{"deny without a reason", gates.Verdict{Outcome: gates.Deny}, `{"outcome":"deny","reason":"capgate: this call is denied. Do not retry: go on without it, and tell the user."}`},
		{"ask", gates.Verdict{Outcome: gates.Ask, Code: gates.CodeAdmissionAsk, Reason: "Spawn 2 subagents?\n- a\n- b"}, `{"outcome":"ask","title":"Approve subagent spawn?","message":"Spawn 2 subagents?\n- a\n- b"}`},
		{"ask about something else", gates.Verdict{Outcome: gates.Ask, Reason: "Sure?"}, `{"outcome":"ask","title":"Approve this call?","message":"Sure?"}`},
		{"ask without a question denies", gates.Verdict{Outcome: gates.Ask}, `{"outcome":"deny","reason":"capgate: this call is denied. Do not retry: go on without it, and tell the user."}`},
		{"a rewrite cannot be carried out", gates.Verdict{Outcome: gates.Rewrite, Input: input}, `{"outcome":"deny","reason":` + client.Quote(reasonRewrite) + `}`},
		{"nor one behind a question", gates.Verdict{Outcome: gates.Ask, Reason: "Sure?", Input: input}, `{"outcome":"deny","reason":` + client.Quote(reasonRewrite) + `}`},
		{"an outcome that is none denies", gates.Verdict{Outcome: 99, Reason: "r"}, `{"outcome":"deny","reason":"r"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want+"\n", string(Encode(c.v)))
			require.True(t, json.Valid(Encode(c.v)))
		})
	}
}

func TestTheAdmissionTextBecomesADialog(t *testing.T) {
	call, err := decode([]byte(fromMain))
	require.NoError(t, err)
	require.Equal(t,
		`{"outcome":"ask","title":"Approve subagent spawn?","message":"Spawn 1 subagent?\n\n- Alpha [task]: t\n\nSubagents add latency and cost. Approve only when delegation materially helps."}`+"\n",
		string(Encode(gates.Admission(gates.AdmissionAsk)(call))))
}

// FuzzDecode: whatever comes, decoding ends without a panic, says what the last such keys of the object say, and every
// answer to it is one line of JSON that the extension takes for an answer.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(fromMain))
	f.Add([]byte(fromSub))
	f.Add([]byte("\ufeff" + `{"session_id":"a","session_id":"b","has_ui":1}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		call, err := decode(payload)
		for _, mode := range []gates.AdmissionMode{gates.AdmissionOff, gates.AdmissionAsk, gates.AdmissionDeny} {
			line := Encode(gates.Admission(mode)(call))
			var answer struct{ Outcome, Reason, Title string }
			require.NoError(t, json.Unmarshal(line, &answer))
			require.Equal(t, len(line)-1, strings.IndexByte(string(line), '\n'))
			switch answer.Outcome {
			case "pass":
			case "deny":
				require.NotEmpty(t, answer.Reason)
			case "ask":
				require.NotEmpty(t, answer.Title)
			default:
				t.Fatalf("outcome %q", answer.Outcome)
			}
		}
		if err != nil {
			return
		}
		var want map[string]any
		if json.Unmarshal([]byte(strings.TrimPrefix(string(payload), "\ufeff")), &want) != nil {
			return // nested deeper than encoding/json goes
		}
		text := func(key string) string { s, _ := want[key].(string); return s }
		require.Equal(t, text("session_id"), call.Session)
		require.Equal(t, text("tool_name"), call.Tool)
		require.Equal(t, text("agent_id"), call.AgentID)
		require.Equal(t, text("agent_type"), call.AgentType)
		require.Equal(t, text("cwd"), call.Dir)
		hasUI, known := want["has_ui"].(bool)
		require.Equal(t, known && hasUI, call.Attended == gates.Attended)
		require.Equal(t, known && !hasUI, call.Attended == gates.Absent)
	})
}
