package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/cmd/capgate/internal/installed"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

// longestTimeout is the longest bound on the hook, in seconds, that nobody would take for a client that hangs.
const longestTimeout = 60

// checkHook looks at the entries themselves.
func checkHook(x Examination) []Finding {
	f := findings{check: "hook"}
	groups, layers := x.groups(settings.Judged)
	if len(groups) == 0 {
		switch {
		case len(x.plugins()) > 0:
		case len(x.Extensions) > 0:
			f.add(Warn, "no settings file of Claude Code has the hook for PreToolUse", "Oh My Pi's calls are judged, Claude Code's are not", "capgate install, if Claude Code is used, too")
		default:
			f.add(Fail, "no settings file has the hook for PreToolUse", "nothing is judged", "capgate install")
		}
		return f.all
	}
	for i, g := range groups {
		h, l := g.Hook, layers[i]
		where := fmt.Sprintf("%s in %s", h.Command, l.Path)
		if g.Matcher != "" {
			where = fmt.Sprintf("%s for %s in %s", h.Command, g.Matcher, l.Path)
		}
		program := installed.Program(h, x.around)
		info, err := x.Files.Stat(program)
		switch {
		case h.Type != settings.TypeCommand:
			f.add(Fail, fmt.Sprintf("%s has the type %q", where, h.Type), "the client runs entries of the type command only: this one does not block", l.install())
		case h.Async:
			f.add(Fail, where+" is async", "the client does not wait for it: such an entry does not block", l.install())
		case h.If:
			f.add(Fail, where+" has an if", "calls that do not fit the condition are not judged: for them such an entry does not block", l.install())
		case h.Searched() && !filepath.IsAbs(program):
			f.add(Fail, where+": "+program+" is neither on PATH nor where install puts it", "nothing is judged in this project", "capgate install")
		case !filepath.IsAbs(program):
			f.add(Fail, where, "the path is not absolute: the client may find another program, or none", l.install())
		case errors.Is(err, fs.ErrNotExist):
			f.add(Fail, where+": there is no such file", "the program was moved or removed; without onFailure every call goes through", l.install())
		case err != nil:
			f.add(Fail, fmt.Sprintf("%s: %v", where, err), "the client cannot run it", l.install())
		case !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
			f.add(Fail, where+" is not executable", "the client cannot run it; without onFailure every call goes through", "chmod +x "+program)
		case h.Searched():
			f.ok(where + " runs " + program)
			if !x.held(l) {
				f.add(Warn, l.Path+" blocks nothing where its hook cannot run", "a project's settings are for people without capgate, too: what must hold is installed per user", "capgate install")
			}
		case h.OnFailure != settings.Block && !isRest(g, l):
			f.add(Fail, where+" has no onFailure: block", "a hook that is missing, killed or late lets the call through", l.install())
		case h.Timeout == 0 || h.Timeout > longestTimeout:
			f.add(Warn, fmt.Sprintf("%s has a timeout of %d s", where, h.Timeout), "0 is the client's default of ten minutes: a hook that hangs would hold every call that long", l.install())
		case !coversAll(l):
			f.add(Fail, where+" stands under a matcher", "tools that the matcher leaves out are not judged", l.install())
		case x.unblocked(g) != "":
			f.add(Fail, where+" does not block "+x.unblocked(g), "it is judged, and goes through where the hook is missing, killed or late", l.install())
		default:
			f.ok(where)
		}
	}
	for _, event := range settings.Events[1:] {
		if found, _ := x.hooks(event); len(found) == 0 {
			f.add(Warn, "no entry for "+event, map[string]string{
				"SessionStart": "the loop's shell is not told the state directory, and after /clear the new session is held only from its first call on",
				"SessionEnd":   "after /clear the new session is not held",
			}[event], layers[0].install())
		}
	}
	return f.all
}

// isRest reports whether a group is for the tools that another one of ours in the file leaves over: for those alone the hook's
// failure is no reason to block.
func isRest(g settings.Group, l *Layer) bool {
	return slices.ContainsFunc(l.Doc.Groups(settings.Judged, settings.IsOurs), func(other settings.Group) bool {
		tools, ok := claude.Matched(other.Matcher)
		_, rest := claude.Matcher(tools)
		return ok && g.Matcher == rest && other.Hook.OnFailure == settings.Block
	})
}

// coversAll reports whether the groups of ours in a file are for every tool, one alone or two together.
func coversAll(l *Layer) bool {
	return slices.ContainsFunc(l.Doc.Groups(settings.Judged, settings.IsOurs), func(g settings.Group) bool {
		return g.Matcher == "" || isRest(g, l)
	})
}

// unblocked names the tools that are judged and that a group, which is for some tools with its failure blocking those, leaves
// out; "" where there are none.
func (x Examination) unblocked(g settings.Group) string {
	covered, ok := claude.Matched(g.Matcher)
	tools, all := x.Config.JudgedTools()
	switch {
	case !ok:
		return ""
	case all:
		return "the calls of subagents"
	}
	tools = slices.DeleteFunc(tools, func(tool string) bool { return slices.Contains(covered, tool) })
	return strings.Join(tools, ", ")
}

// held reports whether another file than a project's has the hook.
func (x Examination) held(project *Layer) bool {
	_, layers := x.groups(settings.Judged)
	return slices.ContainsFunc(layers, func(l *Layer) bool { return l != project })
}
