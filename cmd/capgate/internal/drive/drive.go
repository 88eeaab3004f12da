// Package drive runs commands in the scope of a run: loop, which runs one once a turn until the cap, and exec, which runs
// one once. They do what a loop's author would have to write around `scope open`, `turn begin`, `turn end` and `scope
// close`, for every way in which a command can end.
package drive

import (
	"strconv"
	"strings"
)

// Variables that a command finds in its environment.
const (
	varRun       = "CAPGATE_RUN"
	varTurn      = "CAPGATE_TURN"  // the number of this turn in its run, from 1; not for exec
	varLimit     = "CAPGATE_LIMIT" // of the run
	varDimension = "CAPGATE_DIMENSION"
	varSession   = "CAPGATE_SESSION"
	varState     = "CAPGATE_DATA_DIR"
	varLedger    = "CAPGATE_LEDGER"
)

// setting is what a command is told.
type setting struct {
	run, dimension, session string
	state, ledger           string // ledger: "" = in the state directory
	turn, limit             int64  // turn: 0 = none is counted
}

// environ adds the setting to the environment of this process. A variable that says nothing here is taken out: it would be
// about another run.
func (s setting) environ(base []string) []string {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	own := [][2]string{
		{varRun, s.run}, {varTurn, number(s.turn)}, {varLimit, number(s.limit)}, {varDimension, s.dimension},
		{varSession, s.session}, {varState, s.state}, {varLedger, s.ledger},
	}
	var env []string
	for _, v := range base {
		name, _, _ := strings.Cut(v, "=")
		taken := false
		for _, o := range own {
			taken = taken || o[0] == name
		}
		if !taken {
			env = append(env, v)
		}
	}
	for _, o := range own {
		if o[1] != "" {
			env = append(env, o[0]+"="+o[1])
		}
	}
	return env
}

// placeholder in a command's arguments stands for the session's id.
const placeholder = "{session}"

// withSession puts the session's id in the place of the placeholder, and reports whether there was one.
func withSession(command []string, session string) (given []string, found bool) {
	for _, arg := range command {
		found = found || strings.Contains(arg, placeholder)
		given = append(given, strings.ReplaceAll(arg, placeholder, session))
	}
	return given, found
}
