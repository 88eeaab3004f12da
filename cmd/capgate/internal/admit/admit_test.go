package admit

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/cli/clitest"
)

func newBench(t *testing.T) *clitest.Bench {
	return clitest.New(t, []cli.Command{{Name: "admit", New: New}})
}

func TestAdmitTimes(t *testing.T) {
	b := newBench(t)
	out := b.Done("admit", "--type", "scout", "--uses", "3", "--for", "10m", "--reason", "r")
	id := out[:26]
	assert.Equal(t, id+" lets 3 scout subagents start in any session, until 2026-03-01T10:10:00Z\n", out)
	b.Now = b.Now.Add(10*time.Minute - time.Nanosecond)
	assert.Contains(t, b.Done("admit", "list"), id+"  open ")
	b.Now = b.Now.Add(time.Nanosecond)
	assert.Contains(t, b.Done("admit", "list"), "no open admission")
	assert.Contains(t, b.Done("admit", "list", "--all"), id+"  expired ")
	var list []shown
	require.NoError(t, json.Unmarshal([]byte(b.Done("admit", "list", "--all", "--json")), &list))
	assert.Zero(t, list[0].Left, "an expired admission lets nothing through")
}

// TestAdmitDefaults holds the defaults that the help and the guide promise.
func TestAdmitDefaults(t *testing.T) {
	b := newBench(t) // whose CLAUDE_CODE_SESSION_ID must not narrow the admission
	var got shown
	require.NoError(t, json.Unmarshal([]byte(b.Done("admit", "--type", "scout", "--reason", "r", "--json")), &got))
	assert.Equal(t, 1, got.Uses)
	assert.Equal(t, 10*time.Minute, got.Until.Sub(got.At))
	assert.Empty(t, got.Session)
}

// TestAdmitIsRefusedToAgents whatever the variable's value is, and leaves no trace.
func TestAdmitIsRefusedToAgents(t *testing.T) {
	for _, value := range []string{"1", "0", "true", " "} {
		b := newBench(t)
		b.Env["CLAUDECODE"] = value
		_, errs, status := b.Run("admit", "--type", "scout", "--reason", "r")
		assert.Equal(t, cli.StatusError, status)
		assert.Contains(t, errs, "this is for an operator alone")
		admissions, err := admission.List(b.Env["CAPGATE_DATA_DIR"])
		require.NoError(t, err)
		assert.Empty(t, admissions)
		records, err := decisionlog.Last(b.Env["CAPGATE_DATA_DIR"], 0)
		require.NoError(t, err)
		assert.Empty(t, records)
	}
}

// TestAdmitHostileText: what the operator or a file says reaches no terminal as a control character.
func TestAdmitHostileText(t *testing.T) {
	b := newBench(t)
	hostile := "a\x1b[2J\nb\u202e"
	for _, args := range [][]string{
		{"admit", "--type", hostile, "--reason", "r"}, {"admit", "--type", "x", "--reason", hostile}, {"admit", "list"},
		{"admit", "revoke", hostile}, {"admit", "--type", "x", "--reason", "r", "--session", hostile},
	} {
		out, errs, _ := b.Run(args...)
		assert.NotContains(t, out+errs, "\x1b", args)
		assert.NotContains(t, out+errs, "\u202e", args)
	}
}
