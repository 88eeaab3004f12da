package ledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/capgate/capgate/ledger/internal/page"
)

func init() { roles["damage"] = damageRole }

// victim is a ledger that is damaged in every way, and what is true of it: nothing may ever say otherwise.
//
//	spent   8 of 8 turns, the last of which is the newest entry: the transaction before would give it back
//	full    3 turns in dimension "a", which allows 3, and one in each of 24 others: no more dimensions
//	open    10 of 20 turns; key "k" is at replay
//	loop    at its limit of 4: a turn of dimension "a" with key "now" is open since begun, and key "past" is over
type victim struct {
	*File
	whole  []byte
	used   int64 // bytes below the high-water mark
	anchor Anchor
	replay uint64
	begun  uint64
	done   func(step string) // told after each step of a probe, if not nil

	decisionsOnly bool // leaves Verify, the only method that walks everything by bbolt itself, out of a probe
}

var (
	errWrongAnswer = errors.New("a wrong answer")
	errTooLong     = errors.New("it took too long")
)

// filler makes keys long, and so the trees deep, at little cost.
var filler = strings.Repeat("x", 200)

func newVictim(path string) (*victim, error) {
	v := &victim{File: NewFile(path, Options{})}
	ctx := context.Background()
	var errs []error
	turn := func(run, dimension, key string) Receipt {
		r, err := v.RecordTurn(ctx, run, dimension, key)
		errs = append(errs, err)
		return r
	}
	open := func(run string, turns, dimensions int64) {
		_, err := v.OpenRun(ctx, run, turns, dimensions)
		errs = append(errs, err)
	}
	open("spent", 4, 2)
	open("full", 3, 25)
	open("open", 20, 1)
	v.replay = turn("open", "", "k").Seq
	for i := range 9 {
		turn("open", "", fmt.Sprint(filler, i))
	}
	for i := range 7 {
		turn("spent", "", fmt.Sprint(filler, i))
	}
	for range 3 {
		turn("full", "a", "")
	}
	for i := range 24 {
		turn("full", fmt.Sprint(filler, i), fmt.Sprint(filler, i))
	}
	begin := func(dimension, key string) Receipt {
		r, err := v.BeginTurn(ctx, "loop", dimension, key)
		errs = append(errs, err)
		return r
	}
	open("loop", 2, 1)
	_, err := v.Grant(ctx, "loop", Grant{Dimensions: 1}, "more")
	errs = append(errs, err)
	begin("b", filler)
	begin("a", "past")
	begin("b", filler+"2")
	v.begun = begin("a", "now").Seq
	_, err = v.EndTurn(ctx, "loop", "b", "")
	errs = append(errs, err)
	turn("spent", "", fmt.Sprint(filler, 7))
	head, err := v.Head(ctx)
	errs = append(errs, err)
	v.anchor = head
	v.whole, err = os.ReadFile(path)
	errs = append(errs, err)
	p, err := page.Open(bytes.NewReader(v.whole), int64(len(v.whole)), rules, true)
	if err == nil {
		v.used = int64(p.Meta().High) * page.Size
	}
	return v, errors.Join(append(errs, err)...)
}

// openBytes is what the guard makes of a sound file.
func openBytes(t *testing.T, content []byte) *page.Checker {
	t.Helper()
	p, err := page.Open(bytes.NewReader(content), int64(len(content)), rules, true)
	require.NoError(t, err)
	return p
}

