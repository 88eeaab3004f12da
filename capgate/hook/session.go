package hook

import (
	"bytes"
	"os"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger/disk"
	"github.com/capgate/capgate/scope"
)

// watchesSessions reports whether the client's session events have something to do. What it is does not depend on what is
// switched on: a loop counts its turns, and a session follows another, whatever the hook judges meanwhile.
func (r *run) watchesSessions() bool {
	_, ok := r.facts.Config.StateDir()
	return ok
}

// sessionEvent does what the client's session events are wired for, best effort: nothing can be said about them.
//
// At SessionStart the loop's shell is told the state directory, because the client gives it neither a plugin's data
// directory nor, always, the environment of the hooks. A session that ends is left armed: it may be resumed, or be open in
// another process. Where a person clears the conversation, the new session takes the old one's place; its start and the
// old one's end are told by the same process of the client.
func (r *run) sessionEvent(call client.Call, f capgate.Facts) {
	state, ok := f.Config.StateDir()
	if !ok {
		return
	}
	switch call.Event {
	case claude.SessionStart:
		if call.Cause == claude.Cleared {
			_ = scope.Follow(state, call.Session, call.PID, f.Now)
		}
		if isArmed(state, call.Session) {
			_ = scope.Touch(state, call.Session, f.Now, false) // a turn without a call of a tool is heard, too
		}
		if path, _ := r.Lookup("CLAUDE_ENV_FILE"); path != "" {
			_ = exportTo(path, "CAPGATE_DATA_DIR", state)
			if f.Config.Enabled.On() { // or capgate status would say that the cap is off, where only the hook was told
				_ = exportTo(path, "CAPGATE_ENABLED", "1")
			}
		}
	case claude.SessionEnd:
		if call.Cause == claude.Cleared {
			_ = scope.Leave(state, call.Session, call.PID, f.Now)
		}
	}
}

// exportTo appends an export to the file that the client sources before each command of its shell, once.
func exportTo(path, name, value string) error {
	line := []byte("export " + name + "=" + shellQuote(value) + "\n")
	if have, err := disk.ReadRegular(path, gates.MaxSettings); err == nil {
		if bytes.Contains(have, line) {
			return nil
		}
		if len(have) > 0 && !bytes.HasSuffix(have, []byte("\n")) {
			line = append([]byte("\n"), line...) // somebody's last line is not ended
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|disk.Nonblock, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// shellQuote quotes for a POSIX shell.
func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
