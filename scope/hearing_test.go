package scope

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger"
)

func TestHearing(t *testing.T) {
	armed := now
	at := func(minutes int) time.Time { return armed.Add(time.Duration(minutes) * time.Minute) }
	for _, c := range []struct {
		name  string
		beat  Heartbeat
		turns ledger.Turns
		want  Hearing
	}{
		{"armed, nothing else", Heartbeat{}, ledger.Turns{}, NotYet},
		{"heard before it was armed", Heartbeat{At: at(-1)}, ledger.Turns{}, NotYet},
		{"a turn is open and has not searched", Heartbeat{}, ledger.Turns{Open: 1, Newest: at(1)}, NotYet},
		{"a turn was recorded, before or after its searches", Heartbeat{}, ledger.Turns{Newest: at(1)}, NotYet},
		{"turns from before it was armed say nothing", Heartbeat{}, ledger.Turns{Newest: at(-1), Before: at(-2), Ended: at(-1)}, NotYet},
		{"a turn was recorded after one from before", Heartbeat{}, ledger.Turns{Newest: at(1), Before: at(-2)}, NotYet},
		{"a grant or another run's entry is no turn", Heartbeat{}, ledger.Turns{}, NotYet},

		{"a turn is over", Heartbeat{}, ledger.Turns{Newest: at(1), Ended: at(2)}, Silent},
		{"the next turn is open", Heartbeat{}, ledger.Turns{Open: 1, Newest: at(2), Before: at(1), Ended: at(2)}, Silent},
		{"two turns were recorded", Heartbeat{}, ledger.Turns{Newest: at(2), Before: at(1)}, Silent},
		{"heard only before it was armed", Heartbeat{At: at(-1), Passed: 3}, ledger.Turns{Newest: at(2), Before: at(1)}, Silent},

		{"heard", Heartbeat{At: at(1)}, ledger.Turns{}, Hears},
		{"heard at the very moment", Heartbeat{At: armed}, ledger.Turns{Newest: at(2), Before: at(1)}, Hears},
		{"heard, in a turn", Heartbeat{At: at(2), Passed: 5}, ledger.Turns{Open: 1, Newest: at(1)}, Hears},
		{"heard, after a turn", Heartbeat{At: at(2), Passed: 5}, ledger.Turns{Newest: at(1), Ended: at(1)}, Hears},
		{"heard, in a turn that was open when another session took this one's place", Heartbeat{At: at(2), Passed: 5}, ledger.Turns{Open: 1, Newest: at(-1)}, Hears},
		{"heard, and only denied", Heartbeat{At: at(2)}, ledger.Turns{Newest: at(-1)}, Hears},

		{"calls pass, no turn was ever counted", Heartbeat{At: at(2), Passed: 12}, ledger.Turns{}, Uncounted},
		{"calls pass, the turns are from before it was armed", Heartbeat{At: at(2), Passed: 1}, ledger.Turns{Newest: at(-1), Before: at(-2), Ended: at(-1)}, Uncounted},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A loop that writes its marker itself may leave startedAt out: the file's own time counts.
			require.Equal(t, c.want, Marker{ModTime: armed}.Hear(c.beat, c.turns))
			require.Equal(t, c.want, Marker{ModTime: armed, StartedAt: at(-100)}.Hear(c.beat, c.turns))
		})
	}
}
