package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/loop"
	"github.com/capgate/capgate/cmd/capgate/internal/run"
	"github.com/capgate/capgate/cmd/capgate/internal/shell"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

type loopOptions struct {
	run, dimension, session, until cli.Text
	limits                         run.Limits
	quiet                          bool
}

// NewLoop returns the command loop.
func NewLoop(a *cli.App) *cobra.Command {
	var o loopOptions
	cmd := &cobra.Command{
		Use:     "loop --run RUN --max-conv-turns N [flags] -- COMMAND [ARG]...",
		GroupID: cli.GroupLoop,
		Short:   "Run a command once a turn, until the cap",
		Long: `Runs the command once for each turn of the run, in a session that is armed for it: the whole loop in one command. Each
turn is begun before the command starts and ended when it ends. The loop ends

  with 0          when the command of --until, run by sh after each turn, succeeds
  with 2          at the cap, where no turn is begun; the run stays open, so turns can be granted to it (run grant)
  with 128 + n    when signal n came, which is passed on to the command
  with 1          when the ledger or the session cannot be used, and where the command ended with 2
  as the command  when that ended with anything else but 0

A turn that was begun stays counted and is not taken again: after ^C in turn 3 of 8 the same command line goes on with
turn 4. It may then leave the limits out. Whatever way the loop ends, its session is disarmed.

A bare claude gets a session of its own that goes on from turn to turn. In other commands {session} stands for the
session's id, and the environment has CAPGATE_RUN, CAPGATE_TURN, CAPGATE_LIMIT, CAPGATE_DIMENSION, CAPGATE_SESSION and
CAPGATE_DATA_DIR. Standard output is the command's; progress is on standard error. There is one loop for a run and
dimension at a time.`,
		Example: `  capgate loop --run night --max-conv-turns 8 -- claude -p "Go on with the research in notes.md"
  capgate loop --run night --max-conv-turns 8 --until 'grep -q DONE notes.md' -- claude -p "…"
  capgate loop --run night -- claude -p "…"    # goes on with a run that was interrupted, or was granted turns`,
		Args: commandArgs,
		RunE: a.Do(func(cmd *cobra.Command, args []string) error { return runLoop(a, cmd, args, o) }),
	}
	run.Flag(a, cmd, &o.run)
	o.limits.OptionalFlags(cmd)
	cmd.Flags().SetInterspersed(false) // what follows a command that -- was forgotten before is not ours
	cmd.Flags().Var(&o.dimension, "dimension", "dimension that the turns belong to; none by default")
	cmd.Flags().Var(&o.session, "session", "session id; default one that belongs to the run and dimension")
	cmd.Flags().Var(&o.until, "until", "shell command that ends the loop with 0 when it succeeds after a turn")
	cmd.Flags().BoolVar(&o.quiet, "quiet", false, "no progress, only how the loop ended")
	return cmd
}

// commandArgs is for commands that take another command after --.
func commandArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || args[0] == "" {
		return cli.Usagef("%s needs a command after --, such as: %s … -- claude -p \"…\"", cmd.Name(), cmd.CommandPath())
	}
	if cmd.ArgsLenAtDash() != 0 {
		return cli.Usagef("unexpected argument %q: put -- before the command", args[0])
	}
	return nil
}

// driver is one loop, or one exec, of a command.
type driver struct {
	*cli.App
	cmd     *cobra.Command
	ledger  ledger.Ledger
	command []string
	setting setting
	signals <-chan os.Signal
	say     progress
	silent  bool      // it was said that the hook is
	renewed time.Time // when the session was armed, or the newest turn begun: what its marker's age counts from
}

func runLoop(a *cli.App, cmd *cobra.Command, command []string, o loopOptions) (err error) {
	d, usage, err := newDriver(a, cmd, command, string(o.run), o.limits)
	if err != nil {
		return err
	}
	d.setting.dimension = string(o.dimension)
	d.say = newProgress(a, o.quiet)
	ctx, cancel := a.Context(cmd)
	head, err := d.ledger.Head(ctx)
	cancel()
	if err != nil {
		return err
	}
	managed := ownsSession(command)
	dir := ""
	if managed {
		if dir, err = os.Getwd(); err != nil {
			return fmt.Errorf("find the current directory: %w", err)
		}
	}
	own := loopFile{Run: usage.Run, Dimension: d.setting.dimension, Ledger: head.Ledger, Dir: dir, PID: os.Getpid(), Since: a.Now().UTC()}
	before, unlock, err := lockLoop(d.setting.state, own)
	switch {
	case errors.Is(err, errLooped):
		return fmt.Errorf("%w by process %d since %s, and one loop at a time takes its turns: end that one first, or give this one a --dimension or --run of its own",
			looped(usage.Run, d.setting.dimension), before.PID, cli.Stamp(before.Since))
	case err != nil:
		return fmt.Errorf("lock the loop of run %s: %w; what stands in %s is capgate's own, and may be removed while no loop runs", usage.Run, err, filepath.Join(d.setting.state, dirName))
	}
	defer unlock()
	if own.elsewhere(before) {
		return fmt.Errorf("run %s was begun in %s, and the client's session belongs to that directory: cd there first, or name another run", usage.Run, before.Dir)
	}
	d.setting.session = string(o.session)
	if d.setting.session == "" {
		d.setting.session = sessionOf(head.Ledger, usage.Run, d.setting.dimension)
	}
	signals, stop := catchSignals()
	defer stop()
	d.signals = signals
	if err := loop.Arm(a, cmd, d.ledger, d.setting.session, usage); err != nil {
		return err
	}
	d.renewed = a.Now()
	defer d.disarm()
	d.say.header(usage, d.setting)
	return d.loop(managed, string(o.until), usage.Remaining)
}

