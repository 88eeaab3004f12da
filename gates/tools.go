package gates

// The tools that start agents.
const (
	toolAgent    = "Agent"    // Claude Code
	toolTask     = "Task"     // Claude Code before 2.1.63
	toolWorkflow = "Workflow" // Claude Code: a script that starts many
	toolOMPTask  = "task"     // Oh My Pi: one agent or a batch
)

// toolOMPShell is Oh My Pi's shell.
const toolOMPShell = "bash"

// StartsAgents reports whether the tool starts agents: Agent, Task and Workflow of Claude Code, task of Oh My Pi.
func StartsAgents(tool string) bool {
	switch tool {
	case toolAgent, toolTask, toolWorkflow, toolOMPTask:
		return true
	}
	return false
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
	switch tool {
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return true
	}
	return ompWrites(tool)
}

func ompWrites(tool string) bool { return tool == "write" || tool == "edit" || tool == toolASTEdit }

// toolASTEdit is the one write tool that takes directories and globs.
const toolASTEdit = "ast_edit"
