package hook

import (
	"os"
	"time"
)

// Main is the whole of capgate-hook and of `capgate hook`. start is when the process started. It does not return.
func Main(start time.Time) {
	Process{
		Start:  start,
		Lookup: os.LookupEnv,
		Stdin:  os.Stdin,
		Stdout: descriptor(1),
		Stderr: descriptor(2),
		Exit:   os.Exit,
	}.Run()
}