// looped wraps errLooped in what is looped.
func looped(run, dimension string) error {
	if dimension != "" {
		run += ", dimension " + dimension
	}
	return fmt.Errorf("run %s: %w", run, errLooped)
}

// newDriver opens the run, or finds it where no limits are given.
func newDriver(a *cli.App, cmd *cobra.Command, command []string, id string, limits run.Limits) (*driver, ledger.Usage, error) {
	d := &driver{App: a, cmd: cmd, command: command}
	a.About(id, "")
	// Before anything is opened: a program that is not there would cost a turn.
	_, err := exec.LookPath(command[0])
	if err != nil {
		return nil, ledger.Usage{}, fmt.Errorf("find the command: %w; nothing was begun", err)
	}
	if d.setting.state, err = a.StateDir(); err != nil {
		return nil, ledger.Usage{}, err
	}
	if d.setting.ledger, err = a.LedgerPath(); err != nil {
		return nil, ledger.Usage{}, err
	}
	if d.setting.ledger == capgate.DefaultLedger(d.setting.state) {
		d.setting.ledger = ""
	}
	if d.ledger, err = a.OpenLedger(); err != nil {
		return nil, ledger.Usage{}, err
	}
	u, err := run.OpenOrFind(a, cmd, d.ledger, id, limits)
	if err != nil {
		return nil, ledger.Usage{}, err
	}
	d.setting.run, d.setting.limit = u.Run, u.Limit
	return d, u, nil
}

// disarm ends the scope of the session and of those that took its place.
func (d *driver) disarm() {
	if _, err := loop.Disarm(d.setting.state, d.setting.session); err != nil {
		d.Warn("session %s is still armed: %v; disarm it with capgate scope close --session %s", d.setting.session, err, d.setting.session)
	}
}

// loop takes turns until something ends it. left is how many the run has at first.
func (d *driver) loop(managed bool, until string, left int64) error {
	for {
		if s := pending(d.signals); s != nil {
			return d.interrupted(s, left)
		}
		if err := d.NotHalted(); err != nil {
			return err
		}
		key := fmt.Sprintf("loop-%d-%d", os.Getpid(), d.Now().UnixNano())
		if err := d.rearm(); err != nil {
			return err
		}
		r, s, err := d.begin(key)
		if s != nil {
			return d.interrupted(s, left)
		}
		if spent := (*ledger.SpentError)(nil); errors.As(err, &spent) {
			return cli.WithStatus(cli.StatusRefused, loopSpent{spent, d.grant(spent)})
		}
		if err != nil {
			return err
		}
		d.setting.turn, d.setting.limit, left = r.Used, r.Limit, r.Limit-r.Used
		began := d.Now()
		d.renewed = began
		d.say.begun(r, began)
		end, err := d.turn(managed)
		if endErr := d.end(key); endErr != nil {
			return errors.Join(err, fmt.Errorf("turn %d of run %s cannot be ended: %w", r.Used, r.Run, endErr))
		}
		if err != nil {
			return err
		}
		d.say.ended(r, began, d.Now())
		d.hearing(r)
		if end.signal != nil {
			return d.interrupted(end.signal, left)
		}
		if until != "" {
			switch met, signal := d.met(until); {
			case signal != nil:
				return d.interrupted(signal, left)
			case met:
				d.say.met(r)
				return nil
			}
		}
		if end.status != 0 {
			return d.failed(end.status)
		}
	}
}

// begin begins a turn. A signal ends the wait for the ledger, and the turn that was begun all the same.
func (d *driver) begin(key string) (r ledger.Receipt, s os.Signal, err error) {
	ctx, cancel := d.Context(d.cmd)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err = d.ledger.BeginTurn(ctx, d.setting.run, d.setting.dimension, key, loop.Anchors(d.Places, d.setting.run)...)
	}()
	select {
	case <-done:
		return r, nil, err
	case s = <-d.signals:
		cancel()
		<-done
		if err == nil {
			d.setting.turn, d.setting.limit = r.Used, r.Limit
			_ = d.end(key)
		}
		return r, s, err
	}
}

