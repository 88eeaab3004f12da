//go:build unix

package admission

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func admit(t *testing.T, state, id string, change ...func(*Admission)) {
	a := Admission{ID: id, Type: "scout", Uses: 3, Reason: "why not", At: now, Until: now.Add(10 * time.Minute)}
	for _, c := range change {
		c(&a)
	}
	require.NoError(t, Add(t.Context(), state, a))
}

func call(use string, types ...string) Call {
	return Call{Session: "s-1", ToolUseID: use, Input: []byte(`{"prompt":"p"}`), Types: types}
}

func take(t *testing.T, state, use string, types ...string) (string, bool) {
	ids, ok, err := Take(t.Context(), state, call(use, types...), now)
	require.NoError(t, err)
	return strings.Join(ids, ","), ok
}

func TestAnAdmissionLetsExactlyItsUsesThrough(t *testing.T) {
	state := t.TempDir()
	_, ok := take(t, state, "u0", "scout")
	require.False(t, ok, "nothing admitted")
	require.NoFileExists(t, filepath.Join(state, "admissions.lock"), "and nothing written")
	admit(t, state, "A")
	for i := range 3 {
		id, ok := take(t, state, fmt.Sprint("u", i), "scout")
		require.True(t, ok)
		require.Equal(t, "A", id)
	}
	_, ok = take(t, state, "u3", "scout")
	require.False(t, ok)
}

func TestTheSameToolUseIsChargedOnce(t *testing.T) {
	state := t.TempDir()
	admit(t, state, "A", func(a *Admission) { a.Uses = 1 })
	for range 3 {
		_, ok := take(t, state, "u", "scout")
		require.True(t, ok)
	}
	_, ok := take(t, state, "other", "scout")
	require.False(t, ok)
	c := call("u", "scout")
	c.Session = "another session"
	_, ok, err := Take(t.Context(), state, c, now)
	require.NoError(t, err)
	require.False(t, ok, "ids are unique within a session only")
}

// Some model servers give out the same ids again: only the very same call, soon and not too often, is the same one.
func TestARepeatedIDLetsNothingMoreThrough(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Call)
		after  time.Duration
		same   bool
	}{
		{"the same call", func(*Call) {}, 0, true},
		{"just before the window ends", func(*Call) {}, 3*time.Second - 1, true},
		{"a clock that was set back", func(*Call) {}, -2 * time.Second, true},
		{"when the window has ended", func(*Call) {}, 3 * time.Second, false},
		{"another input", func(c *Call) { c.Input = []byte(`{"prompt":"q"}`) }, 0, false},
		{"an input of the same meaning", func(c *Call) { c.Input = []byte(`{"prompt": "p"}`) }, 0, false},
		{"another agent", func(c *Call) { c.AgentID = "a1" }, 0, false},
		{"another session", func(c *Call) { c.Session = "s-2" }, 0, false},
		{"another id", func(c *Call) { c.ToolUseID = "call_1" }, 0, false},
		{"no id", func(c *Call) { c.ToolUseID = "" }, 0, false},
		{"another type", func(c *Call) { c.Types = []string{"critic"} }, 0, false},
		{"more of it", func(c *Call) { c.Types = []string{"scout", "scout"} }, 0, false},
		{"and another", func(c *Call) { c.Types = []string{"scout", "critic"} }, 0, false},
		{"an agent's id that begins the tool_use_id", func(c *Call) { c.AgentID, c.ToolUseID = "c", "all_0" }, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := t.TempDir()
			admit(t, state, "A", func(a *Admission) { a.Uses = 1 })
			_, ok := take(t, state, "call_0", "scout")
			require.True(t, ok)
			again := call("call_0", "scout")
			c.change(&again)
			_, ok = Would(state, again, now.Add(c.after))
			require.Equal(t, c.same, ok)
			_, ok, err := Take(t.Context(), state, again, now.Add(c.after))
			require.NoError(t, err)
			require.Equal(t, c.same, ok)
		})
	}
	t.Run("a revoked one", func(t *testing.T) {
		state := t.TempDir()
		admit(t, state, "A")
		_, ok := take(t, state, "call_0", "scout")
		require.True(t, ok)
		require.NoError(t, Revoke(t.Context(), state, "A", now))
		_, ok = take(t, state, "call_0", "scout")
		require.False(t, ok)
	})
}

