package setup

import (
	"fmt"

	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/capgate/client/omp"
)

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
	return omp.Extension(w.Command, vars, w.EnvFile), nil
}
