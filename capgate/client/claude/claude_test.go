package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/gates"
)

// decode reads a payload where the environment says nothing.
func decode(payload []byte) (client.Call, error) {
	return Client{}.Decode(payload, func(string) (string, bool) { return "", false })
}

const recorded = "../../../testdata/payloads/claude-code-2.1.332"

func TestDecodeReadsWhatTheRealClientSends(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recorded, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			payload, err := os.ReadFile(file)
			require.NoError(t, err)
			var want struct {
				Session string          `json:"session_id"`
				Event   string          `json:"hook_event_name"`
				Tool    string          `json:"tool_name"`
				UseID   string          `json:"tool_use_id"`
				AgentID string          `json:"agent_id"`
				Type    string          `json:"agent_type"`
				Mode    string          `json:"permission_mode"`
				Dir     string          `json:"cwd"`
				Source  string          `json:"source"`
				Reason  string          `json:"reason"`
				Input   json.RawMessage `json:"tool_input"`
			}
			require.NoError(t, json.Unmarshal(payload, &want))
			got, err := decode(payload)
			require.NoError(t, err)
			require.Equal(t, client.Call{Event: want.Event, Cause: want.Source + want.Reason, Silent: !strings.HasPrefix(filepath.Base(file), "PreToolUse-"), Call: gates.Call{
				Session: want.Session, Tool: want.Tool, Input: want.Input, UseID: want.UseID,
				AgentID: want.AgentID, AgentType: want.Type, Mode: want.Mode, Dir: want.Dir,
			}}, got)
		})
	}
}

func TestOddPayloadsAreJudgedBySessionAndToolAllTheSame(t *testing.T) {
	deep := strings.Repeat(`[{"a":`, 20_000) + "1" + strings.Repeat("}]", 20_000)
	for name, payload := range map[string]string{
		"plain":                     `{"session_id":"s","tool_name":"T"}`,
		"byte order mark":           "\ufeff" + `{"session_id":"s","tool_name":"T"}`,
		"unknown fields":            `{"x":{"session_id":"other"},"session_id":"s","y":[1],"tool_name":"T","z":null}`,
		"repeated keys":             `{"session_id":"other","tool_name":"Other","session_id":"s","tool_name":"T"}`,
		"escaped keys":              `{"session\u005fid":"s","tool_n\u0061me":"T"}`,
		"escaped values":            `{"session_id":"\u0073","tool_name":"\u0054"}`,
		"other case is another key": `{"session_id":"s","tool_name":"T","Session_ID":"other","TOOL_NAME":"Other"}`,
		"lone surrogates elsewhere": `{"session_id":"s","tool_input":{"a":"\ud800"},"tool_name":"T","cwd":"\udfff"}`,
		"invalid UTF-8 elsewhere":   "{\"session_id\":\"s\",\"tool_input\":{\"a\":\"\xff\xfe\"},\"tool_name\":\"T\"}",
		"nested deeper than 10,000": `{"session_id":"s","tool_input":` + deep + `,"tool_name":"T"}`,
		"names inside the input":    `{"session_id":"s","tool_name":"T","tool_input":{"session_id":"other","tool_name":"Other"}}`,
		"text that looks like JSON": `{"session_id":"s","tool_name":"T","tool_input":"\",\"session_id\":\"other"}`,
		"white space around":        "\r\n\t " + `{"session_id":"s","tool_name":"T"}` + "\n\n",
		"a name that is not a text": `{"session_id":7,"tool_name":{},"session_id":"s","tool_name":"T"}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decode([]byte(payload))
			require.NoError(t, err)
			require.Equal(t, "s", got.Session)
			require.Equal(t, "T", got.Tool)
			require.False(t, got.Silent)
		})
	}
}

func TestAFieldOfAnotherTypeIsEmpty(t *testing.T) {
	for _, value := range []string{"null", "7", "true", "[]", "{}", `["s"]`} {
		got, err := decode([]byte(`{"hook_event_name":"PreToolUse","session_id":` + value + `,"tool_name":` + value + `,"agent_id":` + value + `}`))
		require.NoError(t, err)
		require.Empty(t, got.Session)
		require.Empty(t, got.Tool)
		require.Empty(t, got.AgentID)
	}
}

func TestOnlyPreToolUseBlocks(t *testing.T) {
	for value, want := range map[string]bool{
		`"PreToolUse"`: true, `"PostToolUse"`: false, `"Stop"`: false, `"UserPromptSubmit"`: false, `"pretooluse"`: false,
		`"PreToolUse "`: false, `""`: false, `null`: false, `7`: false,
	} {
		got, err := decode([]byte(`{"hook_event_name":` + value + `}`))
		require.NoError(t, err)
		require.Equal(t, want, !got.Silent, value)
	}
	got, err := decode([]byte(`{"session_id":"s"}`))
	require.NoError(t, err)
	require.False(t, got.Silent, "no event at all")
}

func TestUnparsablePayloads(t *testing.T) {
	for name, payload := range map[string]string{
		"empty": "", "white space": " \r\n", "only a byte order mark": "\ufeff", "null": "null", "a list": `[{"session_id":"s"}]`,
		"cut off": `{"session_id":"s","tool_name":"T"`, "two objects": `{"session_id":"s"}{}`, "text": "hello", "UTF-16": "\xff\xfe{\x00}\x00",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode([]byte(payload))
			require.Error(t, err)
		})
	}
}

func TestWhatCameBeforeTheCutIsKept(t *testing.T) {
	got, err := decode([]byte(`{"hook_event_name":"Stop","session_id":"s","tool_na`))
	require.ErrorIs(t, err, gates.ErrSyntax)
	require.Equal(t, "Stop", got.Event)
	for _, payload := range []string{`{"hook_event_name":00`, `{"hook_event_name":null,`, `{"hook_event_name":"",`, `{"hook_event_name":"Sto`} {
		got, err = decode([]byte(payload))
		require.Error(t, err)
		require.False(t, got.Silent, payload)
	}
}

func TestEncode(t *testing.T) {
	input := json.RawMessage(`{"b":1152921504606846976, "a":"<ü>"}`)
	for _, c := range []struct {
		name   string
		v      gates.Verdict
		stdout string
		stderr string
		exit   int
	}{
		{"pass is silent", gates.Verdict{Code: "x", Reason: "not shown"}, "", "", 0},
		{"deny speaks on stderr only", gates.Verdict{Outcome: gates.Deny, Reason: "no", Input: input}, "", "no\n", 2},
		{"ask", gates.Verdict{Outcome: gates.Ask, Reason: "sure \"?\"\n- a"},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"sure \"?\"\n- a"}}` + "\n", "", 0},
		{"ask with a rewrite", gates.Verdict{Outcome: gates.Ask, Reason: "?", Input: input},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"?","updatedInput":` + string(input) + `}}` + "\n", "", 0},
		{"a rewrite makes no decision", gates.Verdict{Outcome: gates.Rewrite, Input: input},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":` + string(input) + `}}` + "\n", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Client{}.Encode(c.v)
			require.Equal(t, c.stdout, string(got.Stdout))
			require.Equal(t, c.stderr, string(got.Stderr))
			require.Equal(t, c.exit, got.Exit)
			if c.stdout != "" {
				require.True(t, json.Valid(got.Stdout))
			}
		})
	}
}