// Three sights are one use, whether there is one agent in the call or several; the fourth is another call.
func TestTheFourthSightOfACallIsAnotherCall(t *testing.T) {
	state := t.TempDir()
	admit(t, state, "A", func(a *Admission) { a.Uses = 4 })
	for sight := range 8 {
		_, would := Would(state, call("call_0", "scout", "scout"), now)
		_, ok := take(t, state, "call_0", "scout", "scout")
		require.Equal(t, sight < 6, ok, "sight %d", sight+1)
		require.Equal(t, ok, would)
		all, err := List(state)
		require.NoError(t, err)
		require.Len(t, all[0].Spent, min(2*(sight/3+1), 4))
	}
}

func TestALongIDIsStoredByItsHash(t *testing.T) {
	state := t.TempDir()
	admit(t, state, "A", func(a *Admission) { a.Uses = 1 })
	long := strings.Repeat("x", 3<<20)
	for range 2 {
		_, ok := take(t, state, long, "scout")
		require.True(t, ok)
	}
	info, err := os.Stat(filepath.Join(state, FileName))
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(1000))
}

func TestAllSpawnsOfACallOrNone(t *testing.T) {
	state := t.TempDir()
	admit(t, state, "A", func(a *Admission) { a.Uses = 2 })
	admit(t, state, "B", func(a *Admission) { a.Type, a.Uses = "critic", 1 })
	_, ok := take(t, state, "u1", "scout", "scout", "scout")
	require.False(t, ok)
	_, ok = take(t, state, "u2", "scout", "other")
	require.False(t, ok)
	all, err := List(state)
	require.NoError(t, err)
	require.Empty(t, all[0].Spent, "nothing is used up by what was not let through")
	ids, ok := take(t, state, "u3", "scout", "critic", "scout")
	require.True(t, ok)
	require.Equal(t, "A,B", ids)
}

func TestWhatAnAdmissionIsFor(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(*Admission)
		kind string
		ok   bool
	}{
		{"its type", func(*Admission) {}, "scout", true},
		{"another type", func(*Admission) {}, "critic", false},
		{"the type's case", func(*Admission) {}, "Scout", false},
		{"no type", func(*Admission) {}, "", false},
		{"its session", func(a *Admission) { a.Session = "s-1" }, "scout", true},
		{"another session", func(a *Admission) { a.Session = "s-2" }, "scout", false},
		{"the last moment", func(a *Admission) { a.At, a.Until = now.Add(-time.Minute), now.Add(1) }, "scout", true},
		{"over", func(a *Admission) { a.At, a.Until = now.Add(-time.Minute), now }, "scout", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := t.TempDir()
			admit(t, state, "A", c.with)
			_, ok := take(t, state, "u", c.kind)
			require.Equal(t, c.ok, ok)
		})
	}
}

func TestRevoke(t *testing.T) {
	state := t.TempDir()
	admit(t, state, "A")
	require.NoError(t, Revoke(t.Context(), state, "a", now))
	require.NoError(t, Revoke(t.Context(), state, "A", now.Add(time.Hour)))
	_, ok := take(t, state, "u", "scout")
	require.False(t, ok)
	all, err := List(state)
	require.NoError(t, err)
	require.Equal(t, now, *all[0].Revoked, "the first time counts")
	require.Equal(t, "revoked", all[0].State(now))
	require.ErrorIs(t, Revoke(t.Context(), state, "B", now), ErrNotFound)
}

