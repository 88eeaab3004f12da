// Package shell writes and reads the command lines of a POSIX shell, as far as capgate needs it.
package shell

import "strings"

// Quote returns the text as one word.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Word returns text as one word of a command line: as it is where a shell takes it so, else quoted.
func Word(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._/:@%+,-", r)
	}
	if text != "" && strings.TrimLeftFunc(text, plain) == "" {
		return text
	}
	return Quote(text)
}

// FirstWord splits a command line behind its first word, which may be quoted.
func FirstWord(line string) (word, rest string) {
	line = strings.TrimSpace(line)
	if quote := line; quote != "" && (quote[0] == '"' || quote[0] == '\'') {
		if word, rest, ok := strings.Cut(line[1:], line[:1]); ok {
			return word, rest
		}
	}
	if i := strings.IndexAny(line, " \t\n"); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}
