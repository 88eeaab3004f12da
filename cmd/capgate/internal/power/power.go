// Package power has the commands by which an operator switches the hook off and on, and stops every call, at once and in
// running sessions: off, on and halt.
package power

import (
	"errors"
	"fmt"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/control"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/gates"
)

// said is one element of what the commands print with --json.
type said struct {
	State string        `json:"state"` // the state directory
	Off   *control.Word `json:"off,omitempty"`
	Halt  *control.Word `json:"halt,omitempty"`
	Was   bool          `json:"was"` // something was in force before
}

// everywhere does something in each installed state directory, and prints what it says of it.
func everywhere(a *cli.App, do func(state string) (said, string, error)) error {
	states, err := a.ReachedStateDirs()
	if err != nil {
		return err
	}
	all := []said{}
	var lines []string
	var failed error
	for _, state := range states { // one that fails leaves none out
		s, line, err := do(state)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		s.State = state
		all = append(all, s)
		lines = append(lines, fmt.Sprintf("%s: %s", state, line))
	}
	if a.AsJSON {
		return errors.Join(failed, a.JSON(all))
	}
	for _, line := range lines {
		a.Printf("%s\n", line)
	}
	return failed
}

// word is what the operator says now.
func word(a *cli.App, reason cli.Text) control.Word {
	return control.Word{At: a.Now().UTC(), Reason: string(reason), By: by()}
}

// by is the operator, as the system calls him.
func by() string {
	u, err := user.Current()
	if err != nil {
		return "somebody"
	}
	return u.Username
}

// record tells the decision log. Like the hook's own lines this is best effort: what was done is done.
func record(a *cli.App, state, code, reason string) {
	now := a.Now().UTC()
	_ = decisionlog.Append(state, decisionlog.Record{
		ID: decisionlog.NewID(now), At: now, Client: "capgate", Code: code, Outcome: gates.Pass.String(), Reason: reason,
	})
}

// maxOff bounds --for: what holds longer is said without it.
const maxOff = 366 * 24 * time.Hour

// NewOff returns the command off.
func NewOff(a *cli.App) *cobra.Command {
	var reason cli.Text
	var lasts time.Duration
	var onlyCap, onlyGates bool
	cmd := &cobra.Command{
		Use:     "off",
		GroupID: cli.GroupOperator,
		Short:   "Let every call pass, at once and in running sessions",
		Long: `Switches the hook off in every state directory of your installations and of the project that you are in, and in the
default one; for a state of its own that another project has go there, or use --state. The hook judges nothing from the
next call on, in running sessions, too, until capgate on or the end of --for. With --cap only the cap is off, with
--gates only the subagent gates. A second off takes the place of the first. It is in the decision log, and status and
doctor show it.

An agent must not switch off what bounds it: in an agent's shell this is refused.`,
		Example: `  capgate off --for 10m --reason "the index is being rebuilt"
  capgate off --cap --reason "a demonstration"`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			only := control.Everything
			switch {
			case onlyCap && onlyGates:
				return cli.Usagef("--cap and --gates together are all that there is: leave both out")
			case onlyCap:
				only = control.Cap
			case onlyGates:
				only = control.Gates
			}
			if given := cmd.Flags().Changed("for"); given && (lasts <= 0 || lasts > maxOff) {
				return cli.Usagef("--for is %v, it must be more than 0 and at most %v; without it off holds until capgate on", lasts, maxOff)
			}
			return off(a, reason, only, lasts)
		}),
	}
	cmd.Flags().Var(&reason, "reason", "why; kept with it and in the decision log")
	cmd.Flags().DurationVar(&lasts, "for", 0, "how long it holds; default until capgate on")
	cmd.Flags().BoolVar(&onlyCap, "cap", false, "only the cap")
	cmd.Flags().BoolVar(&onlyGates, "gates", false, "only the subagent gates")
	cli.RequireFlags(cmd, "reason")
	return cmd
}

func off(a *cli.App, reason cli.Text, only string, lasts time.Duration) error {
	if err := checkReason(reason); err != nil {
		return err
	}
	if err := a.OperatorOnly("nothing is switched off"); err != nil {
		return err
	}
	w := word(a, reason)
	w.Only = only
	if lasts > 0 {
		until := w.At.Add(lasts)
		w.Until = &until
	}
	states, err := a.ReachedStateDirs()
	if err != nil {
		return err
	}
	for _, state := range states {
		if control.Halted(state) {
			return fmt.Errorf("nothing is switched off, because %s is halted: capgate halt --lift first", state)
		}
	}
	return everywhere(a, func(state string) (said, string, error) {
		if err := cli.MakeStateDir(state); err != nil {
			return said{}, "", err
		}
		before := control.Read(state, a.Now()).Off
		if err := control.Off(state, w); err != nil {
			return said{}, "", err
		}
		a.Changed()
		record(a, state, capgate.CodeOff, w.OffText())
		return said{Off: &w, Was: before != nil}, w.OffText(), nil
	})
}

