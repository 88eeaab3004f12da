// Package spec has the commands about specs of subagents: check and derive.
package spec

import (
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// New returns the command spec.
func New(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "spec",
		GroupID: cli.GroupOperator,
		Short:   "Check a spec of subagents, or derive one from agent definitions",
		Long: `A spec is a JSON file that declares which subagents an agent may start, how they are started, and whether a human is
asked first. CAPGATE_SPEC in the client's environment names it and turns the subagent gates on.`,
		Example: `  capgate spec derive .claude/agents -o spec.json
  capgate spec check spec.json`,
	}, newCheckCmd(a), newDeriveCmd(a))
}
