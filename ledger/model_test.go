//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The model test lets processes do random operations on one ledger, kills them at random moments, and holds every
// answer against a reference that is simple enough to be right. The reference knows the rules as [Ledger] states them;
// it shares no code with the store, keeps nothing but lists, and counts anew each time.
//
// Each process says what it is about to do and, afterwards, what came of it and which entry its transaction found as the
// newest. Writers exclude each other, so this puts all operations in an order: those that found entry n see what
// entries 1 to n make, and at most one of them appended entry n+1. A killed process leaves one operation without an
// answer, which happened as a whole or not at all.

func init() { roles["model"] = modelRole }

// modelOp is one operation, and what came of it.
type modelOp struct {
	Do        string // open, begin, end, turn, grant, close, budget, usage
	Run       string `json:",omitempty"`
	Dimension string `json:",omitempty"`
	Key       string `json:",omitempty"`
	Turns     int64  `json:",omitempty"` // grant, and max_conv_turns of open
	More      int64  `json:",omitempty"` // dimensions of a grant, and max_dimensions of open
	Anchor    int    `json:",omitempty"` // 1: with an anchor that holds; 2: with one that does not

	modelAnswer
}

type modelAnswer struct {
	Head    uint64      // the newest entry that the transaction saw
	Error   string      `json:",omitempty"` // its sentinel; "" is none
	Spent   *SpentError `json:",omitempty"`
	Receipt *Receipt    `json:",omitempty"`
	After   *Turns      `json:",omitempty"` // the receipt's Turns
	Budget  *Budget     `json:",omitempty"`
	Usage   *Usage      `json:",omitempty"`
}

// The limits of run n, small enough for every bound to be hit.
func modelLimits(n int) (turns, dimensions int64) { return int64(1 + n%4), int64(1 + n/4%3) }

// modelRole does random operations until it is killed or its number is up: a line before each, and one after.
func modelRole(l *File, args []string) error {
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 77))
	var head uint64
	idle := 0 // operations since the ledger grew
	l.saw = func(seq uint64) { head = seq }
	anchor, err := l.Head(context.Background())
	if err != nil {
		return err
	}
	line := []byte{}
	for {
		op := randomOp(rng, head, idle)
		asked, err := json.Marshal(op)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(append(append(line, asked...), '\n')); err != nil {
			return err
		}
		before := head
		answer := op.ask(l, anchor)
		answer.Head = head
		if idle++; head != before {
			idle = 0
		}
		if r := answer.Receipt; r != nil {
			anchor.Seq, anchor.Hash = r.Seq, r.Hash
		}
		if line, err = json.Marshal(answer); err != nil {
			return err
		}
		line = append(line, '\n')
	}
}

// randomOp works on a few runs at a time: on others as the ledger grows, and when nothing was appended for long.
func randomOp(rng *rand.Rand, head uint64, idle int) modelOp {
	n := int(head/16) + idle/20 + rng.IntN(6)
	op := modelOp{
		Run:       fmt.Sprint("r", n),
		Dimension: []string{"", "a", "b", "c"}[rng.IntN(4)],
	}
	if rng.IntN(2) > 0 {
		op.Key = fmt.Sprint("k", rng.IntN(12))
	}
	if rng.IntN(4) == 0 {
		op.Anchor = 1 + rng.IntN(10)/9
	}
	switch p := rng.Float64() * 100; {
	case p < 8:
		op = modelOp{Do: "open", Run: op.Run}
		op.Turns, op.More = modelLimits(n)
		if rng.IntN(8) == 0 {
			op.More++
		}
	case p < 42:
		op.Do = "begin"
	case p < 62:
		op.Do, op.Anchor = "end", 0
	case p < 75:
		op.Do = "turn"
	case p < 81:
		op.Do, op.Key, op.Anchor = "grant", "", 0
		switch rng.IntN(4) {
		case 0:
			op.Turns, op.Dimension = 1+rng.Int64N(2), ""
		case 1:
			op.More, op.Dimension = 1, ""
		default:
			op.Turns = 1 + rng.Int64N(2)
		}
	case p < 81.5:
		op = modelOp{Do: "close", Run: op.Run}
	case p < 93:
		op = modelOp{Do: "budget", Run: op.Run, Anchor: op.Anchor}
	default:
		op = modelOp{Do: "usage", Run: op.Run}
	}
	return op
}

