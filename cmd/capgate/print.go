package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/capgate/capgate/gates"
)

// printf writes a piece of a result for humans. Of text from files, which anybody may have written, control characters
// are shown and not obeyed: every string argument goes through [gates.Visible].
func (a *app) printf(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = gates.Visible(s)
		}
	}
	fmt.Fprintf(a.out, format, args...)
}

// printJSON writes one JSON value on a line of its own.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table writes rows in aligned columns, an empty cell as "-" and every cell as [app.printf] writes text.
func (a *app) table(rows ...[]string) {
	tw := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = gates.Visible(cell); cell == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	_ = tw.Flush() // an error stays in a.out, where Main finds it
}

// stamp is how humans are shown a time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// plural returns "1 turn" or "3 turns".
func plural[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	if strings.HasSuffix(noun, "y") {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
