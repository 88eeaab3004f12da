package main

import (
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/omp"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

func newOMPCmd(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "omp",
		GroupID: cli.GroupClient,
		Short:   "Write the extension for Oh My Pi",
		Long: `Oh My Pi has extensions instead of hooks. capgate's puts every tool call before capgate-hook, and blocks where that is
missing, crashes, is late or answers nonsense. capgate install --client omp writes it where the client finds it; here it
can be had without an installation.`,
		Example: `  capgate omp extension > capgate.ts`,
	}, newOMPExtensionCmd(a))
}

func newOMPExtensionCmd(a *cli.App) *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "extension",
		Short: "Print the TypeScript extension, for omp -e FILE or a directory of extensions",
		Long: `Prints the extension with the absolute path of capgate-hook, which must be beside this program, and the environment
that the hook needs filled in. An extension that is given by omp -e does not reach agents that are woken from an earlier
session: install it for those.`,
		Example: `  capgate omp extension > capgate.ts && omp -e capgate.ts
  capgate omp extension --subagents scout --admission ask > capgate.ts`,
		Args: cli.NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error {
			env, err := hookEnvironment(a, o)
			if err != nil {
				return err
			}
			command, args, err := hookCommand()
			if err != nil {
				return err
			}
			text, err := extensionText("", nil, command, args, env)
			if err != nil {
				return err
			}
			if a.AsJSON {
				return a.JSON(struct {
					Hook      string `json:"hook"`
					Extension string `json:"extension"`
				}{command, string(text)})
			}
			_, err = a.Write(text)
			return err
		}),
	}
	o.gateFlags(cmd)
	return cmd
}

// ompExtension is the extension with a hook and its environment filled in.
func ompExtension(command string, env [][2]string) []byte {
	vars := map[string]string{}
	for _, v := range env {
		if v[0] != backgroundTasks { // is Claude Code's
			vars[v[0]] = v[1]
		}
	}
	return omp.Extension(command, vars)
}