// ask puts an operation to the store.
func (op modelOp) ask(l *File, anchor Anchor) (a modelAnswer) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var anchors []Anchor
	var one *Anchor
	switch op.Anchor {
	case 2:
		anchor.Hash = anchor.Ledger // no entry has that
		if anchor.Seq == 0 {
			anchor.Seq = 1
		}
		fallthrough
	case 1:
		anchors, one = []Anchor{anchor}, &anchor
	}
	var r Receipt
	var b Budget
	var u Usage
	var err error
	switch op.Do {
	case "open":
		r, err = l.OpenRun(ctx, op.Run, op.Turns, op.More)
	case "begin":
		r, err = l.BeginTurn(ctx, op.Run, op.Dimension, op.Key, anchors...)
	case "end":
		r, err = l.EndTurn(ctx, op.Run, op.Dimension, op.Key)
	case "turn":
		r, err = l.RecordTurn(ctx, op.Run, op.Dimension, op.Key, anchors...)
	case "grant":
		r, err = l.Grant(ctx, op.Run, Grant{Turns: op.Turns, Dimension: op.Dimension, Dimensions: op.More}, "why not")
	case "close":
		r, err = l.CloseRun(ctx, op.Run)
	case "budget":
		b, err = l.Budget(ctx, op.Run, one)
		a.Budget = &b
	case "usage":
		u, err = l.Usage(ctx, op.Run)
		a.Usage = &u
	}
	if err != nil {
		a = modelAnswer{Error: sentinelOf(err)}
		errors.As(err, &a.Spent)
	} else if op.Do != "budget" && op.Do != "usage" {
		a.Receipt, a.After = &r, &r.Turns
	}
	return a
}

// sentinelOf names the kind of an error, and gives one of no kind away.
func sentinelOf(err error) string {
	for _, s := range []error{
		ErrInvalid, ErrMissing, ErrBusy, ErrCorrupt, ErrNewerFormat, ErrUnreadable, ErrAnchorLost, ErrNotRecorded,
		ErrRunUnknown, ErrRunExists, ErrRunClosed, ErrKeyReused, ErrTurnOver, ErrTurnOpen, ErrBudgetSpent,
	} {
		if errors.Is(err, s) {
			return s.Error()
		}
	}
	return "of no kind: " + err.Error()
}

// reference is what the entries so far make, kept as lists.
type reference struct {
	runs    map[string]*refRun
	entries []Receipt // as the ledger hands them out, from entry 1 on
}

type refRun struct {
	opened, last     Receipt
	perDim, dims     int64 // as opened
	closed           bool
	turns            []*refTurn
	grants           []modelOp
	newest, previous time.Time
	ended            time.Time
}

type refTurn struct {
	receipt   Receipt
	dimension string
	key       string
	begun     bool // by a begin, not recorded in one entry
	over      bool
}

func (r *refRun) used() int64 { return int64(len(r.turns)) }

func (r *refRun) openTurns() (n int64) {
	for _, t := range r.turns {
		if !t.over {
			n++
		}
	}
	return n
}

func (r *refRun) openTurn(dimension string) *refTurn {
	for _, t := range r.turns {
		if !t.over && t.dimension == dimension {
			return t
		}
	}
	return nil
}

func (r *refRun) withKey(key string) *refTurn {
	for _, t := range r.turns {
		if key != "" && t.key == key {
			return t
		}
	}
	return nil
}

// inUse counts the turns of every named dimension.
func (r *refRun) inUse() map[string]int64 {
	m := map[string]int64{}
	for _, t := range r.turns {
		if t.dimension != "" {
			m[t.dimension]++
		}
	}
	return m
}

