package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

// longestTimeout is the longest bound on the hook, in seconds, that nobody would take for a client that hangs.
const longestTimeout = 60

// checkHook looks at the entries themselves.
func checkHook(x Examination) []Finding {
	f := findings{check: "hook"}
	hooks, layers := x.hooks(settings.Judged)
	if len(hooks) == 0 {
		switch {
		case len(x.plugins()) > 0:
		case len(x.Extensions) > 0:
			f.add(Warn, "no settings file of Claude Code has the hook for PreToolUse", "Oh My Pi's calls are judged, Claude Code's are not", "capgate install, if Claude Code is used, too")
		default:
			f.add(Fail, "no settings file has the hook for PreToolUse", "nothing is judged", "capgate install")
		}
		return f.all
	}
	for i, h := range hooks {
		l := layers[i]
		where := fmt.Sprintf("%s in %s", h.Command, l.Path)
		program := h.Program()
		info, err := x.Files.Stat(program)
		switch {
		case h.Type != settings.TypeCommand:
			f.add(Fail, fmt.Sprintf("%s has the type %q", where, h.Type), "the client runs entries of the type command only: this one does not block", l.install())
		case h.Async:
			f.add(Fail, where+" is async", "the client does not wait for it: such an entry does not block", l.install())
		case h.If:
			f.add(Fail, where+" has an if", "calls that do not fit the condition are not judged: for them such an entry does not block", l.install())
		case !filepath.IsAbs(program):
			f.add(Fail, where, "the path is not absolute: the client may find another program, or none", l.install())
		case errors.Is(err, fs.ErrNotExist):
			f.add(Fail, where+": there is no such file", "the program was moved or removed; without onFailure every call goes through", l.install())
		case err != nil:
			f.add(Fail, fmt.Sprintf("%s: %v", where, err), "the client cannot run it", l.install())
		case !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
			f.add(Fail, where+" is not executable", "the client cannot run it; without onFailure every call goes through", "chmod +x "+program)
		case h.OnFailure != settings.Block:
			f.add(Fail, where+" has no onFailure: block", "a hook that is missing, killed or late lets the call through", l.install())
		case h.Timeout == 0 || h.Timeout > longestTimeout:
			f.add(Warn, fmt.Sprintf("%s has a timeout of %d s", where, h.Timeout), "0 is the client's default of ten minutes: a hook that hangs would hold every call that long", l.install())
		case l.Doc.Matched(settings.Judged, settings.IsOurs):
			f.add(Fail, where+" stands under a matcher", "tools that the matcher leaves out are not judged", l.install())
		default:
			f.ok(where)
		}
	}
	for _, event := range settings.Events[1:] {
		if found, _ := x.hooks(event); len(found) == 0 {
			f.add(Warn, "no entry for "+event, map[string]string{
				"SessionStart": "the loop's shell is not told the state directory",
				"SessionEnd":   "sessions are not disarmed when they end, but when their marker expires",
			}[event], layers[0].install())
		}
	}
	return f.all
}
