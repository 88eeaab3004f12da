package doctor

import (
	"fmt"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/setup"
	"github.com/capgate/capgate/gates"
)

// checkSwitches looks at the variables that the hook gets, and at where they come from.
func checkSwitches(x Examination) []Finding {
	f := findings{check: "switch"}
	for _, v := range capgate.Variables(x.effective) {
		value, from := v.Value, "this shell"
		if value == "" {
			continue
		}
		_, layer := x.layerOf(v.From)
		if layer != nil {
			from = layer.Path
		}
		found := fmt.Sprintf("%s=%s, from %s", v.From, value, from)
		kill := strings.Contains(v.Name, "DISABLE")
		isSwitch := kill || v.Name == "CAPGATE_ENABLED"
		switch {
		case isSwitch && capgate.Switch(value).Suspect():
			f.add(Fail, found, "a switch is on when its value is exactly 1: this one is off", "write 1, or take it out")
		case kill && value == "1":
			f.add(Warn, found, v.Meaning+", by a kill switch", "take it out of "+from)
		}
		if layer != nil && (isSwitch && (layer.Place == setup.ScopeProject || layer.Place == setup.ScopeLocal)) {
			f.add(Warn, found, "an agent that may write in this project can write this file", "keep switches in the user's settings: capgate install --scope user, capgate uninstall --scope "+layer.Place)
		}
	}
	if x.Said.Halt != nil {
		f.add(Warn, x.Said.Halt.HaltText(), "every tool call is denied", "capgate halt --lift")
	}
	if x.Said.Off != nil {
		f.add(Warn, x.Said.Off.OffText(), "nothing is judged meanwhile of what is off", "capgate on")
	}
	for _, v := range x.ignored() {
		f.add(Warn, fmt.Sprintf("%s=%s in the client's environment", v.From, v.Value),
			"it does nothing for the hook, whose settings are in its environment file", "write it into that file, or take it out")
	}
	for _, name := range capgate.UnknownSettings(x.Entry.File) {
		f.add(Warn, name+" in the environment file", "it is no setting of capgate's: it does nothing there", "take it out, or see capgate help environment")
	}
	switch {
	case x.EntryErr != nil: // said of the file
	case !x.Config.Enabled.On() && !x.Config.CapOff():
		f.add(Fail, "CAPGATE_ENABLED is not 1 for the hook", "the cap is off", "capgate install")
	case x.Config.CapOn():
		f.ok("the cap is on")
	}
	for _, entry := range x.Config.CapTools.Invalid() {
		mend := "write the names of tools, for instance WebSearch,mcp__exa__*"
		if meant := capgate.ToolsMeant(entry); meant != "" {
			mend = "write " + meant
		}
		f.add(Fail, "CAPGATE_CAP_TOOLS names "+entry, "it can be no tool's name and caps nothing; the default tools are capped as well", mend)
	}
	if x.Config.CapTools != "" && len(x.Config.CapTools.Names()) == 0 {
		f.add(Warn, fmt.Sprintf("CAPGATE_CAP_TOOLS=%s names no tool", x.Config.CapTools), "the default list is used", "name tools, or take it out")
	}
	switch gates.AdmissionMode(x.Config.Admission) {
	case "", gates.AdmissionOff, gates.AdmissionAsk, gates.AdmissionDeny:
	default:
		f.add(Warn, "CAPGATE_ADMISSION="+x.Config.Admission, "it is no mode, and is taken as ask", "write off, ask or deny")
	}
	return f.all
}
