package hook

import (
	"fmt"
	"os"
	"time"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/ledger/disk"
)

// Main is the whole of capgate-hook and of `capgate hook`. start is when the process started, args are the arguments
// after the command. It does not return.
func Main(start time.Time, args []string) {
	stderr := disk.Descriptor(2)
	a, err := parseArguments(args)
	if err != nil {
		// A hook that is wired wrongly must not let calls through.
		_, _ = fmt.Fprintf(stderr, "capgate: %v\n", err)
		os.Exit(client.ExitBlock)
	}
	Process{
		Start:   start,
		Client:  a.client,
		Lookup:  os.LookupEnv,
		Args:    a.env,
		EnvFile: a.envFile,
		Stdin:   os.Stdin,
		Stdout:  disk.Descriptor(1),
		Stderr:  stderr,
		Room:    disk.Descriptor(1).Room,
		Exit:    os.Exit,
	}.Run()
}
