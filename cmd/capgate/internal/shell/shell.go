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

// Words splits a command line into its words. ok is false where more than words is in it: a shell would do something of
// its own there (expand, redirect, run another command), or a quote is not closed.
func Words(line string) (words []string, ok bool) {
	var word strings.Builder
	in := false // a word, which may be empty: ''
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t' || c == '\n':
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		case c == '\'' || c == '"':
			end := strings.IndexByte(line[i+1:], c)
			quoted := line[i+1 : max(i+1+end, i+1)]
			if end < 0 || c == '"' && strings.ContainsAny(quoted, "$`\\") {
				return nil, false
			}
			word.WriteString(quoted)
			in = true
			i += end + 1
		case c == '\\' && i+1 < len(line) && line[i+1] != '\n':
			i++
			word.WriteByte(line[i])
			in = true
		case strings.IndexByte("$`|&;<>()*?[]#~{}!\\", c) >= 0 && !(in && (c == '#' || c == '~' || c == '!' || c == ']' || c == '}')):
			return nil, false
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words, true
}
