// Package setup wires the hook into a client and takes it out again: install, uninstall, the plugin, Oh My Pi's
// extension.
//
// What becomes of a file is a [Plan], which is made of the file's bytes alone: [PlanInstall] and [PlanUninstall] read
// and write nothing. Only apply writes.
package setup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/gates"
)

// target is which file of which client is meant.
type target struct {
	client, scope string
	dryRun        bool
}

func (t *target) flags(cmd *cobra.Command) {
	cli.ClientFlag(cmd, &t.client, "whose settings")
	cmd.Flags().StringVar(&t.scope, "scope", ScopeUser, "which settings: user, project or local (of the current directory)")
	cmd.Flags().BoolVar(&t.dryRun, "dry-run", false, "show what would change, and change nothing")
	cli.Must(cmd.RegisterFlagCompletionFunc("scope", cli.Words(ScopeUser, ScopeProject, ScopeLocal)))
}

// gateFlags are what the hook is told of subagents.
type gateFlags struct {
	spec, list, admission string
	given                 func(flag string) bool // on the command line, be it as ""
}

func (g *gateFlags) flags(cmd *cobra.Command) {
	g.given = func(flag string) bool { return cmd.Flags().Changed(flag) }
	cmd.Flags().StringVar(&g.spec, "spec", "", "spec file of the subagent gates")
	cmd.Flags().StringVar(&g.list, "subagents", "", "comma list of the subagent types to allow, in the place of a spec")
	cmd.Flags().StringVar(&g.admission, "admission", "", "off, ask or deny: what happens when a subagent is about to start")
}

// NewInstall returns the command install.
func NewInstall(a *cli.App) *cobra.Command {
	var t target
	var g gateFlags
	cmd := &cobra.Command{
		Use:     "install",
		GroupID: cli.GroupClient,
		Short:   "Wire the hook into a client's settings",
		Long: `Adds the hook to the client's settings and switches the cap on there. For Claude Code that is one entry each for
PreToolUse, SessionStart and SessionEnd, which the client runs without a shell, and an env block; for Oh My Pi it is an
extension. Everything else in a settings file keeps its bytes, and a copy of the file as it was is kept beside it.
Installing again updates the entry, and keeps what the installation says of the state directory, the ledger and the
gates, unless a flag, CAPGATE_DATA_DIR or CAPGATE_LEDGER says otherwise; uninstall gives the file back as it was.

With --spec or --subagents the subagent gates are switched on, too, and with them
CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1, without which interactive sessions start subagents in the background.`,
		Example: `  capgate install --dry-run
  capgate install
  capgate install --scope project --spec "$PWD/agents.spec.json"
  capgate install --client omp`,
		Args: cli.NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error { return install(a, t, g) }),
	}
	t.flags(cmd)
	g.flags(cmd)
	return cmd
}

func install(a *cli.App, t target, g gateFlags) error {
	f, err := gatherFile(a, t)
	if err != nil {
		return err
	}
	_, err = os.Lstat(f.Path + backupSuffix)
	f.HasBackup = !errors.Is(err, fs.ErrNotExist)
	w, err := gatherWiring(a, g)
	if err != nil {
		return err
	}
	if t.scope == ScopeProject {
		if w, err = portable(w, filepath.Dir(f.EnvPath), projectOf(f.Path, t.client), a.StateFlag != "" || a.LedgerFlag != ""); err != nil {
			return err
		}
	}
	p, err := PlanInstall(f, w)
	if err != nil {
		return err
	}
	// An entry elsewhere may name the file, and run the programs.
	settled := p.Env.Old != nil && string(p.Env.New) != string(p.Env.Old) || slices.ContainsFunc(p.Copies, func(c Copy) bool { return c.Over })
	if (p.Action == actionUpdated || settled) && !t.dryRun {
		if err := a.OperatorOnly("the installation is not changed"); err != nil {
			return err
		}
	}
	return carryOut(a, p, t.dryRun)
}

// portable makes an installation a project's. base is the folder of its environment file, placed says that --state or --ledger was
// given. What this shell's environment says of the state is one person's own.
func portable(w Wiring, base, project string, placed bool) (Wiring, error) {
	if placed {
		return w, cli.Usagef("--scope project is for everybody who works on the project, and names no state directory and no ledger: leave --state and --ledger out, or take --scope local")
	}
	w.Portable, w.StateGiven, w.Ledger = true, false, ""
	if w.Spec == "" {
		return w, nil
	}
	if inside, err := filepath.Rel(project, w.Spec); err != nil || !filepath.IsLocal(inside) {
		return w, cli.Usagef("--spec %s is outside the project %s, where others do not have it: move it into the project, or take --scope local", w.Spec, project)
	}
	spec, err := filepath.Rel(base, w.Spec)
	w.Spec = filepath.ToSlash(spec)
	return w, err
}

