package live

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Request is one question that a client put to the model.
type Request struct {
	Program string   // that answered it; "" when the conversation names none
	Turn    int      // the step that answered it
	Model   string   // that the client asked for
	Stream  bool     // whether it wanted a stream
	Tools   []string // the names it offered
	System  string   // its system text
	Text    string   // the text of the newest message
	Results []Result // the tool results since the model's own last message
	At      time.Time
}

// Result is what a client told the model about one tool call.
type Result struct {
	UseID   string
	Tool    string // that the model had called
	Program string // that had called it
	Text    string
	IsError bool
}

// Model answers Anthropic's Messages API on loopback from programs.
type Model struct {
	programs Programs
	server   *http.Server
	url      string

	mu       sync.Mutex
	requests []Request
	uses     map[string]Result // by id: what was called, without the answer
}

// StartModel serves the programs until Close.
func StartModel(programs Programs) (*Model, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &Model{programs: programs, url: "http://" + listener.Addr().String(), uses: map[string]Result{}}
	m.server = &http.Server{Handler: http.HandlerFunc(m.serve), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = m.server.Serve(listener) }()
	return m, nil
}

// URL is the base address, for ANTHROPIC_BASE_URL.
func (m *Model) URL() string { return m.url }

// Close ends the server and its connections.
func (m *Model) Close() error { return m.server.Close() }

// Requests returns what has been asked so far, oldest first.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Of returns the requests that the program answered.
func (m *Model) Of(program string) []Request {
	return slices.DeleteFunc(m.Requests(), func(r Request) bool { return r.Program != program })
}

// Results returns every tool result once, in the order in which the model first saw them.
func (m *Model) Results() []Result {
	var all []Result
	seen := map[string]bool{}
	for _, request := range m.Requests() {
		for _, r := range request.Results {
			if !seen[r.UseID] {
				seen[r.UseID] = true
				all = append(all, r)
			}
		}
	}
	return all
}

// ResultsOf returns the results of one program's calls of a tool.
func (m *Model) ResultsOf(program, tool string) []Result {
	return slices.DeleteFunc(m.Results(), func(r Result) bool { return r.Program != program || r.Tool != tool })
}

func (m *Model) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case !strings.Contains(r.URL.Path, "/messages"):
		reply(w, struct{}{})
	case strings.Contains(r.URL.Path, "count_tokens"):
		reply(w, M{"input_tokens": 10})
	default:
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var question body
		if err := json.Unmarshal(raw, &question); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		id, content := m.answer(question)
		if question.Stream {
			stream(w, id, question.Model, content)
			return
		}
		reply(w, envelope(id, question.Model, content, stopReason(content)))
	}
}

// answer records the request and returns the content blocks of the reply.
func (m *Model) answer(question body) (id string, content []M) {
	name, turn, step := m.programs.next(question.Messages)
	if len(question.Tools) == 0 && len(step.Calls) > 0 {
		step = Say("OK") // the client wants a title or the like of the same conversation
	}
	record := Request{
		Program: name, Turn: turn, Model: question.Model, Stream: question.Stream, System: plain(question.System), At: time.Now(),
	}
	for _, t := range question.Tools {
		record.Tools = append(record.Tools, t.Name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(question.Messages); n > 0 {
		record.Text = question.Messages[n-1].text()
		// Not only in the newest message: in a subagent the client puts a message of its own after the first results.
		for _, message := range question.Messages[lastOf("assistant", question.Messages)+1:] {
			for _, r := range message.results() {
				r.Tool, r.Program = m.uses[r.UseID].Tool, m.uses[r.UseID].Program
				record.Results = append(record.Results, r)
			}
		}
	}
	m.requests = append(m.requests, record)
	id = fmt.Sprintf("msg_%06d", len(m.requests))
	if step.Text != "" {
		content = append(content, M{"type": "text", "text": step.Text})
	}
	for i, use := range step.Calls {
		input, err := json.Marshal(use.Input)
		if err != nil {
			panic(err) // a test's own input
		}
		if use.Input == nil {
			input = []byte("{}")
		}
		useID := fmt.Sprintf("toolu_%06d%03d", len(m.requests), i)
		if use.ID != "" {
			useID = use.ID
		}
		m.uses[useID] = Result{Tool: use.Tool, Program: name}
		content = append(content, M{"type": "tool_use", "id": useID, "name": use.Tool, "input": withAgent(input, question.Messages)})
	}
	return id, content
}

// lastOf is the index of the role's last message, -1 where it has none.
func lastOf(role string, messages []message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == role {
			return i
		}
	}
	return -1
}

func stopReason(content []M) string {
	for _, b := range content {
		if b["type"] == "tool_use" {
			return "tool_use"
		}
	}
	return "end_turn"
}

// envelope is the message around content; stop is nil while it is being streamed.
func envelope(id, model string, content []M, stop any) M {
	if content == nil {
		content = []M{}
	}
	return M{
		"id": id, "type": "message", "role": "assistant", "model": model, "content": content,
		"stop_reason": stop, "stop_sequence": nil, "usage": M{"input_tokens": 10, "output_tokens": 5},
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// stream sends the content as server-sent events, each block as one delta.
func stream(w http.ResponseWriter, id, model string, content []M) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(event string, data M) {
		data["type"] = event
		text, err := json.Marshal(data)
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text)
	}
	send("message_start", M{"message": envelope(id, model, nil, nil)})
	for i, b := range content {
		start, delta := M{"type": "text", "text": ""}, M{"type": "text_delta", "text": b["text"]}
		if b["type"] == "tool_use" {
			start = M{"type": "tool_use", "id": b["id"], "name": b["name"], "input": M{}}
			delta = M{"type": "input_json_delta", "partial_json": string(b["input"].(json.RawMessage))}
		}
		send("content_block_start", M{"index": i, "content_block": start})
		send("content_block_delta", M{"index": i, "delta": delta})
		send("content_block_stop", M{"index": i})
	}
	send("message_delta", M{"delta": M{"stop_reason": stopReason(content), "stop_sequence": nil}, "usage": M{"output_tokens": 5}})
	send("message_stop", M{})
}
