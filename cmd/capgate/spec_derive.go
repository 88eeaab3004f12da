package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/atomicfile"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/gates"
)

type specDeriveOptions struct {
	foreground, admission string
	out                   cli.Text
	force                 bool
}

func newSpecDeriveCmd(a *cli.App) *cobra.Command {
	var o specDeriveOptions
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
			return specDerive(a, args[0], o)
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

// derivedSpec is what `spec derive -o FILE --json` prints.
type derivedSpec struct {
	Spec      string   `json:"spec"` // the file
	Subagents []string `json:"subagents"`
	Warnings  []string `json:"warnings"`
}

func specDerive(a *cli.App, dir string, o specDeriveOptions) error {
	switch {
	case !slices.Contains(foregroundModes, o.foreground):
		return cli.Usagef("--foreground is %q: it takes %s", o.foreground, cli.OneOf(foregroundModes))
	case !slices.Contains(admissionModes, o.admission):
		return cli.Usagef("--admission is %q: it takes %s", o.admission, cli.OneOf(admissionModes))
	case o.force && o.out == "":
		return cli.Usagef("--force is about the file that -o names: give -o, too")
	}
	definitions, err := readDefinitions(dir)
	if err != nil {
		return err
	}
	s := gates.Spec{Foreground: gates.ForegroundMode(o.foreground), Admission: gates.AdmissionMode(o.admission)}
	warnings := []string{}
	for _, d := range definitions {
		s.Subagents = append(s.Subagents, gates.Subagent{Type: d.name, Tools: d.tools, Inherits: d.inherits})
		if d.background {
			warnings = append(warnings, fmt.Sprintf("%s: background: true makes %s start in the background whatever the foreground gate asks for: remove the line", d.file, d.name))
		}
		if !d.described {
			warnings = append(warnings, fmt.Sprintf("%s: it has no description, and Claude Code does not load %s without one: add a line \"description: WHEN TO USE IT\"", d.file, d.name))
		}
	}
	text, err := specText(s)
	if err != nil {
		return err
	}
	out := ""
	if o.out != "" {
		if out, err = filepath.Abs(string(o.out)); err != nil {
			return err
		}
		if err := writeSpec(out, text, o.force); err != nil {
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
		return a.JSON(derivedSpec{Spec: out, Subagents: s.Allowed(), Warnings: warnings})
	default:
		a.Printf("%s declares %s: %s\n", out, cli.Plural(len(s.Subagents), "subagent"), strings.Join(s.Allowed(), ", "))
	}
	return nil
}

// specText writes a spec, one subagent a line. The hook's own reader has the last word on it.
func specText(s gates.Spec) ([]byte, error) {
	var b bytes.Buffer
	value := func(v any) {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		cli.Must(enc.Encode(v)) // strings always encode
		b.Truncate(b.Len() - 1) // the encoder's line break
	}
	b.WriteString("{\n  \"subagents\": {")
	for i, sub := range s.Subagents {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		value(sub.Type)
		b.WriteString(": {")
		if !sub.Inherits {
			b.WriteString(`"tools": [`)
			for i, t := range sub.Tools {
				if i > 0 {
					b.WriteString(", ")
				}
				value(t)
			}
			b.WriteByte(']')
		}
		b.WriteByte('}')
	}
	b.WriteString("\n  },\n  \"foreground\": ")
	value(s.Foreground)
	b.WriteString(",\n  \"admission\": ")
	value(s.Admission)
	b.WriteString("\n}\n")
	if _, err := gates.ParseSpec(b.Bytes()); err != nil {
		return nil, fmt.Errorf("the derived spec: %w", err)
	}
	return b.Bytes(), nil
}

// writeSpec writes the file through a temporary one beside it, so that the hook reads the old spec or the new one.
func writeSpec(path string, text []byte, force bool) (err error) {
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory: name a file in it", path)
	case err == nil && !force:
		return fmt.Errorf("%s is there already: look at it, then replace it with --force", path)
	case err == nil:
		if path, err = filepath.EvalSymlinks(path); err != nil { // a link stays, its target is replaced
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("write %s: %w", path, pathless(err))
	}
	if err := atomicfile.Replace(path, text, 0o600); err != nil {
		return fmt.Errorf("write %s: %w: name a file in a directory that is there and writable", path, pathless(err))
	}
	return nil
}