// gatherFile reads the client's file that is meant, and the environment file that belongs to it.
func gatherFile(a *cli.App, t target) (f File, err error) {
	f.Client = t.client
	if f.Path, err = Path(a.Lookup, t.client, t.scope); err != nil {
		return f, err
	}
	if f.Text, err = read(f.Path); err != nil {
		return f, err
	}
	project := func(name string) (string, bool) {
		if name == "CLAUDE_PROJECT_DIR" {
			return projectOf(f.Path, t.client), true
		}
		return a.Lookup(name)
	}
	path, called := envFilePath(f.Path, t.client, t.scope)
	if f.EnvPath, f.EnvCalled = namedEnvFile(f, project); f.EnvPath == "" {
		f.EnvPath, f.EnvCalled = path, called
	}
	f.EnvElsewhere = f.EnvPath != path
	f.EnvText, err = read(f.EnvPath)
	return f, err
}

// gatherWiring finds what an installation is to say, in the flags, the environment and the spec.
func gatherWiring(a *cli.App, g gateFlags) (w Wiring, err error) {
	for _, flag := range []struct{ name, value string }{{"subagents", g.list}, {"spec", g.spec}} {
		if flag.value == "" && g.given(flag.name) {
			return w, cli.Usagef("--%s is empty", flag.name)
		}
	}
	set := func(variable string) bool { v, _ := a.Lookup(variable); return v != "" }
	w.StateGiven = a.StateFlag != "" || set("CAPGATE_DATA_DIR")
	if w.StateGiven {
		w.State, err = a.StateDir()
	} else {
		w.State, err = a.DefaultStateDir()
	}
	if err != nil {
		return w, err
	}
	if a.LedgerFlag != "" || set("CAPGATE_LEDGER") {
		if w.Ledger, err = a.LedgerPath(); err != nil {
			return w, err
		}
	}
	w.Subagents, w.Foreground = g.list, g.list != ""
	if g.spec != "" {
		if w.Spec, err = filepath.Abs(g.spec); err != nil {
			return w, err
		}
		spec, err := hook.ReadSpec(w.Spec)
		if err != nil {
			return w, err
		}
		w.Foreground = spec.Foreground != gates.ForegroundOff
	}
	w.Admission = g.admission
	switch gates.AdmissionMode(g.admission) {
	case "", gates.AdmissionOff, gates.AdmissionAsk, gates.AdmissionDeny:
	default:
		return w, cli.Usagef("--admission is %q: it takes off, ask or deny", g.admission)
	}
	w.Programs, err = programsToStay(a.Lookup)
	return w, err
}

// carryOut applies a plan, or shows it with --dry-run, and prints what was done. What is taken away from the agent is said first.
func carryOut(a *cli.App, p Plan, dryRun bool) error {
	if !a.AsJSON {
		printTakesAway(a.Printer, p.Result)
	}
	if p.DryRun = dryRun; dryRun {
		p.Diff = string(diff.Diff(p.Env.Path, p.Env.Old, p.Env.Path, p.Env.New)) + string(diff.Diff(p.File, p.Old, p.File, p.New))
		if p.Purge != nil {
			p.Removed, p.Stays = p.Purge.files, p.Purge.stays
		}
	} else {
		changed, err := apply(p, a.Now())
		if err == nil && p.Purge != nil {
			p.Removed, p.Stays, err = p.Purge.purge()
			changed = changed || len(p.Removed) > 0
		}
		if changed {
			a.Changed()
		}
		if err != nil {
			return err
		}
	}
	if a.AsJSON {
		return a.JSON(p.Result)
	}
	printResult(a.Printer, p.Result)
	return nil
}

func printTakesAway(out *cli.Printer, r Result) {
	if len(r.TakesAway) == 0 || r.Action == actionUnchanged {
		return
	}
	out.Printf("takes away from the agent, wherever %s counts:\n", r.File)
	for _, what := range r.TakesAway {
		out.Printf("  - %s\n", what)
	}
}

func printResult(out *cli.Printer, r Result) {
	if r.DryRun {
		_, _ = out.Write([]byte(r.Diff)) // bytes of a file, shown as a diff shows them
		for _, path := range r.Programs {
			out.Printf("would copy %s\n", path)
		}
		for _, path := range r.Removed {
			out.Printf("would remove %s\n", path)
		}
		out.Printf("%s: %s, if it were not for --dry-run\n", r.File, r.Action)
		return
	}
	out.Printf("%s: %s\n", r.File, r.Action)
	for _, v := range r.Changed {
		if v.To == "" {
			out.Printf("taken out: %s, which was %q\n", v.Name, v.From)
			continue
		}
		out.Printf("changed: %s from %q to %q\n", v.Name, v.From, v.To)
	}
	if r.Aside != "" {
		out.Printf("moved: a copy of an earlier installation, to %s\n", r.Aside)
	}
	switch r.Action {
	case actionInstalled, actionUpdated:
		if r.Backup != "" {
			out.Printf("as it was: %s\n", r.Backup)
		}
		for _, path := range r.Programs {
			out.Printf("copied: %s\n", path)
		}
		out.Printf("hook: %s\nsettings: %s, in force at the next call\nstate: %s\nnext: capgate doctor, then start a new session of the client\n", r.Hook, r.Env, r.State)
	case actionRemoved:
		if r.Kept != "" {
			out.Printf("%s stays: more is in it than install writes, or it is not where install puts one\n", r.Kept)
		}
	}
	for _, path := range r.Removed {
		out.Printf("removed: %s\n", path)
	}
	for _, what := range r.Stays {
		out.Printf("stays: %s\n", what)
	}
}