// extra are the turns granted to single dimensions.
func (r *refRun) extra() map[string]int64 {
	m := map[string]int64{}
	for _, g := range r.grants {
		if g.Dimension != "" {
			m[g.Dimension] += g.Turns
		}
	}
	return m
}

func (r *refRun) granted() (turns, dimensions int64) {
	for _, g := range r.grants {
		turns += g.Turns
		dimensions += g.More
	}
	return turns, dimensions
}

func (r *refRun) limit() int64 {
	turns, dimensions := r.granted()
	return r.perDim*(r.dims+dimensions) + turns
}

func (r *refRun) times() Turns {
	return Turns{Open: r.openTurns(), Newest: r.newest, Before: r.previous, Ended: r.ended}
}

func (r *refRun) budget() Budget {
	return Budget{Run: r.opened.Run, Used: r.used(), Open: r.openTurns(), Limit: r.limit(), Closed: r.closed, LastAt: r.last.At}
}

func (r *refRun) usage() Usage {
	turns, dimensions := r.granted()
	return Usage{
		Budget: r.budget(), Turns: r.times(), Remaining: r.limit() - r.used(), MaxConvTurns: r.perDim,
		MaxDimensions: r.dims + dimensions, Granted: turns, Dimensions: r.inUse(), DimensionGrants: r.extra(),
		OpenedAt: r.opened.At, LastSeq: r.last.Seq,
	}
}

// prediction is what an operation must do. Of an entry it appends, sequence, time and counters are filled in by
// [reference.do]; of a replay the entry is an older one.
type prediction struct {
	err      error
	spent    *SpentError
	appended *Entry
	replayed *Receipt
	budget   *Budget
	usage    *Usage
}

// predict says what an operation does in the present state. It changes nothing.
func (m *reference) predict(op modelOp) (p prediction) {
	if op.Anchor == 2 {
		return prediction{err: ErrAnchorLost}
	}
	r := m.runs[op.Run]
	if op.Do == "open" {
		switch {
		case r == nil:
			return prediction{appended: &Entry{Kind: KindRunOpened, Run: op.Run, MaxConvTurns: op.Turns, MaxDimensions: op.More}}
		case r.closed:
			return prediction{err: ErrRunClosed}
		case r.perDim != op.Turns || r.dims != op.More:
			return prediction{err: ErrRunExists}
		}
		return prediction{replayed: &r.opened}
	}
	if r == nil {
		return prediction{err: ErrRunUnknown}
	}
	open := r.openTurn(op.Dimension)
	switch op.Do {
	case "budget":
		b := r.budget()
		return prediction{budget: &b}
	case "usage":
		u := r.usage()
		return prediction{usage: &u}
	case "close":
		if r.closed {
			return prediction{replayed: &r.last}
		}
		return prediction{appended: &Entry{Kind: KindRunClosed, Run: op.Run}}
	case "grant":
		switch {
		case r.closed:
			return prediction{err: ErrRunClosed}
		case op.Dimension != "" && r.inUse()[op.Dimension] == 0:
			return prediction{err: ErrInvalid}
		}
		return prediction{appended: &Entry{
			Kind: KindGrant, Run: op.Run, Turns: op.Turns, Dimension: op.Dimension, Dimensions: op.More, Reason: "why not",
		}}
	case "end":
		if open == nil || op.Key != "" && op.Key != open.key {
			return prediction{replayed: &r.last}
		}
		return prediction{appended: &Entry{Kind: KindTurnEnded, Run: op.Run, Dimension: op.Dimension, Ends: open.receipt.Seq}}
	}
	begin := op.Do == "begin"
	if t := r.withKey(op.Key); t != nil {
		switch {
		case t.begun != begin || t.dimension != op.Dimension:
			return prediction{err: ErrKeyReused}
		case begin && t.over:
			return prediction{err: ErrTurnOver}
		}
		return prediction{replayed: &t.receipt}
	}
	switch {
	case r.closed:
		return prediction{err: ErrRunClosed}
	case !begin && open != nil:
		return prediction{err: ErrTurnOpen}
	}
	_, more := r.granted()
	turns, dimensions := r.inUse()[op.Dimension], int64(len(r.inUse()))
	switch {
	case r.used() == r.limit():
		p.spent = &SpentError{Run: op.Run, Bound: "turns", Used: r.used(), Limit: r.limit()}
	case op.Dimension != "" && turns == 0 && dimensions == r.dims+more:
		p.spent = &SpentError{Run: op.Run, Dimension: op.Dimension, Bound: "dimensions", Used: dimensions, Limit: r.dims + more}
	case op.Dimension != "" && turns == r.perDim+r.extra()[op.Dimension]:
		p.spent = &SpentError{Run: op.Run, Dimension: op.Dimension, Bound: "dimension-turns", Used: turns, Limit: turns}
	}
	if p.spent != nil {
		p.err = ErrBudgetSpent
		if open != nil {
			p.appended = &Entry{Kind: KindTurnEnded, Run: op.Run, Dimension: op.Dimension, Ends: open.receipt.Seq}
		}
		return p
	}
	p.appended = &Entry{Kind: KindTurn, Run: op.Run, Dimension: op.Dimension, Key: op.Key}
	if begin {
		p.appended.Kind = KindTurnBegun
		if open != nil {
			p.appended.Ends = open.receipt.Seq
		}
	}
	return p
}

