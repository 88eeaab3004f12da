package live

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// ClaudeRun is one run of Claude Code.
type ClaudeRun struct {
	Prompt       string
	Settings     any      // written to a file and given by --settings; nil = none
	AllowedTools []string // --allowedTools
	Args         []string // further arguments, before the prompt
	Env          []string // K=V
}

// ClaudeResult is what a headless run printed.
type ClaudeResult struct {
	Output
	Result            string          `json:"result"`
	IsError           bool            `json:"is_error"`
	Session           string          `json:"session_id"`
	Turns             int             `json:"num_turns"`
	PermissionDenials []Denial        `json:"permission_denials"`
	SubagentStats     json.RawMessage `json:"subagent_stats"`
}

// Denial is a call that the permission flow denied.
type Denial struct {
	Tool  string          `json:"tool_name"`
	UseID string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

func (s *Sandbox) claudeArgs(r ClaudeRun) ([]string, error) {
	var args []string
	if r.Settings != nil {
		file := filepath.Join(s.Home, "run-settings.json")
		if err := write(file, r.Settings); err != nil {
			return nil, err
		}
		args = append(args, "--settings", file)
	}
	if len(r.AllowedTools) > 0 {
		args = append(args, "--allowedTools", strings.Join(r.AllowedTools, ","))
	}
	return append(args, r.Args...), nil
}

// ClaudeHeadless runs `claude -p`. A run that ended by itself is no error, whatever its exit status.
func (s *Sandbox) ClaudeHeadless(ctx context.Context, r ClaudeRun) (ClaudeResult, error) {
	args, err := s.claudeArgs(r)
	if err != nil {
		return ClaudeResult{}, err
	}
	args = append([]string{"-p", r.Prompt, "--output-format", "json"}, args...)
	out, err := s.run(ctx, s.Environ(r.Env...), s.Clients.Claude, args...)
	result := ClaudeResult{Output: out}
	if err != nil {
		return result, err
	}
	started(claudeName, headless)
	if err := json.Unmarshal([]byte(out.Stdout), &result); err != nil {
		return result, fmt.Errorf("no JSON result (exit %d): %w: stdout %q stderr %q", out.Exit, err, tail(out.Stdout, 500), tail(out.Stderr, 500))
	}
	return result, nil
}

// ClaudeTerminal starts Claude Code in a terminal, past its first-start dialogs. A prompt is given by SendKeys, or at
// once by r.Prompt.
func (s *Sandbox) ClaudeTerminal(ctx context.Context, r ClaudeRun) (*Terminal, error) {
	args, err := s.claudeArgs(r)
	if err != nil {
		return nil, err
	}
	if r.Prompt != "" {
		args = append([]string{r.Prompt}, args...)
	}
	if err := s.settleIn(); err != nil {
		return nil, err
	}
	return s.terminal(ctx, claudeName, s.Environ(r.Env...), append([]string{s.Clients.Claude}, args...))
}

// shown has a shell run a command and show how it ended. tmux would tell of a command of its own, but has been seen to miss
// the end of one.
const shown = `trap : INT; "$@"; echo "status $?"; sleep 600`

// ClaudeTerminalUnder starts in a terminal a command that starts Claude Code, below a shell that shows its exit status.
func (s *Sandbox) ClaudeTerminalUnder(ctx context.Context, env []string, command ...string) (*Terminal, error) {
	if err := s.settleIn(); err != nil {
		return nil, err
	}
	return s.terminal(ctx, claudeName, s.Environ(env...), append([]string{"sh", "-c", shown, "sh"}, command...))
}

// settleIn answers Claude Code's first-start dialogs beforehand.
func (s *Sandbox) settleIn() error {
	return write(filepath.Join(s.Home, ".claude.json"), M{
		"hasCompletedOnboarding": true,
		"customApiKeyResponses":  M{"approved": []string{apiKey}, "rejected": []string{}},
		"projects":               M{s.Work: M{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
	})
}
