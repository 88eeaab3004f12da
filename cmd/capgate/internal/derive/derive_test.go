package derive

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/gates"
)

func TestParseDefinition(t *testing.T) {
	const all = "all" // in place of a list of tools
	for _, tt := range []struct {
		name, text string
		want       Definition
		tools      string // joined, or all
	}{
		{"comma list", "---\nname: a\ntools: Bash, Read\n---\nbody", Definition{Name: "a"}, "Bash Read"},
		{"YAML list", "---\nname: a\ntools: [Bash, Read]\n---\n", Definition{Name: "a"}, "Bash Read"},
		{"YAML list of lines", "---\nname: a\ntools:\n  - Bash\n  - Read\n---\n", Definition{Name: "a"}, "Bash Read"},
		{"list of comma lists", "---\nname: a\ntools: ['Bash, Read', Grep]\n---\n", Definition{Name: "a"}, "Bash Read Grep"},
		{"separated by spaces", "---\nname: a\ntools: Bash Read\n---\n", Definition{Name: "a"}, "Bash Read"},
		{"no tools key", "---\nname: a\n---\n", Definition{Name: "a"}, all},
		{"star", "---\nname: a\ntools: \"*\"\n---\n", Definition{Name: "a"}, all},
		{"bare star is no YAML", "---\nname: a\ntools: *\n---\n", Definition{Name: "a"}, all},
		{"star among others", "---\nname: a\ntools: Read, *\n---\n", Definition{Name: "a"}, all},
		{"empty list", "---\nname: a\ntools: []\n---\n", Definition{Name: "a"}, ""},
		{"empty text", "---\nname: a\ntools: ''\n---\n", Definition{Name: "a"}, ""},
		{"patterns", "---\nname: a\ntools: Bash(git add:*, git commit:*), Bash(ls), Read\n---\n", Definition{Name: "a"}, "Bash Read"},
		{"old name of Agent", "---\nname: a\ntools: Task, Agent(b, c)\n---\n", Definition{Name: "a"}, "Agent"},
		{"MCP", "---\nname: a\ntools: mcp__github__*, mcp__x\n---\n", Definition{Name: "a"}, "mcp__github__* mcp__x"},
		{"once", "---\nname: a\ntools: [Read, Read, 'Read, Bash']\n---\n", Definition{Name: "a"}, "Read Bash"},
		{"anchor", "---\nx: &t [Bash]\nname: a\ntools: *t\n---\n", Definition{Name: "a"}, "Bash"},
		{"CRLF", "---\r\nname: a\r\ntools: Bash\r\n---\r\nbody\r\n", Definition{Name: "a"}, "Bash"},
		{"BOM", "\ufeff---\nname: a\n---\n", Definition{Name: "a"}, all},
		{"no trailing newline", "---\nname: a\n---", Definition{Name: "a"}, all},
		{"spaces after the fences", "--- \nname: a\n---\t\n", Definition{Name: "a"}, all},
		{"a fence in the body", "---\nname: a\n---\ntext\n---\nname: b\n---\n", Definition{Name: "a"}, all},
		{"dashes in a value", "---\nname: a\ndescription: x --- y\n---\n", Definition{Name: "a", Described: true}, all},
		{"quoted name", "---\nname: '12'\n---\n", Definition{Name: "12"}, all},
		{"yes is text in YAML 1.2", "---\nname: yes\n---\n", Definition{Name: "yes"}, all},
		{"name with spaces inside", "---\nname: my agent\n---\n", Definition{Name: "my agent"}, all},
		{"comment", "---\n# about\nname: a # the name\n---\n", Definition{Name: "a"}, all},
		{"folded description", "---\nname: a\ndescription: >\n  Finds: x\n---\n", Definition{Name: "a", Described: true}, all},
		{"colons in the description", "---\nname: a\ndescription: Use when: <example>user: \"it's\"</example>\ntools: Read\n---\n", Definition{Name: "a", Described: true}, "Read"},
		{"colons and a list", "---\nname: a\ndescription: Use when: now\ntools: [Read, Bash]\n---\n", Definition{Name: "a", Described: true}, "Read Bash"},
		{"background", "---\nname: a\nbackground: true\n---\n", Definition{Name: "a", Background: true}, all},
		{"background as text", "---\nname: a\nbackground: 'true'\n---\n", Definition{Name: "a", Background: true}, all},
		{"no background", "---\nname: a\nbackground: false\n---\n", Definition{Name: "a"}, all},
		{"keys of other kinds", "---\nname: a\n1: x\nhooks: {PreToolUse: [{}]}\n---\n", Definition{Name: "a"}, all},
		{"case of keys", "---\nname: a\nTools: Bash\n---\n", Definition{Name: "a"}, all},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(tt.text))
			require.NoError(t, err)
			assert.Equal(t, tt.tools == all, got.Inherits)
			if tt.tools != all {
				assert.Equal(t, tt.tools, strings.Join(got.Tools, " "))
			}
			got.Tools, got.Inherits = nil, false
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestParseDefinitionErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "it has no front matter: begin it with a line ---"},
		{"no front matter", "# Agents\n", "it has no front matter"},
		{"later front matter", "\n---\nname: a\n---\n", "it has no front matter"},
		{"four dashes", "----\nname: a\n----\n", "it has no front matter"},
		{"no end", "---\nname: a\n", "its front matter has no end: add a line --- after it"},
		{"empty front matter", "---\n---\n", `it has no name: add a line "name: TYPE"`},
		{"only a comment", "---\n# x\n---\n", "it has no name"},
		{"no name", "---\ndescription: x\n---\n", "it has no name"},
		{"name in another case", "---\nName: a\n---\n", "it has no name"},
		{"empty name", "---\nname:\n---\n", "its name is left empty"},
		{"name is blank", "---\nname: ''\n---\n", "it has no name"},
		{"name is a number", "---\nname: 12\n---\n", "its name is a number"},
		{"name is true", "---\nname: true\n---\n", "its name is true or false"},
		{"name is a list", "---\nname: [a]\n---\n", "its name is a list"},
		{"name twice", "---\nname: a\nname: b\n---\n", `"name" stands twice`},
		{"name with space around", "---\nname: ' a'\n---\n", `its name " a" cannot be a type`},
		{"name with an invisible character", "---\nname: \"a\\u202eb\"\n---\n", "cannot be a type"},
		{"tools empty", "---\nname: a\ntools:\n---\n", "its tools are left empty: " + toolsFix},
		{"tools a mapping", "---\nname: a\ntools: {Bash: true}\n---\n", "its tools are a mapping: " + toolsFix},
		{"tools a number", "---\nname: a\ntools: 3\n---\n", "its tools are a number"},
		{"tools a truth", "---\nname: a\ntools: true\n---\n", "its tools are true or false"},
		{"tools with a mapping in them", "---\nname: a\ntools: [Bash: x]\n---\n", "its tools are a list with a value in it that is a mapping"},
		{"tools with a list in them", "---\nname: a\ntools: [[Bash]]\n---\n", "its tools are a list with a value in it that is a list"},
		{"bracket open", "---\nname: a\ntools: Bash(git\n---\n", "with a bracket too many"},
		{"bracket alone", "---\nname: a\ntools: (git:*)\n---\n", "with brackets that belong to no tool"},
		{"not YAML", "---\nname: a\n  b: [\n---\n", "its front matter is no YAML: line 3: "},
		{"a list", "---\n- name\n---\n", "its front matter is a list"},
		{"a text", "---\nname\n---\n", "its front matter is text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text))
			require.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

// FuzzParseDefinition: whatever is accepted makes a spec that the hook accepts, and an error is one line.
func FuzzParseDefinition(f *testing.F) {
	f.Add([]byte("---\nname: a\ndescription: Use when: x\ntools: Bash(git:*), Read\nbackground: true\n---\n"))
	f.Add([]byte("\ufeff---\r\nname: \"\\u00e9\"\r\ntools:\r\n  - '*'\r\n---"))
	f.Add([]byte("---\nx: &t [Bash, *t]\nname: a\ntools: *t\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text)
		if err != nil {
			if strings.Contains(gates.Visible(err.Error()), "\n") {
				t.Fatalf("more than a line: %q", err)
			}
			return
		}
		s := gates.Spec{
			Subagents:  []gates.Subagent{{Type: d.Name, Tools: d.Tools, Inherits: d.Inherits}},
			Foreground: gates.ForegroundRewrite, Admission: gates.AdmissionOff,
		}
		if _, err := Text(s); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSpecTextReadsBack: what derive writes is what the hook reads.
func TestSpecTextReadsBack(t *testing.T) {
	s := gates.Spec{
		Subagents: []gates.Subagent{
			{Type: "a", Tools: []string{"Bash", "mcp__x<y>"}}, {Type: `b"\é`, Tools: []string{}}, {Type: "c", Inherits: true},
		},
		Foreground: gates.ForegroundRequire, Admission: gates.AdmissionDeny,
	}
	text, err := Text(s)
	require.NoError(t, err)
	got, err := gates.ParseSpec(text)
	require.NoError(t, err)
	assert.Equal(t, s, got)
	assert.Contains(t, string(text), "mcp__x<y>")
}

// TestWriteSpecKeepsWhatIsThere, and leaves nothing beside it.
func TestWriteSpecKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Write(filepath.Join(dir, "s"), []byte("one"), false))
	require.Error(t, Write(filepath.Join(dir, "s"), []byte("two"), false))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	require.Error(t, Write(filepath.Join(dir, "d"), []byte("two"), true))
	text, err := os.ReadFile(filepath.Join(dir, "s"))
	require.NoError(t, err)
	assert.Equal(t, "one", string(text))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2)
}
