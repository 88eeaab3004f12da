package doctor

import (
	"fmt"
)

// checkOMP looks at the hooks that Oh My Pi's extensions run.
func checkOMP(x Examination) []Finding {
	f := findings{check: "omp"}
	for _, e := range x.Extensions {
		if info, err := x.Files.Stat(e.Hook); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			f.add(Fail, fmt.Sprintf("%s runs %q, which cannot be run", e.Path, e.Hook), "every tool call of Oh My Pi is blocked", "capgate install --client omp --scope "+e.Place)
			continue
		}
		f.ok(e.Path + " runs " + e.Hook)
	}
	return f.all
}
