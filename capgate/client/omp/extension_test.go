package omp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheExtensionHasOneOfEachPlace(t *testing.T) {
	require.Equal(t, 1, bytes.Count(extension, hookPlace))
	require.Equal(t, 1, bytes.Count(extension, envPlace))
}

// What is filled in stays a literal, whatever it is.
func TestTheExtensionQuotesWhatIsFilledIn(t *testing.T) {
	for _, text := range []string{
		"/usr/local/bin/capgate-hook", `C:\Program Files\capgate-hook.exe`, `"; process.exit(); "`, "`${process.exit()}`", "$& $1",
		"a\nb\u2028c\u2029d\x00", "ünïcode 🚪", "*/ // </script>", string(hookPlace), string(envPlace),
	} {
		t.Run(text, func(t *testing.T) {
			want := map[string]string{text: text, "CAPGATE_ENABLED": "1"}
			got := string(Extension(text, want, ""))
			var hook string
			var env map[string]string
			require.NoError(t, json.Unmarshal([]byte(between(t, got, "const HOOK: string = ", ";\n")), &hook))
			require.NoError(t, json.Unmarshal([]byte(between(t, got, "const ENV: Record<string, string> = ", ";\n")), &env))
			require.Equal(t, text, hook)
			require.Equal(t, want, env)
			require.Equal(t, strings.Count(string(extension), "\n"), strings.Count(got, "\n"))
			require.NotContains(t, got, "\u2028")
		})
	}
}

func TestTheExtensionIsTheSameForTheSameArguments(t *testing.T) {
	env := map[string]string{"B": "2", "A": "1", "C": "3"}
	require.Equal(t, Extension("/h", env, ""), Extension("/h", env, ""))
	require.Equal(t, Extension("/h", nil, ""), Extension("/h", map[string]string{}, ""))
	require.Contains(t, string(Extension("/h", nil, "")), "const ENV: Record<string, string> = {};")
}

func TestTheExtensionImportsNothingButTheRuntime(t *testing.T) {
	for line := range strings.Lines(string(extension)) {
		if strings.HasPrefix(line, "import ") {
			require.Regexp(t, `^import \{ [A-Za-z, ]+ \} from "node:(child_process|fs|path|url)";\n$`, line)
		}
	}
}

func between(t *testing.T, text, before, after string) string {
	t.Helper()
	_, text, found := strings.Cut(text, before)
	require.True(t, found)
	text, _, found = strings.Cut(text, after)
	require.True(t, found)
	return text
}
