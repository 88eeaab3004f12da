package live

import (
	"os"
	"time"

	"github.com/capgate/capgate/capgate/client"
)

// What `make live` (package suite) and the tests tell each other.
const (
	// InstallTimeout bounds the installation of the clients.
	InstallTimeout = 8 * time.Minute
	// StartsVariable names a file to which each start of a client is added.
	StartsVariable = "CAPGATE_LIVE_STARTS"
	// UnavailableVariable says why there are no clients, where their installation has been tried already.
	UnavailableVariable = "CAPGATE_LIVE_UNAVAILABLE"
)

// Ways in which a client is started.
const (
	headless   = "headless"
	inTerminal = "in a terminal"
	overRPC    = "over RPC"
)

// Ways are the ways in which a client is started.
var Ways = []string{headless, inTerminal, overRPC}

var (
	claudeName = client.Title(client.Claude) + " " + ClaudeVersion
	ompName    = client.Title(client.OMP) + " " + OMPVersion
)

// Names are the clients, with their versions.
func Names() []string { return []string{claudeName, ompName} }

// started notes a client that has been started, for who wants to know.
func started(name, way string) {
	path := os.Getenv(StartsVariable)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString(name + ": " + way + "\n")
	_ = f.Close()
}
