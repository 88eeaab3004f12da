package gates

import (
	"cmp"
	"fmt"
	"strings"
)

// WorkflowType is the type as which every agent of a workflow counts that names none.
const WorkflowType = "workflow-subagent"

// unset stands for a type that is missing, null, empty or not a string.
const unset = "(unset)"

// MaxSpawnInput bounds the input of a spawn tool that the gates judge, in bytes. No prompt is that long, and an answer that
// repeats the input, as a rewrite does, has to fit into what a client reads.
const MaxSpawnInput = 1 << 20

// tooLong denies a spawn whose input is longer than [MaxSpawnInput], before any gate looks into it.
func tooLong(c Call) (v Verdict, long bool) {
	if !StartsAgents(c.Tool) || len(c.Input) <= MaxSpawnInput {
		return Verdict{}, false
	}
	return Verdict{Outcome: Deny, Code: CodeSpawnTooLong, Reason: fmt.Sprintf(
		"The input of this call is %d bytes long, and no subagent is started with more than %d. Do not retry it as it is: write long material to a file and name the file in the prompt.",
		len(c.Input), MaxSpawnInput)}, true
}

// Spawn is one agent that a call wants to start. Missing texts are "".
type Spawn struct {
	Name string // what the caller calls it
	Type string
	Task string
}

// Spawns returns the agents that the call wants to start: none for a call of another tool, at least one for a spawn
// tool, whatever its input is.
func Spawns(c Call) []Spawn {
	switch c.Tool {
	case toolAgent, toolTask:
		member := cmp.Or(c.TypeMember, "subagent_type")
		in := fields(c.Input, "name", "description", member, "prompt")
		name := in.text("name")
		if name == "" {
			name = in.text("description")
		}
		return []Spawn{{Name: name, Type: in.text(member), Task: in.text("prompt")}}
	case toolWorkflow:
		return []Spawn{{Name: "workflow of any number of agents", Type: WorkflowType, Task: workflowTask(fields(c.Input, "scriptPath", "name", "script"))}}
	case toolOMPTask:
		return ompSpawns(fields(c.Input, "tasks", "name", "agent", "task"))
	}
	return nil
}

// Bounds of what a workflow's input names, where it names several, in UTF-16 units. Together they fit into a task.
const (
	maxRun    = 120
	maxNotRun = 40
)

// workflowTask says what a workflow runs: of a script's path, a saved workflow's name and a script the first that is there
// (Claude Code 2.1.332, measured). What is there besides is named, too: it is what the others were to be taken for.
func workflowTask(in object) string {
	var named []string
	for _, m := range []struct{ key, what string }{{"scriptPath", "the script at "}, {"name", "the saved workflow "}, {"script", ""}} {
		if text := in.text(m.key); text != "" {
			named = append(named, m.what+text)
		}
	}
	if len(named) < 2 {
		return strings.Join(named, "")
	}
	// Each is cut on its own, so that a long one does not push the others out of the question.
	for i := range named {
		limit := maxNotRun
		if i == 0 {
			limit = maxRun
		}
		named[i] = shorten(fold(named[i]), limit)
	}
	return "runs " + named[0] + "; not run, but named as well: " + strings.Join(named[1:], "; ")
}

// SpawnTypes returns the type of each agent that the call wants to start, "" for one without.
func SpawnTypes(c Call) []string {
	var types []string
	for _, s := range Spawns(c) {
		types = append(types, s.Type)
	}
	return types
}

// ompSpawns reads a batch {context, tasks:[{name, agent, task}]} and the flat form {name, agent, task}. An input that
// is both counts as both.
func ompSpawns(in object) []Spawn {
	var spawns []Spawn
	if batch, ok := in["tasks"]; ok {
		if err := Elements(batch, func(task []byte) { spawns = append(spawns, ompSpawn(fields(task, "name", "agent", "task"))) }); err != nil {
			spawns = append(spawns, Spawn{}) // what is no list cannot be told, and has no type
		}
	}
	if _, flat := in["agent"]; flat || len(spawns) == 0 {
		spawns = append(spawns, ompSpawn(in))
	}
	return spawns
}

func ompSpawn(in object) Spawn {
	return Spawn{Name: in.text("name"), Type: in.text("agent"), Task: in.text("task")}
}
