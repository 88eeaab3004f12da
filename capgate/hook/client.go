package hook

import (
	"fmt"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/claude"
	"github.com/capgate/capgate/capgate/omp"
	"github.com/capgate/capgate/gates"
)

// Client is how one agent client asks and is answered.
type Client struct {
	Name string // as the decision log has it
	// Decode reads a payload. On an error the call holds what came before it.
	Decode func(payload []byte, lookup capgate.Lookup) (Call, error)
	Encode func(gates.Verdict) Answer
}

// Call is one call as a client announced it.
type Call struct {
	gates.Call
	Event string // the client's name for what it asks about; "" where it has one only
	// Silent says that it is an event on which nothing may be said.
	Silent bool
}

// Answer is what the process says: stdout is empty or one JSON object.
type Answer = claude.Answer

// Claude is Claude Code.
var Claude = Client{
	Name: "claude",
	Decode: func(payload []byte, lookup capgate.Lookup) (Call, error) {
		e, err := claude.Decode(payload)
		e.Call.Attended = claude.Presence(lookup)
		e.Call.NoBackground = !claude.Background(lookup)
		return Call{Call: e.Call, Event: e.Name, Silent: !e.Blocking()}, err
	},
	Encode: claude.Encode,
}

// OMP is Oh My Pi. Its extension takes anything but an answer for a failure, so every verdict is on stdout.
var OMP = Client{
	Name: "omp",
	Decode: func(payload []byte, _ capgate.Lookup) (Call, error) {
		call, _, err := omp.Decode(payload)
		call.CountsAs = omp.CountsAs(call)
		return Call{Call: call}, err
	},
	Encode: func(v gates.Verdict) Answer { return Answer{Stdout: omp.Encode(v)} },
}

// Clients are the ones that --client names.
var Clients = map[string]Client{Claude.Name: Claude, OMP.Name: OMP}

// arguments are a hook's command line.
type arguments struct {
	client Client
	env    map[string]string // for variables that are unset or empty
}

// parseArguments reads a hook's command line: --client NAME, and any number of --env NAME=VALUE, with which a client
// that cannot set the environment of its hooks (a plugin) gives defaults for it.
func parseArguments(args []string) (arguments, error) {
	a := arguments{client: Claude, env: map[string]string{}}
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
