package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/derive"
)

func newCheckCmd(a *cli.App) *cobra.Command {
	var tools cli.Text
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Read a spec as the hook does, and say what it declares",
		Long: `Reads the spec, by default the one that CAPGATE_SPEC names, exactly as the hook does. A spec that the hook could not use
is an error; while it is in use, the hook denies every subagent and the main thread's shell.

A subagent starts without the tools that the session lacks, and not at all where the session has none of those it lists.
Without --tools, the session is taken to have the least that makes sense, Agent and where some subagent needs it Bash.
What is missing is a note. With --tools, the session is taken to have those, and a subagent that cannot start makes the
exit status 1.`,
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
			return check(a, args, tools)
		}),
	}
	cmd.Flags().Var(&tools, "tools", "comma list of all the tools that the session has")
	return cmd
}

// checked is what `spec check --json` prints.
type checked struct {
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
	Missing  []string `json:"missing,omitempty"` // the tools that the session lacks
}

func check(a *cli.App, args []string, flag cli.Text) error {
	path, typed, err := path(a, args)
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
		if session, all, err = derive.ToolNames(string(flag)); err != nil || all {
			return cli.Usagef("--tools is %q: list the names of the session's tools, as Agent,Bash,Read", string(flag))
		}
	}

	c := checked{
		OK: true, Spec: path, Subagents: []checkedSubagent{}, SessionTools: session,
		Foreground: string(s.Foreground), Admission: string(s.Admission), Notes: []string{},
	}
	note := func(format string, args ...any) { c.Notes = append(c.Notes, fmt.Sprintf(format, args...)) }
	if typed != path {
		note("%s is a relative path: set CAPGATE_SPEC=%s, the hook runs in another directory and takes no other", typed, path)
	}
	var stuck []string
	missing, unstartable := s.Lacking(session), s.Unstartable(session)
	for _, sub := range s.Subagents {
		m := missing[sub.Type]
		lists := fmt.Sprintf("%s lists %s", sub.Type, strings.Join(m, ", "))
		c.Subagents = append(c.Subagents, checkedSubagent{
			Type: sub.Type, Tools: append([]string{}, sub.Tools...), Inherits: sub.Inherits, Missing: m,
		})
		switch {
		case len(m) == 0:
		case flag != "" && slices.Contains(unstartable, sub.Type):
			stuck = append(stuck, lists)
		case slices.Contains(unstartable, sub.Type):
			note("%s, and a session with only %s has none of it: there it cannot start, start the session with what is missing, too", lists, strings.Join(session, ", "))
		default:
			note("%s, which a session with only %s lacks: there it starts without", lists, strings.Join(session, ", "))
		}
	}
	for _, n := range notes(s, claude.Background(a.Lookup)) {
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
	printChecked(a.Printer, c)
	return refusal
}

// path returns the spec's path as it was typed and as it is read. A path in the environment stays as it is, so that
// it is refused where the hook refuses it.
func path(a *cli.App, args []string) (path, typed string, err error) {
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

func printChecked(out *cli.Printer, c checked) {
	out.Printf("%s: %s, foreground %s, admission %s\n", c.Spec, cli.Plural(len(c.Subagents), "subagent"), c.Foreground, c.Admission)
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
		out.Table(rows...)
	}
	out.Printf("session tools: %s\n", strings.Join(c.SessionTools, ", "))
	for _, n := range c.Notes {
		out.Printf("note: %s\n", n)
	}
}
