package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Build says what this program was built from.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the version control system
	Time     string `json:"time,omitempty"`     // of that revision
	Modified bool   `json:"modified"`           // there were changes on top of it
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// Build returns what this program was built from. The version that the linker was told goes before the go command's.
func (o Outside) Build() Build {
	b := Build{Version: o.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if b.Version == "" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.time":
				b.Time = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	return b
}

// String returns all of it on one line.
func (b Build) String() string {
	s := b.Version
	if b.Revision != "" {
		s += fmt.Sprintf(" %.12s", b.Revision)
		if b.Modified {
			s += "+changes"
		}
	}
	return fmt.Sprintf("%s %s %s/%s", s, b.Go, b.OS, b.Arch)
}

func newVersionCmd(a *App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Long:    `Prints the version of this program, the revision it was built from, and the Go version, system and architecture.`,
		Example: `  capgate version --json`,
		Args:    NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error {
			b := a.Build()
			if a.AsJSON {
				return a.JSON(b)
			}
			a.Printf("capgate %s\n", b.String())
			return nil
		}),
	}
}
