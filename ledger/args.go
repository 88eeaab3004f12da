package ledger

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// validText holds text against the bounds of ids and reasons. Control characters are refused because ids end up in
// one-line messages, and because NUL separates them in the store; U+FFFD because decoders put it in place of text that
// was broken, so that two different broken ids look alike, and no marker can name such a run.
func validText(what, text string, least, most int) error {
	switch {
	case len(text) < least:
		return fmt.Errorf("%w: %s is empty", ErrInvalid, what)
	case len(text) > most:
		return fmt.Errorf("%w: %s has %d bytes, at most %d are allowed", ErrInvalid, what, len(text), most)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: %s is not valid UTF-8", ErrInvalid, what)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%w: %s %q holds a control character", ErrInvalid, what, text)
	case strings.ContainsRune(text, utf8.RuneError):
		return fmt.Errorf("%w: %s %q holds U+FFFD, which stands for text that was broken", ErrInvalid, what, text)
	}
	return nil
}

func validRun(run string) error { return validText("run", run, 1, MaxIDBytes) }

func validTurn(run, dimension, key string) error {
	if err := validRun(run); err != nil {
		return err
	}
	if err := validText("dimension", dimension, 0, MaxIDBytes); err != nil {
		return err
	}
	return validText("key", key, 0, MaxIDBytes)
}

func validLimits(maxConvTurns, maxDimensions int64) error {
	switch {
	case maxConvTurns < 1:
		return fmt.Errorf("%w: max_conv_turns is %d, it must be at least 1", ErrInvalid, maxConvTurns)
	case maxDimensions < 1:
		return fmt.Errorf("%w: max_dimensions is %d, it must be at least 1", ErrInvalid, maxDimensions)
	case maxConvTurns > MaxLimit/maxDimensions:
		return fmt.Errorf("%w: max_conv_turns %d × max_dimensions %d is over %d", ErrInvalid, maxConvTurns, maxDimensions, int64(MaxLimit))
	}
	return nil
}

func validGrant(run string, g Grant, reason string) error {
	if err := validRun(run); err != nil {
		return err
	}
	if err := g.valid(); err != nil {
		return err
	}
	return validText("reason", reason, 1, MaxReasonBytes)
}

func (g Grant) valid() error {
	n, what := g.Turns, "turns"
	switch {
	case g.Turns != 0 && g.Dimensions != 0:
		return fmt.Errorf("%w: a grant is of turns or of dimensions, not of both; make two grants", ErrInvalid)
	case g.Dimensions != 0 && g.Dimension != "":
		return fmt.Errorf("%w: a grant to dimension %q is of turns, not of dimensions", ErrInvalid, g.Dimension)
	case g.Dimensions != 0:
		n, what = g.Dimensions, "dimensions"
	}
	if n < 1 || n > MaxLimit {
		return fmt.Errorf("%w: a grant is of 1 to %d %s, not %d", ErrInvalid, int64(MaxLimit), what, n)
	}
	return validText("dimension", g.Dimension, 0, MaxIDBytes)
}

// parseAnchors reads anchors, of which each must be well-formed.
func parseAnchors(anchors []Anchor) ([]parsedAnchor, error) {
	parsed := make([]parsedAnchor, len(anchors))
	for i, a := range anchors {
		var err error
		if parsed[i], err = parseAnchor(a); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

// parsedAnchor is an [Anchor] in binary.
type parsedAnchor struct {
	id digest
	link
}

func parseAnchor(a Anchor) (parsedAnchor, error) {
	id, ok := parseDigest(a.Ledger)
	if !ok {
		return parsedAnchor{}, fmt.Errorf("%w: the anchor's ledger id is not 64 lower-case hex digits", ErrInvalid)
	}
	hash, ok := parseDigest(a.Hash)
	if !ok {
		return parsedAnchor{}, fmt.Errorf("%w: the anchor's hash is not 64 lower-case hex digits", ErrInvalid)
	}
	return parsedAnchor{id: id, link: link{seq: a.Seq, hash: hash}}, nil
}
