package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/scope"
)

// Patience is how long a shell is kept waiting for candidates, at most.
const Patience = time.Second

// NoFiles tells a shell that files are no candidates.
const NoFiles = cobra.ShellCompDirectiveNoFileComp

// addCompletionCmd adds cobra's own completion command, and makes it report a shell that it does not know.
func addCompletionCmd(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Short = "Generate the completion script of a shell"
		cmd.Args = nil
		cmd.Example = "  source <(capgate completion bash)"
		Parent(cmd)
	}
}

// Sessions completes the id of a session that has a marker.
func (p *Places) Sessions(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	state, err := p.StateDir()
	if err != nil {
		return nil, NoFiles
	}
	markers, err := scope.List(state)
	if err != nil {
		return nil, NoFiles
	}
	var found []string
	for _, m := range markers {
		found = Candidate(found, m.Session, "run "+m.Run)
	}
	return found, NoFiles
}

// Words completes one of a few words.
func Words(words ...string) cobra.CompletionFunc { return cobra.FixedCompletions(words, NoFiles) }

// Directories completes one directory.
func Directories(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, NoFiles
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// Candidate adds a name to those offered, unless a shell would read something else into it.
func Candidate(found []string, name, description string) []string {
	if gates.Visible(name) != name {
		return found
	}
	return append(found, cobra.CompletionWithDesc(name, gates.Visible(description)))
}
