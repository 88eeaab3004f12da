package ledger

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
)

// A decision must cost the same however long the ledger is.
func BenchmarkBudget(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := NewFile(filepath.Join(b.TempDir(), "ledger.db"), Options{})
			ctx := context.Background()
			if _, err := l.OpenRun(ctx, "r", MaxLimit, 1); err != nil {
				b.Fatal(err)
			}
			anchor, err := l.Head(ctx)
			if err != nil {
				b.Fatal(err)
			}
			fill(b, l, "r", n)
			for b.Loop() {
				if _, err := l.Budget(ctx, "r", &anchor); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkBeginTurn(b *testing.B) {
	l := NewFile(filepath.Join(b.TempDir(), "ledger.db"), Options{})
	ctx := context.Background()
	if _, err := l.OpenRun(ctx, "r", MaxLimit, 1); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if _, err := l.BeginTurn(ctx, "r", "d", fmt.Sprint(i)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecordTurn(b *testing.B) {
	l := NewFile(filepath.Join(b.TempDir(), "ledger.db"), Options{})
	ctx := context.Background()
	if _, err := l.OpenRun(ctx, "r", MaxLimit, 1); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if _, err := l.RecordTurn(ctx, "r", "d", fmt.Sprint(i)); err != nil {
			b.Fatal(err)
		}
	}
}