// do takes over the entry that an operation appended, which must be the one that was predicted.
func (m *reference) do(op modelOp, want Entry, got Receipt) error {
	r := m.runs[op.Run]
	if r == nil {
		r = &refRun{opened: got, perDim: op.Turns, dims: op.More}
		m.runs[op.Run] = r
	}
	r.last = got
	end := func(t *refTurn) {
		t.over = true
		r.ended = got.At
	}
	switch want.Kind {
	case KindRunClosed:
		r.closed = true
		for _, t := range r.turns {
			t.over = true
		}
	case KindGrant:
		r.grants = append(r.grants, op)
	case KindTurnEnded:
		end(r.openTurn(op.Dimension))
	case KindTurnBegun, KindTurn:
		if t := r.openTurn(op.Dimension); t != nil {
			end(t)
		}
		r.turns = append(r.turns, &refTurn{
			receipt: got, dimension: op.Dimension, key: op.Key, begun: want.Kind == KindTurnBegun, over: want.Kind == KindTurn,
		})
		r.previous, r.newest = r.newest, got.At
	}
	m.entries = append(m.entries, got)
	want.Seq, want.At = uint64(len(m.entries)), got.At
	want.Used, want.Open, want.Limit = r.used(), r.openTurns(), r.limit()
	if want != got.Entry {
		return fmt.Errorf("%+v appended %+v, not %+v", op, got.Entry, want)
	}
	b := r.budget()
	switch {
	case b.Used > b.Limit:
		return fmt.Errorf("entry %d takes %s over its limit", got.Seq, op.Run)
	case b.Spent() && b.Open > 0 && !b.Closed:
		return fmt.Errorf("after entry %d run %s is spent with %d open turns", got.Seq, op.Run, b.Open)
	case !b.Spent() && b.Used == b.Limit && b.Open == 0:
		return fmt.Errorf("after entry %d run %s is at its limit and not spent", got.Seq, op.Run)
	}
	return nil
}

// holds compares an answer with its prediction, in the state after the operation.
func (m *reference) holds(op modelOp, p prediction) error {
	var want modelAnswer
	want.Head = op.Head
	switch {
	case p.err != nil:
		want.Error, want.Spent = p.err.Error(), p.spent
	case p.appended != nil:
		r := m.entries[op.Head]
		want.Receipt = &r
	case p.replayed != nil:
		r := *p.replayed
		r.Replayed = true
		want.Receipt = &r
	default:
		want.Budget, want.Usage = p.budget, p.usage
	}
	if want.Receipt != nil {
		after := m.runs[op.Run].times()
		want.After = &after
	}
	if !reflect.DeepEqual(want, op.modelAnswer) {
		a, _ := json.Marshal(op)
		b, _ := json.Marshal(want)
		return fmt.Errorf("answered %s, not %s", a, b)
	}
	return nil
}

