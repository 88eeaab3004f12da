package drive

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/loop"
	"github.com/capgate/capgate/cmd/capgate/internal/run"
	"github.com/capgate/capgate/scope"
)

// NewExec returns the command run exec.
func NewExec(a *cli.App) *cobra.Command {
	var id, session cli.Text
	var limits run.Limits
	cmd := &cobra.Command{
		Use:   "exec --run RUN [flags] -- COMMAND [ARG]...",
		Short: "Run one command in the scope of a run",
		Long: `Runs the command once, in a session that is armed for the run: at the cap its searches and subagents are denied, and
when it ends the session is disarmed. The run is opened with the limits given; a run that is open already may be named
without.

No turn is counted here: that is for the command, which finds the run in CAPGATE_RUN and begins its turns (capgate turn
begin). Where nobody does, the cap comes no nearer, and that is said at the end. To have them counted, use capgate loop.

A bare claude, in a terminal or with -p, gets a new session. In other commands {session} stands for the session's id,
and the environment has CAPGATE_RUN, CAPGATE_LIMIT, CAPGATE_SESSION and CAPGATE_DATA_DIR.

Exit status: the command's, 1 where that is 2, and 128 + n when signal n ended it or came to us.`,
		Example: `  capgate run exec --run night --max-conv-turns 8 -- claude
  capgate run exec --run night -- ./research.sh {session}`,
		Args: commandArgs,
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			return runExec(a, cmd, args, string(id), string(session), limits)
		}),
	}
	run.Flag(a, cmd, &id)
	limits.OptionalFlags(cmd)
	cmd.Flags().SetInterspersed(false) // as in loop
	cmd.Flags().Var(&session, "session", "session id; default a new one")
	return cmd
}

// uncounted says where the command has searched and counted no turn.
func (d *driver) uncounted() {
	m, err := scope.Read(d.setting.state, d.setting.session)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.cmd.Context()), time.Second)
	defer cancel()
	u, err := d.ledger.Usage(ctx, d.setting.run)
	if beat := scope.Heard(d.setting.state, m.Session); err == nil && m.Hear(beat, u.Turns) == scope.Uncounted {
		d.Warn("uncounted: the command made %s and began no turn of run %s, so the cap came no nearer: capgate turn begin before each turn, or capgate loop",
			cli.Plural(beat.Passed, "capped call"), d.setting.run)
	}
}

func runExec(a *cli.App, cmd *cobra.Command, command []string, id, session string, limits run.Limits) error {
	a.About(id, "")
	if err := a.NotHalted(); err != nil {
		return err
	}
	d, usage, err := newDriver(a, cmd, command, id, limits)
	if err != nil {
		return err
	}
	if d.setting.session = session; session == "" {
		d.setting.session = newSession()
	}
	signals, stop := catchSignals()
	defer stop()
	d.signals = signals
	if err := loop.Arm(a, cmd, d.ledger, d.setting.session, usage); err != nil {
		return err
	}
	defer d.disarm()
	if usage.Spent() {
		a.Warn("run %s has no turn left (%d of %d): searches and subagents are denied", usage.Run, usage.Used, usage.Limit)
	}
	if ownsSession(command) {
		d.command = begin(command, d.setting.session)
	}
	end, err := d.child(d.command, "").run()
	d.uncounted()
	switch {
	case err != nil:
		return err
	case end.signal != nil:
		return cli.WithStatus(128+numberOf(end.signal), fmt.Errorf("interrupted (%v): session %s is disarmed", end.signal, d.setting.session))
	case end.status == cli.StatusRefused:
		return cli.WithStatus(cli.StatusError, fmt.Errorf("the command ended with status %d", end.status))
	case end.status != 0:
		return cli.WithStatus(end.status, fmt.Errorf("the command ended with status %d", end.status))
	}
	return nil
}
