package paths

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestResolveTakesLinearWork(t *testing.T) {
	began := time.Now()
	dir := t.TempDir()
	for name, path := range map[string]string{
		"nothing of it is there": dir + strings.Repeat("/c", 20_000),
		"it is there":            dir + strings.Repeat("/.", 20_000) + strings.Repeat("/d", 20_000),
	} {
		got, err := Resolve(path)
		require.ErrorIs(t, err, ErrTooLong, name)
		require.Empty(t, got, name)
	}
	var known Known
	known.Add(dir)
	long := dir + strings.Repeat("/c", (Max-len(dir))/2)
	for range 50 {
		_, err := Resolve(long)
		require.NoError(t, err)
		known.Rename(long)
	}
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestResolveFollowsLinks(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(home, "share", "state"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(home, "etc"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, "etc", "spec.json"), nil, 0o600))
	link := func(to, name string) { require.NoError(t, os.Symlink(to, filepath.Join(home, name))) }
	link("share/state", "linked")
	link("share/../share/state/new/deep", "dangling")
	link("dangling", "twice")
	link("loop", "loop")
	link(filepath.Join(home, "linked"), "absolute")
	for spelled, want := range map[string]string{
		"linked":           "share/state",
		"linked/x/y":       "share/state/x/y",
		"dangling":         "share/state/new/deep",
		"twice/z":          "share/state/new/deep/z",
		"absolute/q":       "share/state/q",
		"loop/x":           "loop/x",
		"missing/a/b":      "missing/a/b",
		"etc/spec.json/no": "etc/spec.json/no",
	} {
		got, err := Resolve(filepath.Join(home, spelled))
		require.NoError(t, err)
		require.Equal(t, filepath.Join(home, want), got, spelled)
	}
	got, err := Resolve("/")
	require.NoError(t, err)
	require.Equal(t, Root(home), got)
}

func TestAbsoluteIsWhatTheClientMakesOfASpelling(t *testing.T) {
	for spelled, want := range map[string]string{
		"~": "/home", "~/a": "/home/a", "~a": "/work/~a", "a": "/work/a", "./a/../b": "/work/b", "/a/./b": "/a/b", "": "/work",
	} {
		require.Equal(t, filepath.FromSlash(want), Absolute(spelled, "/work", "/home"), spelled)
	}
	require.Equal(t, filepath.FromSlash("/work/~/a"), Absolute("~/a", "/work", ""), "without a home it is a name like any other")
}

// A file has as many names as it has hard links and mounts, and is known by each.
func TestAnotherNameOfAKnownFileIsItsOwn(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	real, other := filepath.Join(dir, "real"), filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(real, nil, 0o600))
	require.NoError(t, os.Link(real, other))
	var known Known
	require.Equal(t, real, known.Add(real))
	require.Equal(t, real, known.Rename(other))
	require.Equal(t, filepath.Join(dir, "none"), known.Rename(filepath.Join(dir, "none")))
	require.Equal(t, dir, known.Ancestor(dir))
	require.Equal(t, filepath.Join(dir, "none"), known.Ancestor(filepath.Join(dir, "none")))
	require.Empty(t, known.Add(strings.Repeat("/a", Max)))
}
