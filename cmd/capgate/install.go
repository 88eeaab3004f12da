package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/atomicfile"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/settings"
	"github.com/capgate/capgate/gates"
)

// Places where a client's settings are.
const (
	scopeUser    = "user"
	scopeProject = "project"
	scopeLocal   = "local"
)

// hookTimeout is the client's own bound on the hook, in seconds: well above the hook's deadline, far below the client's
// default of ten minutes.
const hookTimeout = 10

// hookEvents are the events that the hook is installed for: it judges the first, tells the shell the state directory at
// the second and disarms the session at the third.
var hookEvents = []string{"PreToolUse", "SessionStart", "SessionEnd"}

// backgroundTasks is the client's variable that starts every agent in the foreground.
const backgroundTasks = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"

// managedEnv are the variables that install may write into a settings file, and uninstall takes out.
var managedEnv = []string{
	"CAPGATE_ENABLED", "CAPGATE_DATA_DIR", "CAPGATE_LEDGER", "CAPGATE_SPEC", "CAPGATE_ALLOWED_SUBAGENTS", "CAPGATE_ADMISSION", backgroundTasks,
}

// backupSuffix names the copy of a settings file as it was before the first install.
const backupSuffix = ".capgate-backup"

type installOptions struct {
	client, scope         string
	dryRun                bool
	spec, list, admission string

	given func(flag string) bool // whether a flag of the gates was given
	kept  map[string]string      // variables of the installation that there is
}

func (o *installOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.client, "client", "claude", "whose settings: claude or omp")
	cmd.Flags().StringVar(&o.scope, "scope", scopeUser, "which settings: user, project or local (of the current directory)")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would change, and change nothing")
	cli.Must(cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions([]string{"claude", "omp"}, cli.NoFiles)))
	cli.Must(cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{scopeUser, scopeProject, scopeLocal}, cli.NoFiles)))
}

// gateFlags are for what the hook needs to know of subagents.
func (o *installOptions) gateFlags(cmd *cobra.Command) {
	o.given = func(flag string) bool { return cmd.Flags().Changed(flag) }
	cmd.Flags().StringVar(&o.spec, "spec", "", "spec file of the subagent gates")
	cmd.Flags().StringVar(&o.list, "subagents", "", "comma list of the subagent types to allow, in the place of a spec")
	cmd.Flags().StringVar(&o.admission, "admission", "", "off, ask or deny: what happens when a subagent is about to start")
}

func newInstallCmd(a *cli.App) *cobra.Command {
	var o installOptions
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
		RunE: a.Do(func(*cobra.Command, []string) error { return install(a, o) }),
	}
	o.flags(cmd)
	o.gateFlags(cmd)
	return cmd
}

func newUninstallCmd(a *cli.App) *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:     "uninstall",
		GroupID: cli.GroupClient,
		Short:   "Take the hook out of a client's settings",
		Long: `Removes what install wrote. The settings file is given back as it was, byte for byte, unless something else in it has
changed since, or the hook was in it before install: then only our parts are removed. Without an installation it does
nothing. The state directory, with the ledger in it, stays.`,
		Example: `  capgate uninstall
  capgate uninstall --scope project --dry-run
  capgate uninstall --client omp`,
		Args: cli.NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error { return uninstall(a, o) }),
	}
	o.flags(cmd)
	return cmd
}

// installed is what install and uninstall print with --json.
type installed struct {
	Client string `json:"client"`
	File   string `json:"file"`
	Action string `json:"action"` // "installed", "updated", "unchanged", "removed" or "not installed"
	DryRun bool   `json:"dry_run"`
	Hook   string `json:"hook,omitempty"`
	State  string `json:"state,omitempty"`
	Backup string `json:"backup,omitempty"`
	Diff   string `json:"diff,omitempty"` // with --dry-run
	// Changed says of each variable whose value is another now, or that was taken out, what it was.
	Changed []changedVariable `json:"changed,omitempty"`
	deleted bool
	keep    bool // the backup stays
}

// changedVariable is a variable that had another value before.
type changedVariable struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to,omitempty"` // "" = taken out
}

