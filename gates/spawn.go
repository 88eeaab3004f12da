package gates

// WorkflowType is the type as which every agent of a workflow counts that names none.
const WorkflowType = "workflow-subagent"

// unset stands for a type that is missing, null, empty or not a string.
const unset = "(unset)"

// Spawn is one agent that a call wants to start. Missing texts are "".
type Spawn struct {
	Name string // what the caller calls it
	Type string
	Task string
}

// Spawns returns the agents that the call wants to start: none for a call of another tool, at least one for a spawn
// tool, whatever its input is.
func Spawns(c Call) []Spawn {
	in := fields(c.Input)
	switch c.Tool {
	case toolAgent, toolTask:
		name := in.text("name")
		if name == "" {
			name = in.text("description")
		}
		return []Spawn{{Name: name, Type: in.text("subagent_type"), Task: in.text("prompt")}}
	case toolWorkflow:
		task := in.text("script")
		if task == "" {
			task = in.text("name")
		}
		return []Spawn{{Name: "workflow of any number of agents", Type: WorkflowType, Task: task}}
	case toolOMPTask:
		return ompSpawns(in)
	}
	return nil
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
		if err := Elements(batch, func(task []byte) { spawns = append(spawns, ompSpawn(fields(task))) }); err != nil {
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
