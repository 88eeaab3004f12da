// Package lazy makes what few commands need when it is first asked for: the loop waits for whatever the start of every `capgate turn`
// makes.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp is the expression, compiled at the first call. One that does not compile panics there.
func Regexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
