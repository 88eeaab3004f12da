package doctor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/capgate/capgate/cmd/capgate/internal/hearing"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

func levels(found []Finding) (all []string) {
	for _, f := range found {
		all = append(all, f.Level)
	}
	return all
}

func TestCheckClient(t *testing.T) {
	for _, tt := range []struct {
		name   string
		client Client
		level  string
	}{
		{"not on PATH", Client{}, Warn},
		{"it fails", Client{Program: "/c", Err: errors.New("exit status 1")}, Warn},
		{"it says no version", Client{Program: "/c", Said: "hello"}, Warn},
		{"too old", Client{Program: "/c", Version: "2.1.294"}, Fail},
		{"the first one that will do", Client{Program: "/c", Version: "2.1.295"}, OK},
		{"of a later minor", Client{Program: "/c", Version: "2.2.0-beta.1"}, OK},
	} {
		assert.Equal(t, []string{tt.level}, levels(checkClient(Examination{Client: tt.client})), tt.name)
	}
}

func TestCheckMarkers(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	armed := scope.Listed{Marker: scope.Marker{Session: "s", Run: "r", StartedAt: now, ModTime: now}}
	ahead := armed
	ahead.StartedAt, ahead.ModTime = now.Add(time.Hour), now.Add(time.Hour)
	for _, tt := range []struct {
		name   string
		marker Marker
		level  string
	}{
		{"heard", Marker{Listed: armed, Hearing: hearing.Heard}, OK},
		{"not heard yet", Marker{Listed: armed, Hearing: hearing.NotYet}, OK},
		{"silent after one turn", Marker{Listed: armed, Hearing: hearing.Doubtful}, Warn},
		{"silent", Marker{Listed: armed, Hearing: hearing.Silent}, Fail},
		{"expired, whatever else", Marker{Listed: armed, Expired: true, UsageErr: ledger.ErrRunUnknown}, Warn},
		{"unreadable", Marker{Listed: scope.Listed{Err: scope.ErrUnreadable}}, Fail},
		{"of an unknown run", Marker{Listed: armed, UsageErr: ledger.ErrRunUnknown}, Fail},
		{"from the future", Marker{Listed: ahead}, Warn},
	} {
		assert.Equal(t, []string{tt.level}, levels(checkMarkers(Examination{Now: now, Markers: []Marker{tt.marker}})), tt.name)
	}
	assert.Equal(t, []string{Fail}, levels(checkMarkers(Examination{MarkersErr: scope.ErrState})))
	assert.Empty(t, checkMarkers(Examination{MarkersErr: scope.ErrNone}))
}
