package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestANameTellsItsAge(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	aged := func(age time.Duration) string { return fmt.Sprintf(".capgate-%d-0a.tmp", now.Add(-age).Unix()) }
	for name, c := range map[string]struct {
		file  string
		stale bool
	}{
		"new":                     {aged(0), false},
		"an hour":                 {aged(time.Hour), false},
		"more than an hour":       {aged(time.Hour + time.Second), true},
		"an hour ahead":           {aged(-time.Hour), false},
		"more than an hour ahead": {aged(-time.Hour - time.Second), true},
		"no time":                 {".capgate-x-0a.tmp", false},
		"no random part":          {".capgate-1.tmp", false},
		"another end":             {".capgate-1-0a", false},
		"another beginning":       {".other-1-0a.tmp", false},
		"no dot":                  {"capgate-1-0a.tmp", false},
		"too large a number":      {".capgate-99999999999999999999-0a.tmp", false},
		"nothing":                 {"", false},
	} {
		require.Equal(t, c.stale, IsStale(c.file, now), name)
	}
}

func TestTempPathsDifferAndBecomeStale(t *testing.T) {
	one, other := TempPath("dir"), TempPath("dir")
	require.NotEqual(t, one, other)
	require.Equal(t, "dir", filepath.Dir(one))
	require.False(t, IsStale(filepath.Base(one), time.Now()))
	require.True(t, IsStale(filepath.Base(one), time.Now().Add(2*time.Hour)))
}

func TestASweepRemovesOldTemporaryFilesOfItsPrefixOnly(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		age  time.Duration
		dir  bool
		gone bool
	}{
		"mine-old.tmp":    {age: 2 * StaleAfter, gone: true},
		"mine-ahead.tmp":  {age: -2 * StaleAfter, gone: true},
		"mine-young.tmp":  {age: StaleAfter / 2},
		"mine-old":        {age: 2 * StaleAfter},
		"other-old.tmp":   {age: 2 * StaleAfter},
		"mine-folder.tmp": {age: 2 * StaleAfter, dir: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if c.dir {
				require.NoError(t, os.Mkdir(path, 0o700))
			} else {
				require.NoError(t, os.WriteFile(path, nil, 0o600))
			}
			when := time.Now().Add(-c.age)
			require.NoError(t, os.Chtimes(path, when, when))
			SweepTemps(dir, "mine-")
			_, err := os.Lstat(path)
			require.Equal(t, c.gone, os.IsNotExist(err))
		})
	}
	SweepTemps(filepath.Join(dir, "none"), "mine-") // no folder is no reason to complain
}
