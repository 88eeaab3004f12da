package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatRanAndWhatWasSkippedIsSaid(t *testing.T) {
	var w strings.Builder
	got, err := follow(strings.NewReader(`{"Action":"start"}
{"Action":"run","Test":"TestLiveA"}
{"Action":"run","Test":"TestLiveA/one"}
{"Action":"output","Test":"TestLiveA/one","Output":"quiet\n"}
{"Action":"pass","Test":"TestLiveA/one","Elapsed":1.5}
{"Action":"run","Test":"TestLiveA/two"}
{"Action":"output","Test":"TestLiveA/two","Output":"    a_test.go:3: loud\n"}
{"Action":"fail","Test":"TestLiveA/two","Elapsed":2}
{"Action":"fail","Test":"TestLiveA","Elapsed":2}
{"Action":"run","Test":"TestLiveB"}
{"Action":"output","Test":"TestLiveB","Output":"=== RUN   TestLiveB\n"}
{"Action":"output","Test":"TestLiveB","Output":"    a_test.go:9: not here: no tmux\n"}
{"Action":"skip","Test":"TestLiveB","Elapsed":0}
{"Action":"fail","Elapsed":4}
`), &w)
	require.NoError(t, err)
	require.Equal(t, tally{passed: 1, failed: 1, skipped: map[string][]string{"not here: no tmux": {"TestLiveB"}}}, got)
	require.Equal(t, "pass    1.5s TestLiveA/one\n    a_test.go:3: loud\nfail    2.0s TestLiveA/two\nskip    0.0s TestLiveB\n", w.String())

	w.Reset()
	got.print(&w, "Claude Code 2.1.332: headless\nClaude Code 2.1.332: headless\nClaude Code 2.1.332: in a terminal\n", 4*time.Second)
	require.Equal(t, `
live: 1 passed, 1 failed, 1 skipped in 4s
live: Claude Code 2.1.332: 2 headless, 1 in a terminal
live: Oh My Pi 18.1.21: DID NOT RUN
live: SKIPPED, not here: no tmux: TestLiveB
`, w.String())
}
