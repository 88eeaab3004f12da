package live

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ask sends a Messages API request and returns the reply's text.
func ask(t *testing.T, m *Model, path, request string) string {
	t.Helper()
	response, err := http.Post(m.URL()+path, "application/json", strings.NewReader(request))
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(text))
	return string(text)
}

func start(t *testing.T, programs Programs) *Model {
	t.Helper()
	m, err := StartModel(programs)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

const tools = `"system":[{"type":"text","text":"be brief"}],"tools":[{"name":"Bash"},{"name":"Agent"}],`

func TestTheModelRunsTheProgramStepByStep(t *testing.T) {
	m := start(t, Programs{"one": {Calls(Use{Tool: "Bash", Input: M{"command": "ls"}}, Use{Tool: "Agent"}), Say("bye")}})
	prompt := `{"role":"user","content":"please PROGRAM:one"}`
	var first struct {
		Content []struct {
			Type, ID, Name string
			Input          json.RawMessage
		}
		StopReason string `json:"stop_reason"`
	}
	require.NoError(t, json.Unmarshal([]byte(ask(t, m, "/v1/messages?beta=true", `{"model":"x",`+tools+`"messages":[`+prompt+`]}`)), &first))
	require.Equal(t, "tool_use", first.StopReason)
	require.Len(t, first.Content, 2)
	require.Equal(t, "Bash", first.Content[0].Name)
	require.JSONEq(t, `{"command":"ls"}`, string(first.Content[0].Input))
	require.JSONEq(t, `{}`, string(first.Content[1].Input))
	require.NotEqual(t, first.Content[0].ID, first.Content[1].ID)

	turns := prompt + `,{"role":"assistant","content":[]},{"role":"user","content":[
		{"type":"tool_result","tool_use_id":"` + first.Content[0].ID + `","content":[{"type":"text","text":"a.txt"}]},
		{"type":"tool_result","tool_use_id":"` + first.Content[1].ID + `","content":"no","is_error":true}]}`
	require.Contains(t, ask(t, m, "/v1/messages", `{`+tools+`"messages":[`+turns+`]}`), `"text":"bye"`)
	require.Contains(t, ask(t, m, "/v1/messages", `{`+tools+`"messages":[`+turns+`,{"role":"assistant","content":"bye"},{"role":"user","content":"go on"}]}`), `"DONE"`)

	require.Equal(t, []Result{
		{UseID: first.Content[0].ID, Tool: "Bash", Program: "one", Text: "a.txt"},
		{UseID: first.Content[1].ID, Tool: "Agent", Program: "one", Text: "no", IsError: true},
	}, m.Results())
	require.Equal(t, m.Results()[1:], m.ResultsOf("one", "Agent"))
	requests := m.Of("one")
	require.Len(t, requests, 3)
	require.Equal(t, []string{"Bash", "Agent"}, requests[0].Tools)
	require.Equal(t, "be brief", requests[0].System)
	require.Equal(t, 1, requests[1].Turn)
}

func TestTheModelStreams(t *testing.T) {
	m := start(t, Programs{"one": {{Text: "now", Calls: []Use{{Tool: "Bash", Input: M{"a": 1}}}}}})
	got := ask(t, m, "/v1/messages", `{"stream":true,`+tools+`"messages":[{"role":"user","content":[{"type":"text","text":"PROGRAM:one"}]}]}`)
	var events []string
	for line := range strings.Lines(got) {
		if event, ok := strings.CutPrefix(line, "event: "); ok {
			events = append(events, strings.TrimSpace(event))
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			require.True(t, json.Valid([]byte(data)), data)
		}
	}
	require.Equal(t, []string{
		"message_start", "content_block_start", "content_block_delta", "content_block_stop",
		"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
	}, events)
	require.Contains(t, got, `"partial_json":"{\"a\":1}"`)
}

func TestTheLastPromptThatNamesAProgramCounts(t *testing.T) {
	m := start(t, Programs{"one": {Say("1a"), Say("1b")}, "two": {Say("2a")}})
	request := func(messages string) string {
		return ask(t, m, "/v1/messages", `{`+tools+`"messages":[`+messages+`]}`)
	}
	require.Contains(t, request(`{"role":"user","content":"PROGRAM:one"},{"role":"assistant","content":"1a"},{"role":"user","content":"PROGRAM:two"}`), "2a")
	require.Contains(t, request(`{"role":"user","content":"PROGRAM:three"}`), "no program three")
	require.Contains(t, request(`{"role":"user","content":"hello"}`), `"OK"`)
}

func TestAStepOfCallsIsForRequestsThatOfferTools(t *testing.T) {
	m := start(t, Programs{"one": {Call("Bash", nil)}})
	require.Contains(t, ask(t, m, "/v1/messages", `{"messages":[{"role":"user","content":"a title for: PROGRAM:one"}]}`), `"OK"`)
}

func TestAGENTIsTheAgentSpawnedLast(t *testing.T) {
	m := start(t, Programs{"one": {Say("-"), Call("SendMessage", M{"to": "AGENT"})}})
	for text, want := range map[string]string{
		"agentId: a1\nagentId: a2 (internal)": `"to":"a2"`, "Spawned agent `Alpha.Beta` (job `x`)": `"to":"Alpha.Beta"`, "none": `"to":"AGENT"`,
	} {
		result, err := json.Marshal(text)
		require.NoError(t, err)
		require.Contains(t, ask(t, m, "/v1/messages", `{`+tools+`"messages":[{"role":"user","content":"PROGRAM:one"},
			{"role":"assistant","content":"-"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"u","content":`+string(result)+`}]}]}`), want)
	}
}

func TestResultsAreFoundBeforeAnotherMessageOfTheClient(t *testing.T) {
	m := start(t, Programs{"one": {Call("Bash", nil), Say("-")}})
	ask(t, m, "/v1/messages", `{`+tools+`"messages":[{"role":"user","content":"PROGRAM:one"}]}`)
	ask(t, m, "/v1/messages", `{`+tools+`"messages":[{"role":"user","content":"PROGRAM:one"},{"role":"assistant","content":"-"},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_000001000","content":"a"}]},{"role":"user","content":"by the way"}]}`)
	require.Equal(t, []Result{{UseID: "toolu_000001000", Tool: "Bash", Program: "one", Text: "a"}}, m.Results())
}

func TestWhatIsNoMessageGetsAnAnswerToo(t *testing.T) {
	m := start(t, nil)
	require.JSONEq(t, `{"input_tokens":10}`, ask(t, m, "/v1/messages/count_tokens", `{}`))
	require.JSONEq(t, `{}`, ask(t, m, "/api/whatever", ``))
	require.Empty(t, m.Requests())
}