// NewOn returns the command on.
func NewOn(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "on",
		GroupID: cli.GroupOperator,
		Short:   "End what capgate off said",
		Long: `Ends an off in the same state directories: the hook judges as it is installed again from the next call on. It
ends no halt: capgate halt --lift does. In an agent's shell this is refused, like off.`,
		Example: `  capgate on`,
		Args:    cli.NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error {
			if err := a.OperatorOnly("nothing is switched on"); err != nil {
				return err
			}
			return everywhere(a, func(state string) (said, string, error) {
				was, err := control.On(state)
				if err != nil {
					return said{}, "", err
				}
				if !was {
					return said{}, "was not off", nil
				}
				a.Changed()
				record(a, state, capgate.CodeOn, "on again")
				return said{Was: true}, "on again", nil
			})
		}),
	}
}

// NewHalt returns the command halt.
func NewHalt(a *cli.App) *cobra.Command {
	var reason cli.Text
	var lift bool
	cmd := &cobra.Command{
		Use:     "halt",
		GroupID: cli.GroupOperator,
		Short:   "Deny every tool call, at once and in running sessions",
		Long: `Stops every agent whose client runs the hook, wherever the cap or the gates are on: from then on every tool call is
denied, whatever the tool and the session, until capgate halt --lift. It ends an off, and it returns when no call is
being judged any more that came before it. A call that the client is already making is not taken back: what a hook can
stop is the next one. No turn is begun while it holds.

It holds where off does, and names the state directories: for a state of its own that another project has go there, or
use --state.

It is in the decision log, and status and doctor show it. In an agent's shell this is refused.`,
		Example: `  capgate halt --reason "it deletes the wrong branch"
  capgate halt --lift`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			if lift {
				if reason != "" {
					return cli.Usagef("--lift takes no --reason")
				}
				return liftHalt(a)
			}
			return halt(a, cmd, reason)
		}),
	}
	cmd.Flags().Var(&reason, "reason", "why; the agents read it, and it is kept in the decision log")
	cmd.Flags().BoolVar(&lift, "lift", false, "end a halt")
	return cmd
}

func halt(a *cli.App, cmd *cobra.Command, reason cli.Text) error {
	if reason == "" {
		return cli.Usagef("missing --reason")
	}
	if err := checkReason(reason); err != nil {
		return err
	}
	if err := a.OperatorOnly("nothing is halted"); err != nil {
		return err
	}
	w := word(a, reason)
	longest := longestCall(a)
	for _, e := range a.Installed() {
		if e.Config.Problem != nil { // its hook cannot know where the halt is
			a.Warn("%s does not stop at a halt, but denies capped tools, shells and starts of agents only: %v", e.File, e.Config.Problem)
		}
	}
	return everywhere(a, func(state string) (said, string, error) {
		if err := cli.MakeStateDir(state); err != nil {
			return said{}, "", err
		}
		was := control.Halted(state)
		if err := control.Halt(state, w); err != nil {
			return said{}, "", err
		}
		a.Changed()
		record(a, state, capgate.CodeHalt, w.HaltText())
		if err := control.Drain(cmd.Context(), state, longest); err != nil {
			a.Warn("%s is halted for every call that comes now, but %v", state, err)
		}
		return said{Halt: &w, Was: was}, w.HaltText(), nil
	})
}

// longestCall is how long a hook of any installation may take for its verdict.
func longestCall(a *cli.App) time.Duration {
	longest := capgate.DefaultDeadline
	for _, e := range a.Installed() {
		longest = max(longest, e.Config.Deadline.Duration(capgate.DefaultDeadline))
	}
	return min(longest, time.Minute)
}

func liftHalt(a *cli.App) error {
	if err := a.OperatorOnly("nothing is lifted"); err != nil {
		return err
	}
	return everywhere(a, func(state string) (said, string, error) {
		was, err := control.Lift(state)
		if err != nil {
			return said{}, "", err
		}
		if !was {
			return said{}, "was not halted", nil
		}
		a.Changed()
		record(a, state, capgate.CodeHaltLifted, "halt lifted")
		return said{Was: true}, "halt lifted: calls are judged again", nil
	})
}

// checkReason refuses what would say nothing to whoever reads it.
func checkReason(reason cli.Text) error {
	if gates.Visible(string(reason)) != string(reason) || len(reason) > control.MaxReason {
		return cli.Usagef("--reason must be one line of at most %d bytes, without control characters", control.MaxReason)
	}
	return nil
}
