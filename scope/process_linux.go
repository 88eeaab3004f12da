package scope

import (
	"bytes"
	"os"
	"strconv"
)

// processStarted tells a process from others that have had, or will have, its number: when it was started, in clock ticks
// since the system was (field 22 of /proc/PID/stat). It is "" where that cannot be told.
func processStarted(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The second field is the program's name in brackets, and may hold spaces and brackets itself.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const started = 22 - 3 // fields has the third one first
	if len(fields) <= started {
		return ""
	}
	return string(fields[started])
}