func mustVictim(t *testing.T) *victim {
	t.Helper()
	v, err := newVictim(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	require.Empty(t, problems(t, v.File, v.anchor))
	return v
}

// probe puts a damaged file in place and asks it everything that a decision rests on. It returns what was wrong with
// an answer; detected says whether anything noticed the damage.
func (v *victim) probe(damaged []byte) (detected bool, wrong error) {
	if err := os.WriteFile(v.path, damaged, 0o600); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	began := time.Now()
	var errs []error
	check := func(what string, err error, ok bool) {
		if v.done != nil {
			v.done(what)
		}
		switch {
		case err != nil && !known(err):
			errs = append(errs, fmt.Errorf("%s: an error of no kind: %w", what, err))
		case err != nil && strings.Contains(err.Error(), "\n"):
			errs = append(errs, fmt.Errorf("%s: an error of several lines: %w", what, err))
		case err == nil && !ok:
			errs = append(errs, fmt.Errorf("%s: %w", what, errWrongAnswer))
		}
		expected := errors.Is(err, ErrBudgetSpent) || errors.Is(err, ErrTurnOver) || errors.Is(err, ErrTurnOpen)
		detected = detected || err != nil && !expected
	}
	for _, a := range []*Anchor{nil, &v.anchor} {
		b, err := v.Budget(ctx, "spent", a)
		check("budget of spent", err, b.counts() == Budget{Run: "spent", Used: 8, Limit: 8})
		b, err = v.Budget(ctx, "open", a)
		check("budget of open", err, b.counts() == Budget{Run: "open", Used: 10, Limit: 20})
		b, err = v.Budget(ctx, "loop", a)
		check("budget of loop", err, b.counts() == Budget{Run: "loop", Used: 4, Open: 1, Limit: 4})
	}
	_, err := v.RecordTurn(ctx, "spent", "", "")
	check("turn of spent", err, false)
	_, err = v.RecordTurn(ctx, "full", "a", "")
	check("turn of a full dimension", err, false)
	_, err = v.RecordTurn(ctx, "full", "b", "")
	check("turn of one dimension too many", err, false)
	r, err := v.RecordTurn(ctx, "open", "", "k")
	check("replay", err, r.Replayed && r.Seq == v.replay)
	r, err = v.BeginTurn(ctx, "loop", "a", "now")
	check("replay of a begin", err, r.Replayed && r.Seq == v.begun)
	_, err = v.BeginTurn(ctx, "loop", "a", "past")
	check("begin with a key that is over", err, false)
	_, err = v.RecordTurn(ctx, "loop", "a", "")
	check("turn beside an open one", err, false)
	r, err = v.EndTurn(ctx, "loop", "b", "")
	check("end of nothing", err, r.Replayed)
	u, err := v.Usage(ctx, "full")
	check("usage", err, u.Used == 27 && len(u.Dimensions) == 25 && u.Dimensions["a"] == 3)
	if !v.decisionsOnly {
		report, err := v.Verify(ctx, v.anchor)
		check("verify", err, true)
		detected = detected || !report.OK()
	}
	err = v.Entries(ctx, 1, func(Receipt, []byte) error { return nil })
	check("entries", err, true)
	_, err = v.BeginTurn(ctx, "loop", "a", "")
	check("begin of loop", err, false)
	if errors.Is(err, ErrBudgetSpent) {
		b, err := v.Budget(ctx, "loop", nil)
		check("budget after a refusal", err, b.Used == 4 && b.Open == 0)
	}
	r, err = v.RecordTurn(ctx, "open", "", "")
	check("turn of open", err, !r.Replayed && r.Used == 11)
	if err == nil {
		b, err := v.Budget(ctx, "open", nil)
		check("budget after a turn", err, b.Used == 11)
	}
	if took := time.Since(began); took > 4*time.Second {
		errs = append(errs, fmt.Errorf("%w: %v", errTooLong, took))
	}
	return detected, errors.Join(errs...)
}

func (v *victim) requireSafe(t *testing.T, what string, damaged []byte) (detected bool) {
	t.Helper()
	detected, wrong := v.probe(damaged)
	require.NoError(t, wrong, what)
	return detected
}

func TestTheVictimIsSoundBeforeItIsDamaged(t *testing.T) {
	t.Parallel()
	v := mustVictim(t)
	require.False(t, v.requireSafe(t, "undamaged", v.whole))
	p := openBytes(t, v.whole)
	for _, bucket := range []string{bucketEntries, bucketDimensions, bucketKeys} {
		require.NotZero(t, p.Root(bucket), "bucket %s is too small to test anything", bucket)
	}
}

func TestATruncatedLedgerIsDamaged(t *testing.T) {
	t.Parallel()
	v := mustVictim(t)
	for size := int64(0); size < v.used; size += page.Size {
		for _, off := range []int64{0, 1, 100} {
			require.True(t, v.requireSafe(t, fmt.Sprintf("cut to %d bytes", size+off), v.whole[:size+off]))
		}
	}
	// bbolt grows a file beyond what it uses: that part may go.
	v.requireSafe(t, "cut to what is used", v.whole[:v.used])
}

func TestDamagedPagesAreNeverAFreshBudget(t *testing.T) {
	t.Parallel()
	v := mustVictim(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for at := int64(0); at < v.used; at += page.Size {
		for name, fill := range map[string]func(p []byte){
			"zeroed":      func(p []byte) { clear(p) },
			"all ones":    func(p []byte) { copy(p, bytes.Repeat([]byte{0xFF}, len(p))) },
			"garbage":     func(p []byte) { fillRandom(rng, p) },
			"half zeroed": func(p []byte) { clear(p[page.Size/2:]) },
			"torn sector": func(p []byte) { clear(p[512:1024]) },
			"first half of the next": func(p []byte) {
				copy(p[:page.Size/2], v.whole[min(at+page.Size, v.used-page.Size):])
			},
			"another page": func(p []byte) { copy(p, v.whole[2*page.Size+rng.Int64N(v.used/page.Size-2)*page.Size:][:page.Size]) },
		} {
			damaged := bytes.Clone(v.whole)
			fill(damaged[at : at+page.Size])
			v.requireSafe(t, fmt.Sprintf("page %d %s", at/page.Size, name), damaged)
		}
	}
}

func fillRandom(rng *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}

func TestEveryByteOfTheMetaPages(t *testing.T) {
	t.Parallel()
	v := mustVictim(t)
	for meta := range 2 {
		for i := range page.HeaderSize + page.MetaSize {
			for _, mask := range []byte{1, 0x80}[:scaled(2)] {
				damaged := bytes.Clone(v.whole)
				damaged[meta*page.Size+i] ^= mask
				what := fmt.Sprintf("byte %d of meta page %d", i, meta)
				require.True(t, v.requireSafe(t, what, damaged), what)
			}
		}
	}
}

func TestADamagedMetaPageIsAnErrorForEveryMethod(t *testing.T) {
	t.Parallel()
	l := NewFile(filepath.Join(t.TempDir(), "ledger.db"), Options{})
	mustOpen(t, l, "r", 4, 1)
	mustTurn(t, l, "r", "", "")
	mustTurn(t, l, "r", "", "")
	whole, err := os.ReadFile(l.path)
	require.NoError(t, err)
	for meta := range 2 {
		this, other := whole[meta*page.Size:][:page.Size], whole[(1-meta)*page.Size:][:page.Size]
		for name, damage := range map[string]func(p []byte){
			"one bit":                   func(p []byte) { p[page.HeaderSize+50] ^= 1 },
			"zeroed":                    func(p []byte) { clear(p) },
			"the other one":             func(p []byte) { copy(p, other) },
			"the other one, renumbered": func(p []byte) { copy(p, other); p[0] = this[0] },
			"of a later transaction": func(p []byte) {
				m := p[page.HeaderSize : page.HeaderSize+page.MetaSize]
				binary.NativeEndian.PutUint64(m[48:], binary.NativeEndian.Uint64(m[48:])+4)
				h := fnv.New64a()
				_, _ = h.Write(m[:56])
				binary.NativeEndian.PutUint64(m[56:], h.Sum64())
			},
		} {
			damaged := bytes.Clone(whole)
			damage(damaged[meta*page.Size:][:page.Size])
			require.NoError(t, os.WriteFile(l.path, damaged, 0o600))
			for method, err := range everyMethod(l) {
				require.ErrorIs(t, err, ErrCorrupt, "%s: meta page %d: %s", method, meta, name)
				require.Regexp(t, `meta page.*; restore .* from a copy, or close the scope and start a new ledger$`, err.Error())
				require.NotContains(t, err.Error(), "bbolt")
			}
			after, err := os.ReadFile(l.path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(damaged, after), "it was written to")
		}
	}

	// Exchanged, they are good ones in the wrong places: the next commit would overwrite the newest.
	exchanged := bytes.Clone(whole)
	copy(exchanged[page.HeaderSize:page.Size], whole[page.Size+page.HeaderSize:])
	copy(exchanged[page.Size+page.HeaderSize:2*page.Size], whole[page.HeaderSize:])
	require.NoError(t, os.WriteFile(l.path, exchanged, 0o600))
	for method, err := range everyMethod(l) {
		require.ErrorIs(t, err, ErrCorrupt, method)
	}
}

func TestADimensionHiddenByADamagedSeparatorIsNotANewOne(t *testing.T) {
	t.Parallel()
	v := mustVictim(t)
	damaged := bytes.Clone(v.whole)
	branch, _, problem := page.ParseNode(damaged[openBytes(t, v.whole).Root(bucketDimensions)*page.Size:][:page.Size])
	require.Empty(t, problem)
	require.False(t, branch.Leaf())
	separator := branch.Key(1)
	_, dimension, _ := splitRunKey(separator)
	separator[len(separator)-1]++
	require.NoError(t, os.WriteFile(v.path, damaged, 0o600))
	_, err := v.RecordTurn(context.Background(), "full", dimension, "")
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestForeignFilesAreDamagedLedgers(t *testing.T) {
	t.Parallel()
	v := mustVictim(t)
	rng := rand.New(rand.NewPCG(7, 8))
	garbage := make([]byte, 10*page.Size)
	fillRandom(rng, garbage)
	sqlite := append([]byte("SQLite format 3\x00"), make([]byte, 8*page.Size)...)
	for name, content := range map[string][]byte{
		"empty": {}, "text": []byte("hello\n"), "garbage": garbage, "zeros": make([]byte, 10*page.Size), "another database": sqlite,
	} {
		require.True(t, v.requireSafe(t, name, content))
		_, err := v.OpenRun(context.Background(), "new", 1, 1)
		require.ErrorIs(t, err, ErrCorrupt, name)
		after, err := os.ReadFile(v.path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, after), "%s was written to", name)
	}

	require.NoError(t, os.Remove(v.path))
	edit(t, v.path, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("widgets"))
		if err != nil {
			return err
		}
		return b.Put([]byte("spent"), []byte("0"))
	})
	foreign, err := os.ReadFile(v.path)
	require.NoError(t, err)
	require.True(t, v.requireSafe(t, "foreign bbolt file", foreign))

	require.NoError(t, os.Remove(v.path))
	db, err := bbolt.Open(v.path, 0o600, &bbolt.Options{PageSize: 16384})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	foreign, err = os.ReadFile(v.path)
	require.NoError(t, err)
	require.True(t, v.requireSafe(t, "another page size", foreign))
}

