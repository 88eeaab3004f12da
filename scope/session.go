package scope

import (
	"fmt"
	"path/filepath"
)

// DirName is the directory in the state directory that holds the markers.
const DirName = "trekresearch-loop-scope"

const (
	maxSession = 128 // bytes of a session id
	extension  = ".json"
)

// ValidSession reports whether a marker can have this session id: 1 to 128 bytes of [A-Za-z0-9._-], not starting with a
// dot, and none of null, undefined and unknown in exactly this spelling.
func ValidSession(id string) bool {
	if id == "" || len(id) > maxSession || id[0] == '.' {
		return false
	}
	switch id {
	case "null", "undefined", "unknown":
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// Path returns where the session's marker is, or "" for an id that no marker can have. It does not touch the disk and
// does not judge the state directory.
func Path(state, session string) string {
	if !ValidSession(session) {
		return ""
	}
	return markerPath(scopeDir(state), session)
}

func scopeDir(state string) string { return filepath.Join(state, DirName) }

func markerPath(dir, session string) string {
	return dir + string(filepath.Separator) + session + extension
}

func errSession(doing, id string) error {
	return &failure{
		doing: fmt.Sprintf("%s for session %.40q", doing, id),
		kind:  ErrSession,
		hint:  "ids are 1 to 128 of A-Z a-z 0-9 . _ - and start with no dot",
	}
}
