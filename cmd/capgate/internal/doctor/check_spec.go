package doctor

import (
	"fmt"

	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
	"github.com/capgate/capgate/gates"
)

// checkSpec looks at what the subagent gates are told, and at what the client must be told for them.
func checkSpec(x Examination) []Finding {
	f := findings{check: "spec"}
	c := x.Config
	if !c.Declares() || !c.GatesActive() {
		return f.all
	}
	mode := gates.ForegroundRewrite
	if c.Spec != "" {
		if x.SpecErr != nil {
			f.add(Fail, x.SpecErr.Error(), "every subagent, and the shell on the main thread, is denied", "capgate spec check "+c.Spec)
			return f.all
		}
		mode = x.Spec.Foreground
		f.ok(fmt.Sprintf("%s declares %s", c.Spec, cli.Plural(len(x.Spec.Subagents), "subagent")))
	} else {
		f.ok(fmt.Sprintf("%s allowed by CAPGATE_ALLOWED_SUBAGENTS", cli.Plural(len(c.AllowedSubagents.Names()), "subagent")))
	}
	if hooks, _ := x.hooks(settings.Judged); len(hooks) == 0 && len(x.Extensions) > 0 {
		return f.all // the variable is Claude Code's
	}
	value, _ := x.effective(claude.NoBackground)
	background := claude.Background(func(string) (string, bool) { return value, true })
	if mode != gates.ForegroundOff && background {
		f.check = "foreground"
		f.add(Fail, claude.NoBackground+" is not on for the client", "interactive sessions ignore the foreground gate and start subagents in the background", "capgate install --spec FILE or --subagents LIST writes it; or set \"foreground\": \"off\"")
	}
	return f.all
}
