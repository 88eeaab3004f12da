// Package scope keeps the marker files that put a client session in scope of a research run.
//
// Most callers need [Read] and [Marker.Expired] (the hook), or [Write] and [Close] (the loop).
//
// # File format
//
// A session's marker is the file
//
//	<state>/trekresearch-loop-scope/<session>.json
//
// holding one JSON object of at most 64 KiB ([MaxBytes]):
//
//	{"runId":"storm-42","startedAt":"2026-03-01T09:30:00.000Z","anchor":{"ledger":"01JD","seq":17,"hash":"9f86d081"}}
//
// Its keys:
//
//   - runId, required: a string of 1 to 256 bytes of valid UTF-8, without control characters and without U+FFFD, which
//     is what decoders put in place of text that was broken.
//   - startedAt, optional: a string, RFC 3339 with any number of fraction digits; the offset may also be written
//     without its colon (+0200). Anything else counts as missing.
//   - anchor, optional, null for none: an object with all of ledger and hash (strings, same rule as runId) and seq (an
//     integer from 0 to 2^64-1, written without fraction or exponent). It says what the ledger held when the session
//     was armed. One that is there but malformed makes the whole marker unreadable: it must never pass for no anchor.
//   - from, optional: the session whose place this one has taken ([Follow]). Anything but a session id counts as missing.
//
// Keys are compared exactly, of a key given twice the last one counts, and unknown keys are ignored whatever they hold.
// One UTF-8 byte order mark in front and white space around the object are tolerated. Values nested deeper than 10,000
// levels are refused.
//
// Session ids are 1 to 128 bytes of [A-Za-z0-9._-], do not start with a dot, and are none of null, undefined and unknown
// (exactly so: NULL is an id like any other). No other id ever touches the disk.
//
// Names in the directory that start with ".capgate-" are temporary files (package disk); no session id can take them.
//
// # Age
//
// A marker's age is now minus startedAt, or minus the time of its run's newest ledger entry, whichever is less. Where
// startedAt is missing, or more than a minute in the future, the file's modification time serves. Reading never changes a
// modification time, no marker is rewritten as its run goes on, and nothing depends on access times.
//
// A marker expires when its age is over the time to live. So does one whose age is as far below zero: startedAt and
// modification time are both further in the future than that, which only a wrong clock writes, and it would never
// grow old.
//
// # Threat model
//
// Anybody who may write to the state directory may write a marker, a loop's own snippet included, so reading trusts
// nothing: the marker must be a regular file that is no symbolic link, and whatever else stands in its place is reported
// as [ErrUnreadable], without waiting for a FIFO's writer or touching a link's target.
//
// Symbolic links on the way to the state directory, and the state directory itself being one, are the operator's choice
// and are followed. The trekresearch-loop-scope directory must be a real directory ([ErrState] otherwise): [Sweep]
// deletes old .json files, and a link would point it at files that were never markers.
//
// A process that can write to the directory can always remove a marker: this package guards against accidents and races,
// not against its owner.
//
// # Crash guarantee
//
// [Write] leaves either the old marker or the new one, complete, whatever happens. When it has returned nil the new one
// survives a power failure. A marker that others write in place may be seen half-written: it is then unreadable, never a
// different run. An empty or changing one is looked at again for some milliseconds first.
//
// # Compatibility
//
// The path and the meaning of the three keys do not change. New keys may come; readers ignore those they do not know.
package scope
