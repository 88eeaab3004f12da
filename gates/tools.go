package gates

import "slices"

// The tools that start agents.
const (
	toolAgent    = "Agent"    // Claude Code
	toolTask     = "Task"     // Claude Code before 2.1.63
	toolWorkflow = "Workflow" // Claude Code: a script that starts many
	toolOMPTask  = "task"     // Oh My Pi: one agent or a batch
)

// Tools of Claude Code, by what they do.
var (
	// SpawnTools start agents.
	SpawnTools = []string{toolAgent, toolTask, toolWorkflow}
	// WriteTools write the files that their input names.
	WriteTools = []string{"Write", "Edit", "MultiEdit", "NotebookEdit"}
)

// toolOMPShell is Oh My Pi's shell.
const toolOMPShell = "bash"

// StartsAgents reports whether the tool starts agents: Agent, Task and Workflow of Claude Code, task of Oh My Pi.
func StartsAgents(tool string) bool {
	return tool == toolOMPTask || slices.Contains(SpawnTools, tool)
}

// Shell reports whether the tool runs shell commands: Bash, PowerShell and Monitor of Claude Code, bash of Oh My Pi.
func Shell(tool string) bool {
	switch tool {
	case "Bash", "PowerShell", "Monitor", toolOMPShell:
		return true
	}
	return false
}

// Writes reports whether the tool writes the files its input names: Claude Code's Write, Edit, MultiEdit and
// NotebookEdit, and Oh My Pi's write, edit and ast_edit.
func Writes(tool string) bool {
	return ompWrites(tool) || slices.Contains(WriteTools, tool)
}

func ompWrites(tool string) bool { return tool == "write" || tool == "edit" || tool == toolASTEdit }

// toolASTEdit is the one write tool that takes directories and globs.
const toolASTEdit = "ast_edit"
