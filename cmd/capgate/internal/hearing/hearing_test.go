package hearing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The three commands that ask answer the same facts differently. The table shows where.
func TestSilence(t *testing.T) {
	armed := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	later := armed.Add(time.Minute)
	for _, tt := range []struct {
		name                 string
		facts                Facts
		turn, status, doctor Word
	}{
		{"no turn yet", Facts{Newest: 5, Armed: 5, NewestAt: armed, ArmedAt: armed}, NotYet, NotYet, NotYet},
		{"turns, all before it was armed", Facts{Used: 4, Newest: 5, Armed: 5, NewestAt: armed, ArmedAt: later}, NotYet, NotYet, NotYet},
		{"the first turn since", Facts{Used: 1, Newest: 6, Armed: 5, NewestAt: later, ArmedAt: armed, Since: 1}, NotYet, Silent, Doubtful},
		{"the first turn since, after earlier ones", Facts{Used: 5, Newest: 6, Armed: 5, NewestAt: later, ArmedAt: armed, Since: 1}, NotYet, Silent, Doubtful},
		{"the first turn since, beside another run's entry", Facts{Used: 1, Newest: 7, Armed: 5, NewestAt: later, ArmedAt: armed, Since: 1}, NotYet, Silent, Doubtful},
		{"two turns since", Facts{Used: 2, Newest: 7, Armed: 5, NewestAt: later, ArmedAt: armed, Since: 2}, Silent, Silent, Silent},
		{"no turn, but an entry since", Facts{Newest: 6, Armed: 5, NewestAt: later, ArmedAt: armed}, NotYet, NotYet, NotYet},
		{"heard", Facts{Heard: true, Used: 2, Newest: 7, Armed: 5, NewestAt: later, ArmedAt: armed, Since: 2}, Heard, Heard, Heard},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.turn, Silence(Turn, tt.facts), "turn")
			assert.Equal(t, tt.status, Silence(Status, tt.facts), "status")
			assert.Equal(t, tt.doctor, Silence(Doctor, tt.facts), "doctor")
		})
	}
}
