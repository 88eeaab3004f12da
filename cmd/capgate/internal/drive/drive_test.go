package drive

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger"
)

func TestOnlyABareClaudeGetsASession(t *testing.T) {
	for command, want := range map[string]bool{
		"claude -p x":                     true,
		"/usr/local/bin/claude -p x":      true,
		"claude.exe":                      true,
		"claude -p x --resume S":          false,
		"claude -r S -p x":                false,
		"claude --continue -p x":          false,
		"claude -c":                       false,
		"claude --session-id=S -p x":      false,
		"claude --fork-session":           false,
		"claude -p --resume-me":           true,
		"claudex -p x":                    false,
		"npx claude -p x":                 false,
		"sh -c claude":                    false,
		"codex exec x":                    false,
		"my/claude/research.sh {session}": false,
	} {
		require.Equal(t, want, ownsSession(strings.Fields(command)), command)
	}
}

func TestTheSessionsFlagsComeFirst(t *testing.T) {
	command := []string{"claude", "-p", "a prompt"}
	require.Equal(t, []string{"claude", "--resume", "S", "-p", "a prompt"}, resume(command, "S"))
	require.Equal(t, []string{"claude", "--session-id", "S", "-p", "a prompt"}, begin(command, "S"))
	require.Equal(t, []string{"claude", "-p", "a prompt"}, command, "the command itself stays")
}

func TestASessionBelongsToItsRunDimensionAndLedger(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, s := range []string{sessionOf("l", "r", ""), sessionOf("l", "r", "d"), sessionOf("l", "rd", ""), sessionOf("m", "r", ""), newSession(), newSession()} {
		require.Regexp(t, form, s)
		require.False(t, seen[s], s)
		seen[s] = true
	}
	require.Equal(t, sessionOf("l", "r", "d"), sessionOf("l", "r", "d"))
}

func TestThePlaceholderIsTheSession(t *testing.T) {
	given, found := withSession([]string{"x", "--id={session}", "{session}{session}"}, "S")
	require.True(t, found)
	require.Equal(t, []string{"x", "--id=S", "SS"}, given)
	given, found = withSession([]string{"x", "{ session }"}, "S")
	require.False(t, found)
	require.Equal(t, []string{"x", "{ session }"}, given)
}

func TestACommandIsToldItsSettingAndNoOther(t *testing.T) {
	base := []string{"A=1", "CAPGATE_RUN=other", "CAPGATE_TURN=9", "CAPGATE_LEDGER=/x", "CAPGATE_ENABLED=1", "B=a=b"}
	require.Equal(t, []string{
		"A=1", "CAPGATE_ENABLED=1", "B=a=b",
		"CAPGATE_RUN=r", "CAPGATE_TURN=3", "CAPGATE_LIMIT=8", "CAPGATE_DIMENSION=d", "CAPGATE_SESSION=s", "CAPGATE_DATA_DIR=/state",
	}, setting{run: "r", dimension: "d", session: "s", state: "/state", turn: 3, limit: 8}.environ(base))
	require.Equal(t, []string{"CAPGATE_RUN=r", "CAPGATE_LIMIT=8", "CAPGATE_SESSION=s", "CAPGATE_DATA_DIR=/state", "CAPGATE_LEDGER=/l.db"},
		setting{run: "r", session: "s", state: "/state", ledger: "/l.db", limit: 8}.environ(nil))
}

// The client's complaint that there is no session yet is ours to deal with; whatever else it says is for people.
func TestAMarkedFirstLineIsHeldBack(t *testing.T) {
	const mark = "No conversation found"
	for _, c := range []struct {
		name   string
		writes []string
		drop   bool
		want   string
		said   bool
	}{
		{"the mark, and it failed", []string{"No conversation found with session ID: S\n"}, true, "", true},
		{"the mark in pieces", []string{"No con", "versation fo", "und with session ID: S\n"}, true, "", true},
		{"the mark, and it did not fail", []string{"No conversation found, says the model\n", "more\n"}, false, "No conversation found, says the model\nmore\n", false},
		{"another line", []string{"Error: x\n", "y\n"}, true, "Error: x\ny\n", false},
		{"a beginning of the mark", []string{"No conv"}, true, "No conv", false},
		{"the mark on a later line", []string{"Error\nNo conversation found\n"}, true, "Error\nNo conversation found\n", false},
		{"nothing", nil, true, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			f := &firstLine{to: &out, mark: mark}
			for _, w := range c.writes {
				n, err := f.Write([]byte(w))
				require.NoError(t, err)
				require.Equal(t, len(w), n)
			}
			require.Equal(t, c.said, f.end(c.drop))
			require.Equal(t, c.want, out.String())
		})
	}
}

