package derive

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/gates"
)

// Spec declares the definitions, and warns of those that will not do in the client what the spec says.
func Spec(definitions []Definition, foreground gates.ForegroundMode, admission gates.AdmissionMode) (s gates.Spec, warnings []string) {
	s = gates.Spec{Foreground: foreground, Admission: admission}
	warnings = []string{}
	for _, d := range definitions {
		s.Subagents = append(s.Subagents, gates.Subagent{Type: d.Name, Tools: d.Tools, Inherits: d.Inherits})
		if d.Background {
			warnings = append(warnings, fmt.Sprintf("%s: background: true makes %s start in the background whatever the foreground gate asks for: remove the line", d.File, d.Name))
		}
		if !d.Described {
			warnings = append(warnings, fmt.Sprintf("%s: it has no description, and Claude Code does not load %s without one: add a line \"description: WHEN TO USE IT\"", d.File, d.Name))
		}
	}
	return s, warnings
}

// Text writes a spec, one subagent a line. The hook's own reader has the last word on it.
func Text(s gates.Spec) ([]byte, error) {
	var b bytes.Buffer
	value := func(v any) {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		cli.Must(enc.Encode(v)) // strings always encode
		b.Truncate(b.Len() - 1) // the encoder's line break
	}
	b.WriteString("{\n  \"subagents\": {")
	for i, sub := range s.Subagents {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		value(sub.Type)
		b.WriteString(": {")
		if !sub.Inherits {
			b.WriteString(`"tools": [`)
			for i, t := range sub.Tools {
				if i > 0 {
					b.WriteString(", ")
				}
				value(t)
			}
			b.WriteByte(']')
		}
		b.WriteByte('}')
	}
	b.WriteString("\n  },\n  \"foreground\": ")
	value(s.Foreground)
	b.WriteString(",\n  \"admission\": ")
	value(s.Admission)
	b.WriteString("\n}\n")
	if _, err := gates.ParseSpec(b.Bytes()); err != nil {
		return nil, fmt.Errorf("the derived spec: %w", err)
	}
	return b.Bytes(), nil
}
