// Command capgate-hook judges one tool call of a coding agent: the client runs it before every call, with the call as
// JSON on stdin. It is what `capgate hook` does, in a binary that starts faster.
package main

import (
	"os"
	"time"

	"github.com/capgate/capgate/capgate/hook"
)

// start is taken while the package is initialised, as near to the start of the process as a Go program gets.
var start = time.Now()

func main() { hook.Main(start, os.Args[1:]) }
