package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/capgate/capgate/cmd/capgate/internal/hearing"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/settings"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

func (x *examination) checkSettings() {
	for _, l := range x.files {
		switch {
		case l.err != nil:
			x.add("settings", levelFail, fmt.Sprintf("%s: %v", l.path, l.err), "the client ignores a broken file, and the hook with it", "mend the file by hand")
		case l.doc != nil && l.doc.Flag("disableAllHooks"):
			x.add("settings", levelFail, l.path+" has disableAllHooks", "no hook runs at all", "take disableAllHooks out of "+l.path)
		case l.doc != nil && l.place == placeManaged && l.doc.Flag("allowManagedHooksOnly") && len(l.doc.Hooks("PreToolUse", isOurs)) == 0:
			x.add("settings", levelFail, l.path+" has allowManagedHooksOnly", "the client runs no hook but those in that file, and capgate's is not among them", "have the hook put into "+l.path+" (README, Wire the hook by hand)")
		}
	}
}

// checkHook looks at the entries themselves.
func (x *examination) checkHook() {
	hooks, layers := x.hooks("PreToolUse")
	if len(hooks) == 0 {
		switch {
		case len(x.plugins()) > 0:
		case len(x.extensions) > 0:
			x.add("hook", levelWarn, "no settings file of Claude Code has the hook for PreToolUse", "Oh My Pi's calls are judged, Claude Code's are not", "capgate install, if Claude Code is used, too")
		default:
			x.add("hook", levelFail, "no settings file has the hook for PreToolUse", "nothing is judged", "capgate install")
		}
		return
	}
	for i, h := range hooks {
		l := layers[i]
		where := fmt.Sprintf("%s in %s", h.Command, l.path)
		program := hookProgram(h)
		info, err := os.Stat(program)
		switch {
		case h.Type != "command":
			x.add("hook", levelFail, fmt.Sprintf("%s has the type %q", where, h.Type), "the client runs entries of the type command only: this one does not block", installFor(l))
		case h.Async:
			x.add("hook", levelFail, where+" is async", "the client does not wait for it: such an entry does not block", installFor(l))
		case h.If:
			x.add("hook", levelFail, where+" has an if", "calls that do not fit the condition are not judged: for them such an entry does not block", installFor(l))
		case !filepath.IsAbs(program):
			x.add("hook", levelFail, where, "the path is not absolute: the client may find another program, or none", installFor(l))
		case errors.Is(err, fs.ErrNotExist):
			x.add("hook", levelFail, where+": there is no such file", "the program was moved or removed; without onFailure every call goes through", installFor(l))
		case err != nil:
			x.add("hook", levelFail, fmt.Sprintf("%s: %v", where, err), "the client cannot run it", installFor(l))
		case !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
			x.add("hook", levelFail, where+" is not executable", "the client cannot run it; without onFailure every call goes through", "chmod +x "+program)
		case h.OnFailure != "block":
			x.add("hook", levelFail, where+" has no onFailure: block", "a hook that is missing, killed or late lets the call through", installFor(l))
		case h.Timeout == 0 || h.Timeout > 60:
			x.add("hook", levelWarn, fmt.Sprintf("%s has a timeout of %d s", where, h.Timeout), "0 is the client's default of ten minutes: a hook that hangs would hold every call that long", installFor(l))
		case l.doc.Matched("PreToolUse", isOurs):
			x.add("hook", levelFail, where+" stands under a matcher", "tools that the matcher leaves out are not judged", installFor(l))
		default:
			x.add("hook", levelOK, where, "", "")
		}
	}
	for _, event := range hookEvents[1:] {
		if found, _ := x.hooks(event); len(found) == 0 {
			x.add("hook", levelWarn, "no entry for "+event, map[string]string{
				"SessionStart": "the loop's shell is not told the state directory",
				"SessionEnd":   "sessions are not disarmed when they end, but when their marker expires",
			}[event], installFor(layers[0]))
		}
	}
}

// checkCopies looks for a second copy of the hook: both run on every call.
func (x *examination) checkCopies() {
	hooks, layers := x.hooks("PreToolUse")
	plugins := x.plugins()
	if len(hooks)+len(plugins) < 2 {
		return
	}
	var places []string
	for _, l := range layers {
		places = append(places, l.path)
	}
	places = append(places, plugins...)
	mend := "capgate uninstall --scope " + layerPlace(layers)
	if len(hooks) == 0 {
		mend = "remove all but one of the plugins with the client's /plugin command"
	}
	x.add("copies", levelWarn, fmt.Sprintf("%d copies: %s", len(places), strings.Join(places, ", ")),
		"each runs on every call: they count once, but each takes its time, and they may be of different versions", mend)
}

