package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/claude"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/gates"
)

func newSpecCmd(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "spec",
		GroupID: cli.GroupOperator,
		Short:   "Check a spec of subagents, or derive one from agent definitions",
		Long: `A spec is a JSON file that declares which subagents an agent may start, how they are started, and whether a human is
asked first. CAPGATE_SPEC in the client's environment names it and turns the subagent gates on.`,
		Example: `  capgate spec derive .claude/agents -o spec.json
  capgate spec check spec.json`,
	}, newSpecCheckCmd(a), newSpecDeriveCmd(a))
}

func newSpecCheckCmd(a *cli.App) *cobra.Command {
	var tools cli.Text
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Read a spec as the hook does, and say what it declares",
		Long: `Reads the spec, by default the one that CAPGATE_SPEC names, exactly as the hook does. A spec that the hook could not use
is an error; while it is in use, the hook denies every subagent and the main thread's shell.

A subagent cannot start in a session that lacks a tool it lists. Without --tools, the session is taken to have the least
that makes sense, Agent and where some subagent needs it Bash, and what is missing is a note. With --tools, the session
is taken to have those, and a subagent that cannot start makes the exit status 1.`,
		Example: `  capgate spec check
  capgate spec check spec.json --tools Agent,Bash,Read
  capgate spec check spec.json --json`,
		Args: cli.AtMostOneArg("one file"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cli.NoFiles
			}
			return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: a.Do(func(_ *cobra.Command, args []string) error {
			return specCheck(a, args, tools)
		}),
	}
	cmd.Flags().Var(&tools, "tools", "comma list of all the tools that the session has")
	return cmd
}

// checkedSpec is what `spec check --json` prints.
type checkedSpec struct {
	OK           bool              `json:"ok"` // false: with --tools, a subagent cannot start
	Spec         string            `json:"spec"`
	Subagents    []checkedSubagent `json:"subagents"`
	SessionTools []string          `json:"session_tools"` // --tools, else the least that makes sense
	Foreground   string            `json:"foreground"`
	Admission    string            `json:"admission"`
	Notes        []string          `json:"notes"`
}

type checkedSubagent struct {
	Type     string   `json:"type"`
	Tools    []string `json:"tools"`
	Inherits bool     `json:"inherits"`          // all of the session's tools, whatever they are
	Missing  string   `json:"missing,omitempty"` // the first tool that the session lacks
}

func specCheck(a *cli.App, args []string, flag cli.Text) error {
	path, typed, err := specPath(a, args)
	if err != nil {
		return err
	}
	s, err := hook.ReadSpec(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: name another file, or write one with `capgate spec derive`", err)
	case err != nil:
		return err
	}
	session := s.SessionTools()
	if flag != "" {
		var all bool
		if session, all, err = toolNames(string(flag)); err != nil || all {
			return cli.Usagef("--tools is %q: list the names of the session's tools, as Agent,Bash,Read", string(flag))
		}
	}

	c := checkedSpec{
		OK: true, Spec: path, Subagents: []checkedSubagent{}, SessionTools: session,
		Foreground: string(s.Foreground), Admission: string(s.Admission), Notes: []string{},
	}
	note := func(format string, args ...any) { c.Notes = append(c.Notes, fmt.Sprintf(format, args...)) }
	if typed != path {
		note("%s is a relative path: set CAPGATE_SPEC=%s, the hook runs in another directory and takes no other", typed, path)
	}
	var stuck []string
	missing := s.Unstartable(session)
	for _, sub := range s.Subagents {
		m := missing[sub.Type]
		c.Subagents = append(c.Subagents, checkedSubagent{
			Type: sub.Type, Tools: append([]string{}, sub.Tools...), Inherits: sub.Inherits, Missing: m,
		})
		switch {
		case m == "":
		case flag == "":
			note("%s lists %s, which a session with only %s lacks: start the session with it too", sub.Type, m, strings.Join(session, ", "))
		default:
			stuck = append(stuck, fmt.Sprintf("%s lists %s", sub.Type, m))
		}
	}
	for _, n := range specNotes(s, claude.Background(a.Lookup)) {
		note("%s", n)
	}
	var refusal error
	switch has := strings.Join(session, ", "); {
	case !slices.Contains(session, "Agent") && !slices.Contains(session, "Task"):
		refusal = fmt.Errorf("%s: no subagent can start in a session with only %s: start it with Agent, too", path, has)
	case len(stuck) > 0:
		refusal = fmt.Errorf("%s: %s cannot start, because the session has only %s: start it with what is missing, too: %s",
			path, cli.Plural(len(stuck), "subagent"), has, strings.Join(stuck, ", "))
	}
	c.OK = refusal == nil
	if a.AsJSON {
		if err := a.JSON(c); err != nil {
			return err
		}
		return refusal
	}
	printCheckedSpec(a, c)
	return refusal
}