// modelLog is what the processes of a model test said.
type modelLog struct {
	sync.Mutex
	done    []modelOp
	pending []modelOp // of killed processes: asked, never answered
	kills   int
}

// follow reads one process until it ends.
func (log *modelLog) follow(c *child, count *atomic.Int64) error {
	var done []modelOp
	var pending *modelOp
	for c.out.Scan() {
		if pending == nil {
			pending = &modelOp{}
			if err := json.Unmarshal(c.out.Bytes(), pending); err != nil {
				return fmt.Errorf("%w in %s", err, c.out.Bytes())
			}
			continue
		}
		if err := json.Unmarshal(c.out.Bytes(), &pending.modelAnswer); err != nil {
			return fmt.Errorf("%w in %s", err, c.out.Bytes())
		}
		done = append(done, *pending)
		pending = nil
		count.Add(1)
	}
	log.Lock()
	defer log.Unlock()
	log.done = append(log.done, done...)
	if pending != nil {
		log.pending = append(log.pending, *pending)
	}
	log.kills++
	return nil
}

// modelDir is in memory where there is such a place: the test is about processes, not about power.
func modelDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "capgate-model-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// play lets processes do operations until there are enough of them, and kills each at a random moment.
func play(t *testing.T, l *File, rng *rand.Rand, enough int64) *modelLog {
	log := &modelLog{}
	var count atomic.Int64
	var wg sync.WaitGroup
	for worker := range 5 {
		seeds := rand.New(rand.NewPCG(rng.Uint64(), uint64(worker)))
		wg.Go(func() {
			for count.Load() < enough && !t.Failed() {
				c, err := launch(l.path, "model", strconv.FormatUint(seeds.Uint64(), 10))
				if err != nil {
					t.Error(err)
					return
				}
				kill := time.AfterFunc(time.Duration(20+seeds.IntN(600))*time.Millisecond, func() { c.Process.Kill() })
				err = log.follow(c, &count)
				kill.Stop()
				c.kill()
				if err != nil || c.err.Len() > 0 {
					t.Error(err, c.err)
				}
			}
		})
	}
	wg.Wait()
	return log
}

// compared is what came of a comparison with the reference.
type compared struct {
	rows        map[string]int // operations by row of the state table
	killed      int            // entries whose process did not live to say so
	differences []string
}

// compare puts all operations in order, and holds each against the reference. It stops where they go different ways.
func (m *reference) compare(log *modelLog, stored []Receipt) (c compared) {
	c.rows = map[string]int{}
	differ := func(head uint64, err error) {
		if err != nil {
			c.differences = append(c.differences, fmt.Sprintf("at entry %d: %v", head, err))
		}
	}
	at := map[uint64][]modelOp{}
	for _, op := range log.done {
		at[op.Head] = append(at[op.Head], op)
	}
	for head := uint64(len(m.entries)); head <= uint64(len(stored)); head++ {
		var writers []modelOp
		for _, op := range at[head] {
			p := m.predict(op)
			c.rows[op.Do+" "+p.name()]++
			if p.appended != nil {
				writers = append(writers, op)
			} else {
				differ(head, m.holds(op, p))
			}
		}
		delete(at, head)
		if head == uint64(len(stored)) {
			if len(writers) > 0 {
				differ(head, fmt.Errorf("an entry is missing of %+v", writers))
			}
			break
		}
		next := stored[head]
		answered := len(writers) > 0
		if !answered { // the work of a process that was killed
			i := slices.IndexFunc(log.pending, func(op modelOp) bool { return m.predict(op).makes(next.Entry) })
			if i < 0 {
				differ(head, fmt.Errorf("nobody asked for %+v", next.Entry))
				return c
			}
			writers = append(writers, log.pending[i])
			log.pending = slices.Delete(log.pending, i, i+1)
			c.killed++
		}
		if len(writers) > 1 {
			differ(head, fmt.Errorf("each of %+v appended the next entry", writers))
			return c
		}
		p := m.predict(writers[0])
		if err := m.do(writers[0], *p.appended, next); err != nil {
			differ(head, err)
			return c
		}
		if answered {
			differ(head, m.holds(writers[0], p))
		}
	}
	for head, ops := range at {
		differ(head, fmt.Errorf("answers rest on an entry that is not there: %+v", ops))
	}
	return c
}

