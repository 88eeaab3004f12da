package drive

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/shell"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
)

// progress tells on standard error how far the loop has come: for people on a terminal, else a line a fact.
type progress struct {
	w        io.Writer
	terminal bool
	utf8     bool
	quiet    bool
}

func newProgress(a *cli.App, quiet bool) progress {
	p := progress{w: a.Stderr, quiet: quiet}
	if f, ok := a.Stderr.(*os.File); ok {
		p.terminal = cli.IsTerminal(f)
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, _ := a.Lookup(name); v != "" {
			v = strings.ToLower(v)
			p.utf8 = strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
			break
		}
	}
	return p
}

func (p progress) line(format string, args ...any) {
	if !p.quiet {
		_, _ = fmt.Fprintln(p.w, gates.Visible(fmt.Sprintf(format, args...)))
	}
}

// sign is a sign with a word's meaning, or what stands for it where the terminal knows none.
func (p progress) sign(sign, ascii string) string {
	if p.utf8 {
		return sign
	}
	return ascii
}

func (p progress) header(u ledger.Usage, s setting) {
	dimension := ""
	if s.dimension != "" {
		dimension = ", dimension " + s.dimension
	}
	if p.terminal {
		p.line("capgate %s %s%s: %d of %s used %s session %s", p.sign("●", "*"), u.Run, dimension, u.Used, cli.Plural(u.Limit, "turn"), p.sign("·", "-"), s.session)
		return
	}
	p.line("capgate: run %s%s: %d of %d turns used (session %s)", u.Run, dimension, u.Used, u.Limit, s.session)
}

func (p progress) begun(r ledger.Receipt, at time.Time) {
	if p.terminal {
		p.line("%s %d/%d  %s  %s", p.sign("▪", "+"), r.Used, r.Limit, at.Local().Format("15:04"), p.bar(r.Used-1, 1, r.Limit))
		return
	}
	p.line("capgate: %s turn %d of %d begun (%s)", cli.Stamp(at), r.Used, r.Limit, runOf(r))
}

func (p progress) ended(r ledger.Receipt, began, at time.Time) {
	left := fmt.Sprintf("%d left", r.Limit-r.Used)
	if p.terminal {
		p.line("  %d/%d  %s  %s  %s  %s", r.Used, r.Limit, at.Local().Format("15:04"), p.bar(r.Used, 0, r.Limit), at.Sub(began).Round(time.Second), left)
		return
	}
	p.line("capgate: %s turn %d of %d ended (%s), %s", cli.Stamp(at), r.Used, r.Limit, runOf(r), left)
}

// runOf names the run of a turn, and its dimension.
func runOf(r ledger.Receipt) string {
	if r.Dimension == "" {
		return "run " + r.Run
	}
	return "run " + r.Run + ", dimension " + r.Dimension
}

// met is said when the condition of --until holds.
func (p progress) met(r ledger.Receipt) {
	p.line("capgate: run %s is done after %s: the command of --until succeeded", r.Run, cli.Plural(r.Used, "turn"))
}

func (p progress) silent(session string) {
	p.line("capgate: hook: silent for session %s: no search of it is judged, only turns are counted; run capgate doctor", session)
}

// grantFor is the command that lets a loop of a dimension go on after a refusal. u is the run's usage, where it is known.
func grantFor(bound, dimension string, u ledger.Usage) string {
	command := "capgate run grant " + shell.Word(u.Run)
	used, begun := u.Dimensions[dimension]
	switch {
	case bound == "dimensions", dimension != "" && !begun && int64(len(u.Dimensions)) >= u.MaxDimensions:
		return command + " --dimensions 1 --reason TEXT"
	case bound == "dimension-turns", begun && used >= u.MaxConvTurns+u.DimensionGrants[dimension]:
		return command + " --turns N --dimension " + shell.Word(dimension) + " --reason TEXT"
	}
	return command + " --turns N --reason TEXT"
}

// loopSpent words the cap for who started the loop.
type loopSpent struct {
	*ledger.SpentError
	more string
}

func (s loopSpent) Error() string {
	what := "turn budget spent"
	switch s.Bound {
	case "dimension-turns":
		what = fmt.Sprintf("turn budget of dimension %s spent", s.Dimension)
	case "dimensions":
		what = fmt.Sprintf("dimensions are spent, none is left for %s", s.Dimension)
	}
	return fmt.Sprintf("%s (%d of %d, run %s); go on with `%s`, then the same command line", what, s.Used, s.Limit, s.Run, s.more)
}

// Unwrap returns the refusal.
func (s loopSpent) Unwrap() error { return s.SpentError }

// cells is the width of a bar.
const cells = 8

// bar draws how much is spent and open: at least one cell once something is, and all of them only when all is spent.
func (p progress) bar(spent, open, limit int64) string {
	filled := int(min(spent*cells/max(limit, 1), cells))
	if spent > 0 {
		filled = max(filled, 1)
	}
	if spent < limit {
		filled = min(filled, cells-1)
	}
	begun := 0
	if open > 0 && filled < cells {
		begun = 1
	}
	left := cells - filled - begun
	if p.utf8 {
		return strings.Repeat("■", filled) + strings.Repeat("▪", begun) + strings.Repeat("□", left)
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat("+", begun) + strings.Repeat(".", left) + "]"
}
