package scope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxText is the length in bytes of the longest run id, ledger id or hash.
const maxText = 256

// replacement stands in decoded JSON where the text was broken, so that two different broken ids look alike.
const replacement = string(utf8.RuneError)

var bom = []byte("\ufeff")

// decode reads the content of a marker file. Session and ModTime are not set.
func decode(content []byte) (Marker, error) {
	object, err := decodeObject(bytes.TrimPrefix(content, bom))
	if err != nil {
		return Marker{}, err
	}
	run, err := decodeText(object, "runId")
	if err != nil {
		return Marker{}, err
	}
	anchor, err := decodeAnchor(object["anchor"])
	if err != nil {
		return Marker{}, err
	}
	from, _ := decodeString(object["from"])
	if !ValidSession(from) {
		from = ""
	}
	return Marker{Run: run, StartedAt: decodeTime(object["startedAt"]), Anchor: anchor, From: from}, nil
}

// decodeObject decodes into a map, not into a struct, because a struct's keys match whatever their case.
func decodeObject(content []byte) (map[string]json.RawMessage, error) {
	if len(content) == 0 {
		return nil, errors.New("empty file")
	}
	var object map[string]json.RawMessage
	err := json.Unmarshal(content, &object)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return nil, fmt.Errorf("a JSON %s, not an object", wrong.Value)
	}
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if object == nil {
		return nil, errors.New("a JSON null, not an object")
	}
	return object, nil
}

func decodeText(object map[string]json.RawMessage, key string) (string, error) {
	raw, ok := object[key]
	if !ok {
		return "", fmt.Errorf("no %s", key)
	}
	text, ok := decodeString(raw)
	if !ok {
		return "", fmt.Errorf("%s is not a string", key)
	}
	if err := checkText(text); err != nil {
		return "", fmt.Errorf("%s %w", key, err)
	}
	return text, nil
}

// decodeString reports false for a value that is no string; null would decode without an error.
func decodeString(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}

func checkText(text string) error {
	switch {
	case text == "":
		return errors.New("is empty")
	case len(text) > maxText:
		return fmt.Errorf("is longer than %d bytes", maxText)
	case !utf8.ValidString(text), strings.Contains(text, replacement):
		return errors.New("is not valid UTF-8")
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("holds a control character")
	}
	return nil
}

// decodeTime returns the zero time for everything that is not a date.
func decodeTime(raw json.RawMessage) time.Time {
	text, ok := decodeString(raw)
	if !ok {
		return time.Time{}
	}
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04:05Z0700"} {
		// In UTC, because time.Parse would load the local time zone to see whether an offset is its own.
		if at, err := time.ParseInLocation(layout, text, time.UTC); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

func decodeAnchor(raw json.RawMessage) (*Anchor, error) {
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	object, err := decodeObject(raw)
	if err != nil {
		return nil, fmt.Errorf("anchor: %w", err)
	}
	ledger, err := decodeText(object, "ledger")
	if err != nil {
		return nil, fmt.Errorf("anchor: %w", err)
	}
	hash, err := decodeText(object, "hash")
	if err != nil {
		return nil, fmt.Errorf("anchor: %w", err)
	}
	seq, err := strconv.ParseUint(string(object["seq"]), 10, 64)
	if err != nil {
		return nil, errors.New("anchor: seq is not an integer from 0 to 2^64-1")
	}
	return &Anchor{Ledger: ledger, Seq: seq, Hash: hash}, nil
}

// encode writes m so that every byte counts: it ends with the closing brace, and no shorter piece of it is a marker. What
// it returns without an error, decode reads back as it was.
func encode(m Marker) ([]byte, error) {
	if err := checkText(m.Run); err != nil {
		return nil, fmt.Errorf("run id %w", err)
	}
	if a := m.Anchor; a != nil {
		if err := checkText(a.Ledger); err != nil {
			return nil, fmt.Errorf("anchor: ledger %w", err)
		}
		if err := checkText(a.Hash); err != nil {
			return nil, fmt.Errorf("anchor: hash %w", err)
		}
	}
	var startedAt string
	if !m.StartedAt.IsZero() {
		startedAt = m.StartedAt.UTC().Format(time.RFC3339Nano)
		if back, err := time.Parse(time.RFC3339Nano, startedAt); err != nil || !back.Equal(m.StartedAt) {
			return nil, fmt.Errorf("start time %s cannot be written", startedAt)
		}
	}
	return json.Marshal(struct {
		Run       string  `json:"runId"`
		StartedAt string  `json:"startedAt,omitempty"`
		Anchor    *Anchor `json:"anchor,omitempty"`
		From      string  `json:"from,omitempty"`
	}{m.Run, startedAt, m.Anchor, m.From})
}
