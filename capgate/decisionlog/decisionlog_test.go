package decisionlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

func record(id string) Record {
	return Record{ID: id, At: at, Client: "claude", Code: "budget-spent", Outcome: "deny", Session: "s", Tool: "WebSearch", Reason: "no"}
}

func TestAppendedRecordsComeBackInOrder(t *testing.T) {
	state := t.TempDir()
	got, err := Last(state, 5)
	require.NoError(t, err)
	require.Empty(t, got, "no log yet")
	for _, id := range []string{"A", "B", "C"} {
		require.NoError(t, Append(state, record(id)))
	}
	all, err := Last(state, 0)
	require.NoError(t, err)
	require.Equal(t, []Record{record("A"), record("B"), record("C")}, all)
	two, err := Last(state, 2)
	require.NoError(t, err)
	require.Equal(t, all[1:], two)
	found, err := Find(state, "b")
	require.NoError(t, err)
	require.Equal(t, record("B"), found)
	_, err = Find(state, "D")
	require.ErrorIs(t, err, ErrNotFound)
	info, err := os.Stat(filepath.Join(state, FileName))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestALineNeverExceedsItsBound(t *testing.T) {
	for name, text := range map[string]string{
		"plain": strings.Repeat("x", 9000), "escapes": strings.Repeat("\x01", 9000), "wide": strings.Repeat("漢", 9000),
		"invalid": strings.Repeat("\xff", 9000), "html": strings.Repeat("<", 9000), "quotes": strings.Repeat(`"\`, 4500),
	} {
		t.Run(name, func(t *testing.T) {
			r := record("01JD0000000000000000000000")
			r.Session, r.Run, r.Tool, r.AgentID, r.AgentType, r.ToolUseID, r.Reason = text, text, text, text, text, text, text
			line, err := r.line()
			require.NoError(t, err)
			require.Less(t, len(line), MaxLine, "a line break may have to go before it")
			require.Equal(t, 1, bytes.Count(line, []byte("\n")))
			var back Record
			require.NoError(t, json.Unmarshal(line, &back))
			require.Equal(t, r.ID, back.ID)
		})
	}
}

func TestLinesThatAreNoRecordsAreLeftOut(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, Append(state, record("A")))
	f, err := os.OpenFile(filepath.Join(state, FileName), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("garbage\n{}\n[1]\n\n" + `{"id":7}` + "\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, Append(state, record("B")))
	got, err := Last(state, 0)
	require.NoError(t, err)
	require.Equal(t, []Record{record("A"), record("B")}, got)
}

func TestAFullLogIsRotatedAndTwoAreKept(t *testing.T) {
	state := t.TempDir()
	path := filepath.Join(state, FileName)
	fill := func() {
		require.NoError(t, os.Truncate(path, MaxFile)) // a hole counts as size and reads as one odd line
	}
	for _, id := range []string{"A", "B", "C", "D"} {
		require.NoError(t, Append(state, record(id)))
		fill()
	}
	require.NoError(t, Append(state, record("E")))
	entries, err := os.ReadDir(state)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{FileName, FileName + ".1", FileName + ".2"}, names)
	for file, id := range map[string]string{path: "E", path + ".1": "D", path + ".2": "C"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), `"id":"`+id+`"`)
	}
}

// Many writers that find the log full at once lose no record: one of them rotates, once.
func TestParallelWritersAcrossARotationLoseNothing(t *testing.T) {
	state := t.TempDir()
	path := filepath.Join(state, FileName)
	require.NoError(t, os.WriteFile(path, append(bytes.Repeat([]byte("x"), MaxFile-2000), '\n'), 0o600))
	const writers, each = 16, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := Append(state, record(NewID(at)+string(rune('a'+w))+string(rune('a'+i)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := Last(state, 0)
	require.NoError(t, err)
	require.Len(t, got, writers*each)
	require.NoFileExists(t, path+".2")
}

func TestFollowSeesWhatIsAppendedAcrossRotations(t *testing.T) {
	state := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan string, 10)
	done := make(chan error)
	go func() { done <- Follow(ctx, state, 0, func(r Record) error { seen <- r.ID; return nil }) }()
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, Append(state, record("A"))) // the log did not exist
	require.Equal(t, "A", <-seen)
	require.NoError(t, os.Rename(filepath.Join(state, FileName), filepath.Join(state, FileName+".1")))
	require.NoError(t, Append(state, record("B")))
	require.Equal(t, "B", <-seen)
	cancel()
	require.NoError(t, <-done)

	stop := errors.New("enough")
	go func() { done <- Follow(t.Context(), state, 0, func(Record) error { return stop }) }()
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, Append(state, record("C")))
	require.ErrorIs(t, <-done, stop)
}

func TestFollowBeginsWithTheNewestOnes(t *testing.T) {
	state := t.TempDir()
	path := filepath.Join(state, FileName)
	for _, id := range []string{"A", "B", "C"} {
		require.NoError(t, Append(state, record(id)))
	}
	require.NoError(t, os.Rename(path, path+".1"))
	require.NoError(t, Append(state, record("D")))
	for n, want := range map[int][]string{0: nil, 1: {"D"}, 2: {"C", "D"}, 9: {"A", "B", "C", "D"}} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		var got []string
		require.NoError(t, Follow(ctx, state, n, func(r Record) error { got = append(got, r.ID); return nil }))
		cancel()
		require.Equal(t, want, got, "%d", n)
	}
}

func TestIDsAreULIDs(t *testing.T) {
	for ms, prefix := range map[int64]string{
		0:               "0000000000",
		1:               "0000000001",
		1469918176385:   "01ARYZ6S41", // the example of the ULID specification's text
		281474976710655: "7ZZZZZZZZZ", // the largest
	} {
		id := NewID(time.UnixMilli(ms))
		require.Regexp(t, `^[0-9A-HJKMNP-TV-Z]{26}$`, id)
		require.Equal(t, prefix, id[:10])
	}
	seen := map[string]bool{}
	for range 1000 {
		seen[NewID(at)] = true
	}
	require.Len(t, seen, 1000)
}

// A crash or a full disk may leave a line without its end: it must not swallow the record after it.
func TestATornLineIsNotContinued(t *testing.T) {
	whole, err := record("A").line()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		torn string
		want []Record
	}{
		"cut short":         {string(whole[:len(whole)/2]), []Record{record("B"), record("C")}},
		"without its end":   {string(whole[:len(whole)-1]), []Record{record("A"), record("B"), record("C")}},
		"one byte":          {"x", []Record{record("B"), record("C")}},
		"with its end":      {string(whole), []Record{record("A"), record("B"), record("C")}},
		"nothing":           {"", []Record{record("B"), record("C")}},
		"a hole at the end": {"x\x00\x00", []Record{record("B"), record("C")}},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			path := filepath.Join(state, FileName)
			require.NoError(t, os.WriteFile(path, []byte(c.torn), 0o600))
			var seen []Record
			enough := errors.New("enough")
			followed := make(chan error, 1)
			begun := make(chan bool, 10)
			go func() {
				followed <- Follow(t.Context(), state, 9, func(r Record) error {
					seen = append(seen, r)
					begun <- true
					if r.ID == "C" {
						return enough
					}
					return nil
				})
			}()
			if name == "with its end" {
				<-begun
			}
			require.NoError(t, Append(state, record("B")))
			require.NoError(t, Append(state, record("C")))
			got, err := Last(state, 0)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.ErrorIs(t, <-followed, enough)
			require.Equal(t, c.want, seen)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NotContains(t, string(text), "\n\n", "no empty line where none is needed")
		})
	}
}

// A line that is too long, and a file that is, cost no memory to match, and hide nothing but themselves.
func TestLongLinesAreLeftOut(t *testing.T) {
	state := t.TempDir()
	path := filepath.Join(state, FileName)
	line := func(id string) string {
		b, err := record(id).line()
		require.NoError(t, err)
		return string(b)
	}
	padded := strings.TrimSuffix(line("LONG"), "\n")
	content := line("A") + strings.Repeat("x", 3*MaxLine) + "\n" + line("B") +
		padded + strings.Repeat(" ", MaxLine) + "\n" + line("C") + strings.Repeat("y", 5<<20)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	want := []Record{record("A"), record("B"), record("C")}
	got, err := Last(state, 0)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, want, followed(t, state))

	if runtime.GOOS == "windows" {
		return // no holes
	}
	// A hole of many gigabytes, and a record after it.
	require.NoError(t, os.Truncate(path, 64<<30))
	require.NoError(t, Append(state, record("D"))) // rotates it out of the way
	require.NoError(t, os.Rename(path+".1", path))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("\n" + line("E"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	began := time.Now()
	got, err = Last(state, 0)
	require.NoError(t, err)
	require.Equal(t, []Record{record("E")}, got)
	require.Equal(t, got, followed(t, state))
	require.Less(t, time.Since(began), 20*time.Second)
}

// followed is what Follow has to say at once.
func followed(t *testing.T, state string) []Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var got []Record
	require.NoError(t, Follow(ctx, state, 99, func(r Record) error { got = append(got, r); return nil }))
	return got
}
