package scope

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const validText = `{"runId":"storm-42","startedAt":"2026-03-01T09:30:00.000Z","anchor":{"ledger":"01JD","seq":17,"hash":"9f86d081"}}`

func validMarker() Marker {
	return Marker{
		Run:       "storm-42",
		StartedAt: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC),
		Anchor:    &Anchor{Ledger: "01JD", Seq: 17, Hash: "9f86d081"},
	}
}

func TestThePackageCommentShowsAMarkerThatIsRead(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	require.Contains(t, string(doc), "//\t"+validText+"\n")
	m, err := decode([]byte(validText))
	require.NoError(t, err)
	require.Equal(t, validMarker(), m)
}

func TestAMarkerIsReadWhen(t *testing.T) {
	run256 := strings.Repeat("é", 128)
	for name, c := range map[string]struct{ text, run string }{
		"only runId":                    {`{"runId":"r"}`, "r"},
		"byte order mark":               {"\ufeff" + `{"runId":"r"}`, "r"},
		"white space":                   {" \r\n\t" + `{"runId":"r"}` + " \r\n\t\n", "r"},
		"byte order mark, white space":  {"\ufeff\r\n" + `{"runId":"r"}` + "\r\n", "r"},
		"256 bytes":                     {`{"runId":"` + run256 + `"}`, run256},
		"escapes":                       {`{"runId":"\u0072\ud83d\ude00"}`, "r😀"},
		"escaped key":                   {`{"\u0072unId":"r"}`, "r"},
		"last duplicate counts":         {`{"runId":7,"runId":"first","runId":"last"}`, "last"},
		"other case is another key":     {`{"runId":"r","RunID":"x","runid":7}`, "r"},
		"unknown fields":                {`{"a":null,"b":[1,{"runId":"x"}],"c":{"runId":"x"},"d":1e999,"runId":"r"}`, "r"},
		"unknown field of invalid utf8": {"{\"x\":\"\xff\",\"runId\":\"r\"}", "r"},
		"deep unknown field":            {`{"x":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `,"runId":"r"}`, "r"},
		"spaces inside the run":         {`{"runId":" a b "}`, " a b "},
		"path-like run":                 {`{"runId":"../x"}`, "../x"},
		"anchor null":                   {`{"runId":"r","anchor":null}`, "r"},
		"anchor of another case":        {`{"runId":"r","Anchor":7}`, "r"},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			put(t, state, "s", c.text)
			m, err := Read(state, "s")
			require.NoError(t, err)
			require.Equal(t, c.run, m.Run)
			require.Nil(t, m.Anchor)
			require.True(t, m.StartedAt.IsZero())
		})
	}
}

func TestAMarkerIsUnreadableWhen(t *testing.T) {
	anchor := func(a string) string { return `{"runId":"r","anchor":` + a + `}` }
	for name, text := range map[string]string{
		"empty":                    "",
		"white space only":         " \n",
		"byte order mark only":     "\ufeff",
		"two byte order marks":     "\ufeff\ufeff" + `{"runId":"r"}`,
		"byte order mark behind":   " \ufeff" + `{"runId":"r"}`,
		"utf-16":                   "\xff\xfe{\x00}\x00",
		"not json":                 "storm-42",
		"null":                     "null",
		"array":                    `[{"runId":"r"}]`,
		"string":                   `"r"`,
		"number":                   `7`,
		"two objects":              `{"runId":"r"}{"runId":"r"}`,
		"trailing text":            `{"runId":"r"} x`,
		"trailing NUL":             `{"runId":"r"}` + "\x00",
		"zeroed":                   strings.Repeat("\x00", 64),
		"trailing comma":           `{"runId":"r",}`,
		"comment":                  `{"runId":"r"} // x`,
		"no runId":                 `{}`,
		"runId of another case":    `{"runid":"r","RunId":"r","RUNID":"r"}`,
		"runId nested":             `{"x":{"runId":"r"}}`,
		"runId null":               `{"runId":null}`,
		"runId number":             `{"runId":7}`,
		"runId object":             `{"runId":{}}`,
		"runId array":              `{"runId":["r"]}`,
		"runId true":               `{"runId":true}`,
		"runId empty":              `{"runId":""}`,
		"runId of 257 bytes":       `{"runId":"` + strings.Repeat("a", 257) + `"}`,
		"runId not utf-8":          "{\"runId\":\"a\xff\"}",
		"runId lone surrogate":     `{"runId":"a\ud800"}`,
		"runId U+FFFD":             `{"runId":"a\ufffd"}`,
		"runId NUL":                `{"runId":"a\u0000"}`,
		"runId newline":            `{"runId":"a\n"}`,
		"runId delete":             `{"runId":"a\u007f"}`,
		"runId C1 control":         `{"runId":"a\u0085"}`,
		"last duplicate is broken": `{"runId":"r","runId":null}`,
		"too deep":                 `{"x":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `,"runId":"r"}`,

		"anchor false":               anchor(`false`),
		"anchor empty string":        anchor(`""`),
		"anchor zero":                anchor(`0`),
		"anchor array":               anchor(`[]`),
		"anchor empty":               anchor(`{}`),
		"anchor without ledger":      anchor(`{"seq":1,"hash":"h"}`),
		"anchor without seq":         anchor(`{"ledger":"l","hash":"h"}`),
		"anchor without hash":        anchor(`{"ledger":"l","seq":1}`),
		"anchor of another case":     anchor(`{"Ledger":"l","Seq":1,"Hash":"h"}`),
		"anchor ledger null":         anchor(`{"ledger":null,"seq":1,"hash":"h"}`),
		"anchor ledger empty":        anchor(`{"ledger":"","seq":1,"hash":"h"}`),
		"anchor hash number":         anchor(`{"ledger":"l","seq":1,"hash":7}`),
		"anchor hash too long":       anchor(`{"ledger":"l","seq":1,"hash":"` + strings.Repeat("h", 257) + `"}`),
		"anchor seq null":            anchor(`{"ledger":"l","seq":null,"hash":"h"}`),
		"anchor seq string":          anchor(`{"ledger":"l","seq":"1","hash":"h"}`),
		"anchor seq negative":        anchor(`{"ledger":"l","seq":-1,"hash":"h"}`),
		"anchor seq minus zero":      anchor(`{"ledger":"l","seq":-0,"hash":"h"}`),
		"anchor seq fraction":        anchor(`{"ledger":"l","seq":1.0,"hash":"h"}`),
		"anchor seq exponent":        anchor(`{"ledger":"l","seq":1e1,"hash":"h"}`),
		"anchor seq 2^64":            anchor(`{"ledger":"l","seq":18446744073709551616,"hash":"h"}`),
		"last anchor is broken":      `{"runId":"r","anchor":null,"anchor":7}`,
		"anchor's last hash is null": anchor(`{"ledger":"l","seq":1,"hash":"h","hash":null}`),
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			path := put(t, state, "s", text)
			setModTime(t, path, now)
			m, err := Read(state, "s")
			require.ErrorIs(t, err, ErrUnreadable)
			requireLine(t, err, path)
			requireUnreadable(t, m)
		})
	}
}

// requireUnreadable checks that only what judges the age is there.
func requireUnreadable(t testing.TB, m Marker) {
	t.Helper()
	require.Equal(t, "s", m.Session)
	require.True(t, m.ModTime.Equal(now), m.ModTime)
	require.Empty(t, m.Run)
	require.Nil(t, m.Anchor)
	require.True(t, m.StartedAt.IsZero())
}

func TestAnAnchorIsReadWhen(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want Anchor
	}{
		"largest seq":    {`{"ledger":"l","seq":18446744073709551615,"hash":"h"}`, Anchor{"l", 1<<64 - 1, "h"}},
		"seq zero":       {`{"ledger":"l","seq":0,"hash":"h"}`, Anchor{"l", 0, "h"}},
		"white space":    {` { "ledger" : "l" , "seq" : 1 , "hash" : "h" } `, Anchor{"l", 1, "h"}},
		"unknown fields": {`{"ledger":"l","seq":1,"hash":"h","x":{"seq":2},"SEQ":3}`, Anchor{"l", 1, "h"}},
		"last duplicate": {`{"seq":"x","ledger":"l","seq":1,"seq":2,"hash":"h"}`, Anchor{"l", 2, "h"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := decode([]byte(`{"runId":"r","anchor":` + c.text + `}`))
			require.NoError(t, err)
			require.Equal(t, &c.want, m.Anchor)
		})
	}
}

func TestStartedAt(t *testing.T) {
	at := func(ns int) time.Time { return time.Date(2026, 3, 1, 9, 30, 0, ns, time.UTC) }
	for name, c := range map[string]struct {
		json string
		want time.Time
	}{
		"JavaScript's toISOString": {`"2026-03-01T09:30:00.000Z"`, at(0)},
		"date -u +%FT%TZ":          {`"2026-03-01T09:30:00Z"`, at(0)},
		"one digit":                {`"2026-03-01T09:30:00.5Z"`, at(5e8)},
		"nanoseconds":              {`"2026-03-01T09:30:00.123456789Z"`, at(123456789)},
		"more digits than we keep": {`"2026-03-01T09:30:00.123456789123Z"`, at(123456789)},
		"offset":                   {`"2026-03-01T11:30:00+02:00"`, at(0)},
		"negative offset":          {`"2026-03-01T06:00:00.25-03:30"`, at(25e7)},
		"offset without colon":     {`"2026-03-01T11:30:00+0200"`, at(0)},
		"escapes":                  {`"2026-03-01T09:30:00\u005a"`, at(0)},

		"null":               {`null`, time.Time{}},
		"number":             {`1772357400000`, time.Time{}},
		"object":             {`{}`, time.Time{}},
		"false":              {`false`, time.Time{}},
		"empty":              {`""`, time.Time{}},
		"word":               {`"yesterday"`, time.Time{}},
		"no offset":          {`"2026-03-01T09:30:00"`, time.Time{}},
		"date only":          {`"2026-03-01"`, time.Time{}},
		"space for T":        {`"2026-03-01 09:30:00Z"`, time.Time{}},
		"month 13":           {`"2026-13-01T09:30:00Z"`, time.Time{}},
		"30 February":        {`"2026-02-30T09:30:00Z"`, time.Time{}},
		"milliseconds":       {`"1772357400000"`, time.Time{}},
		"trailing text":      {`"2026-03-01T09:30:00Zx"`, time.Time{}},
		"last one is broken": {`"2026-03-01T09:30:00Z","startedAt":7`, time.Time{}},
		"last one counts":    {`7,"startedAt":"2026-03-01T09:30:00Z"`, at(0)},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := decode([]byte(`{"runId":"r","startedAt":` + c.json + `}`))
			require.NoError(t, err)
			require.Equal(t, c.want, m.StartedAt)
		})
	}
}

func TestEveryTruncationIsUnreadable(t *testing.T) {
	written, err := encode(validMarker())
	require.NoError(t, err)
	for name, text := range map[string]string{"documented": validText, "written": string(written), "byte order mark": "\ufeff" + validText} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			path := put(t, state, "s", text)
			for n := len(text) - 1; n > 0; n-- { // an empty file stands in another test: it is waited for
				require.NoError(t, os.Truncate(path, int64(n)))
				_, err := Read(state, "s")
				require.ErrorIs(t, err, ErrUnreadable, text[:n])
			}
		})
	}
}

func TestMangledBytesNeverYieldAnythingUnchecked(t *testing.T) {
	for i := range len(validText) {
		for c := range 256 {
			text := []byte(validText)
			text[i] = byte(c)
			checkDecoded(t, text)
		}
		checkDecoded(t, []byte(validText[:i]+validText[i+1:]))
	}
}

// checkDecoded checks what holds for any content whatever. It is called often, so it does without require.
func checkDecoded(t *testing.T, content []byte) {
	t.Helper()
	m, err := decode(content)
	if err != nil {
		if m != (Marker{}) {
			t.Fatalf("%q: %v beside the error %v", content, m, err)
		}
		return
	}
	if err := checkText(m.Run); err != nil {
		t.Fatalf("%q: run %v", content, err)
	}
	// Another decoder agrees on the run.
	var other map[string]any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(string(content), "\ufeff")), &other); err != nil || other["runId"] != m.Run {
		t.Fatalf("%q: run %q, want %q, %v", content, m.Run, other["runId"], err)
	}
	if (m.Anchor == nil) != (other["anchor"] == nil) {
		t.Fatalf("%q: anchor %v", content, m.Anchor)
	}
	// What was read can be written, and is then read the same, but for a year that has four digits only with its offset.
	if year := m.StartedAt.Year(); year < 0 || year > 9999 {
		return
	}
	text, err := encode(m)
	if err != nil {
		t.Fatalf("%q: %v", content, err)
	}
	back, err := decode(text)
	if err != nil || !sameMarker(back, m) {
		t.Fatalf("%q: %v came back as %v, %v", content, m, back, err)
	}
}

func sameMarker(a, b Marker) bool {
	sameAnchor := a.Anchor == b.Anchor || a.Anchor != nil && b.Anchor != nil && *a.Anchor == *b.Anchor
	return a.Run == b.Run && a.StartedAt.Equal(b.StartedAt) && sameAnchor
}

func FuzzMarker(f *testing.F) {
	f.Fuzz(func(t *testing.T, content []byte) { checkDecoded(t, content) })
}