func TestTheBarIsFullOnlyWhenAllIsSpent(t *testing.T) {
	for _, c := range []struct {
		spent, open, limit int64
		want               string
	}{
		{0, 0, 8, "[........]"},
		{0, 1, 8, "[+.......]"},
		{1, 0, 8, "[#.......]"},
		{1, 0, 1000, "[#.......]"},
		{999, 0, 1000, "[#######.]"},
		{7, 1, 8, "[#######+]"},
		{8, 0, 8, "[########]"},
		{9, 0, 8, "[########]"},
		{1, 0, 1, "[########]"},
		{0, 1, 1, "[+.......]"},
	} {
		require.Equal(t, c.want, progress{}.bar(c.spent, c.open, c.limit), "%v", c)
	}
	require.Equal(t, "■■▪□□□□□", progress{utf8: true}.bar(2, 1, 8))
}

// What a loop tells to type lets this very loop go on.
func TestTheGrantThatALoopAsksFor(t *testing.T) {
	u := ledger.Usage{Budget: ledger.Budget{Run: "a run"}, MaxConvTurns: 2, MaxDimensions: 2, Dimensions: map[string]int64{"full": 2, "granted": 3, "half": 1}, DimensionGrants: map[string]int64{"granted": 2}}
	fits := u
	fits.MaxDimensions = 4
	for _, c := range []struct {
		name, bound, dimension string
		u                      ledger.Usage
		want                   string
	}{
		{"a run without dimensions", "turns", "", u, "--turns N --reason TEXT"},
		{"a dimension that is full as well", "turns", "full", u, "--turns N --dimension full --reason TEXT"},
		{"a dimension with turns of its own left", "turns", "half", u, "--turns N --reason TEXT"},
		{"a dimension whose bound was raised", "turns", "granted", u, "--turns N --reason TEXT"},
		{"a dimension that was not begun, and none is left", "turns", "new", u, "--dimensions 1 --reason TEXT"},
		{"a dimension that was not begun", "turns", "new", fits, "--turns N --reason TEXT"},
		{"the dimension's own bound", "dimension-turns", "full", u, "--turns N --dimension full --reason TEXT"},
		{"the number of dimensions", "dimensions", "new", u, "--dimensions 1 --reason TEXT"},
	} {
		require.Equal(t, "capgate run grant 'a run' "+c.want, grantFor(c.bound, c.dimension, c.u), c.name)
	}
}

// One loop at a time has a run and dimension, and the next one knows where the last one's session belongs.
func TestTheLockOfALoop(t *testing.T) {
	state := t.TempDir()
	own := loopFile{Run: "r", Ledger: "l", Dir: "/a", PID: os.Getpid()}
	_, unlock, err := lockLoop(state, own)
	require.NoError(t, err)
	held, _, err := lockLoop(state, own)
	require.ErrorIs(t, err, errLooped)
	require.Equal(t, os.Getpid(), held.PID)
	_, unlockOther, err := lockLoop(state, loopFile{Run: "r", Dimension: "d", Ledger: "l"})
	require.NoError(t, err, "another dimension")
	unlockOther()
	unlock()

	before, unlock, err := lockLoop(state, loopFile{Run: "r", Ledger: "l"})
	require.NoError(t, err)
	require.Equal(t, "/a", before.Dir)
	unlock()
	before, unlock, err = lockLoop(state, loopFile{Run: "r", Ledger: "l"})
	require.NoError(t, err)
	require.Equal(t, "/a", before.Dir, "it is kept where the next loop has none")
	unlock()
	before, unlock, err = lockLoop(state, loopFile{Run: "r", Ledger: "another"})
	require.NoError(t, err)
	require.Empty(t, before.Dir, "another ledger's run of this name is another run")
	unlock()
}