func TestPresenceIsAHint(t *testing.T) {
	for _, c := range []struct {
		attended, entrypoint string
		want                 gates.Presence
	}{
		{"1", "cli", gates.Attended}, {"0", "sdk-cli", gates.Absent}, {"", "cli", gates.Unknown}, {"true", "cli", gates.Unknown},
		{"0", "", gates.Absent}, {"0", "sdk-ts", gates.Unknown}, {"0", "sdk-py", gates.Unknown}, {"0", "sdk-tsx", gates.Absent},
		{"1", "sdk-ts", gates.Attended},
	} {
		require.Equal(t, c.want, presence(func(name string) (string, bool) {
			return map[string]string{"CLAUDE_CODE_SESSION_ATTENDED": c.attended, "CLAUDE_CODE_ENTRYPOINT": c.entrypoint}[name], true
		}), "%+v", c)
	}
}

// What the client takes for a yes was measured: TestLiveClaudeReadsTheBackgroundVariable.
func TestTheBackgroundIsOffAsTheClientReadsIt(t *testing.T) {
	for value, want := range map[string]bool{
		"1": false, "true": false, "TRUE": false, "True": false, "yes": false, "on": false, " 1 ": false,
		"": true, "0": true, "false": true, "no": true, "off": true, "2": true, "y": true, "enabled": true,
	} {
		require.Equal(t, want, Background(func(string) (string, bool) { return value, true }), "%q", value)
	}
	require.True(t, Background(func(string) (string, bool) { return "", false }))
}

// The same: TestLiveClaudeHowTeamsAreSwitchedOn.
func TestTeamsAreOnAsTheClientReadsIt(t *testing.T) {
	for value, want := range map[string]bool{
		"1": true, "true": true, "TRUE": true, "yes": true, "on": true, " 1": true,
		"": false, "0": false, "false": false, "no": false, "off": false, "2": false, "enabled": false,
	} {
		got, err := Client{}.Decode([]byte(`{}`), func(name string) (string, bool) {
			if name != "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS" {
				return "", false
			}
			return value, true
		})
		require.NoError(t, err)
		require.Equal(t, want, got.Teams, "%q", value)
	}
}

// FuzzDecode: whatever comes, decoding ends without a panic, and what it says of session and tool is what the last
// such keys of the object say.
func FuzzDecode(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join(recorded, "PreToolUse-*.json"))
	for _, file := range files {
		payload, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(payload)
	}
	f.Add([]byte("\ufeff" + `{"session_id":"a","session_id":"b"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		got, err := decode(payload)
		if err != nil {
			return
		}
		var want map[string]any
		if json.Unmarshal([]byte(strings.TrimPrefix(string(payload), "\ufeff")), &want) != nil {
			return // nested deeper than encoding/json goes
		}
		session, _ := want["session_id"].(string)
		tool, _ := want["tool_name"].(string)
		require.Equal(t, session, got.Session)
		require.Equal(t, tool, got.Tool)
	})
}
