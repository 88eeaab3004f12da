package setup

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/capgate/client/omp"
)

// extensionMark is in every extension that we wrote, and says that it may be replaced and removed.
const extensionMark = "// capgate's gate for Oh My Pi"

func isExtension(text []byte) bool { return strings.HasPrefix(string(text), extensionMark) }

// extensionText returns the extension with the hook and the variables filled in.
func extensionText(w Wiring, env []Variable) ([]byte, error) {
	if len(w.Args) > 0 {
		return nil, fmt.Errorf("there is no capgate-hook beside %s, which Oh My Pi's extension needs: put it there", w.Command)
	}
	vars := map[string]string{}
	for _, v := range env {
		if v.Name != claude.NoBackground { // is Claude Code's
			vars[v.Name] = v.Value
		}
	}
	return omp.Extension(w.Command, vars), nil
}

var (
	extensionEnvLine  = regexp.MustCompile(`(?m)^const ENV: Record<string, string> = (\{.*\});$`)
	extensionHookLine = regexp.MustCompile(`const HOOK: string = ("[^\n]*");`)
)

// ExtensionVariables returns the variables in an extension that we wrote.
func ExtensionVariables(text []byte) map[string]string {
	env := map[string]string{}
	if m := extensionEnvLine.FindSubmatch(text); m != nil {
		_ = json.Unmarshal(m[1], &env)
	}
	return env
}

// ExtensionHook returns the hook that an extension runs, and whether we wrote the extension.
func ExtensionHook(text []byte) (command string, ours bool) {
	if m := extensionHookLine.FindSubmatch(text); m != nil {
		command, _ = strconv.Unquote(string(m[1]))
	}
	return command, isExtension(text)
}
