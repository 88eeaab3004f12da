package gates

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWritePathsTakeOffWhatOhMyPiTakesOff(t *testing.T) {
	for _, c := range []struct {
		tool, input string
		want        []string
	}{
		{"write", `{"path":"@a"}`, []string{"@a", "a"}},
		{"write", `{"path":":~/a"}`, []string{":~/a", "~/a"}},
		{"write", `{"path":"file:///a%20b%zz%2"}`, []string{"file:///a%20b%zz%2", "/a b%zz%2"}},
		{"write", `{"path":"@File://localhost/a"}`, []string{"@File://localhost/a", "/a"}},
		{"write", `{"path":"[a#b#C3]"}`, []string{"a#b"}},
		{"write", `{"path":"[id].ts"}`, []string{"[id].ts"}},
		{"write", `{"path":"[#]"}`, []string{"[#]"}},
		{"write", `{"path":" \"a b\" "}`, []string{"a b"}},
		{"write", `{"path":"~a"}`, []string{"~a", "~/a"}},
		{"write", `{"path":"a\u202fb"}`, []string{"a\u202fb", "a b"}},
		{"write", `{"path":"@"}`, []string{"@"}},
		{"write", `{"path":"a","rename":"b","input":"MV c","edits":[{"rename":"d"}]}`, []string{"a"}},
		{"edit", `{"path":"a","edits":[{"rename":"b"},7,{"path":"c"}],"rename":"d"}`, []string{"a", "d", "b", "c"}},
		{"edit", `{"edits":{"path":"a"}}`, nil},
		{"edit", `{"input":"*** Begin Patch\n*** Update File: a b\n*** Move to:c\r\n*** Add File: d\n+*** Add File: e\n*** Delete File: f\n*** Delete File:\n"}`,
			[]string{"a b", "c", "d", "f"}},
		{"edit", `{"input":"[a#1F]\nSWAP 1.=1:\n+[no#1F]\n[b c#2A]\nMV \"d e\"\nMVx y\n[x]"}`, []string{"a", "b c", "d e"}},
		{"ast_edit", `{"paths":["[\"a\",\"b\"]"]}`, []string{`["a","b"]`, "a", "b", `["a"`, `b"]`}},
		{"ast_edit", `{"paths":["a; b"]}`, []string{"a; b", "a", "b"}},
		{"ast_edit", `{}`, []string{"."}},
		{"Write", `{"file_path":"@a"}`, []string{"@a"}},
	} {
		got := WritePaths(Call{Tool: c.tool, Input: json.RawMessage(c.input)})
		if c.tool == "ast_edit" {
			require.Subset(t, got, c.want[:min(3, len(c.want))], "%v", c)
			continue
		}
		require.Equal(t, c.want, got, "%v", c)
	}
}

// Paths are found at any depth, and beside any: no nesting hides one.
func TestWritePathsOfADeepInput(t *testing.T) {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for _, input := range []string{
		`{"path":"a","edits":[{"rename":"/state/x","z":` + deep + `}]}`,
		`{"path":"a","paths":[` + deep + `,"/state/x"]}`,
		`{"path":"a","paths":` + strings.Repeat("[", 20_000) + `"/state/x"` + strings.Repeat("]", 20_000) + `}`,
	} {
		require.Equal(t, []string{"a", "/state/x"}, WritePaths(Call{Tool: "edit", Input: json.RawMessage(input)}))
	}
	require.Equal(t, []string{"a"}, WritePaths(Call{Tool: "edit", Input: json.RawMessage(`{"path":"a","z":` + deep + `}`)}))
}

func TestWriteRoot(t *testing.T) {
	for _, c := range []struct {
		tool, path, root string
		tree             bool
	}{
		{"Write", "/a/*", "/a/*", false},
		{"write", "/a/b", "/a/b", false},
		{"write", "/a/[b]/c", "/a/", true},
		{"edit", "/a/b?", "/a/", true},
		{"ast_edit", "a/b", "a/b", true},
		{"ast_edit", "*.go", ".", true},
		{"ast_edit", "/*", "/", true},
		{"ast_edit", "/a/b/*/../../c", "/", true},
		{"ast_edit", "/a/b/c/d/*/../../..", "/a", true},
		{"ast_edit", "a/*" + strings.Repeat("/..", 3), "../..", true},
		{"ast_edit", "{a,/b}", "/", true},
		{"ast_edit", "/a/{b,c}", "/a/", true},
	} {
		root, tree := WriteRoot(c.tool, c.path)
		require.Equal(t, c.root, root, "%v", c)
		require.Equal(t, c.tree, tree, "%v", c)
	}
}

func TestWritePathsAreWhatTheToolNames(t *testing.T) {
	for _, c := range []struct {
		tool, input string
		want        []string
	}{
		{"Write", `{"file_path":"/a","content":"x"}`, []string{"/a"}},
		{"Edit", `{"file_path":"/a"}`, []string{"/a"}},
		{"MultiEdit", `{"file_path":"/a"}`, []string{"/a"}},
		{"NotebookEdit", `{"notebook_path":"/n","file_path":"/a"}`, []string{"/n"}},
		{"Write", `{"file_path":7}`, nil},
		{"Read", `{"file_path":"/a"}`, nil},
		{"Write", `{"file_path":"/a","file_path":"/b"}`, []string{"/b"}},
		{"write", `{"path":"a","content":"x"}`, []string{"a"}},
		{"edit", `{"path":"a"}`, []string{"a"}},
		{"edit", `{"paths":["a","b",7]}`, []string{"a", "b"}},
		{"ast_edit", `{"paths":["a"],"path":"c"}`, []string{"c", "a"}},
	} {
		require.Equal(t, c.want, WritePaths(Call{Tool: c.tool, Input: json.RawMessage(c.input)}), "%v", c)
	}
}

func TestWhatIsPartOfAPathStays(t *testing.T) {
	for _, c := range []struct {
		tool, input string
		want        []string
	}{
		{"edit", `{"input":"*** Update File: a\nMV b\n*** Add File: c"}`, []string{"a", "b", "c"}},
		{"write", `{"path":"\""}`, []string{`"`}},
		{"write", `{"path":"\"\""}`, []string{""}},
		{"write", `{"path":"\"a"}`, []string{`"a`}},
		{"write", `{"path":"a\""}`, []string{`a"`}},
		{"write", `{"path":"file://"}`, []string{"file://"}},
		{"write", `{"path":"file://a"}`, []string{"file://a", "a"}},
		{"write", `{"path":"~"}`, []string{"~"}},
		{"write", `{"path":"~/a"}`, []string{"~/a"}},
		{"write", `{"path":"%41"}`, []string{"%41"}},
		{"write", `{"path":"file:///%41%4"}`, []string{"file:///%41%4", "/A%4"}},
		{"write", `{"path":"file:///a%4g%g4"}`, []string{"file:///a%4g%g4", "/a%4g%g4"}},
		{"write", `{"path":"a\u2000b\u200ac\u3000d\u205fe"}`, []string{"a\u2000b\u200ac\u3000d\u205fe", "a b c d e"}},
		{"write", `{"path":"a\u200bb"}`, []string{"a\u200bb"}},
	} {
		require.Equal(t, c.want, WritePaths(Call{Tool: c.tool, Input: json.RawMessage(c.input)}), "%v", c)
	}
}