// isOurs recognises an entry of ours at any path, in the shell form by the command's first word.
func isOurs(h settings.Hook) bool {
	if h.Args == nil {
		if first, rest := firstWord(h.Command); isHook(first, strings.Fields(rest)) {
			return true
		}
	}
	return isHook(h.Command, h.Args)
}

func isHook(command string, args []string) bool {
	name := strings.TrimSuffix(filepath.Base(filepath.FromSlash(command)), ".exe")
	return name == "capgate-hook" || name == "capgate" && len(args) > 0 && args[0] == "hook"
}

// firstWord splits a shell's command line behind its first word, which may be quoted.
func firstWord(line string) (word, rest string) {
	line = strings.TrimSpace(line)
	if quote := line; quote != "" && (quote[0] == '"' || quote[0] == '\'') {
		if word, rest, ok := strings.Cut(line[1:], line[:1]); ok {
			return word, rest
		}
	}
	if i := strings.IndexAny(line, " \t\n"); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// hookCommand returns the hook beside this program: capgate-hook, or this program with the argument hook.
func hookCommand() (command string, args []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("find this program: %w", err)
	}
	name := "capgate-hook"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && (info.Mode()&0o111 != 0 || runtime.GOOS == "windows") {
		return beside, []string{}, nil
	}
	return self, []string{"hook"}, nil
}

// hookEnvironment returns the variables that the hook needs in the client's settings, the state directory second.
func hookEnvironment(a *cli.App, o installOptions) (env [][2]string, err error) {
	for _, flag := range []struct{ name, value string }{{"subagents", o.list}, {"spec", o.spec}} {
		if flag.value == "" && o.given != nil && o.given(flag.name) {
			return nil, cli.Usagef("--%s is empty", flag.name)
		}
	}
	state, err := a.StateDir()
	if err != nil {
		return nil, err
	}
	explicit := func(variable string) bool { v, _ := a.Lookup(variable); return v != "" }
	if kept := o.kept["CAPGATE_DATA_DIR"]; filepath.IsAbs(kept) && a.StateFlag == "" && !explicit("CAPGATE_DATA_DIR") {
		state = kept
	}
	env = [][2]string{{"CAPGATE_ENABLED", "1"}, {"CAPGATE_DATA_DIR", state}}
	kept := o.kept["CAPGATE_LEDGER"]
	switch given := a.LedgerFlag != "" || explicit("CAPGATE_LEDGER"); {
	case given:
		path, err := a.LedgerPath()
		if err != nil {
			return nil, err
		}
		if kept != "" || path != filepath.Join(state, "ledger.db") {
			env = append(env, [2]string{"CAPGATE_LEDGER", path})
		}
	case filepath.IsAbs(kept):
		env = append(env, [2]string{"CAPGATE_LEDGER", kept})
	}
	foreground := o.list != ""
	if o.list != "" {
		env = append(env, [2]string{"CAPGATE_ALLOWED_SUBAGENTS", o.list})
	}
	if o.spec != "" {
		path, err := filepath.Abs(o.spec)
		if err != nil {
			return nil, err
		}
		spec, err := hook.ReadSpec(path)
		if err != nil {
			return nil, err
		}
		foreground = spec.Foreground != gates.ForegroundOff
		env = append(env, [2]string{"CAPGATE_SPEC", path})
	}
	switch gates.AdmissionMode(o.admission) {
	case "":
	case gates.AdmissionOff, gates.AdmissionAsk, gates.AdmissionDeny:
		env = append(env, [2]string{"CAPGATE_ADMISSION", o.admission})
	default:
		return nil, cli.Usagef("--admission is %q: it takes off, ask or deny", o.admission)
	}
	if foreground {
		env = append(env, [2]string{backgroundTasks, "1"})
	}
	return env, nil
}