// What is over is kept for a week, for who asks what was admitted, and then goes: the store must not grow for ever.
func TestAdmissionsThatWereOverForAWeekGo(t *testing.T) {
	state := t.TempDir()
	over := func(d time.Duration) func(*Admission) {
		return func(a *Admission) { a.At, a.Until = now.Add(-d-time.Minute), now.Add(-d) }
	}
	for id, change := range map[string]func(*Admission){
		"over-8-days": over(8 * 24 * time.Hour), "over-6-days": over(6 * 24 * time.Hour),
		"open": func(a *Admission) { a.Until = now.Add(20 * 24 * time.Hour) },
	} {
		admit(t, state, id, change)
	}
	admit(t, state, "new")
	all, err := List(state)
	require.NoError(t, err)
	var ids []string
	for _, a := range all {
		ids = append(ids, a.ID)
	}
	require.ElementsMatch(t, []string{"over-6-days", "open", "new"}, ids)
}

func TestAddRefusesWhatMakesNoSense(t *testing.T) {
	for name, with := range map[string]func(*Admission){
		"no type":          func(a *Admission) { a.Type = "" },
		"a type in spaces": func(a *Admission) { a.Type = " scout" },
		"no uses":          func(a *Admission) { a.Uses = 0 },
		"too many uses":    func(a *Admission) { a.Uses = MaxUses + 1 },
		"no time":          func(a *Admission) { a.Until = a.At },
		"for ever":         func(a *Admission) { a.Until = a.At.Add(MaxFor + 1) },
		"no reason":        func(a *Admission) { a.Reason = " " },
	} {
		t.Run(name, func(t *testing.T) {
			a := Admission{ID: "A", Type: "scout", Uses: 3, Reason: "why not", At: now, Until: now.Add(time.Minute)}
			with(&a)
			require.ErrorIs(t, Add(t.Context(), t.TempDir(), a), ErrInvalid)
		})
	}
}

func TestAStoreThatCannotBeReadAdmitsNothing(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"no JSON": func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte("{"), 0o600)) },
		"empty":   func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) },
		"a newer format": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte(`{"format":2,"admissions":[]}`), 0o600))
		},
		"unknown members": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte(`{"format":1,"admissions":[],"x":1}`), 0o600))
		},
		"a directory": func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
		"a symlink":   func(t *testing.T, path string) { require.NoError(t, os.Symlink("/dev/zero", path)) },
		"a FIFO":      func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) },
		"huge": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, make([]byte, maxBytes+1), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			spoil(t, filepath.Join(state, FileName))
			_, ok, err := Take(t.Context(), state, call("u", "scout"), now)
			require.False(t, ok)
			require.ErrorIs(t, err, ErrCorrupt)
			require.NotContains(t, err.Error(), "\n")
			require.Error(t, Add(t.Context(), state, Admission{ID: "A", Type: "scout", Uses: 1, Reason: "r", At: now, Until: now.Add(1)}), "and is not overwritten")
		})
	}
}

