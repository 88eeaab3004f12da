package live

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func unixOnly(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("nothing is installed on Windows")
	}
}

func TestWithoutNPMTheReasonIsSaid(t *testing.T) {
	unixOnly(t)
	t.Setenv("PATH", t.TempDir())
	_, err := Install(t.Context(), t.TempDir())
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "no node in PATH")
}

func TestAFailedInstallationIsNoneAndTheReasonIsSaid(t *testing.T) {
	unixOnly(t)
	bin, cache := t.TempDir(), t.TempDir()
	for name, code := range map[string]string{"node": "", "npm": "echo no registry >&2; exit 1"} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+code+"\n"), 0o700))
	}
	t.Setenv("PATH", bin)
	_, err := Install(t.Context(), cache)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "no registry")
	left, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestTheCacheIsNamedOrInTheRepository(t *testing.T) {
	t.Setenv("CAPGATE_LIVE_CACHE", "")
	dir, err := CacheDir()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "..", "..", "go.mod"))
	named := t.TempDir()
	t.Setenv("CAPGATE_LIVE_CACHE", named)
	dir, err = CacheDir()
	require.NoError(t, err)
	require.Equal(t, named, dir)
}