func layerPlace(layers []*settingsLayer) string {
	if len(layers) == 0 {
		return scopeUser
	}
	return layers[len(layers)-1].place
}

// plugins returns the capgate plugins that the settings enable.
func (x *examination) plugins() []string {
	var found []string
	enabled := regexp.MustCompile(`"(capgate@[^"]+)"\s*:\s*true`)
	for _, l := range x.files {
		for _, m := range enabled.FindAllSubmatch(l.text, -1) {
			if name := "plugin " + string(m[1]); !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	return found
}

// canaryRun is the run of the canary's scratch ledger, its one turn spent.
const canaryRun = "capgate-doctor-canary"

// checkCanary runs each installed command line as the client would, in a scratch state directory whose run is spent.
func (x *examination) checkCanary() {
	hooks, layers := x.hooks("PreToolUse")
	for i, h := range hooks {
		if info, err := os.Stat(hookProgram(h)); err != nil || !info.Mode().IsRegular() {
			continue // said already
		}
		if err := x.canary(h); err != nil {
			x.add("canary", levelFail, fmt.Sprintf("%s: %v", h.Command, err), "the installed command does not judge calls as it should", installFor(layers[i]))
			continue
		}
		x.add("canary", levelOK, h.Command+": a call at the cap comes back as exit status 2, one of another session passes, a subagent that is not allowed comes back", "", "")
	}
}

func (x *examination) canary(h settings.Hook) error {
	dir, err := os.MkdirTemp("", "capgate-doctor")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(x.ctx, 20*time.Second)
	defer cancel()
	l := ledger.NewFile(filepath.Join(dir, "ledger.db"), ledger.Options{})
	if _, err := l.OpenRun(ctx, canaryRun, 1, 1); err != nil {
		return err
	}
	if _, err := l.RecordTurn(ctx, canaryRun, "", ""); err != nil {
		return err
	}
	if err := scope.Write(dir, scope.Marker{Session: "canary", Run: canaryRun, StartedAt: time.Now()}); err != nil {
		return err
	}
	type call struct {
		session, tool, env string
		want               int
	}
	for _, c := range []call{
		{"canary", `"WebSearch","tool_input":{}`, "CAPGATE_ENABLED=1", 2},
		{"another", `"WebSearch","tool_input":{}`, "CAPGATE_ENABLED=1", 0},
		{"another", `"Agent","tool_input":{"subagent_type":"capgate-doctor-y","description":"d","prompt":"p"}`, "CAPGATE_ALLOWED_SUBAGENTS=capgate-doctor-x", 2},
	} {
		cmd := hookRun(ctx, h)
		cmd.Env = []string{c.env, "CAPGATE_DATA_DIR=" + dir, "HOME=" + dir}
		cmd.Stdin = strings.NewReader(`{"hook_event_name":"PreToolUse","session_id":"` + c.session + `","tool_name":` + c.tool + `}`)
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &stderr, time.Second
		err := cmd.Run()
		if cmd.ProcessState == nil {
			return err
		}
		switch got := cmd.ProcessState.ExitCode(); {
		case got != c.want:
			return fmt.Errorf("a call that should end with exit status %d ended with %d: %.200s", c.want, got, cli.FirstLine(stderr.String()))
		case out.Len() > 0:
			return fmt.Errorf("it wrote to standard output: %.200s", cli.FirstLine(out.String()))
		case c.want == 2 && !strings.Contains(stderr.String(), canaryRun) && !strings.Contains(stderr.String(), "capgate-doctor-y"):
			return fmt.Errorf("its reason is not about the canary: %.200s", cli.FirstLine(stderr.String()))
		}
	}
	return nil
}

// hookProgram is the file that an entry runs: in the shell form, without args, the first word of the command.
func hookProgram(h settings.Hook) string {
	if h.Args == nil {
		word, _ := firstWord(h.Command)
		return word
	}
	return h.Command
}

// hookRun runs an entry as the client does: by itself, or in the shell form by a shell.
func hookRun(ctx context.Context, h settings.Hook) *exec.Cmd {
	if h.Args == nil && h.Command != hookProgram(h) && runtime.GOOS != "windows" {
		return exec.CommandContext(ctx, "/bin/sh", "-c", h.Command)
	}
	return exec.CommandContext(ctx, h.Command, h.Args...)
}

// recommended is the client's version from which a hook that fails blocks the call (onFailure).
var recommended = [3]int{2, 1, 295}

func (x *examination) checkClient() {
	bin := x.bin
	if bin == "" {
		found, err := exec.LookPath("claude")
		if err != nil {
			x.add("client", levelWarn, "claude is not on PATH", "its version cannot be checked", "capgate doctor --bin PATH")
			return
		}
		bin = found
	}
	ctx, cancel := context.WithTimeout(x.ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, bin, "--version").Output()
	m := regexp.MustCompile(`(\d+)\.(\d+)\.(\d+)`).FindStringSubmatch(string(out))
	if err != nil || m == nil {
		x.add("client", levelWarn, fmt.Sprintf("%s --version says %q (%v)", bin, cli.FirstLine(string(out)), err), "its version cannot be checked", "")
		return
	}
	var version [3]int
	for i := range version {
		version[i], _ = strconv.Atoi(m[i+1])
	}
	text := fmt.Sprintf("Claude Code %s", m[0])
	if slices.Compare(version[:], recommended[:]) < 0 {
		x.add("client", levelFail, text, "before 2.1.295 a hook that is missing, killed or late lets the call through", "update the client (claude update)")
		return
	}
	x.add("client", levelOK, text, "", "")
}

func (x *examination) checkSwitches() {
	for _, v := range capgate.Variables(x.effective()) {
		value, from := v.Value, "this shell"
		if value == "" {
			continue
		}
		_, layer := x.layerOf(v.From)
		if layer != nil {
			from = layer.path
		}
		found := fmt.Sprintf("%s=%s, from %s", v.From, value, from)
		kill := strings.Contains(v.Name, "DISABLE")
		isSwitch := kill || v.Name == "CAPGATE_ENABLED"
		switch {
		case isSwitch && capgate.Switch(value).Suspect():
			x.add("switch", levelFail, found, "a switch is on when its value is exactly 1: this one is off", "write 1, or take it out")
		case kill && value == "1":
			x.add("switch", levelWarn, found, v.Meaning+", by a kill switch", "take it out of "+from)
		}
		if layer != nil && (isSwitch && (layer.place == scopeProject || layer.place == scopeLocal)) {
			x.add("switch", levelWarn, found, "an agent that may write in this project can write this file", "keep switches in the user's settings: capgate install --scope user, capgate uninstall --scope "+layer.place)
		}
	}
	switch {
	case !x.config.Enabled.On() && !x.config.CapOff():
		x.add("switch", levelFail, "CAPGATE_ENABLED is not 1 for the hook", "the cap is off", "capgate install")
	case x.config.CapOn():
		x.add("switch", levelOK, "the cap is on", "", "")
	}
	for _, name := range x.config.CapTools.Names() {
		for _, tool := range capgate.DefaultCapTools {
			if name != tool && strings.EqualFold(name, tool) {
				x.add("switch", levelWarn, fmt.Sprintf("CAPGATE_CAP_TOOLS names %s", name), "the tool is "+tool+", and names are compared exactly: it is not capped by this", "write "+tool)
			}
		}
	}
	if x.config.CapTools != "" && len(x.config.CapTools.Names()) == 0 {
		x.add("switch", levelWarn, fmt.Sprintf("CAPGATE_CAP_TOOLS=%s names no tool", x.config.CapTools), "the default list is used", "name tools, or take it out")
	}
	switch gates.AdmissionMode(x.config.Admission) {
	case "", gates.AdmissionOff, gates.AdmissionAsk, gates.AdmissionDeny:
	default:
		x.add("switch", levelWarn, "CAPGATE_ADMISSION="+x.config.Admission, "it is no mode, and is taken as ask", "write off, ask or deny")
	}
}

func (x *examination) checkTimes() {
	for _, v := range []struct {
		name     string
		value    capgate.Millis
		min, max time.Duration
		use      time.Duration
	}{
		{"CAPGATE_SCOPE_TTL_MS", x.config.ScopeTTL, time.Minute, 7 * 24 * time.Hour, x.config.ScopeTTL.Duration(capgate.DefaultScopeTTL)},
		{"CAPGATE_DEADLINE_MS", x.config.Deadline, 100 * time.Millisecond, hookTimeout * time.Second, x.config.Deadline.Duration(capgate.DefaultDeadline)},
	} {
		switch {
		case v.value == "":
		case v.value.Duration(-1) == -1:
			x.add("times", levelFail, fmt.Sprintf("%s=%s is not a positive number of milliseconds", v.name, v.value), fmt.Sprintf("the default is used, %v", v.use), "write digits, or take it out")
		case v.use < v.min || v.use > v.max:
			x.add("times", levelWarn, fmt.Sprintf("%s is %v", v.name, v.use), fmt.Sprintf("usual is %v to %v", v.min, v.max), "set it within that, or take it out")
		}
	}
	if now := x.Now(); now.Year() < 2026 {
		x.add("times", levelFail, "the clock says "+cli.Stamp(now), "markers and admissions go by it", "set the clock")
	}
}

func (x *examination) checkState() {
	state, ok := x.config.StateDir()
	if !ok {
		x.add("state", levelFail, fmt.Sprintf("the hook's state directory is %q", x.config.DataDir), "it must be an absolute path: calls in scope are denied until it is", "capgate install")
		return
	}
	info, err := os.Stat(state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.add("state", levelWarn, state+" is not there", "no session has ever been armed", "capgate scope open makes it")
		return
	case err != nil:
		x.add("state", levelFail, fmt.Sprintf("%s: %v", state, err), "calls are denied, because they cannot be counted", "chmod u+rwx "+state)
		return
	case !info.IsDir():
		x.add("state", levelFail, state+" is not a directory", "calls are denied, because they cannot be counted", "move it away")
		return
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		x.add("state", levelWarn, fmt.Sprintf("%s has mode %04o", state, info.Mode().Perm()), "other users may read or change the count", "chmod 700 "+state)
	default:
		x.add("state", levelOK, state, "", "")
	}
	if _, err := admission.List(state); err != nil {
		x.add("state", levelWarn, err.Error(), "nothing that was admitted counts, and nothing can be admitted", "move the file away")
	}
	log := filepath.Join(state, decisionlog.FileName)
	if info, err := os.Lstat(log); err == nil && !info.Mode().IsRegular() {
		x.add("state", levelWarn, log+" is not a regular file", "decisions are not logged", "move it away")
	}
	if mine, err := x.StateDir(); err == nil && mine != state {
		x.add("state", levelWarn, fmt.Sprintf("this shell's commands use %s, the hook %s", mine, state), "a session that is armed here is not armed for the hook", "export CAPGATE_DATA_DIR="+state)
	}
}

func (x *examination) checkLedger() {
	path, err := x.config.LedgerPath()
	if err != nil {
		x.add("ledger", levelFail, err.Error(), "calls in scope are denied, because they cannot be counted", "set CAPGATE_LEDGER to an absolute path, or take it out")
		return
	}
	if _, ok := x.config.StateDir(); !ok && x.config.Ledger == "" {
		return // said already
	}
	ctx, cancel := context.WithTimeout(x.ctx, max(x.Timeout(), time.Second))
	defer cancel()
	report, err := ledger.NewFile(path, ledger.Options{}).Verify(ctx)
	switch {
	case errors.Is(err, ledger.ErrMissing):
		x.add("ledger", levelWarn, path+" is not there", "no run has ever been opened", "capgate scope open makes it")
	case err != nil:
		x.add("ledger", levelFail, err.Error(), "calls in scope are denied, because they cannot be counted", "capgate ledger verify")
	case !report.OK():
		x.add("ledger", levelFail, fmt.Sprintf("%s: %s, the first: %s", path, cli.Plural(len(report.Problems), "problem"), report.Problems[0]), "it was damaged or changed", "capgate ledger verify")
	default:
		x.add("ledger", levelOK, fmt.Sprintf("%s: %s, %s", path, cli.Plural(report.Entries, "entry"), cli.Plural(report.Runs, "run")), "", "")
	}
}

func (x *examination) checkMarkers() {
	state, ok := x.config.StateDir()
	if !ok {
		return
	}
	markers, err := scope.List(state)
	if err != nil {
		if !errors.Is(err, scope.ErrNone) {
			x.add("markers", levelFail, err.Error(), "calls are denied, because they cannot be counted", "mend the state directory")
		}
		return
	}
	path, err := x.config.LedgerPath()
	if err != nil {
		return
	}
	l := ledger.NewFile(path, ledger.Options{})
	ctx, cancel := context.WithTimeout(x.ctx, max(x.Timeout(), time.Second))
	defer cancel()
	ttl := x.config.ScopeTTL.Duration(capgate.DefaultScopeTTL)
	sound := 0
	for _, m := range markers {
		closeIt := "capgate scope close --session " + m.Session
		u, uerr := l.Usage(ctx, m.Run)
		word := hearing.NotYet
		if uerr == nil {
			word = heard(ctx, state, l, m.Marker, u)
		}
		switch {
		case m.Expired(x.Now(), ttl):
			x.add("markers", levelWarn, fmt.Sprintf("session %s has an expired marker", m.Session), "it is removed at the session's next search", "capgate scope sweep")
		case m.Err != nil:
			x.add("markers", levelFail, m.Err.Error(), "every capped call of session "+m.Session+" is denied", closeIt)
		case errors.Is(uerr, ledger.ErrRunUnknown):
			x.add("markers", levelFail, fmt.Sprintf("session %s is armed for run %s, which is not in the ledger", m.Session, m.Run), "every capped call of it is denied", closeIt)
		case m.Age(x.Now()) < -time.Minute:
			x.add("markers", levelWarn, fmt.Sprintf("session %s was armed in the future", m.Session), "the clock was ahead then, or is behind now: it expires late", closeIt)
		case word == hearing.Silent:
			x.add("markers", levelFail, fmt.Sprintf("session %s has recorded turns, but its hook was not heard since it was armed (hook: silent)", m.Session), "only the loop's own check holds", "start a new session of the client after capgate install, and look at the lines about the hook above")
		case word == hearing.Doubtful:
			x.add("markers", levelWarn, fmt.Sprintf("session %s: no search of it has been judged since it was armed (hook: silent)", m.Session), "after one turn the loop may not have searched yet; if it has, only its own check holds", "look again after the next turn: capgate status")
		default:
			sound++
		}
	}
	if sound > 0 {
		x.add("markers", levelOK, cli.Plural(sound, "session")+" armed", "", "")
	}
}

// heard says what it means that the hook of an armed session was heard or not.
func heard(ctx context.Context, state string, l *ledger.File, m scope.Marker, u ledger.Usage) hearing.Word {
	f := hearing.Facts{Heard: !m.Silent(state), Used: u.Used, NewestAt: u.LastAt, ArmedAt: m.ModTime}
	if hearing.Silence(hearing.Status, f) == hearing.Silent { // else the entries need not be read
		f.Since = turnsSince(ctx, l, m)
	}
	return hearing.Silence(hearing.Doctor, f)
}

// turnsSince counts the turns of a marker's run since it was written.
func turnsSince(ctx context.Context, l *ledger.File, m scope.Marker) (turns int) {
	var from uint64
	if m.Anchor != nil {
		from = m.Anchor.Seq + 1
	}
	_ = l.Entries(ctx, from, func(r ledger.Receipt, _ []byte) error {
		if r.Kind == ledger.KindTurn && r.Run == m.Run && r.At.After(m.ModTime) {
			turns++
		}
		return nil
	}) // what cannot be read is said of the ledger
	return turns
}

func (x *examination) checkSpec() {
	c := x.config
	if !c.Declares() || !c.GatesActive() {
		return
	}
	mode := gates.ForegroundRewrite
	if c.Spec != "" {
		spec, err := hook.ReadSpec(c.Spec)
		if err != nil {
			x.add("spec", levelFail, err.Error(), "every subagent, and the shell on the main thread, is denied", "capgate spec check "+c.Spec)
			return
		}
		mode = spec.Foreground
		x.add("spec", levelOK, fmt.Sprintf("%s declares %s", c.Spec, cli.Plural(len(spec.Subagents), "subagent")), "", "")
	} else {
		x.add("spec", levelOK, fmt.Sprintf("%s allowed by CAPGATE_ALLOWED_SUBAGENTS", cli.Plural(len(c.AllowedSubagents.Names()), "subagent")), "", "")
	}
	if hooks, _ := x.hooks("PreToolUse"); len(hooks) == 0 && len(x.extensions) > 0 {
		return // the variable is Claude Code's
	}
	if value, _ := x.effective()(backgroundTasks); mode != gates.ForegroundOff && value != "1" {
		x.add("foreground", levelFail, backgroundTasks+" is not 1 for the client", "interactive sessions ignore the foreground gate and start subagents in the background", "capgate install --spec FILE or --subagents LIST writes it; or set \"foreground\": \"off\"")
	}
}

func (x *examination) checkOMP() {
	for _, e := range x.extensions {
		if info, err := os.Stat(e.command); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			x.add("omp", levelFail, fmt.Sprintf("%s runs %q, which cannot be run", e.path, e.command), "every tool call of Oh My Pi is blocked", "capgate install --client omp --scope "+e.place)
			continue
		}
		x.add("omp", levelOK, e.path+" runs "+e.command, "", "")
	}
}
