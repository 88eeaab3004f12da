//go:build !unix

package drive

import "os"

// forwarded are the signals that end a command, or ask it to end.
var forwarded = []os.Signal{os.Interrupt}

// fromTerminal reports that the console sends an interrupt to every process that is attached to it.
func fromTerminal(os.Signal) bool { return true }

// signalOf knows no process that a signal has ended.
func signalOf(*os.ProcessState) (int, bool) { return 0, false }

// numberOf is SIGINT's number, by convention.
func numberOf(os.Signal) int { return 2 }
