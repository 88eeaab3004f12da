package setup

import (
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// NewOMP returns the command omp.
func NewOMP(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "omp",
		GroupID: cli.GroupClient,
		Short:   "Write the extension for Oh My Pi",
		Long: `Oh My Pi has extensions instead of hooks. capgate's puts every tool call before capgate-hook, and blocks where that is
missing, crashes, is late or answers nonsense. capgate install --client omp writes it where the client finds it; here it
can be had without an installation.`,
		Example: `  capgate omp extension > capgate.ts`,
	}, newExtensionCmd(a))
}

func newExtensionCmd(a *cli.App) *cobra.Command {
	var g gateFlags
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
			w, err := gatherWiring(a, g)
			if err != nil {
				return err
			}
			if w.Programs, err = programsHere(); err != nil {
				return err
			}
			text, err := extensionText(w, w.Variables(nil))
			if err != nil {
				return err
			}
			if a.AsJSON {
				return a.JSON(struct {
					Hook      string `json:"hook"`
					Extension string `json:"extension"`
				}{w.Command, string(text)})
			}
			_, err = a.Write(text)
			return err
		}),
	}
	g.flags(cmd)
	return cmd
}
