package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// outcome is what a client said at its end.
type outcome struct {
	Exit      int
	Completed bool            // by itself, and by its own word without an error
	Error     string          // what it said otherwise
	Denials   []Denial        // the calls that it reports as not made
	Stats     json.RawMessage // of its subagents; nil where it gives none
}

// Denial is a call that the client reports as not made.
type Denial struct {
	Tool  string `json:"tool_name"`
	UseID string `json:"tool_use_id"`
	Text  string `json:"text,omitempty"`
}

// claudeOutcome reads what Claude Code printed with --output-format json.
func claudeOutcome(exit int, stdout, stderr []byte) outcome {
	o := outcome{Exit: exit}
	var result struct {
		Result  string          `json:"result"`
		IsError bool            `json:"is_error"`
		Denials []Denial        `json:"permission_denials"`
		Stats   json.RawMessage `json:"subagent_stats"`
	}
	err := json.Unmarshal(bytes.TrimSpace(stdout), &result)
	o.Denials, o.Stats = result.Denials, result.Stats
	switch {
	case err == nil && !result.IsError && exit == 0:
		o.Completed = true
	case result.IsError && result.Result != "":
		o.Error = result.Result
	case err != nil && exit == 0:
		o.Error = "its output is no JSON result"
	default:
		o.Error = lastWords(stderr, stdout, exit)
	}
	return o
}

// ompOutcome reads the events that Oh My Pi printed with --mode json.
func ompOutcome(exit int, stdout, stderr []byte) outcome {
	o := outcome{Exit: exit}
	failure := ""
	for line := range bytes.Lines(stdout) {
		var event struct {
			Type   string `json:"type"`
			UseID  string `json:"toolCallId"`
			Tool   string `json:"toolName"`
			Result struct {
				Content []struct {
					Text string `json:"text"`
				} `json:"content"`
			} `json:"result"`
			IsError bool `json:"isError"`
			Message struct {
				Role       string `json:"role"`
				StopReason string `json:"stopReason"`
				Error      string `json:"errorMessage"`
			} `json:"message"`
		}
		if json.Unmarshal(line, &event) != nil {
			continue
		}
		switch event.Type {
		case "tool_execution_end":
			if event.IsError {
				d := Denial{Tool: event.Tool, UseID: event.UseID}
				if len(event.Result.Content) > 0 {
					d.Text = fmt.Sprintf("%.300s", event.Result.Content[0].Text)
				}
				o.Denials = append(o.Denials, d)
			}
		case "message_end":
			if event.Message.Role == "assistant" {
				failure = ""
				if event.Message.StopReason == "error" {
					failure = cli.OrDash(event.Message.Error)
				}
			}
		case "agent_end":
			o.Completed = exit == 0
		}
	}
	if failure != "" {
		o.Completed, o.Error = false, failure
	} else if !o.Completed {
		o.Error = lastWords(stderr, stdout, exit)
	}
	return o
}

// lastWords is what a client that failed said, on one line.
func lastWords(stderr, stdout []byte, exit int) string {
	for _, text := range [][]byte{stderr, stdout} {
		if words := strings.Join(strings.Fields(string(text)), " "); words != "" {
			return fmt.Sprintf("%.300s", words)
		}
	}
	return fmt.Sprintf("it said nothing, exit status %d", exit)
}
