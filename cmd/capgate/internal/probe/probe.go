// Package probe has the command probe, which asks an installed client itself whether its hooks hold inside subagents,
// and the hook that it makes the client run.
package probe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/gates"
)

type options struct {
	client, bin, evidence string
	yes, force            bool
	timeout               time.Duration
}

// New returns the command probe.
func New(a *cli.App) *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:     "probe",
		GroupID: cli.GroupClient,
		Short:   "Ask the installed client itself whether its hooks hold inside subagents",
		Long: `Starts the installed client once, headless, in a scratch directory, with a throw-away settings file whose hook
is this program. The prompt has the model start one subagent that runs harmless echo commands, of which the hook blocks
one, denies one, rewrites one and lets one pass, and has it run one itself that a human would have to be asked about.
What the hook was told, and what the client made of its answers, is the evidence.

It runs with your account and your other settings, and spends about ten small model calls. It changes no installed
file: capgate doctor looks at those. An installed capgate is switched off for the probe by CAPGATE_DISABLE=1.

It ends with RESULT: FIRES when the hook fires inside a subagent and a denial blocks there (by exit status 2; Oh My Pi
has the extension's block), else with RESULT: DOES NOT FIRE. A step that the model did not do is "not observed".

Exit status: 0 FIRES; 3 DOES NOT FIRE; 1 when there is no result: no client, not logged in, out of time.`,
		Example: `  capgate probe
  capgate probe --client omp --yes --json
  capgate probe --bin ./node_modules/.bin/claude --evidence probe.json`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error { return probe(cmd.Context(), a, o) }),
	}
	cli.ClientFlag(cmd, &o.client, "which client")
	cmd.Flags().StringVar(&o.bin, "bin", "", "the client's program; default claude or omp, as found on PATH")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask before spending model calls")
	cmd.Flags().StringVar(&o.evidence, "evidence", "", "file for the evidence; default capgate-probe-CLIENT-VERSION.json")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace the evidence file where there is one")
	cmd.Flags().DurationVar(&o.timeout, "timeout-client", 3*time.Minute, "how long the client may take")
	return cmd
}

func probe(ctx context.Context, a *cli.App, o options) error {
	if err := cli.CheckClient(o.client); err != nil {
		return err
	}
	name := client.Title(o.client)
	switch {
	case o.timeout <= 0:
		return cli.Usagef("--timeout-client is %v, it must be more than 0", o.timeout)
	case o.client == client.OMP && runtime.GOOS == "windows":
		return errors.New("probing Oh My Pi needs a shell script as its hook, which Windows does not run")
	case !o.yes && !cli.IsTerminal(a.Stdin):
		return errors.New("probe spends model calls on your account and there is no terminal to ask on: give --yes")
	}
	// The client is in a process group of its own, so that an interrupt reaches it only through us.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	p, err := newAttempt(ctx, o)
	if err != nil {
		return err
	}
	defer p.clean()

	plan := a.Printf
	if a.AsJSON {
		plan = func(format string, args ...any) {
			fmt.Fprintln(a.Stderr, gates.Visible(strings.TrimSuffix(fmt.Sprintf(format, args...), "\n")))
		}
	}
	if !a.AsJSON || !o.yes {
		plan("capgate probe starts %s (%s %s) once, headless, in a scratch directory, with a throw-away settings file.\n", p.bin, name, p.version)
		plan("A model starts one subagent, and harmless echo commands are run: about ten small model calls on your account,\n")
		plan("in at most %v. No installed file is changed. The evidence goes to %s.\n", o.timeout, p.evidence)
		_ = a.Flush() // an error stays in the printer, where Main finds it
	}
	if !o.yes {
		fmt.Fprint(a.Stderr, "Go on? Only yes does: ")
		line, _ := bufio.NewReader(io.LimitReader(a.Stdin, 100)).ReadString('\n')
		if strings.TrimSpace(line) != "yes" {
			return errors.New("nothing was run, because the answer was not yes")
		}
	}
	seen, calls, err := p.run(ctx)
	if err != nil {
		return err
	}
	report := Report{
		Client: o.client, Version: p.version, Program: p.bin, Time: a.Now().UTC(), Capgate: a.Build().String(), Exit: seen.outcome.Exit,
		ClientError: seen.outcome.Error, Denials: seen.outcome.Denials, Stats: seen.outcome.Stats, CallsFile: callsFile, Calls: calls,
		EvidenceFile: p.evidence,
	}
	report.Answers, report.Result = seen.evaluate(o.client)
	if report.Denials == nil {
		report.Denials = []Denial{}
	}
	if !seen.outcome.Completed && report.Result != Fires {
		return fmt.Errorf("%s ended with an error, so there is no result: %s: %s", p.bin, seen.outcome.Error, p.advice())
	}
	if err := report.write(o.force); err != nil {
		return err
	}
	a.Changed()
	if a.AsJSON {
		err = a.JSON(report)
	} else {
		printReport(a.Printer, name, report)
	}
	if err == nil && report.Result != Fires {
		err = cli.WithStatus(cli.StatusUnhealthy, errors.New("it was not shown that a denial holds inside a subagent of this client: there, the bound is capgate turn alone"))
	}
	return err
}

func printReport(out *cli.Printer, name string, r Report) {
	out.Printf("\n%s %s\n", name, r.Version)
	for _, answer := range r.Answers {
		out.Printf("%-12s  %s\n              %s", answer.Answer, questionText[answer.Question], answer.Why)
		if len(answer.Calls) > 0 {
			out.Printf(" (%s line %s)", r.CallsFile, strings.Trim(strings.ReplaceAll(fmt.Sprint(answer.Calls), " ", ", "), "[]"))
		}
		out.Printf("\n")
	}
	out.Printf("evidence: %s\nRESULT: %s\n", r.EvidenceFile, r.Result)
}
