package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/capgate/capgate/ledger/disk"
)

// Report is the evidence, and what `probe --json` prints.
type Report struct {
	Client       string          `json:"client"`
	Version      string          `json:"version"`
	Program      string          `json:"program"`
	Time         time.Time       `json:"time"`
	Capgate      string          `json:"capgate"`
	Result       string          `json:"result"`
	Answers      []Answer        `json:"answers"`
	Exit         int             `json:"client_exit"`
	ClientError  string          `json:"client_error,omitempty"`
	Denials      []Denial        `json:"permission_denials"`
	Stats        json.RawMessage `json:"subagent_stats,omitempty"`
	CallsFile    string          `json:"calls_file"` // the name of what calls holds the lines of
	Calls        []Evidence      `json:"calls"`
	EvidenceFile string          `json:"evidence_file"`
}

// Evidence is one recorded call.
type Evidence struct {
	Line     int       `json:"line"`
	Time     time.Time `json:"time"`
	Answered string    `json:"answered,omitempty"`
	Payload  any       `json:"payload"` // without paths to transcripts, and without the content of calls that are not the probe's
}

// readCalls reads what the hook recorded: for the answers, and as evidence.
func readCalls(path string) (calls []call, evidence []Evidence, err error) {
	evidence = []Evidence{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, evidence, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read what the hook recorded: %w", err)
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		var r recordedCall
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		c := parseCall(r.Payload)
		c.Line, c.Answered = n, r.Answered
		calls = append(calls, c)
		var payload any
		_ = json.Unmarshal(r.Payload, &payload)
		evidence = append(evidence, Evidence{Line: n, Time: r.Time, Answered: r.Answered, Payload: redacted(payload, c.ours())})
	}
	return calls, evidence, nil
}

// redacted takes out of a payload what leads to the person's files, and the content of what is not the probe's.
func redacted(v any, ours bool) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			switch {
			case strings.Contains(strings.ToLower(key), "transcript"), key == "cwd", key == "scratchpad_dir", key == "outputFile":
				delete(v, key)
			case !ours && (key == "tool_input" || key == "tool_response"):
				delete(v, key)
			default:
				v[key] = redacted(inner, ours)
			}
		}
	case []any:
		for i := range v {
			v[i] = redacted(v[i], ours)
		}
	}
	return v
}

// write stores the report as the evidence, for nobody else to read.
func (r Report) write(force bool) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if force {
		if err := disk.Replace(r.EvidenceFile, text, 0o600); err != nil {
			return fmt.Errorf("write %s: %w: make its directory writable", r.EvidenceFile, err)
		}
		return nil
	}
	f, err := os.OpenFile(r.EvidenceFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(text)
		if closed := f.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return fmt.Errorf("write the evidence: %w", err)
	}
	return nil
}
