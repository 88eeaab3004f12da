package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger/internal/page"
)

const sectorSize = 512

// commit is one transaction: the file before and after, and the heads.
type commit struct {
	before, after         []byte
	headBefore, headAfter Anchor
}

// commits records what an ordinary life of a ledger writes.
func commits(t *testing.T, n int) []commit {
	t.Helper()
	l := newLedger(t)
	ctx := context.Background()
	mustOpen(t, l, "r0", 1000, 10)
	mustOpen(t, l, "tiny", 1, 2)
	mustBegin(t, l, "tiny", "", "")
	snapshot := func() ([]byte, Anchor) {
		content, err := os.ReadFile(l.path)
		require.NoError(t, err)
		head, err := l.Head(ctx)
		require.NoError(t, err)
		return content, head
	}
	var all []commit
	content, head := snapshot()
	for i := range n {
		loop := fmt.Sprint("loop ", i%3)
		switch {
		case i%5 == 1:
			mustBegin(t, l, "r0", loop, fmt.Sprint("begin ", i))
		case i%17 == 2:
			_, err := l.EndTurn(ctx, "r0", loop, "")
			require.NoError(t, err)
		case i%17 == 3: // one to end, or one to refuse
			if _, err := l.BeginTurn(ctx, "tiny", "", ""); err != nil {
				require.ErrorIs(t, err, ErrBudgetSpent)
			}
		case i%17 == 7:
			_, err := l.Grant(ctx, "r0", Grant{Dimensions: 1}, "more")
			require.NoError(t, err)
		case i%17 == 9:
			_, err := l.Grant(ctx, "r0", Grant{Turns: 1, Dimension: "d0"}, "more")
			require.NoError(t, err)
		case i%17 == 13:
			name := fmt.Sprint("r", i-8) // opened by i%17 == 5
			_, err := l.CloseRun(ctx, name)
			if err != nil {
				require.ErrorIs(t, err, ErrRunUnknown)
			}
		case i%17 == 5:
			mustOpen(t, l, fmt.Sprint("r", i), 10, 10)
		case i%17 == 11:
			_, err := l.Grant(ctx, "r0", Grant{Turns: 1}, "more")
			require.NoError(t, err)
		default:
			mustTurn(t, l, "r0", fmt.Sprint("d", i%7), fmt.Sprint("key ", i, filler[:i%200]))
		}
		c := commit{before: content, headBefore: head}
		c.after, c.headAfter = snapshot()
		content, head = c.after, c.headAfter
		all = append(all, c)
	}
	return all
}

// image is what a power cut may leave of a commit.
type image struct {
	what    string
	content []byte
	done    bool // all of it reached the disk
	torn    bool // no disk leaves this: a part of a sector
}

// images builds power cuts around the two flushes of a commit: before the first, any part of the new data and the old
// meta page; after it, all data and any sectors of the new meta page, whose content lies in the first.
func (c commit) images(rng *rand.Rand, barrier bool) []image {
	grown := make([]byte, len(c.after))
	copy(grown, c.before)
	const metas = 2 * page.Size
	newMeta := 0 // transactions write the two in turn
	if bytes.Equal(c.after[:page.Size], grown[:page.Size]) {
		newMeta = page.Size
	}
	// some writes any part of the new data sectors.
	some := func(base []byte, likely int) []byte {
		img := bytes.Clone(base)
		for at := metas; at < len(img); at += sectorSize {
			if rng.IntN(100) < likely {
				copy(img[at:at+sectorSize], c.after[at:])
			}
		}
		return img
	}
	images := []image{{what: "nothing written", content: bytes.Clone(c.before)}, {what: "grown only", content: bytes.Clone(grown)}}
	for _, likely := range []int{5, 30, 50, 70, 95, 100} {
		images = append(images, image{what: fmt.Sprintf("%d%% of the data, old meta", likely), content: some(grown, likely)})
		if len(c.before) < len(c.after) { // the growth itself may be missing
			images = append(images, image{what: "data without growth", content: some(grown, likely)[:len(c.before)]})
		}
	}
	data := some(grown, 100)
	for n := 1; n < page.HeaderSize+page.MetaSize; n += 1 + rng.IntN(12) {
		img := bytes.Clone(data)
		copy(img[newMeta:newMeta+n], c.after[newMeta:])
		images = append(images, image{what: fmt.Sprintf("%d bytes of the meta", n), content: img, torn: true})
	}
	rest := bytes.Clone(data) // its first sector is missing, the others are there
	copy(rest[newMeta+sectorSize:newMeta+page.Size], c.after[newMeta+sectorSize:])
	images = append(images, image{what: "meta without its first sector", content: rest})
	first := bytes.Clone(data)
	copy(first[newMeta:newMeta+sectorSize], c.after[newMeta:])
	images = append(images, image{what: "the first sector of the meta", content: first, done: true})
	images = append(images, image{what: "complete", content: bytes.Clone(c.after), done: true})
	if !barrier { // what must not happen: the new meta before its data
		for range 6 {
			img := some(grown, 50)
			copy(img[newMeta:newMeta+page.Size], c.after[newMeta:newMeta+page.Size])
			images = append(images, image{what: "meta before its data", content: img})
		}
	}
	return images
}

