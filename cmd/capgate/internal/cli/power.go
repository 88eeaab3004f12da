package cli

import (
	"fmt"

	"github.com/capgate/capgate/capgate/control"
)

// Power returns what an operator says at once of the state directory that the command uses: nothing where there is none.
func (a *App) Power() control.State {
	state, err := a.StateDir()
	if err != nil {
		return control.State{}
	}
	return control.Read(state, a.Now())
}

// ShowPower prints what an operator says, where he says anything: whatever else is shown counts under it.
func (a *App) ShowPower() {
	said := a.Power()
	if said.Halt != nil {
		a.Printf("HALTED  %s\n", said.Halt.HaltText())
	}
	if said.Off != nil {
		a.Printf("OFF     %s\n", said.Off.OffText())
	}
}

// NotHalted refuses to begin a turn while an operator's halt is in force: every call in it would be denied.
func (a *App) NotHalted() error {
	if halt := a.Power().Halt; halt != nil {
		return fmt.Errorf("no turn is begun: %s. This is final: do not retry", halt.HaltText())
	}
	return nil
}
