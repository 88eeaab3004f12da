package doctor

import (
	"fmt"

	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

// checkSettings looks for files, and switches in them, because of which no hook of ours runs.
func checkSettings(x Examination) []Finding {
	f := findings{check: "settings"}
	for _, l := range x.Layers {
		switch {
		case l.Err != nil && l.Place == placeEnvFile:
			f.add(Fail, l.Err.Error(), "capped tools, subagents and shells are denied in every session, because it is not known what is switched on", "mend the file by hand, or move it away, then capgate install")
		case l.Err != nil:
			f.add(Fail, fmt.Sprintf("%s: %v", l.Path, l.Err), "the client ignores a broken file, and the hook with it", "mend the file by hand")
		case l.Doc != nil && l.Doc.Flag("disableAllHooks"):
			f.add(Fail, l.Path+" has disableAllHooks", "no hook runs at all", "take disableAllHooks out of "+l.Path)
		case l.Doc != nil && l.Place == placeManaged && l.Doc.Flag("allowManagedHooksOnly") && len(l.Doc.Hooks(settings.Judged, settings.IsOurs)) == 0:
			f.add(Fail, l.Path+" has allowManagedHooksOnly", "the client runs no hook but those in that file, and capgate's is not among them", "have the hook put into "+l.Path+" (README, Wire the hook by hand)")
		}
	}
	return f.all
}