// survives checks an image: it verifies, and is the state before or after; the one after when all was written. What no
// disk leaves may be damage, too, but never less than the state before.
func (i image) survives(l *File, c commit) error {
	if err := os.WriteFile(l.path, i.content, 0o600); err != nil {
		return err
	}
	report, err := l.Verify(context.Background(), c.headBefore)
	switch {
	case i.torn && errors.Is(err, ErrCorrupt):
		return nil
	case err != nil:
		return err
	case !report.OK():
		return fmt.Errorf("%s", report.Problems)
	case i.done && report.Head != c.headAfter:
		return fmt.Errorf("an acknowledged entry is lost")
	case report.Head != c.headBefore && report.Head != c.headAfter:
		return fmt.Errorf("the head is neither the old nor the new one")
	}
	return nil
}

func TestEveryPowerCutLeavesTheStateBeforeOrAfter(t *testing.T) {
	t.Parallel()
	l := NewFile(filepath.Join(t.TempDir(), "ledger.db"), Options{})
	rng := rand.New(rand.NewPCG(9, 10))
	n := 0
	for i, c := range commits(t, scaled(120)) {
		for _, img := range c.images(rng, true) {
			require.NoError(t, img.survives(l, c), "commit %d: %s", i, img.what)
			n++
		}
	}
	t.Logf("%d images", n)
}

// The control: without the flush between data and meta page, the harness must find losses.
func TestTheHarnessFindsAMissingFlush(t *testing.T) {
	t.Parallel()
	l := NewFile(filepath.Join(t.TempDir(), "ledger.db"), Options{})
	rng := rand.New(rand.NewPCG(11, 12))
	n, bad := 0, 0
	for _, c := range commits(t, 20) {
		for _, img := range c.images(rng, false) {
			if n++; img.survives(l, c) != nil {
				bad++
			}
		}
	}
	t.Logf("%d of %d images are bad", bad, n)
	require.Greater(t, bad, 20)
}

func TestATurnGoesOnAfterAPowerCut(t *testing.T) {
	t.Parallel()
	l := NewFile(filepath.Join(t.TempDir(), "ledger.db"), Options{})
	rng := rand.New(rand.NewPCG(13, 14))
	for _, c := range commits(t, scaled(30)) {
		for _, img := range c.images(rng, true) {
			require.NoError(t, os.WriteFile(l.path, img.content, 0o600))
			_, err := l.RecordTurn(context.Background(), "r0", "", "", c.headBefore)
			if img.torn && errors.Is(err, ErrCorrupt) {
				continue
			}
			require.NoError(t, err, img.what)
			mustBegin(t, l, "r0", "loop 0", "")
			r, err := l.EndTurn(context.Background(), "r0", "loop 0", "")
			require.NoError(t, err, img.what)
			require.False(t, r.Replayed, img.what)
			requireSound(t, l)
		}
	}
}
