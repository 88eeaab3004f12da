package gates

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// AdmissionMode says what happens when an agent is about to start.
type AdmissionMode string

// The values of [AdmissionMode]. Any other is taken as AdmissionAsk: a mistyped mode must not let agents start unseen.
const (
	AdmissionOff  AdmissionMode = "off"
	AdmissionAsk  AdmissionMode = "ask"
	AdmissionDeny AdmissionMode = "deny"
)

// Reasons of [Admission] where nobody can be asked, and where nothing is admitted.
const (
	reasonNoUI    = "Starting subagents needs a human's approval, and nobody can be asked in this session. " + goOn
	reasonNoUIOMP = "Spawning subagents requires explicit user approval in an interactive OMP session. " + goOn
	reasonDenied  = "Subagents are switched off in this session, and none like this is admitted. " + goOn

	goOn = "Do not retry: go on in the current agent, and tell the user that an operator can admit a subagent beforehand with `capgate admit`."
)

// Admission puts spawns before a human. AdmissionAsk asks once for all agents of a call; where it is known that nobody
// can answer, it denies: absence of a dialog is not consent.
func Admission(mode AdmissionMode) Gate {
	return func(c Call) Verdict {
		if mode == AdmissionOff || mode == "" {
			return Verdict{}
		}
		if v, long := tooLong(c); long {
			return v
		}
		spawns := Spawns(c)
		switch {
		case len(spawns) == 0:
			return Verdict{}
		case mode == AdmissionDeny:
			return Verdict{Outcome: Deny, Code: CodeAdmissionDenied, Reason: reasonDenied}
		case !c.CanAsk() && c.Tool == toolOMPTask:
			return Verdict{Outcome: Deny, Code: CodeAdmissionNoUI, Reason: reasonNoUIOMP}
		case !c.CanAsk():
			return Verdict{Outcome: Deny, Code: CodeAdmissionNoUI, Reason: reasonNoUI}
		}
		return Verdict{Outcome: Ask, Code: CodeAdmissionAsk, Reason: AdmissionText(spawns)}
	}
}

// CanAsk reports whether a human may be there to answer a question about the call. Oh My Pi says so where one is; of Claude Code
// it is enough that it is not known that there is none.
func (c Call) CanAsk() bool {
	if c.Tool == toolOMPTask || c.Tool == toolOMPShell {
		return c.Attended == Attended
	}
	return c.Attended != Absent && c.Mode != "dontAsk"
}

// AdmissionTitle is the title of the question's dialog, where a client has one.
const AdmissionTitle = "Approve subagent spawn?"

// Bounds of the admission text, in UTF-16 units, as JavaScript counts the length of a text.
const (
	maxTask = 240
	maxName = 80
	// maxListed bounds the agents that are listed, in lines: a person reads no more, and a client may show less.
	maxListed = 50
)

// AdmissionText is the question for all agents of a call: a line that counts them, one for each of the first fifty, one that
// says how many more there are, and what they cost, with an empty line between them. Names and tasks come from a model, so
// nothing in them can add a line, end its field or hide: white space is folded, and control and invisible characters are
// shown as escapes, brackets in names and types, too.
func AdmissionText(spawns []Spawn) string {
	var b strings.Builder
	plural := "s"
	if len(spawns) == 1 {
		plural = ""
	}
	fmt.Fprintf(&b, "Spawn %d subagent%s?\n\n", len(spawns), plural)
	for i, s := range spawns[:min(len(spawns), maxListed)] {
		fmt.Fprintf(&b, "- %s [%s]: %s\n\n",
			label(s.Name, fmt.Sprintf("spawn %d", i+1)), label(s.Type, "default"), task(s.Task))
	}
	if more := len(spawns) - maxListed; more > 0 {
		fmt.Fprintf(&b, "- and %d more that are not listed\n\n", more)
	}
	b.WriteString("Subagents add latency and cost. Approve only when delegation materially helps.")
	return b.String()
}

// label shows a name or a type.
func label(text, otherwise string) string {
	text = fold(text)
	if text == "" {
		return otherwise
	}
	return strings.NewReplacer("[", `\x5b`, "]", `\x5d`).Replace(Visible(shorten(text, maxName)))
}

func task(text string) string {
	text = fold(text)
	if text == "" {
		return "(task not provided)"
	}
	return Visible(shorten(text, maxTask))
}

// fold makes one space of any white space, and none at the ends. A byte order mark is white space to JavaScript.
func fold(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }), " ")
}

// shorten cuts a text of more than limit UTF-16 units to at most three fewer and adds three dots.
func shorten(text string, limit int) string {
	units, cut := 0, 0
	for i, r := range text {
		if units <= limit-3 {
			cut = i
		}
		if units += utf16.RuneLen(r); units > limit {
			return text[:cut] + "..."
		}
	}
	return text
}

// Visible returns text with control characters and invisible ones (bidi controls, zero width, fillers) written as Go
// escapes: text that others wrote is shown to people, never obeyed by their terminals.
func Visible(text string) string {
	if strings.IndexFunc(text, hidden) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			q := fmt.Sprintf("%+q", r)
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func hidden(r rune) bool {
	switch r {
	case '\u2028', '\u2029', '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800', '\u034f': // separators and blank fillers
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)
}
