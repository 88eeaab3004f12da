//go:build live

package live_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// A block of shell in the README that stands under such a comment is run here, as it is.
var liveBlock = regexp.MustCompile("(?m)^<!-- live: ([a-z-]+) -->\n```sh\n((?:.*\n)*?)```$")

// liveSteps are the blocks that each client has, in the order in which a reader comes to them.
var liveSteps = []string{"install", "verify", "use", "remove"}

// readmeBlocks returns the README's blocks by name.
func readmeBlocks(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "README.md"))
	require.NoError(t, err)
	blocks := map[string]string{}
	for _, m := range liveBlock.FindAllStringSubmatch(string(text), -1) {
		require.NotContains(t, blocks, m[1], "twice in the README")
		blocks[m[1]] = m[2]
	}
	require.Len(t, blocks, strings.Count(string(text), "<!-- live: "), "each such comment stands right above a block of sh")
	if len(blocks) == 0 {
		unavailable(t, fmt.Errorf("%w: README.md has no block under a comment <!-- live: NAME -->", live.ErrUnavailable))
	}
	want := []string{"claude-try"}
	for _, client := range []string{"claude", "omp"} {
		for _, step := range liveSteps {
			want = append(want, client+"-"+step)
		}
	}
	for name := range blocks {
		require.Contains(t, want, name)
	}
	for _, name := range want {
		require.Contains(t, blocks, name, "README.md lacks a block")
	}
	return blocks
}

// reader is somebody who follows the README: the commands and the client are on PATH, and nothing is installed.
func reader(t *testing.T, programs live.Programs) *setup {
	t.Helper()
	ctx, s := startLive(t, programs)
	x := withClaude(withCommands(ctx, t, s))
	omp := fmt.Sprintf("#!/bin/sh\nexec '%s' '%s' \"$@\"\n", s.Clients.OMP[0], s.Clients.OMP[1])
	require.NoError(t, os.WriteFile(filepath.Join(x.bin, "omp"), []byte(omp), 0o700))
	return x
}

// follow runs a block, which must end well.
func (x *setup) follow(block string) string {
	x.t.Helper()
	out, errs, exit := x.run(x.Environ(), "sh", "-euc", block)
	require.Zero(x.t, exit, "%s\n%s\n%s", block, out, errs)
	return out
}

func TestLiveReadmeClaude(t *testing.T) {
	t.Parallel()
	blocks := readmeBlocks(t)
	x := reader(t, live.Programs{
		"main": {search, live.Say("done")},
		"loop": {search, live.Say("a source")},
	})
	// Written as no program would write it, so that giving it back as it was is not by chance.
	before := "{\n\t\"env\" : { \"OTHER\":\"1\" },\n   \"hooks\": {}\n}\n\n"
	writeLive(t, x.userSettings(), before)

	x.follow(blocks["claude-install"])
	x.claude(x.armSpent())
	require.Contains(t, oneResult(t, x.Model, "main", "WebSearch").Text, spent)
	require.Contains(t, x.follow(blocks["claude-verify"]), "Claude Code "+live.ClaudeVersion)
	// The model knows its lines by a word in the prompt.
	out := x.follow(strings.Replace(blocks["claude-use"], `-p "`, `-p "PROGRAM:loop `, 1))
	require.Regexp(t, `(?s)a source.*a source.*used +2 of 2`, out)
	for _, found := range x.Model.ResultsOf("loop", "WebSearch") {
		require.False(t, found.IsError, found.Text)
	}
	require.Len(t, x.Model.ResultsOf("loop", "WebSearch"), 2)
	x.follow(blocks["claude-try"])
	x.follow(blocks["claude-remove"])

	after, err := os.ReadFile(x.userSettings())
	require.NoError(t, err)
	require.Equal(t, before, string(after))
	for _, path := range tree(t, filepath.Dir(x.userSettings())) {
		require.NotContains(t, filepath.Base(path), "capgate", path)
	}
}

func TestLiveReadmeOMP(t *testing.T) {
	t.Parallel()
	blocks := readmeBlocks(t)
	x := reader(t, live.Programs{"main": {live.Calls(ompSearch), live.Say("done")}})
	x.follow(blocks["omp-install"])
	client := x.ompRPC()
	x.capgate("scope", "open", "--session", client.Session, "--run", liveRun, "--max-conv-turns", "1", "--max-dimensions", "1")
	x.capgate("turn", "--run", liveRun)
	x.ompPrompt(client, "main")
	require.Contains(t, oneResult(t, x.Model, "main", "web_search").Text, spent)
	x.follow(blocks["omp-verify"])
	x.follow(blocks["omp-use"])
	x.follow(blocks["omp-remove"])
	require.NoFileExists(t, x.userSettings(), "Claude Code's settings are not touched")
	require.NoDirExists(t, filepath.Join(x.Home, ".omp", "agent", "extensions"))
}
