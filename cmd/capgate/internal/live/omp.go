package live

import (
	"context"
	"os"
	"path/filepath"
)

// OMPRun is one run of Oh My Pi.
type OMPRun struct {
	Prompt    string
	Extension string   // a file, given by -e; "" = none
	Args      []string // further arguments, before the prompt
	Env       []string // K=V
}

func (s *Sandbox) ompArgs(r OMPRun, mode ...string) []string {
	// No title request, no language servers, no model but ours.
	args := append(append([]string{}, s.Clients.OMP[1:]...), mode...)
	args = append(args, "--no-lsp", "--no-title", "--model", "anthropic/claude-opus-4-5")
	if r.Extension != "" {
		args = append(args, "-e", r.Extension)
	}
	return append(args, r.Args...)
}

// OMPHeadless runs `omp -p`. A run that ended by itself is no error, whatever its exit status.
func (s *Sandbox) OMPHeadless(ctx context.Context, r OMPRun) (Output, error) {
	out, err := s.run(ctx, s.Environ(r.Env...), s.Clients.OMP[0], append(s.ompArgs(r, "-p"), r.Prompt)...)
	if err == nil {
		started(ompName, headless)
	}
	return out, err
}

// OMPTerminal starts Oh My Pi in a terminal, past its setup, prompted at once by r.Prompt.
func (s *Sandbox) OMPTerminal(ctx context.Context, r OMPRun) (*Terminal, error) {
	settings := filepath.Join(s.Home, ".omp", "agent")
	if err := os.MkdirAll(settings, 0o700); err != nil {
		return nil, err
	}
	// The setup has been done when this is its version, 2, or more.
	if err := os.WriteFile(filepath.Join(settings, "config.yml"), []byte("setupVersion: 1000\n"), 0o600); err != nil {
		return nil, err
	}
	command := append([]string{s.Clients.OMP[0]}, s.ompArgs(r)...)
	if r.Prompt != "" {
		command = append(command, r.Prompt)
	}
	return s.terminal(ctx, ompName, s.Environ(r.Env...), command)
}
