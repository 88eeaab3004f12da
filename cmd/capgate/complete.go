package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/scope"
)

// completionPatience is how long a shell is kept waiting for candidates, at most.
const completionPatience = time.Second

const noFiles = cobra.ShellCompDirectiveNoFileComp

// addCompletionCmd adds cobra's own completion command, and makes it report a shell that it does not know.
func addCompletionCmd(a *app, root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Short = "Generate the completion script of a shell"
		cmd.Args = nil
		cmd.Example = "  source <(capgate completion bash)"
		group(cmd)
	}
}

// completeRunArg completes the one run id of a command.
func (a *app) completeRunArg(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return a.completeRuns(cmd, args, prefix)
}

// completeRuns offers the ids of runs. A ledger that cannot be read offers none: a shell has no place for an error.
func (a *app) completeRuns(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	l, err := a.openLedger()
	if err != nil {
		return nil, noFiles
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	runs, err := l.Runs(ctx)
	if err != nil {
		return nil, noFiles
	}
	var found []string
	for _, u := range slices.Backward(runs) {
		s := showRun(u)
		found = candidate(found, s.Run, fmt.Sprintf("%s, %d of %d", s.status(), s.Used, s.Limit))
	}
	return found, noFiles | cobra.ShellCompDirectiveKeepOrder
}

// completeSessions offers the sessions that have a marker.
func (a *app) completeSessions(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	state, err := a.stateDir()
	if err != nil {
		return nil, noFiles
	}
	markers, err := scope.List(state)
	if err != nil {
		return nil, noFiles
	}
	var found []string
	for _, m := range markers {
		found = candidate(found, m.Session, "run "+m.Run)
	}
	return found, noFiles
}

// completeDimensions offers the dimensions of the run that is named by --run.
func (a *app) completeDimensions(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	l, err := a.openLedger()
	if err != nil {
		return nil, noFiles
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	u, err := l.Usage(ctx, cmd.Flag("run").Value.String())
	if err != nil {
		return nil, noFiles
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(u.Dimensions)) {
		found = candidate(found, name, fmt.Sprintf("%d of %d", u.Dimensions[name], u.MaxConvTurns))
	}
	return found, noFiles
}

// candidate adds a name to those offered, unless a shell would read something else into it.
func candidate(found []string, name, description string) []string {
	if gates.Visible(name) != name {
		return found
	}
	return append(found, cobra.CompletionWithDesc(name, gates.Visible(description)))
}
