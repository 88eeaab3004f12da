package settings

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/capgate/capgate/cmd/capgate/internal/shell"
	"github.com/capgate/capgate/ledger/disk"
)

// Names of the client's settings files.
const (
	FileName        = "settings.json"
	LocalFileName   = "settings.local.json"
	ManagedFileName = "managed-settings.json"
)

// MaxFile bounds a settings file, in bytes.
const MaxFile = 64 << 20

// ReadFile reads a settings file, or another file beside it that is a client's. It must be a regular one: a project's may be a
// link to anything, as one to /dev/zero is.
func ReadFile(path string) ([]byte, error) { return disk.ReadRegular(path, MaxFile) }

// Judged is the event at which the hook judges a call.
const Judged = "PreToolUse"

// Events are the events that the hook is installed for: it judges the first, tells the shell the state directory at the
// second, and at the third notes a session that is cleared, so that the one after it takes its place.
var Events = []string{Judged, "SessionStart", "SessionEnd"}

// What an entry of ours says beside its command.
const (
	// TypeCommand is the one type of entries that the client runs.
	TypeCommand = "command"
	// Block keeps a call from being made where its hook is missing, killed or late.
	Block = "block"
	// Timeout is the client's own bound on the hook, in seconds: well above the hook's deadline, far below the client's
	// default of ten minutes.
	Timeout = 10
)

// What stands around the name of our program in an entry of a project's settings, see [Find].
const (
	findOnPath = `PATH="$PATH:${XDG_DATA_HOME:-$HOME/.local/share}/capgate/bin"; command -v `
	findNone   = ` >/dev/null || exit 0; exec `
)

// Find returns a command line for a project's settings, which name no absolute path. A shell finds the program on PATH or where install
// puts it. Where there is none nothing happens and nothing is said: who works on the project need not have capgate.
func Find(program, line string) string { return findOnPath + program + findNone + line }

// line is the entry's command line, without what finds its program.
func (h Hook) line() (line string, searched bool) {
	rest, searched := strings.CutPrefix(h.Command, findOnPath)
	if searched {
		_, rest, searched = strings.Cut(rest, findNone)
	}
	if !searched {
		return h.Command, false
	}
	return rest, true
}

// Entry returns the entry by which a client runs our hook at an event.
func Entry(event, command string, args []string) Hook {
	h := Hook{Type: TypeCommand, Command: command, Args: args, Timeout: Timeout}
	if event == Judged { // elsewhere a failure to tell or to tidy up is no reason to stop the user
		h.OnFailure = Block
	}
	return h
}

// IsOurs recognises an entry of ours at any path: by the program that runs, and by no other word.
func IsOurs(h Hook) bool {
	if h.Args != nil {
		return isHook(h.Command, h.Args)
	}
	words := h.words()
	return len(words) > 0 && isHook(words[0], words[1:])
}

// words are those of a command line in the shell form. One in which a shell does more than split words has a first word all
// the same, and so has one that is no shell's: C:\capgate-hook.exe.
func (h Hook) words() []string {
	line, _ := h.line()
	first, rest := shell.FirstWord(line)
	plain := append([]string{first}, strings.Fields(rest)...)
	if words, ok := shell.Words(line); ok && !isHook(plain[0], plain[1:]) {
		return words
	}
	return plain
}

func isHook(command string, args []string) bool {
	name := strings.TrimSuffix(filepath.Base(filepath.FromSlash(command)), ".exe")
	return name == "capgate-hook" || name == "capgate" && len(args) > 0 && args[0] == "hook"
}

// Program is the file that the entry runs: in the shell form, without args, the first word of the command.
func (h Hook) Program() string {
	if words := h.words(); h.Args == nil && len(words) > 0 {
		return words[0]
	}
	return h.Command
}

// Arguments are what the entry gives to the hook, without its program. A command line in which a shell does more than
// split words is taken as one without any.
func (h Hook) Arguments() []string {
	args := h.Args
	if h.Args == nil {
		line, _ := h.line()
		words, ok := shell.Words(line)
		if !ok || len(words) == 0 {
			return nil
		}
		args = words[1:]
	}
	if len(args) > 0 && args[0] == "hook" { // of capgate
		args = args[1:]
	}
	return args
}

// Searched reports whether the entry's program is looked for: it is named without a path.
func (h Hook) Searched() bool {
	_, searched := h.line()
	return searched && h.Args == nil
}

// Wired reports whether the settings have an entry of ours for some event.
func (d *Doc) Wired() bool {
	return slices.ContainsFunc(Events, func(event string) bool { return len(d.Hooks(event, IsOurs)) > 0 })
}

// Installed reports whether the settings have an entry of ours for each event, as install writes them; by hand it is
// often the first alone.
func (d *Doc) Installed() bool {
	return !slices.ContainsFunc(Events, func(event string) bool { return len(d.Hooks(event, IsOurs)) == 0 })
}
