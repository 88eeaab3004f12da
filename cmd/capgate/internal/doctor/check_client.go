package doctor

import (
	"fmt"
	"slices"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// recommended is the client's version from which a hook that fails blocks the call (onFailure).
var recommended = [3]int{2, 1, 295}

// checkClient looks at the client's version.
func checkClient(x Examination) []Finding {
	f := findings{check: "client"}
	c := x.Client
	var version [3]int
	_, noNumbers := fmt.Sscanf(c.Version, "%d.%d.%d", &version[0], &version[1], &version[2])
	text := fmt.Sprintf("%s %d.%d.%d", client.Title(client.Claude), version[0], version[1], version[2])
	switch {
	case c.Program == "":
		f.add(Warn, "claude is not on PATH", "its version cannot be checked", "capgate doctor --bin PATH")
	case c.Err != nil || noNumbers != nil:
		f.add(Warn, fmt.Sprintf("%s --version says %q (%v)", c.Program, cli.FirstLine(c.Said), c.Err), "its version cannot be checked", "")
	case slices.Compare(version[:], recommended[:]) < 0:
		f.add(Fail, text, "before 2.1.295 a hook that is missing, killed or late lets the call through", "update the client (claude update)")
	default:
		f.ok(text)
	}
	return f.all
}