// settingsFile returns the file of a client and a place.
func settingsFile(a *cli.App, o installOptions) (string, error) {
	base, err := clientDir(a, o.client, o.scope)
	if err != nil {
		return "", err
	}
	switch {
	case o.client == "omp":
		return filepath.Join(base, "extensions", "capgate.ts"), nil
	case o.scope == scopeLocal:
		return filepath.Join(base, "settings.local.json"), nil
	}
	return filepath.Join(base, "settings.json"), nil
}

// clientDir returns the directory in which a client looks for its settings.
func clientDir(a *cli.App, client, place string) (string, error) {
	if client != "claude" && client != "omp" {
		return "", cli.Usagef("--client is %q: it takes claude or omp", client)
	}
	switch {
	case place == scopeUser:
		variable := "HOME"
		if runtime.GOOS == "windows" {
			variable = "USERPROFILE"
		}
		home, _ := a.Lookup(variable)
		if config, _ := a.Lookup("CLAUDE_CONFIG_DIR"); client == "claude" && filepath.IsAbs(config) {
			return config, nil
		}
		if !filepath.IsAbs(home) {
			return "", fmt.Errorf("%s names no directory, so the user's settings cannot be found: set it, or use --scope project", variable)
		}
		if client == "omp" {
			return filepath.Join(home, ".omp", "agent"), nil
		}
		return filepath.Join(home, ".claude"), nil
	case place == scopeProject, place == scopeLocal && client == "claude":
		dir, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("find the current directory: %w", err)
		}
		return filepath.Join(dir, map[string]string{"claude": ".claude", "omp": ".omp"}[client]), nil
	case place == scopeLocal:
		return "", cli.Usagef("--scope local is Claude Code's: with --client omp it takes user or project")
	}
	return "", cli.Usagef("--scope is %q: it takes user, project or local", place)
}

func install(a *cli.App, o installOptions) error {
	file, err := settingsFile(a, o)
	if err != nil {
		return err
	}
	old, err := readSettings(file)
	if err != nil {
		return err
	}
	if o.client == "omp" {
		o.kept = extensionEnv(old)
	} else if o.kept, err = settingsEnv(old); err != nil {
		return fmt.Errorf("%s is left as it is: %w", file, err)
	}
	env, err := hookEnvironment(a, o)
	if err != nil {
		return err
	}
	drop := o.replaced()
	command, args, err := hookCommand()
	if err != nil {
		return err
	}
	done := installed{Client: o.client, File: file, DryRun: o.dryRun, Hook: strings.Join(append([]string{command}, args...), " "), State: env[1][1]}
	var text []byte
	var was bool
	if o.client == "omp" {
		if text, err = extensionText(file, old, command, args, keepVariables(o.kept, env, drop)); err != nil {
			return err
		}
		was = len(old) > 0
	} else {
		entry := settings.Hook{Type: "command", Command: command, Args: args, Timeout: hookTimeout, OnFailure: "block"}
		if text, was, err = withHook(old, entry, env, drop); err != nil {
			return fmt.Errorf("%s is left as it is: %w", file, err)
		}
	}
	done.Changed = changedVariables(o.kept, env, drop)
	switch {
	case old != nil && string(text) == string(old):
		done.Action = "unchanged"
	case was:
		done.Action = "updated"
	default:
		done.Action = "installed"
	}
	if o.client == "claude" && old != nil {
		switch _, err := os.Lstat(file + backupSuffix); {
		case done.Action == "installed",
			done.Action == "updated" && errors.Is(err, fs.ErrNotExist) && !madeByInstall(old):
			done.Backup = file + backupSuffix
		}
	}
	if !o.dryRun {
		if err := cli.MakeStateDir(done.State); err != nil {
			return err
		}
	}
	return apply(a, done, old, text)
}

// replaced names the variables that a flag takes the place of: a spec and a list say the same thing.
func (o installOptions) replaced() []string {
	switch {
	case o.list != "" && o.spec == "":
		return []string{"CAPGATE_SPEC"}
	case o.spec != "" && o.list == "":
		return []string{"CAPGATE_ALLOWED_SUBAGENTS"}
	}
	return nil
}

// settingsEnv returns the variables of ours that a settings file sets.
func settingsEnv(text []byte) (map[string]string, error) {
	d, err := settings.Parse(text)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, name := range managedEnv {
		if value, ok := d.Env(name); ok {
			env[name] = value
		}
	}
	return env, nil
}