// makes reports whether an entry is what was predicted, apart from what [reference.do] compares.
func (p prediction) makes(e Entry) bool {
	if p.appended == nil {
		return false
	}
	e.Seq, e.At, e.Used, e.Open, e.Limit = 0, time.Time{}, 0, 0, 0
	return *p.appended == e
}

func TestModelOfAllOperationsOfManyProcesses(t *testing.T) {
	began := time.Now()
	l := NewFile(filepath.Join(modelDir(t), "ledger.db"), Options{})
	mustOpen(t, l, "r0", 1, 1)
	seed := uint64(began.UnixNano())
	log := play(t, l, rand.New(rand.NewPCG(seed, 1)), int64(scaled(110_000)))
	played := time.Now()

	var stored []Receipt
	require.NoError(t, l.Entries(context.Background(), 1, func(r Receipt, _ []byte) error {
		stored = append(stored, r)
		return nil
	}))
	m := &reference{runs: map[string]*refRun{}}
	opened := modelOp{Do: "open", Run: "r0", Turns: 1, More: 1}
	require.NoError(t, m.do(opened, *m.predict(opened).appended, stored[0]))
	c := m.compare(log, stored)
	for _, row := range slices.Sorted(maps.Keys(c.rows)) {
		t.Logf("%7d %s", c.rows[row], row)
	}
	t.Logf("seed %d: %d operations, %d entries of %d runs, %d kills, %d entries of killed processes, %d differences; %.1f s, and %.1f s to compare",
		seed, len(log.done), len(stored), len(m.runs), log.kills, c.killed, len(c.differences), played.Sub(began).Seconds(), time.Since(played).Seconds())
	for _, d := range c.differences[:min(len(c.differences), 5)] {
		t.Error(d)
	}
	if t.Failed() {
		return
	}
	if !testing.Short() && !raceDetector { // the harness must come to what is rare
		for _, row := range []string{
			"begin replayed", "begin turn over", "begin key used before", "begin refused, ends a turn", "begin appended, ends a turn",
			"begin refused: turns", "begin refused: dimensions", "begin refused: dimension-turns", "end appended", "end replayed",
			"turn turn open", "turn replayed", "turn key used before", "close appended", "grant invalid argument",
		} {
			require.NotZero(t, c.rows[row], row)
		}
		require.NotZero(t, c.killed)
	}
	runs, err := l.Runs(context.Background())
	require.NoError(t, err)
	require.Len(t, runs, len(m.runs))
	for _, u := range runs {
		require.Equal(t, m.runs[u.Run].usage(), u)
	}
	requireSound(t, l)
}

// name is the row of the state table that a prediction is.
func (p prediction) name() string {
	switch {
	case p.err != nil && p.appended != nil:
		return "refused, ends a turn"
	case p.spent != nil:
		return "refused: " + p.spent.Bound
	case p.err != nil:
		return p.err.Error()
	case p.appended != nil && p.appended.Kind == KindTurnBegun && p.appended.Ends != 0:
		return "appended, ends a turn"
	case p.appended != nil:
		return "appended"
	case p.replayed != nil:
		return "replayed"
	}
	return "read"
}
