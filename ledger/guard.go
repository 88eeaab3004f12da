package ledger

import (
	"os"

	"github.com/capgate/capgate/ledger/internal/page"
)

// guard checks the pages that a transaction is about to use, before bbolt does.
type guard struct {
	pages *page.Checker
	off   bool // lets everything through: a test finds out with it what the guard is for
}

// rules are what this format has on its pages.
var rules = page.Rules{
	Buckets: []string{bucketMeta, bucketEntries, bucketRuns, bucketDimensions, bucketKeys},
	Value: func(bucket string, key, value []byte) error {
		if !isSealed(bucket, key) {
			return nil
		}
		_, err := unseal(bucket, key, value)
		return err
	},
}

// newGuard checks the parts of the file that every transaction uses.
func newGuard(f *os.File, size int64, m mode) (guard, error) {
	pages, err := page.Open(f, size, rules, m == writing)
	return guard{pages: pages}, ofPages(err)
}

// check reads the pages of a bucket that hold a range of keys, and the seals on them.
func (g guard) check(bucket string, r page.Range) error {
	if g.off {
		return nil
	}
	return ofPages(g.pages.Check(bucket, r))
}

// complete checks that the buckets of this format are there, and no others.
func (g guard) complete() error {
	if g.off {
		return nil
	}
	return ofPages(g.pages.Complete())
}

// everything checks every page once, and that none of them is free.
func (g guard) everything() error {
	if g.off {
		return nil
	}
	if err := g.pages.Freelist(); err != nil {
		return ofPages(err)
	}
	return ofPages(g.pages.Everything())
}
