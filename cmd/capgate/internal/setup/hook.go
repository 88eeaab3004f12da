package setup

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// NewHook documents `capgate hook` and completes its name; main runs the hook itself, before any command is built.
func NewHook(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "hook",
		GroupID: cli.GroupClient,
		Short:   "Answer one tool call of a client (what a client's settings run)",
		Long: `Reads one hook event as JSON from standard input and answers it: silence and exit status 0 let the tool call
pass, exit status 2 with a reason on standard error denies it. A client runs this on every tool call; it is the same
code as the program capgate-hook.

All it needs comes from the environment: see capgate help environment.`,
		Example: `  echo '{"hook_event_name":"PreToolUse","session_id":"S","tool_name":"WebSearch","tool_input":{}}' | capgate hook`,
		RunE: a.Do(func(*cobra.Command, []string) error {
			return fmt.Errorf("hook is run as the first argument only: capgate hook")
		}),
	}
}
