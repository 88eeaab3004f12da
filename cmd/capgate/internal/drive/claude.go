package drive

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Flags of Claude Code that name a session. A command that has one is left alone.
var sessionFlags = []string{"--session-id", "--resume", "-r", "--continue", "-c", "--fork-session", "--from-pr", "--teleport"}

// ownsSession reports whether the command is a bare `claude`, whose session we choose.
func ownsSession(command []string) bool {
	name := strings.TrimSuffix(filepath.Base(command[0]), ".exe")
	if name != "claude" {
		return false
	}
	return !slices.ContainsFunc(command[1:], func(arg string) bool {
		flag, _, _ := strings.Cut(arg, "=")
		return slices.Contains(sessionFlags, flag)
	})
}

// resume and begin give a bare `claude` its session: one of the two works whatever became of the session before, also
// after a kill at any moment (measured on Claude Code 2.1.332). The flags come first, because a prompt may come last.
func resume(command []string, session string) []string {
	return slices.Insert(slices.Clone(command), 1, "--resume", session)
}

func begin(command []string, session string) []string {
	return slices.Insert(slices.Clone(command), 1, "--session-id", session)
}

// unknownSession begins what Claude Code says, with exit status 1 and before it has asked its model anything, where there is
// no session to resume.
const unknownSession = "No conversation found with session ID"

// sessionOf is the session of a loop: the same for the same run and dimension of the same ledger, so that a loop that was
// interrupted goes on in its conversation, and a UUID, which is what clients take.
func sessionOf(ledgerID, run, dimension string) string {
	sum := sha256.Sum256([]byte("capgate loop\x00" + ledgerID + "\x00" + run + "\x00" + dimension))
	return uuid(sum[:16], 8) // version 8: of our own making
}

// newSession is a session that nobody had before.
func newSession() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return uuid(b[:], 4)
}

// uuid formats 16 bytes as RFC 9562 does, with the version and the variant in their bits.
func uuid(b []byte, version byte) string {
	b = slices.Clone(b)
	b[6], b[8] = b[6]&0x0f|version<<4, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
