package hook

import (
	"fmt"
	"strings"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/capgate/client/copilot"
	"github.com/capgate/capgate/capgate/client/omp"
)

// Clients are the ones that --client names.
var Clients = map[string]client.Client{client.Claude: claude.Client{}, client.OMP: omp.Client{}, client.Copilot: copilot.Client{}}

// arguments are a hook's command line.
type arguments struct {
	client  client.Client
	env     map[string]string // for variables that are unset or empty
	envFile string            // "" = none
}

// parseArguments reads a hook's command line: --client NAME, --env-file PATH with the settings of this entry of a client's
// settings, and any number of --env NAME=VALUE, with which an entry without such a file (a plugin's) gives defaults for
// the environment.
func parseArguments(args []string) (arguments, error) {
	a := arguments{client: claude.Client{}, env: map[string]string{}}
	for len(args) > 0 {
		if len(args) == 1 {
			return a, unknownArguments(args)
		}
		switch flag, value := args[0], args[1]; flag {
		case "--client":
			c, ok := Clients[value]
			if !ok {
				return a, unknownArguments(args[:2])
			}
			a.client = c
		case "--env":
			name, v, ok := strings.Cut(value, "=")
			if !ok || name == "" {
				return a, unknownArguments(args[:2])
			}
			a.env[name] = v
		case "--env-file":
			if value == "" || a.envFile != "" && a.envFile != value {
				return a, unknownArguments(args[:2])
			}
			a.envFile = value
		default:
			return a, unknownArguments(args)
		}
		args = args[2:]
	}
	return a, nil
}

func unknownArguments(args []string) error {
	return fmt.Errorf("unknown arguments %q: the hook takes --client claude, omp or copilot, --env-file PATH, and --env NAME=VALUE", args)
}
