package doctor

import (
	"fmt"
	"strings"

	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

// checkCopies looks for a second copy of the hook: both run on every call.
func checkCopies(x Examination) []Finding {
	f := findings{check: "copies"}
	_, layers := x.hooks(settings.Judged)
	var places []string
	for _, l := range layers {
		places = append(places, l.Path)
	}
	places = append(places, x.plugins()...)
	if len(places) < 2 {
		return nil
	}
	mend := "remove all but one of the plugins with the client's /plugin command"
	if len(layers) > 0 {
		mend = "capgate uninstall --scope " + layers[len(layers)-1].Place
	}
	f.add(Warn, fmt.Sprintf("%d copies: %s", len(places), strings.Join(places, ", ")),
		"each runs on every call: they count once, but each takes its time, and they may be of different versions", mend)
	return f.all
}