// specPath returns the spec's path as it was typed and as it is read. A path in the environment stays as it is, so that
// it is refused where the hook refuses it.
func specPath(a *cli.App, args []string) (path, typed string, err error) {
	if len(args) == 1 {
		if args[0] == "" {
			return "", "", cli.Usagef("the file's name is empty")
		}
		path, err = filepath.Abs(args[0])
		typed = args[0]
		if filepath.IsAbs(typed) {
			typed = path // the same, cleaned
		}
		return path, typed, err
	}
	c, err := a.Config()
	if err == nil && c.Spec == "" {
		err = cli.Usagef("no spec: name a file, or set CAPGATE_SPEC")
	}
	return c.Spec, c.Spec, err
}

func printCheckedSpec(a *cli.App, c checkedSpec) {
	a.Printf("%s: %s, foreground %s, admission %s\n", c.Spec, cli.Plural(len(c.Subagents), "subagent"), c.Foreground, c.Admission)
	if len(c.Subagents) > 0 {
		rows := [][]string{{"SUBAGENT", "TOOLS"}}
		for _, s := range c.Subagents {
			tools := strings.Join(s.Tools, ", ")
			switch {
			case s.Inherits:
				tools = "all of the session's"
			case tools == "":
				tools = "none"
			}
			rows = append(rows, []string{s.Type, tools})
		}
		a.Table(rows...)
	}
	a.Printf("session tools: %s\n", strings.Join(c.SessionTools, ", "))
	for _, n := range c.Notes {
		a.Printf("note: %s\n", n)
	}
}

// builtIns are the types that Claude Code brings along.
var builtIns = []string{
	"general-purpose", "Explore", "Plan", "claude", "claude-code-guide", "statusline-setup", "fork", gates.WorkflowType,
}

// specNotes says what the spec's author may not have meant. background says that the environment lets the client start
// agents in the background.
func specNotes(s gates.Spec, background bool) []string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if len(s.Subagents) == 0 {
		note("no subagent is declared: every one is denied")
	}
	const set = "unless CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1 is in the env block of its settings"
	switch {
	case !background:
	case s.Foreground == gates.ForegroundRewrite:
		note(`foreground is "rewrite": an interactive session of Claude Code ignores that without a word and starts subagents in the background, %s`, set)
	case s.Foreground == gates.ForegroundRequire:
		note(`foreground is "require": in an interactive session of Claude Code every subagent is denied, %s`, set)
	}
	for i, sub := range s.Subagents {
		for _, b := range builtIns {
			switch {
			case sub.Type == b && !sub.Inherits:
				note("%s is a built-in of Claude Code and has that one's tools, not those listed here, unless a definition of yours takes its name", b)
			case sub.Type != b && strings.EqualFold(sub.Type, b):
				note("%s differs from the built-in %s in case only, which Claude Code ignores: rename it, or the built-in may start in its place", sub.Type, b)
			}
		}
		for _, other := range s.Subagents[:i] {
			if strings.EqualFold(sub.Type, other.Type) {
				note("%s and %s differ in case only, which Claude Code ignores: rename one", other.Type, sub.Type)
			}
		}
		for _, t := range sub.Tools {
			if name, _, pattern := strings.Cut(t, "("); pattern {
				note("%s lists %s: write %s, tools are listed by name", sub.Type, t, name)
			}
		}
	}
	return notes
}
