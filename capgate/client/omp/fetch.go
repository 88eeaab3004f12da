package omp

import (
	"strings"

	"github.com/capgate/capgate/gates"
)

// Fetches reports whether the call makes the client fetch a web page though its tool is one for files: read, grep,
// ast_grep and ast_edit take a URL in the place of a path. A path that merely looks like one counts, too.
func Fetches(c gates.Call) bool {
	switch c.Tool {
	case "read", "grep", "ast_grep", "ast_edit":
	default:
		return false
	}
	var path, paths []byte
	// Errors are of no matter: what is no object, or holds no text there, names no URL.
	_ = gates.Members(c.Input, func(key string, value []byte) {
		switch key {
		case "path":
			path = value
		case "paths":
			paths = value
		}
	})
	for _, value := range [][]byte{path, paths} {
		if len(value) > gates.MaxPaths {
			return true // it may name anything
		}
		for text := range gates.Strings(value) {
			if namesURL(text) {
				return true
			}
		}
	}
	return false
}

// namesURL reports whether a text has a URL in it: several paths may stand in one text, quoted or not.
func namesURL(text string) bool {
	lower := strings.ToLower(text)
	for _, prefix := range []string{"http:/", "https:/", "www."} { // one slash is enough for the client
		for rest, before := lower, byte(' '); ; {
			i := strings.Index(rest, prefix)
			if i < 0 {
				break
			}
			if i > 0 {
				before = rest[i-1]
			}
			if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789/\\._-", rune(before)) {
				return true
			}
			rest, before = rest[i+len(prefix):], prefix[len(prefix)-1]
		}
	}
	return false
}
