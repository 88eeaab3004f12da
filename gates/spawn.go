package gates

import (
	"fmt"
	"slices"
	"strings"
)

// Gate judges one call. It is a pure function: the same call gets the same verdict.
type Gate func(Call) Verdict

// Codes of the gates' verdicts, stable like the cap's.
const (
	CodeType               = "type"                // a type that is not in the list was to be spawned
	CodeCaller             = "caller"              // a subagent of a type that is not in the list made a call
	CodeBash               = "bash"                // the main thread reached for a shell
	CodeForeground         = "foreground"          // a spawn was moved to the foreground
	CodeForegroundRequired = "foreground-required" // a spawn that would go to the background all the same
	CodeAdmissionAsk       = "admission-ask"       // a human decides
	CodeAdmissionDenied    = "admission-denied"    // spawning is switched off
	CodeAdmissionNoUI      = "admission-no-ui"     // a human should decide and none is there
	CodeGuardState         = "guard-state"         // a write into the state directory
	CodeGuardSpec          = "guard-spec"          // a write to the spec
	CodeGuardSettings      = "guard-settings"      // a write to settings that hold the hook
)

// The tools that start agents.
const (
	toolAgent    = "Agent"    // Claude Code
	toolTask     = "Task"     // Claude Code before 2.1.63
	toolWorkflow = "Workflow" // Claude Code: a script that starts many
	toolOMPTask  = "task"     // Oh My Pi: one agent or a batch
)

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

// object is a JSON object's members by name; of repeated names the last.
type object map[string][]byte

// fields returns the members of a JSON object, none where raw is not one.
func fields(raw []byte) object {
	o := object{}
	if err := Members(raw, func(key string, value []byte) { o[key] = value }); err != nil {
		return nil
	}
	return o
}

// text returns a member that is a string, else "".
func (o object) text(key string) string {
	s, _ := Text(o[key])
	return s
}

// quoted lists the types as the reasons do: "a"/"b".
func quoted(types []string) string {
	if len(types) == 0 {
		return "(none)"
	}
	q := make([]string, len(types))
	for i, t := range types {
		q[i] = `"` + t + `"`
	}
	return strings.Join(q, "/")
}

// Type lets a spawn tool start the allowed types only, from any thread. Names are compared exactly: the client ignores
// case, so General-Purpose would spawn general-purpose. A type that is missing, null, empty or no string is in no list.
func Type(allowed []string) Gate {
	return func(c Call) Verdict {
		for _, s := range Spawns(c) {
			if s.Type != "" && slices.Contains(allowed, s.Type) {
				continue
			}
			if s.Type == "" {
				s.Type = unset
			}
			return Verdict{Outcome: Deny, Code: CodeType, Reason: fmt.Sprintf(
				`Delegation is only available for %s in this session, not "%s" - do the task directly with your own tools instead of spawning another agent for it.`,
				quoted(allowed), s.Type)}
		}
		return Verdict{}
	}
}

// Caller lets only subagents of the allowed types make calls. It closes what [Type] cannot see: forked skills, agents
// of a workflow, agents that are resumed. A call whose subagent has no type, and every call of the main thread, passes.
func Caller(allowed []string) Gate {
	return func(c Call) Verdict {
		if c.AgentID == "" || c.AgentType == "" || slices.Contains(allowed, c.AgentType) {
			return Verdict{}
		}
		return Verdict{Outcome: Deny, Code: CodeCaller, Reason: fmt.Sprintf(
			`Tools are only available to %s subagents in this session, not to "%s". Do not retry: finish with what you have, and say that this agent's type is not declared.`,
			quoted(allowed), c.AgentType)}
	}
}

// Bash keeps the shell inside subagents. The main thread is where there is no agent id; the agent type is no test,
// because a session that is started as an agent has one on its main thread.
func Bash() Gate {
	return func(c Call) Verdict {
		if !Shell(c.Tool) || c.AgentID != "" {
			return Verdict{}
		}
		return Verdict{Outcome: Deny, Code: CodeBash, Reason: "Bash is only available to dedicated subagents, not the main agent directly — use the Agent tool to delegate to one of them instead."}
	}
}

// Shell reports whether the tool runs shell commands: Bash, PowerShell and Monitor of Claude Code, bash of Oh My Pi.
func Shell(tool string) bool {
	switch tool {
	case "Bash", "PowerShell", "Monitor", "bash":
		return true
	}
	return false
}
