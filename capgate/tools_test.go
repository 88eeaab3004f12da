package capgate

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/gates"
)

// However a list is written, what somebody meant to cap is capped, and with a slip in it no less than without a list.
func TestAListOfCappedToolsHoldsHoweverItIsWritten(t *testing.T) {
	defaults := []string{"WebSearch", "WebFetch", "Agent", "Task", "Workflow"}
	for _, c := range []struct {
		list    string
		capped  []string
		free    []string
		invalid []string
	}{
		{"", defaults, []string{"Write", ""}, nil},
		{" ,\n|", defaults, []string{"Write"}, nil},
		{"WebSearch,WebFetch", []string{"WebSearch", "WebFetch"}, []string{"Agent"}, nil},
		{"WebSearch|WebFetch", []string{"WebSearch", "WebFetch"}, []string{"Agent"}, nil},
		{"WebSearch WebFetch", []string{"WebSearch", "WebFetch"}, []string{"Agent"}, nil},
		{" WebSearch \n\tWebFetch\r\n", []string{"WebSearch", "WebFetch"}, []string{"Agent"}, nil},
		{"websearch, WEBFETCH", []string{"WebSearch", "WebFetch"}, []string{"Agent"}, nil},
		{"*", []string{"WebSearch", "Write", "mcp__exa__search"}, nil, nil},
		{"mcp__exa__*", []string{"mcp__exa__search", "mcp__exa__", "MCP__Exa__fetch"}, []string{"WebSearch", "mcp__ex", "xmcp__exa__search"}, nil},
		{"*search", []string{"WebSearch", "web_search"}, []string{"SearchWeb"}, nil},
		{"mcp__*__search_*", []string{"mcp__exa__search_web"}, []string{"mcp__search_web", "mcp__exa__find"}, nil},
		{"a*a", []string{"aa", "aba"}, []string{"a"}, nil},
		{"mcp__.*", append([]string{}, defaults...), []string{"mcp__exa__search"}, []string{"mcp__.*"}},
		{"Bash;WebSearch", defaults, []string{"Bash"}, []string{"Bash;WebSearch"}},
		{`"WebSearch"`, defaults, []string{"Write"}, []string{`"WebSearch"`}},
		{`["WebSearch", "Read"]`, defaults, []string{"Read"}, []string{`["WebSearch"`, `"Read"]`}},
		{"Read, 'Bash'", append([]string{"Read"}, defaults...), []string{"Bash", "Write"}, []string{"'Bash'"}},
		{"Bash(git:*)", defaults, []string{"Bash"}, []string{"Bash(git:*)"}},
		{"WebSéarch", defaults, []string{"WebSéarch"}, []string{"WebSéarch"}},
	} {
		t.Run(c.list, func(t *testing.T) {
			config := Config{CapTools: Tools(c.list)}
			for _, tool := range c.capped {
				require.True(t, config.Caps(gates.Call{Tool: tool}), tool)
			}
			for _, tool := range c.free {
				require.False(t, config.Caps(gates.Call{Tool: tool}), tool)
			}
			require.ElementsMatch(t, c.invalid, Tools(c.list).Invalid())
		})
	}
}

func TestWhatASlipWasMeantToBe(t *testing.T) {
	for entry, want := range map[string]string{
		"mcp__.*": "mcp__*", `"WebSearch"`: "WebSearch", "WebSearch;WebFetch": "WebSearch,WebFetch", `["Read"`: "Read", "Bash(git:*)": "Bash", "^(a|b)$": "", "?": "",
	} {
		require.Equal(t, want, ToolsMeant(entry), entry)
	}
}

// A hook that cannot run costs what it would judge, and no more.
func TestWhichToolsAConfigurationJudges(t *testing.T) {
	capped := []string{"WebSearch", "WebFetch", "Agent", "Task", "Workflow"}
	admitted := []string{"Agent", "Task", "Workflow", "Write", "Edit", "MultiEdit", "NotebookEdit"}
	for _, c := range []struct {
		config Config
		tools  []string
		all    bool
	}{
		{Config{}, nil, false},
		{Config{Enabled: "1"}, capped, false},
		{Config{Enabled: "1", DisableCap: "1", Disable: "1"}, capped, false},
		{Config{Enabled: "1", CapTools: "websearch,mcp__Exa__*"}, []string{"WebSearch", "mcp__Exa__*"}, false},
		{Config{Enabled: "1", CapTools: "a,*"}, []string{"a", "*"}, true},
		{Config{Enabled: "1", CapTools: "mcp.x"}, capped, false},
		{Config{Admission: "ask"}, admitted, false},
		{Config{Admission: "ask", DisableGates: "1"}, admitted, false},
		{Config{Admission: "off"}, nil, false},
		{Config{Enabled: "1", Admission: "ask"}, append(slices.Clone(capped), admitted...), false},
		{Config{Enabled: "1", Admission: "deny"}, nil, true},
		{Config{Enabled: "1", AllowedSubagents: ","}, nil, true},
		{Config{Spec: "/s"}, nil, true},
	} {
		tools, all := c.config.JudgedTools()
		require.Equal(t, c.tools, tools, "%+v", c.config)
		require.Equal(t, c.all, all, "%+v", c.config)
	}
}
