package live

import (
	"encoding/json"
	"strings"
)

// body is what we read of a Messages API request.
type body struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	System   json.RawMessage `json:"system"`
	Messages []message       `json:"messages"`
	Tools    []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// block is one element of a message's or a tool result's content.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
}

// blocks reads content, which is a list of blocks or one text.
func blocks(content json.RawMessage) []block {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var list []block
	if json.Unmarshal(content, &list) != nil {
		return nil
	}
	return list
}

// plain is the text of the content's text blocks, one a line.
func plain(content json.RawMessage) string {
	var texts []string
	for _, b := range blocks(content) {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (m message) text() string { return plain(m.Content) }

// everything is text and tool results.
func (m message) everything() string {
	texts := []string{m.text()}
	for _, r := range m.results() {
		texts = append(texts, r.Text)
	}
	return strings.Join(texts, "\n")
}

func (m message) results() []Result {
	var found []Result
	for _, b := range blocks(m.Content) {
		if b.Type == "tool_result" {
			found = append(found, Result{UseID: b.ToolUseID, Text: plain(b.Content), IsError: b.IsError})
		}
	}
	return found
}
