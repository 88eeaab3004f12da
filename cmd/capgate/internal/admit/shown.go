package admit

import (
	"fmt"
	"time"

	"github.com/capgate/capgate/capgate/admission"
)

// shown is what `admit --json` prints, and one element of what `admit list --json` does.
type shown struct {
	admission.Admission
	State string `json:"state"` // "open", "spent", "expired" or "revoked"
	Left  int    `json:"left"`  // spawns that it still lets through
}

func show(ad admission.Admission, now time.Time) shown {
	s := shown{Admission: ad, State: ad.State(now)}
	if s.Spent == nil {
		s.Spent = []admission.Use{} // "[]", never "null"
	}
	if s.State == "open" {
		s.Left = ad.Uses - len(ad.Spent)
	}
	return s
}

func usedOf(ad admission.Admission) string { return fmt.Sprintf("%d of %d", len(ad.Spent), ad.Uses) }
