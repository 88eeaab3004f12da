// Capgate is the command line of capgate: what a research loop or a person types. The hook that a client runs on
// every tool call is the same program under the command "hook", and the smaller program capgate-hook.
//
// Results go to standard output, plain text or, with --json, JSON. An error is one line on standard error that begins
// with "capgate: " and says what to do. The exit status is 0 when the command was done, 1 on an error, and 2 when the
// cap refused a turn.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kelseyhightower/envconfig"
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/admit"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/doctor"
	"github.com/capgate/capgate/cmd/capgate/internal/drive"
	"github.com/capgate/capgate/cmd/capgate/internal/ledger"
	"github.com/capgate/capgate/cmd/capgate/internal/look"
	"github.com/capgate/capgate/cmd/capgate/internal/loop"
	"github.com/capgate/capgate/cmd/capgate/internal/power"
	"github.com/capgate/capgate/cmd/capgate/internal/probe"
	"github.com/capgate/capgate/cmd/capgate/internal/run"
	"github.com/capgate/capgate/cmd/capgate/internal/setup"
	"github.com/capgate/capgate/cmd/capgate/internal/spec"
)

// commands are all commands, in no order: the help sorts them.
var commands = []cli.Command{
	{Name: "scope", New: loop.NewScope},
	{Name: "turn", New: loop.NewTurn},
	{Name: "loop", New: drive.NewLoop},
	{Name: "run", New: func(a *cli.App) *cobra.Command { return run.New(a, drive.NewExec(a)) }},
	{Name: "ledger", New: ledger.New},
	{Name: "status", New: look.NewStatus},
	{Name: "off", New: power.NewOff},
	{Name: "on", New: power.NewOn},
	{Name: "halt", New: power.NewHalt},
	{Name: "log", New: look.NewLog},
	{Name: "explain", New: look.NewExplain},
	{Name: "spec", New: spec.New},
	{Name: "admit", New: admit.New},
	{Name: "install", New: setup.NewInstall},
	{Name: "doctor", New: doctor.New},
	{Name: "uninstall", New: setup.NewUninstall},
	{Name: "omp", New: setup.NewOMP},
	{Name: "probe", New: probe.New},
	{Name: "probe-hook", New: probe.NewHook},
	{Name: "plugin", New: setup.NewPlugin},
	{Name: "hook", New: setup.NewHook},
}

// version is set by the linker, -X main.version=v1.2.3, for builds outside a module-aware checkout.
var version string

// start is taken while the package is initialised, as near to the start of the process as a Go program gets.
var start = time.Now()

func main() {
	if len(os.Args) > 1 && os.Args[1] == "hook" && !isHelp(os.Args[2:]) {
		hook.Main(start, os.Args[2:])
	}
	reportBrokenPipes()
	os.Exit(cli.Main(cli.Outside{
		Args:        os.Args[1:],
		Stdin:       os.Stdin,
		Stdout:      os.Stdout,
		Stderr:      os.Stderr,
		Lookup:      os.LookupEnv,
		Environment: processConfig,
		Now:         time.Now,
		Version:     version,
	}, commands))
}

// reportBrokenPipes makes a reader that has gone away an error that we report, not a signal that ends us silently. The signal is
// caught and not ignored, because the commands of a loop would inherit that. A turn starts no command: it ignores the
// signal, which starts no thread and so saves a twentieth of its time.
func reportBrokenPipes() {
	if len(os.Args) > 1 && os.Args[1] == cli.Alone {
		signal.Ignore(syscall.SIGPIPE)
		return
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// isHelp reports whether somebody asks for the hook's help. Any other arguments are the hook's own to judge: a client
// whose settings are wrong must hear of it.
func isHelp(args []string) bool {
	return len(args) == 1 && (args[0] == "--help" || args[0] == "-h")
}

// processConfig reads the configuration from the environment of this process.
func processConfig() (capgate.Config, error) {
	var c capgate.Config
	if err := envconfig.Process("", &c); err != nil {
		return c, fmt.Errorf("read the environment: %w", err)
	}
	c.Fallbacks(os.LookupEnv)
	return c, nil
}