// keepVariables puts env over the variables that were there, without those that are dropped.
func keepVariables(kept map[string]string, env [][2]string, drop []string) [][2]string {
	var all [][2]string
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if !slices.Contains(drop, name) {
			all = append(all, [2]string{name, kept[name]})
		}
	}
	return append(all, env...)
}

func changedVariables(kept map[string]string, env [][2]string, drop []string) (changed []changedVariable) {
	for _, v := range env {
		if was, ok := kept[v[0]]; ok && was != v[1] {
			changed = append(changed, changedVariable{v[0], was, v[1]})
		}
	}
	for _, name := range drop {
		if was, ok := kept[name]; ok {
			changed = append(changed, changedVariable{Name: name, From: was})
		}
	}
	return changed
}

// withHook returns the settings with the hook in them, and whether one of ours was there before.
func withHook(old []byte, entry settings.Hook, env [][2]string, drop []string) (text []byte, was bool, err error) {
	d, err := settings.Parse(old)
	if err != nil {
		return nil, false, err
	}
	for _, event := range hookEvents {
		was = was || len(d.Hooks(event, isOurs)) > 0
		entry := entry
		if event != "PreToolUse" {
			entry.OnFailure = "" // a failure to tell or to tidy up is no reason to stop the user
		}
		if err := d.SetHook(event, entry, isOurs); err != nil {
			return nil, false, err
		}
	}
	for _, v := range env {
		if err := d.SetEnv(v[0], v[1]); err != nil {
			return nil, false, err
		}
	}
	for _, name := range drop {
		d.UnsetEnv(name)
	}
	return d.Bytes(), was, nil
}

// everyEvent reports whether settings have an entry of ours for each event, as install writes them; by hand it is often
// the first alone.
func everyEvent(d *settings.Doc) bool {
	return !slices.ContainsFunc(hookEvents, func(event string) bool { return len(d.Hooks(event, isOurs)) == 0 })
}

// madeByInstall reports whether there was no file before install: nothing is in it but what install writes.
func madeByInstall(text []byte) bool {
	d, err := settings.Parse(text)
	if err != nil || !everyEvent(d) {
		return false
	}
	d.RemoveHooks(isOurs)
	for _, name := range managedEnv {
		d.UnsetEnv(name)
	}
	return d.Empty()
}

// extensionMark is in every extension that we wrote, and says that it may be replaced and removed.
const extensionMark = "// capgate's gate for Oh My Pi"

// extensionEnv returns the variables in an extension that we wrote.
func extensionEnv(text []byte) map[string]string {
	env := map[string]string{}
	if m := extensionEnvLine.FindSubmatch(text); m != nil {
		_ = json.Unmarshal(m[1], &env)
	}
	return env
}

var extensionEnvLine = regexp.MustCompile(`(?m)^const ENV: Record<string, string> = (\{.*\});$`)

func extensionText(file string, old []byte, command string, args []string, env [][2]string) ([]byte, error) {
	if len(old) > 0 && !strings.HasPrefix(string(old), extensionMark) {
		return nil, fmt.Errorf("%s is no extension of capgate's: move it away first", file)
	}
	if len(args) > 0 {
		return nil, fmt.Errorf("there is no capgate-hook beside %s, which Oh My Pi's extension needs: put it there", command)
	}
	return ompExtension(command, env), nil
}

func uninstall(a *cli.App, o installOptions) error {
	file, err := settingsFile(a, o)
	if err != nil {
		return err
	}
	done := installed{Client: o.client, File: file, DryRun: o.dryRun, Action: "removed"}
	old, err := readSettings(file)
	if err != nil {
		return err
	}
	var text []byte
	if o.client == "omp" {
		if len(old) > 0 && !strings.HasPrefix(string(old), extensionMark) {
			return fmt.Errorf("%s is no extension of capgate's: it stays", file)
		}
		done.deleted = old != nil
	} else if text, done.deleted, done.keep, err = withoutHook(file, old); err != nil {
		return fmt.Errorf("%s is left as it is: %w", file, err)
	}
	if old == nil || !done.deleted && string(text) == string(old) {
		done.Action, done.deleted, text = "not installed", false, old
	}
	return apply(a, done, old, text)
}

