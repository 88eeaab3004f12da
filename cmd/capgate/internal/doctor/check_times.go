package doctor

import (
	"fmt"
	"time"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

// checkTimes looks at the bounds in time, and at the clock.
func checkTimes(x Examination) []Finding {
	f := findings{check: "times"}
	for _, v := range []struct {
		name     string
		value    capgate.Millis
		min, max time.Duration
		use      time.Duration
	}{
		{"CAPGATE_SCOPE_TTL_MS", x.Config.ScopeTTL, time.Minute, 7 * 24 * time.Hour, x.Config.ScopeTTL.Duration(capgate.DefaultScopeTTL)},
		{"CAPGATE_DEADLINE_MS", x.Config.Deadline, 100 * time.Millisecond, settings.Timeout * time.Second, x.Config.Deadline.Duration(capgate.DefaultDeadline)},
	} {
		switch {
		case v.value == "":
		case v.value.Duration(-1) == -1:
			f.add(Fail, fmt.Sprintf("%s=%s is not a positive number of milliseconds", v.name, v.value), fmt.Sprintf("the default is used, %v", v.use), "write digits, or take it out")
		case v.use < v.min || v.use > v.max:
			f.add(Warn, fmt.Sprintf("%s is %v", v.name, v.use), fmt.Sprintf("usual is %v to %v", v.min, v.max), "set it within that, or take it out")
		}
	}
	if x.Now.Year() < 2026 {
		f.add(Fail, "the clock says "+cli.Stamp(x.Now), "markers and admissions go by it", "set the clock")
	}
	return f.all
}
