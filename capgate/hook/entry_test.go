package hook

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/capgate/client/omp"
	"github.com/capgate/capgate/ledger/disk"
)

// A hook that is wired wrongly says so: whatever is not understood is an error, and nothing is guessed.
func TestTheHooksArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want arguments
	}{
		{nil, arguments{client: claude.Client{}, env: map[string]string{}}},
		{[]string{"--client", "claude"}, arguments{client: claude.Client{}, env: map[string]string{}}},
		{[]string{"--client", "omp"}, arguments{client: omp.Client{}, env: map[string]string{}}},
		{[]string{"--env", "A=1=2", "--env", "B="}, arguments{client: claude.Client{}, env: map[string]string{"A": "1=2", "B": ""}}},
		{[]string{"--env", "A=1", "--client", "omp", "--env-file", "/f"}, arguments{client: omp.Client{}, env: map[string]string{"A": "1"}, envFile: "/f"}},
		{[]string{"--env-file", "f", "--env-file", "f"}, arguments{client: claude.Client{}, env: map[string]string{}, envFile: "f"}},
	} {
		got, err := parseArguments(c.args)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%q", c.args)
		e, file, err := ParseEntry(c.args)
		require.NoError(t, err)
		require.Equal(t, capgate.Entry{Args: c.want.env, HasFile: c.want.envFile != ""}, e)
		require.Equal(t, c.want.envFile, file)
	}
	for _, args := range [][]string{
		{"--client"}, {"--client", "omp", "x"}, {"--client", "codex"}, {"--client", ""}, {"-h"}, {"x", "y"}, {"--env", "A"}, {"--env", "=1"}, {"--env", ""},
		{"--env-file", ""}, {"--env-file", "a", "--env-file", "b"}, {"--env", "A=1", "--env"},
	} {
		_, err := parseArguments(args)
		require.ErrorContains(t, err, "unknown arguments", "%q", args)
		_, _, err = ParseEntry(args)
		require.Error(t, err)
	}
}

func TestWhereAnEnvironmentFileIs(t *testing.T) {
	project := map[string]string{"CLAUDE_PROJECT_DIR": "/project"}
	here, err := os.Getwd()
	require.NoError(t, err)
	for _, c := range []struct {
		path, want string
		env        map[string]string
	}{
		{"/a/../b", "/b", project},
		{".capgate/env", "/project/.capgate/env", project},
		{"env", filepath.Join(here, "env"), nil},
		{"env", filepath.Join(here, "env"), map[string]string{"CLAUDE_PROJECT_DIR": "relative"}},
	} {
		got, err := EnvFilePath(c.path, lookupIn(c.env))
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}

func lookupIn(env map[string]string) capgate.Lookup {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// An environment file wins over the environment; one that cannot be read is a problem, and then no state directory is known.
func TestAnEnvironmentFileWinsOverTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "env")
	require.NoError(t, os.WriteFile(file, []byte("CAPGATE_DATA_DIR=/from-file\n"), 0o600))
	env := map[string]string{"CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": "/from-env", "CAPGATE_LEDGER": "/l.db"}

	c := ReadConfig(capgate.Entry{}, "", lookupIn(env))
	require.Equal(t, "/from-env", c.DataDir)
	require.Empty(t, c.EnvFile)

	c, settings := ReadSettings(capgate.Entry{}, file, lookupIn(env))
	require.NoError(t, c.Problem)
	require.Equal(t, "/from-file", c.DataDir)
	require.Equal(t, file, c.EnvFile)
	v, _ := settings("CAPGATE_DATA_DIR")
	require.Equal(t, "/from-file", v)

	for _, bad := range []string{filepath.Join(dir, "missing"), dir} {
		c = ReadConfig(capgate.Entry{}, bad, lookupIn(env))
		require.ErrorContains(t, c.Problem, "environment file "+bad)
		require.Empty(t, c.DataDir+c.Ledger)
		c = ReadConfig(capgate.Entry{Args: env}, bad, lookupIn(nil))
		require.Empty(t, c.DataDir+c.Ledger, "nor what stands beside its name")
	}
	require.NoError(t, os.WriteFile(file, []byte("nonsense\n"), 0o600))
	_, err := ReadEnvFile(file)
	require.ErrorIs(t, err, capgate.ErrEnvFile)
	require.ErrorContains(t, err, file)
	_, err = ReadEnvFile(dir)
	require.ErrorIs(t, err, disk.ErrNotRegular)
}