// withoutHook returns the settings without our parts: as they were before the first install, if they mean the same, or
// as they were but for our parts, if the hook had been wired by hand. gone says that the file was made by install, keep that the
// backup is of no use and not ours to throw away.
func withoutHook(file string, old []byte) (text []byte, gone, keep bool, err error) {
	d, err := settings.Parse(old)
	if err != nil {
		return nil, false, false, err
	}
	backup, err := readSettings(file + backupSuffix)
	if err != nil {
		return nil, false, false, err
	}
	before, err := settings.Parse(backup)
	if err != nil {
		before, _ = settings.Parse(nil) // a spoilt copy is no help, and no hindrance
		backup, keep = nil, true
	}
	found, wired := false, false
	for _, event := range hookEvents {
		found = found || len(d.Hooks(event, isOurs)) > 0
		wired = wired || len(before.Hooks(event, isOurs)) > 0
	}
	if !found && backup == nil {
		return old, false, keep, nil
	}
	made := backup == nil && !keep && everyEvent(d)
	ours := writtenVariables(d, made || backup != nil)
	d.RemoveHooks(isOurs)
	if wired { // then its variables are part of the wiring, the client's own only if install did it
		byInstall := everyEvent(before)
		before.RemoveHooks(isOurs)
		for _, name := range ours {
			if name != backgroundTasks || byInstall {
				before.UnsetEnv(name)
			}
		}
	}
	for _, name := range ours {
		if value, ok := before.Env(name); ok {
			if err := d.SetEnv(name, value); err != nil {
				return nil, false, keep, err
			}
			continue
		}
		d.UnsetEnv(name)
	}
	text = d.Bytes()
	switch {
	case backup != nil && sameMeaning(d, before, ours) && wired:
		return before.Bytes(), false, keep, nil
	case backup != nil && sameMeaning(d, before, ours):
		return backup, false, keep, nil
	case made && d.Empty():
		return nil, true, keep, nil
	}
	return text, false, keep, nil
}

// writtenVariables names the variables that uninstall takes out or gives back: ours, and the client's own one only where
// install wrote it, which it does with the gates. origin says that it is known what was before.
func writtenVariables(d *settings.Doc, origin bool) []string {
	_, spec := d.Env("CAPGATE_SPEC")
	_, list := d.Env("CAPGATE_ALLOWED_SUBAGENTS")
	return slices.DeleteFunc(slices.Clone(managedEnv), func(name string) bool {
		return name == backgroundTasks && (!origin || !spec && !list)
	})
}

// sameMeaning reports whether settings say the same but for variables. An env or hooks block that is empty says as much
// as none.
func sameMeaning(a, b *settings.Doc, but []string) bool {
	x, okA := meaning(a.Bytes(), but)
	y, okB := meaning(b.Bytes(), but)
	return okA && okB && reflect.DeepEqual(x, y)
}

