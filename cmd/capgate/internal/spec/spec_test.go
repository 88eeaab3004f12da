package spec

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/cli/clitest"
	"github.com/capgate/capgate/gates"
)

// TestHostileText: what the operator or a file says reaches no terminal as a control character.
func TestHostileText(t *testing.T) {
	b := clitest.New(t, []cli.Command{{Name: "spec", New: New}})
	hostile := "a\x1b[2J\nb\u202e"
	for _, args := range [][]string{
		{"spec", "check", hostile}, {"spec", "derive", hostile}, {"spec", "check", "x", "--tools", hostile},
	} {
		out, errs, _ := b.Run(args...)
		assert.NotContains(t, out+errs, "\x1b", args)
		assert.NotContains(t, out+errs, "\u202e", args)
	}
}

// TestSubagentsGuide: the shell blocks of docs/subagents.md are those that a script runs.
func TestSubagentsGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../../docs/subagents.md")
	require.NoError(t, err)
	var blocks []string
	for i, block := range strings.Split(string(guide), "```sh\n") {
		if i == 0 {
			continue
		}
		block, _, closed := strings.Cut(block, "```")
		require.True(t, closed)
		blocks = append(blocks, block)
	}
	require.NotEmpty(t, blocks)
	script, err := os.ReadFile("../../../../testdata/script/spec_guide.txtar")
	require.NoError(t, err)
	_, run, found := strings.Cut(string(script), "-- subagents.sh --\n")
	require.True(t, found)
	run, _, _ = strings.Cut(run, "-- ")
	assert.Equal(t, strings.Join(blocks, ""), run)

	_, rest, _ := strings.Cut(string(guide), "```json\n")
	example, _, _ := strings.Cut(rest, "```")
	_, err = gates.ParseSpec([]byte(example))
	require.NoError(t, err, "the guide's spec")
}