func TestAHeldLockEndsAtTheDeadline(t *testing.T) {
	state := t.TempDir()
	admit(t, state, "A")
	unlock, err := lock(t.Context(), filepath.Join(state, "admissions.lock"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, ok, err := Take(ctx, state, call("u", "scout"), now)
	require.ErrorIs(t, err, ErrBusy)
	require.False(t, ok)
	unlock()
	_, ok = take(t, state, "u", "scout") // the one that gave up has not kept it
	require.True(t, ok)
}

// Of N + 20 calls at once, each seen by two processes as where the hook is installed twice, exactly N get through, both times.
// A call that is seen by many more gets through three times for each use.
func TestExactlyNOfManyProcesses(t *testing.T) {
	if state := os.Getenv("ADMISSION_STATE"); state != "" {
		if _, ok, err := Take(t.Context(), state, call(os.Getenv("ADMISSION_USE"), "scout"), now); err != nil || !ok {
			fmt.Println("REFUSED", err)
			return
		}
		fmt.Println("TAKEN")
		return
	}
	const uses = 10
	state := t.TempDir()
	admit(t, state, "A", func(a *Admission) { a.Uses = uses })
	many := t.TempDir()
	admit(t, many, "A", func(a *Admission) { a.Uses = 2 })
	var mu sync.Mutex
	taken := map[string]int{}
	var wg sync.WaitGroup
	see := func(state, use string) {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestExactlyNOfManyProcesses$")
			cmd.Env = append(os.Environ(), "ADMISSION_STATE="+state, "ADMISSION_USE="+use)
			out, err := cmd.Output()
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(string(out), "TAKEN") {
				taken[use]++
			} else if !strings.Contains(string(out), "REFUSED <nil>") {
				t.Errorf("%s", out)
			}
		})
	}
	for i := range uses + 20 {
		see(state, fmt.Sprint("u", i))
		see(state, fmt.Sprint("u", i))
	}
	wg.Wait()
	for use, times := range taken {
		require.Equal(t, 2, times, use)
	}
	for range 12 {
		see(many, "often")
	}
	wg.Wait()
	require.Equal(t, 2*MaxSights, taken["often"])
	delete(taken, "often")
	require.Len(t, taken, uses)
	all, err := List(state)
	require.NoError(t, err)
	require.Len(t, all[0].Spent, uses)
	info, err := os.Stat(filepath.Join(state, FileName))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := filepath.Glob(filepath.Join(state, ".capgate-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestTheTypesThatASessionHasUsed(t *testing.T) {
	state := t.TempDir()
	types := func(session string) []string {
		types, err := Types(state, session)
		require.NoError(t, err)
		return types
	}
	require.Empty(t, types("s-1"), "no store")
	admit(t, state, "A")
	admit(t, state, "B", func(a *Admission) { a.Type = "critic" })
	admit(t, state, "C", func(a *Admission) { a.Type = "never" })
	require.Empty(t, types("s-1"), "none is used")
	for _, use := range []string{"u1", "u2"} {
		_, ok := take(t, state, use, "scout", "critic")
		require.True(t, ok)
	}
	require.Equal(t, []string{"critic", "scout"}, types("s-1"))
	require.Empty(t, types("s-2"), "another session has not")
	require.NoError(t, Revoke(t.Context(), state, "A", now))
	require.Equal(t, []string{"critic"}, types("s-1"))
	require.NoError(t, os.WriteFile(filepath.Join(state, FileName), []byte("{"), 0o600))
	_, err := Types(state, "s-1")
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestTheTypesThatMayStartNow(t *testing.T) {
	state := t.TempDir()
	admit(t, state, "A", func(a *Admission) { a.Type, a.Uses = "critic", 1 })
	admit(t, state, "B", func(a *Admission) { a.Session = "s-2" })
	admit(t, state, "C", func(a *Admission) { a.Type = "later" })
	admit(t, state, "D", func(a *Admission) { a.Type = "gone" })
	require.NoError(t, Revoke(t.Context(), state, "D", now))
	for _, c := range []struct {
		session string
		after   time.Duration
		want    []string
	}{
		{"s-1", 0, []string{"critic", "later"}}, {"s-2", 0, []string{"critic", "later", "scout"}}, {"s-2", 10 * time.Minute, nil},
	} {
		types, err := Open(state, c.session, now.Add(c.after))
		require.NoError(t, err)
		require.Equal(t, c.want, types)
	}
	_, ok := take(t, state, "u", "critic")
	require.True(t, ok)
	types, err := Open(state, "s-1", now)
	require.NoError(t, err)
	require.Equal(t, []string{"later"}, types, "the other is used up")
	require.NoError(t, os.WriteFile(filepath.Join(state, FileName), []byte("{"), 0o600))
	_, err = Open(state, "s-1", now)
	require.ErrorIs(t, err, ErrCorrupt)
}
