package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/capgate/capgate/gates"
)

// Printer writes a command's result to standard output. It keeps the first error of writing, which [Main] reports.
type Printer struct {
	AsJSON bool // --json
	out    *bufio.Writer
}

// Write writes bytes as they are.
func (p *Printer) Write(text []byte) (int, error) { return p.out.Write(text) }

// Flush writes out what is buffered.
func (p *Printer) Flush() error { return p.out.Flush() }

// Printf writes a piece of a result for humans. Of text from files, which anybody may have written, control characters
// are shown and not obeyed: every string argument goes through [gates.Visible].
func (p *Printer) Printf(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = gates.Visible(s)
		}
	}
	fmt.Fprintf(p.out, format, args...)
}

// JSON writes one JSON value on a line of its own.
func (p *Printer) JSON(v any) error {
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Table writes rows in aligned columns, an empty cell as "-" and every cell as [Printer.Printf] writes text.
func (p *Printer) Table(rows ...[]string) {
	tw := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = OrDash(gates.Visible(cell))
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	_ = tw.Flush() // an error stays in p.out, where Main finds it
}

// OrDash returns the text, or "-" for none.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Stamp is how humans are shown a time.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Plural returns "1 turn" or "3 turns".
func Plural[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	if strings.HasSuffix(noun, "y") {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// FirstLine returns the first line of a text that has any.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
