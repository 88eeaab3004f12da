package doctor

// Levels of a finding.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)

// Finding is one line of the doctor.
type Finding struct {
	Check   string `json:"check"`
	Level   string `json:"level"`          // "ok", "warn" or "fail"
	Found   string `json:"found"`          // what is
	Meaning string `json:"meaning"`        // what that means; "" where it is plain
	Mend    string `json:"mend,omitempty"` // the command that mends it
}

// findings collects what one check has found.
type findings struct {
	check string
	all   []Finding
}

func (f *findings) add(level, found, meaning, mend string) {
	f.all = append(f.all, Finding{Check: f.check, Level: level, Found: found, Meaning: meaning, Mend: mend})
}

func (f *findings) ok(found string) { f.add(OK, found, "", "") }
