package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/capgate/client/omp"
	process "github.com/capgate/capgate/cmd/capgate/internal/client"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
	"github.com/capgate/capgate/cmd/capgate/internal/shell"
)

// prepare writes the throw-away settings and returns the client's arguments.
func (p *attempt) prepare(ctx context.Context) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	hook := shell.Quote(filepath.ToSlash(self)) + " probe-hook " + shell.Quote(filepath.ToSlash(p.dir))
	if p.o.client == client.OMP {
		return p.prepareOMP(hook)
	}
	// In shell form, which clients of every version run.
	entry := []any{map[string]any{"hooks": []any{map[string]any{"type": settings.TypeCommand, "command": hook, "timeout": settings.Timeout}}}}
	file := filepath.Join(p.dir, settings.FileName)
	text, err := json.MarshalIndent(map[string]any{
		"env":   map[string]string{claude.NoBackground: "1", "CAPGATE_DISABLE": "1"}, // the subagent is waited for; an installed capgate keeps out
		"hooks": map[string]any{settings.Judged: entry, "PostToolUse": entry},
	}, "", "  ")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("write the throw-away settings: %w", err)
	}
	// The mode is set, because auto would put each step before a classifier, and plan would put them off.
	args := []string{
		"-p", ClaudePrompt, "--settings", file, "--permission-mode", "default", "--allowedTools", "Agent,Task,Bash(echo:*)",
		"--output-format", "json",
	}
	// No transcript below the client's own directory. Older clients do not know it.
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if help, err := process.Ask(ctx, p.bin, "--help"); err == nil && strings.Contains(help, "--no-session-persistence") {
		args = append(args, "--no-session-persistence")
	}
	return args, nil
}

func (p *attempt) prepareOMP(hook string) ([]string, error) {
	script := filepath.Join(p.dir, "hook")
	extension, recorder := filepath.Join(p.dir, "probe.ts"), filepath.Join(p.dir, "recorder.ts")
	place, err := json.Marshal(filepath.Join(p.dir, callsFile))
	if err == nil {
		err = os.WriteFile(script, []byte("#!/bin/sh\nexec "+hook+" \"$@\"\n"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(extension, omp.Extension(script, nil, ""), 0o600)
	}
	if err == nil {
		err = os.WriteFile(recorder, []byte(strings.Replace(ompRecorder, `"@CALLS@"`, string(place), 1)), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("write the throw-away extension: %w", err)
	}
	return []string{"-p", "--no-session", "--mode", "json", "-e", extension, "-e", recorder, OMPPrompt}, nil
}