// rearm arms the session again where its marker expired in a turn that was longer than markers hold, as over a night's
// sleep of the machine.
func (d *driver) rearm() error {
	_, ttl, err := d.Markers()
	if err != nil || d.Now().Sub(d.renewed) <= ttl {
		return err
	}
	if _, err := scope.Read(d.setting.state, d.setting.session); !errors.Is(err, scope.ErrNone) {
		return nil
	}
	ctx, cancel := d.Context(d.cmd)
	defer cancel()
	u, err := d.ledger.Usage(ctx, d.setting.run)
	if err != nil {
		return err
	}
	return loop.Arm(d.App, d.cmd, d.ledger, d.setting.session, u)
}

// end ends the turn. It must not be given up because a signal came.
func (d *driver) end(key string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.cmd.Context()), max(d.Timeout(), time.Second))
	defer cancel()
	_, err := d.ledger.EndTurn(ctx, d.setting.run, d.setting.dimension, key)
	return err
}

// turn runs the command once.
func (d *driver) turn(managed bool) (ending, error) {
	if !managed {
		return d.child(d.command, "").run()
	}
	end, err := d.child(resume(d.command, d.setting.session), unknownSession).run()
	if err != nil || !end.said || end.signal != nil {
		return end, err
	}
	return d.child(begin(d.command, d.setting.session), "").run()
}

func (d *driver) child(command []string, unlessSays string) child {
	given, _ := withSession(command, d.setting.session)
	return child{
		command: given, env: d.setting.environ(os.Environ()), stdin: d.Stdin, stdout: d.Stdout, stderr: d.Stderr,
		signals: d.signals, unlessSays: unlessSays,
	}
}

// met reports whether the command that ends the loop succeeds, and the signal that came while it ran.
func (d *driver) met(until string) (bool, os.Signal) {
	end, err := d.child([]string{"/bin/sh", "-c", until}, "").run()
	return err == nil && end.status == 0, end.signal
}

// hearing says once where the hook is not heard, as every state of a session does.
func (d *driver) hearing(r ledger.Receipt) {
	m, err := scope.Read(d.setting.state, d.setting.session)
	if err != nil || d.silent {
		return // disarmed by somebody: that is for them to know
	}
	ctx, cancel := d.Context(d.cmd)
	defer cancel()
	u, err := d.ledger.Usage(ctx, r.Run)
	if err == nil && m.Hear(scope.Heard(d.setting.state, m.Session), u.Turns) == scope.Silent {
		d.silent = true
		d.say.silent(m.Session)
	}
}

// pending returns a signal that has come, nil where none has.
func pending(signals <-chan os.Signal) os.Signal {
	select {
	case s := <-signals:
		return s
	default:
		return nil
	}
}

// interrupted is how the loop ends after a signal. A client that was interrupted may have ended with 0.
func (d *driver) interrupted(s os.Signal, left int64) error {
	where := "before its first turn here"
	if d.setting.turn > 0 {
		where = fmt.Sprintf("in turn %d of %d", d.setting.turn, d.setting.limit)
	}
	return cli.WithStatus(128+numberOf(s), fmt.Errorf("run %s was interrupted (%v) %s, with %s left: %s",
		d.setting.run, s, where, cli.Plural(left, "turn"), d.goOn(left)))
}

// goOn says how a run is gone on with.
func (d *driver) goOn(left int64) string {
	if left > 0 {
		return "the same command line goes on with it"
	}
	return fmt.Sprintf("grant it turns (`capgate run grant %s --turns N --reason TEXT`), then the same command line goes on", shell.Word(d.setting.run))
}

// grant is the command that lets this loop go on after a refusal.
func (d *driver) grant(e *ledger.SpentError) string {
	ctx, cancel := d.Context(d.cmd)
	defer cancel()
	u, err := d.ledger.Usage(ctx, d.setting.run)
	if err != nil {
		u.MaxDimensions = int64(len(u.Dimensions)) + 1 // what the refusal says has to do
	}
	u.Run = d.setting.run
	return grantFor(e.Bound, d.setting.dimension, u)
}

// failed is how the loop ends with its command. 2 is the word of the cap.
func (d *driver) failed(status int) error {
	left := d.setting.limit - d.setting.turn
	err := fmt.Errorf("the command ended with status %d in turn %d of %d of run %s, and the loop with it: %s",
		status, d.setting.turn, d.setting.limit, d.setting.run, d.goOn(left))
	if status == cli.StatusRefused {
		status = cli.StatusError
	}
	return cli.WithStatus(status, err)
}
