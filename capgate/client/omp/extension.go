package omp

import (
	"bytes"
	_ "embed"
	"encoding/json"
)

//go:embed extension.ts
var extension []byte

// What Extension replaces in the source; each is there once.
var (
	hookPlace = []byte(`const HOOK: string = "@HOOK@";`)
	envPlace  = []byte(`const ENV: Record<string, string> = {};`)
	filePlace = []byte(`const ENV_FILE: string = "";`)
)

// Extension returns the source of the extension that asks the hook at an absolute path, with the given environment on
// top of the client's own, and with an environment file, "" = none. The same arguments give the same bytes.
func Extension(hook string, env map[string]string, envFile string) []byte {
	if env == nil {
		env = map[string]string{}
	}
	source := bytes.Replace(extension, hookPlace, []byte("const HOOK: string = "+literal(hook)+";"), 1)
	source = bytes.Replace(source, envPlace, []byte("const ENV: Record<string, string> = "+literal(env)+";"), 1)
	return bytes.Replace(source, filePlace, []byte("const ENV_FILE: string = "+literal(envFile)+";"), 1)
}

// literal writes a value as a TypeScript literal. JSON as encoding/json writes it is one: it escapes U+2028 and U+2029.
func literal(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // strings always marshal
		panic(err)
	}
	return string(text)
}