func meaning(text []byte, but []string) (any, bool) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	if len(text) == 0 {
		text = []byte("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // two large numbers are not the same because a float holds neither
	var settings any
	if decoder.Decode(&settings) != nil {
		return nil, false
	}
	if root, ok := settings.(map[string]any); ok {
		if env, ok := root["env"].(map[string]any); ok {
			for _, name := range but {
				delete(env, name)
			}
		}
	}
	return withoutEmpty(settings), true
}

// withoutEmpty takes out of settings what removing our parts takes out, too, where nothing is left in it.
func withoutEmpty(settings any) any {
	root, _ := settings.(map[string]any)
	for _, key := range []string{"env", "hooks"} {
		block, ok := root[key].(map[string]any)
		if !ok {
			continue
		}
		for event, entries := range block {
			if list, ok := entries.([]any); ok && key == "hooks" && len(list) == 0 {
				delete(block, event)
			}
		}
		if len(block) == 0 {
			delete(root, key)
		}
	}
	return settings
}

// maxSettingsFile bounds a settings file, in bytes.
const maxSettingsFile = 64 << 20

// readSettings reads a file that is to be replaced: nil where there is none, an error where replacing it would do harm.
func readSettings(file string) ([]byte, error) {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read settings: %w", err)
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(file)
		return nil, fmt.Errorf("%s is a symbolic link to %s: replacing it would cut the link, put the hook into that file by hand (see README)", file, target)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file: move it away first", file)
	case info.Size() > maxSettingsFile:
		return nil, fmt.Errorf("%s has %d bytes, more than a settings file can have", file, info.Size())
	case info.Mode().Perm()&0o200 == 0:
		return nil, fmt.Errorf("%s is read-only: chmod u+w it first, or use another --scope", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	if text == nil {
		text = []byte{}
	}
	return text, nil
}

// apply shows the change or makes it, and prints what was done.
func apply(a *cli.App, done installed, old, text []byte) error {
	if !done.DryRun {
		sweepTemporaries(a, filepath.Dir(done.File))
	}
	changed := done.deleted || string(text) != string(old) || old == nil && text != nil
	switch {
	case done.DryRun:
		done.Diff = string(diff.Diff(done.File, old, done.File, text))
	case done.deleted:
		if err := os.Remove(done.File); err != nil {
			return fmt.Errorf("remove %s: %w", done.File, err)
		}
		a.Changed()
		// A client's own directory may have been there before install, and stays. Oh My Pi's for extensions goes when it
		// is empty, and so do those above it.
		for dir := filepath.Dir(done.File); done.Client == "omp" && os.Remove(dir) == nil && filepath.Base(dir) != ".omp"; {
			dir = filepath.Dir(dir)
		}
	case changed:
		if done.Backup != "" {
			if err := replaceFile(done.Backup, old, done.File); err != nil {
				return err
			}
		}
		if err := replaceFile(done.File, text, done.File); err != nil {
			return err
		}
		a.Changed()
	}
	if done.Action == "removed" && !done.DryRun && !done.keep {
		if err := os.Remove(done.File + backupSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the backup: %w", err)
		}
	}
	if a.AsJSON {
		return a.JSON(done)
	}
	if done.DryRun {
		_, _ = a.Write([]byte(done.Diff)) // bytes of a file, shown as a diff shows them
		a.Printf("%s: %s, if it were not for --dry-run\n", done.File, done.Action)
		return nil
	}
	a.Printf("%s: %s\n", done.File, done.Action)
	for _, v := range done.Changed {
		if v.To == "" {
			a.Printf("taken out: %s, which was %q\n", v.Name, v.From)
			continue
		}
		a.Printf("changed: %s from %q to %q\n", v.Name, v.From, v.To)
	}
	switch done.Action {
	case "installed", "updated":
		if done.Backup != "" {
			a.Printf("as it was: %s\n", done.Backup)
		}
		a.Printf("hook: %s\nstate: %s\nnext: capgate doctor, then start a new session of the client\n", done.Hook, done.State)
	case "removed":
		a.Printf("the state directory with the ledger stays\n")
	}
	return nil
}

// sweepTemporaries removes the temporary files that an installation left when it was killed.
func sweepTemporaries(a *cli.App, dir string) {
	left, _ := os.ReadDir(dir)
	for _, entry := range left {
		path := filepath.Join(dir, entry.Name())
		if ok, _ := filepath.Match(".capgate-*.tmp", entry.Name()); !ok {
			continue
		}
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && a.Now().Sub(info.ModTime()) > time.Hour {
			_ = os.Remove(path)
		}
	}
}

// replaceFile writes a file by way of a temporary one, with the mode of another where that exists, else 0600.
func replaceFile(path string, text []byte, like string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(like); err == nil {
		mode = info.Mode().Perm()
	}
	if err := atomicfile.Replace(path, text, mode); err != nil {
		return fmt.Errorf("write %s: %w: make its directory writable", path, err)
	}
	return nil
}
