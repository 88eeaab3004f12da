package spec

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/derive"
	"github.com/capgate/capgate/gates"
)

type deriveOptions struct {
	foreground, admission string
	out                   cli.Text
	force                 bool
}

func newDeriveCmd(a *cli.App) *cobra.Command {
	var o deriveOptions
	cmd := &cobra.Command{
		Use:   "derive DIR",
		Short: "Write a spec from Claude Code's agent definitions",
		Long: `Reads every agent definition (*.md) below DIR and writes the spec that declares exactly those, sorted by name: the same
definitions give the same bytes. A subagent's type is the name in its front matter, not the file's. Tools are listed by
name, so Bash(git:*) counts as Bash; a definition without tools inherits all. disallowedTools are not looked at, and
neither are the agents of plugins.

Whatever a spec cannot be made of is an error that names the file, and nothing is written. A definition with
"background: true" gets a warning: it wins over the foreground that the gate asks for.`,
		Example: `  capgate spec derive .claude/agents
  capgate spec derive .claude/agents -o spec.json --admission ask
  capgate spec derive .claude/agents -o spec.json --force`,
		Args:              cli.OneArg("the directory of the agent definitions, such as .claude/agents", "one directory"),
		ValidArgsFunction: cli.Directories,
		RunE: a.Do(func(_ *cobra.Command, args []string) error {
			return deriveSpec(a, args[0], o)
		}),
	}
	cmd.Flags().StringVar(&o.foreground, "foreground", string(gates.ForegroundRewrite), "what becomes of a subagent that would start in the background: "+cli.OneOf(foregroundModes))
	cmd.Flags().StringVar(&o.admission, "admission", string(gates.AdmissionOff), "whether a human decides about subagents: "+cli.OneOf(admissionModes))
	cmd.Flags().VarP(&o.out, "output", "o", "file to write; default standard output")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace the file that -o names where there is one")
	cli.Must(cmd.MarkFlagFilename("output", "json"))
	for flag, words := range map[string][]string{"foreground": foregroundModes, "admission": admissionModes} {
		cli.Must(cmd.RegisterFlagCompletionFunc(flag, cli.Words(words...)))
	}
	return cmd
}

var (
	foregroundModes = []string{string(gates.ForegroundRewrite), string(gates.ForegroundRequire), string(gates.ForegroundOff)}
	admissionModes  = []string{string(gates.AdmissionOff), string(gates.AdmissionAsk), string(gates.AdmissionDeny)}
)

// derived is what `spec derive -o FILE --json` prints.
type derived struct {
	Spec      string   `json:"spec"` // the file
	Subagents []string `json:"subagents"`
	Warnings  []string `json:"warnings"`
}

func deriveSpec(a *cli.App, dir string, o deriveOptions) error {
	switch {
	case !slices.Contains(foregroundModes, o.foreground):
		return cli.Usagef("--foreground is %q: it takes %s", o.foreground, cli.OneOf(foregroundModes))
	case !slices.Contains(admissionModes, o.admission):
		return cli.Usagef("--admission is %q: it takes %s", o.admission, cli.OneOf(admissionModes))
	case o.force && o.out == "":
		return cli.Usagef("--force is about the file that -o names: give -o, too")
	}
	definitions, err := derive.Read(dir)
	if err != nil {
		return err
	}
	s, warnings := derive.Spec(definitions, gates.ForegroundMode(o.foreground), gates.AdmissionMode(o.admission))
	text, err := derive.Text(s)
	if err != nil {
		return err
	}
	out := ""
	if o.out != "" {
		if out, err = filepath.Abs(string(o.out)); err != nil {
			return err
		}
		if err := derive.Write(out, text, o.force); err != nil {
			return err
		}
		a.Changed()
	}
	for _, w := range warnings {
		a.Warn("%s", w)
	}
	switch {
	case o.out == "":
		_, _ = a.Write(text) // an error stays in the printer, where Main finds it
	case a.AsJSON:
		return a.JSON(derived{Spec: out, Subagents: s.Allowed(), Warnings: warnings})
	default:
		a.Printf("%s declares %s: %s\n", out, cli.Plural(len(s.Subagents), "subagent"), strings.Join(s.Allowed(), ", "))
	}
	return nil
}
