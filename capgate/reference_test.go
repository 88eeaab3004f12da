package capgate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the reference instead of comparing it")

// The reference is made from the code, so that it cannot say anything else.
func TestReferenceIsCurrent(t *testing.T) {
	for name, text := range map[string]string{
		"decisions.md":   decisionsReference(),
		"environment.md": environmentReference(),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("..", "docs", "reference", name)
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			}
			have, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, text, string(have), "stale: run make update")
		})
	}
}

func decisionsReference() string {
	var b strings.Builder
	b.WriteString(`# The cap's decision table

Made by ` + "`make update`" + ` from ` + "`capgate.Table`" + `; a test fails when it is stale. The first row that holds wins. Codes are stable: they
appear in the decision log, in ` + "`capgate explain`" + ` and in tests.

A pass is silence and exit status 0. A deny is exit status 2 with the reason on standard error and nothing on standard
output.

| # | code | condition | verdict | why | what would change it | read by then |
| --- | --- | --- | --- | --- | --- | --- |
`)
	for i, r := range Table {
		verdict := r.Outcome.String()
		if verdict == "deny" {
			verdict = "**deny**"
		}
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s | %s | %s | %s |\n", i+1, r.Code, r.Condition, verdict, r.Why, r.Change, r.Needs)
	}
	b.WriteString(`
The last column is the cheapest stage at which the row can be judged: nothing beyond it is read for a row that holds. A
call outside any scope never opens the ledger.

The deadline (` + "`CAPGATE_DEADLINE_MS`" + `) counts from the start of the process, over standard input, locks and disk. When it
passes before a row is reached, the verdict is ` + "`ledger-unreadable`" + `, unless row 1 or 2 holds.
`)
	b.WriteString(gatesReference())
	return b.String()
}

// gatesReference is the second half of decisions.md.
func gatesReference() string {
	var b strings.Builder
	b.WriteString(`
# The gates

Every gate that is on is asked about every call, beside the cap. Deny beats ask, ask beats rewrite, rewrite beats pass; of
equals the first in the order of this table shows its reason, with the cap between guard and foreground. A rewrite rides
along with an ask.

| code | gate | verdict | rule | what would change it |
| --- | --- | --- | --- | --- |
`)
	for _, c := range Codes {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.Code, c.Gate, c.Outcome, c.Rule, c.Change)
	}
	b.WriteString(`
Type, caller, bash and foreground are on with a spec (|CAPGATE_SPEC|) or a list (|CAPGATE_ALLOWED_SUBAGENTS|; where both are
given, the spec's list is used). Admission is on where |CAPGATE_ADMISSION|, or else the spec, says so. Guard is on while the
cap or any of the others is. |CAPGATE_DISABLE_GATES=1| switches all of them off; guard stays on
while the cap is on.
`)
	return strings.NewReplacer("|CAPGATE", "`CAPGATE", "SPEC|", "SPEC`", "SUBAGENTS|", "SUBAGENTS`", "ADMISSION|", "ADMISSION`", "=1|", "=1`").Replace(b.String())
}

func environmentReference() string {
	var b strings.Builder
	b.WriteString(`# Environment

Made by ` + "`make update`" + ` from ` + "`capgate.Config`" + `; a test fails when it is stale. ` + "`capgate help environment`" + ` prints the same with the
values of the installation, or of the shell it runs in.

The hook reads them from the environment file that its entry names ([wiring.md](../wiring.md#the-environment-file)), or from the
environment where it names none. A switch is on when its value is exactly ` + "`1`" + `; anything else is off. The second name is read
where the first is unset or empty; a kill switch that is ` + "`1`" + ` holds in file and environment, under either name. Switches act on the hook; the ledger's own refusal (` + "`capgate turn`" + ` at the limit) has none.

| variable | also read as | meaning |
| --- | --- | --- |
`)
	for _, v := range Variables(fromMap(nil)) {
		also := ""
		if v.Also != "" {
			also = "`" + v.Also + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.Name, also, v.Meaning)
	}
	b.WriteString(`
Variables of the client that are read, too: ` + "`CLAUDE_CODE_SESSION_ID`" + ` (default of ` + "`--session`" + `; for Oh My Pi the
extension sets ` + "`CAPGATE_SESSION_ID`" + ` for it), ` + "`CLAUDE_PID`" + ` (the client's process, by which the hook knows which session followed which
after ` + "`/clear`" + `) and ` + "`CLAUDE_CODE_SESSION_ATTENDED`" + ` (whether somebody can answer a question; a hint).

What ` + "`capgate loop`" + ` and ` + "`capgate run exec`" + ` tell the command that they run:

| variable | meaning |
| --- | --- |
| ` + "`CAPGATE_RUN`" + ` | the run; the default of ` + "`--run`" + ` in ` + "`capgate turn`" + `, ` + "`turn begin` and `turn end`" + ` |
| ` + "`CAPGATE_TURN`" + ` | the number of this turn in its run, from 1; from ` + "`loop`" + ` only |
| ` + "`CAPGATE_LIMIT`" + ` | the turns that the run has |
| ` + "`CAPGATE_DIMENSION`" + ` | the dimension, where there is one |
| ` + "`CAPGATE_SESSION`" + ` | the session that is armed |
| ` + "`CAPGATE_DATA_DIR`, `CAPGATE_LEDGER`" + ` | the state directory; the ledger, where it is elsewhere |
`)
	return b.String()
}
