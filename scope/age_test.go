package scope

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAge(t *testing.T) {
	const ns = time.Nanosecond
	var missing time.Time
	for name, c := range map[string]struct {
		startedAt, modTime time.Time
		age                time.Duration
		expired            bool
	}{
		"just armed":                                   {now, now, 0, false},
		"startedAt counts, not a new mtime":            {now.Add(-ttl - ns), now, ttl + ns, true},
		"startedAt counts, not an old mtime":           {now.Add(-time.Hour), now.Add(-2 * ttl), time.Hour, false},
		"exactly the ttl is fresh":                     {now.Add(-ttl), now, ttl, false},
		"missing startedAt, new mtime":                 {missing, now.Add(-time.Hour), time.Hour, false},
		"missing startedAt, mtime exactly the ttl ago": {missing, now.Add(-ttl), ttl, false},
		"missing startedAt, old mtime":                 {missing, now.Add(-ttl - ns), ttl + ns, true},
		"exactly a minute ahead counts":                {now.Add(time.Minute), now.Add(-2 * ttl), -time.Minute, false},
		"over a minute ahead, old mtime":               {now.Add(time.Minute + ns), now.Add(-2 * ttl), 2 * ttl, true},
		"over a minute ahead, new mtime":               {now.Add(time.Minute + ns), now.Add(-time.Hour), time.Hour, false},
		"a thousand years ahead, old mtime":            {now.AddDate(1000, 0, 0), now.Add(-2 * ttl), 2 * ttl, true},
		"a thousand years ago":                         {now.AddDate(-1000, 0, 0), now, 1<<63 - 1, true},
		"mtime ahead":                                  {missing, now.Add(time.Hour), -time.Hour, false},
		"mtime exactly the ttl ahead is fresh":         {missing, now.Add(ttl), -ttl, false},
		"mtime further ahead than the ttl":             {missing, now.Add(ttl + ns), -ttl - ns, true},
		"both further ahead than the ttl":              {now.AddDate(1, 0, 0), now.Add(2 * ttl), -2 * ttl, true},
		"both ahead, by less than the ttl":             {now.Add(time.Hour), now.Add(2 * time.Hour), -2 * time.Hour, false},
		"both a thousand years ahead":                  {now.AddDate(1000, 0, 0), now.AddDate(1000, 0, 0), -1 << 63, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := Marker{StartedAt: c.startedAt, ModTime: c.modTime}
			require.Equal(t, c.age, m.Age(now))
			require.Equal(t, c.expired, m.Expired(now, ttl, time.Time{}))
		})
	}
}

// A run that goes on keeps its sessions in scope: the age of an old marker counts from the run's newest entry.
func TestAnOldMarkerIsAsOldAsItsRun(t *testing.T) {
	old := Marker{StartedAt: now.Add(-4 * ttl), ModTime: now.Add(-4 * ttl)}
	ahead := Marker{StartedAt: now.AddDate(1, 0, 0), ModTime: now.AddDate(1, 0, 0)}
	for _, c := range []struct {
		name    string
		marker  Marker
		newest  time.Time
		expired bool
	}{
		{"nothing known of its run", old, time.Time{}, true},
		{"a turn just now", old, now, false},
		{"a turn exactly the ttl ago", old, now.Add(-ttl), false},
		{"a turn longer ago than that", old, now.Add(-ttl - time.Nanosecond), true},
		{"an entry before it was armed", old, now.Add(-5 * ttl), true},
		{"an entry from the future", old, now.Add(ttl + time.Nanosecond), true},
		{"a young marker of an old run", Marker{StartedAt: now, ModTime: now}, now.Add(-4 * ttl), false},
		{"a marker from the future stays one", ahead, now, true},
	} {
		require.Equal(t, c.expired, c.marker.Expired(now, ttl, c.newest), c.name)
	}
}

func TestAFutureStartIsJudgedByTheFilesModificationTime(t *testing.T) {
	for name, c := range map[string]struct {
		modTime time.Time
		expired bool
	}{
		"old":       {now.Add(-ttl - time.Second), true},
		"new":       {now.Add(-time.Second), false},
		"ahead":     {now.Add(time.Hour), false},
		"far ahead": {now.Add(ttl + time.Second), true},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			setModTime(t, put(t, state, "s", `{"runId":"r","startedAt":"2099-01-01T00:00:00Z"}`), c.modTime)
			m, err := Read(state, "s")
			require.NoError(t, err)
			require.Equal(t, c.expired, m.Expired(now, ttl, time.Time{}))
		})
	}
}