// mutate damages a copy in one of several random ways.
func (v *victim) mutate(rng *rand.Rand) []byte {
	damaged := bytes.Clone(v.whole)
	switch rng.IntN(10) {
	case 0, 1, 2, 3, 4: // one bit
		damaged[rng.Int64N(v.used)] ^= 1 << rng.IntN(8)
	case 5: // a few bytes
		for range 1 + rng.IntN(8) {
			damaged[rng.Int64N(v.used)] = byte(rng.Uint32())
		}
	case 6: // a number in the header of a page, where it hurts
		header := damaged[rng.Int64N(v.used/page.Size)*page.Size:]
		binary.NativeEndian.PutUint16(header[2*rng.IntN(32):], uint16(rng.UintN(1<<(1+rng.UintN(16)))))
	case 7: // a run of garbage
		at := rng.Int64N(v.used)
		fillRandom(rng, damaged[at:min(at+1+rng.Int64N(600), v.used)])
	case 8: // a sector of another place
		from, to := rng.Int64N(v.used/512), rng.Int64N(v.used/512)
		copy(damaged[to*512:(to+1)*512], v.whole[from*512:])
	case 9: // cut off
		damaged = damaged[:rng.Int64N(v.used)]
	}
	return damaged
}

// damageRole damages a ledger again and again. A fault that no recover catches ends this process, not the test.
func damageRole(l *File, args []string) error {
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	v, err := newVictim(l.path)
	if err != nil {
		return err
	}
	found := 0
	for i := range n {
		detected, wrong := v.probe(v.mutate(rand.New(rand.NewPCG(seed, uint64(i)))))
		if wrong != nil {
			return fmt.Errorf("seed %d, case %d: %w", seed, i, wrong)
		}
		if detected {
			found++
		}
	}
	fmt.Println(found)
	return nil
}

func TestRandomDamageIsAnErrorOrHarmless(t *testing.T) {
	t.Parallel()
	var children []*child
	n := scaled(1000)
	for seed := range 2 {
		children = append(children, start(t, filepath.Join(t.TempDir(), "ledger.db"), "damage", strconv.Itoa(seed), strconv.Itoa(n)))
	}
	for seed, c := range children {
		lines := c.finish(t)
		t.Logf("seed %d: %s of %d damaged files were noticed; the others have it where nobody reads", seed, lines[0], n)
	}
}
