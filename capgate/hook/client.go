package hook

import (
	"fmt"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/capgate/client/omp"
)

// Clients are the ones that --client names.
var Clients = map[string]client.Client{client.Claude: claude.Client{}, client.OMP: omp.Client{}}

// arguments are a hook's command line.
type arguments struct {
	client client.Client
	env    map[string]string // for variables that are unset or empty
}

// parseArguments reads a hook's command line: --client NAME, and any number of --env NAME=VALUE, with which a client
// that cannot set the environment of its hooks (a plugin) gives defaults for it.
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
		default:
			return a, unknownArguments(args)
		}
		args = args[2:]
	}
	return a, nil
}

func unknownArguments(args []string) error {
	return fmt.Errorf("unknown arguments %q: the hook takes --client claude or omp, and --env NAME=VALUE", args)
}

// lookup reads the environment, with the arguments' defaults.
func (a arguments) lookup(env capgate.Lookup) capgate.Lookup {
	if len(a.env) == 0 {
		return env
	}
	return func(name string) (string, bool) {
		if v, ok := env(name); ok && v != "" {
			return v, true
		}
		v, ok := a.env[name]
		return v, ok
	}
}
