package hook

import (
	"fmt"

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

// clientOf reads the arguments of a hook: nothing, or --client NAME.
func clientOf(args []string) (Client, error) {
	switch {
	case len(args) == 0:
		return Claude, nil
	case len(args) == 2 && args[0] == "--client":
		if c, ok := Clients[args[1]]; ok {
			return c, nil
		}
	}
	return Client{}, fmt.Errorf("unknown arguments %q: the hook takes none, or --client claude, or --client omp", args)
}
