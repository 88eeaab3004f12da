package setup

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

// withHook returns the settings with the hook in them, and whether one of ours was there before. Of the variables only those
// stay that the client must see: the others are in the environment file, which wins.
func withHook(old []byte, w Wiring, c capgate.Config, theirs []Variable) (text []byte, was bool, err error) {
	d, err := settings.Parse(old)
	if err != nil {
		return nil, false, err
	}
	was = d.Wired()
	for _, event := range settings.Events {
		if err := d.SetHooks(event, w.groups(event, c), settings.IsOurs); err != nil {
			return nil, false, err
		}
	}
	for _, v := range theirs {
		if err := d.SetEnv(v.Name, v.Value); err != nil {
			return nil, false, err
		}
	}
	for _, name := range variables {
		if name != claude.NoBackground {
			d.UnsetEnv(name)
		}
	}
	return d.Bytes(), was, nil
}

// madeByInstall reports whether there was no file before install: nothing is in it but what install writes.
func madeByInstall(text []byte) bool {
	d, err := settings.Parse(text)
	if err != nil || !d.Installed() {
		return false
	}
	d.RemoveHooks(settings.IsOurs)
	for _, name := range variables {
		d.UnsetEnv(name)
	}
	return d.Empty()
}

// restored is what is left of settings without our parts.
type restored struct {
	text       []byte
	gone       bool // the file was made by install
	keepBackup bool // the backup is of no use, and not ours to throw away
}

// withoutHook returns the settings without our parts: as they were before the first install, if they mean the same, or
// as they were but for our parts, if the hook had been wired by hand. gated says that the installation has the gates on.
func withoutHook(old, backup []byte, gated bool) (r restored, err error) {
	d, err := settings.Parse(old)
	if err != nil {
		return r, err
	}
	before, err := settings.Parse(backup)
	if err != nil {
		before, _ = settings.Parse(nil) // a spoilt copy is no help, and no hindrance
		backup, r.keepBackup = nil, true
	}
	wired := before.Wired()
	if !d.Wired() && backup == nil {
		r.text = old
		return r, nil
	}
	made := backup == nil && !r.keepBackup && d.Installed()
	_, spec := d.Env("CAPGATE_SPEC") // where an earlier version wrote it
	_, list := d.Env("CAPGATE_ALLOWED_SUBAGENTS")
	ours := written(gated || spec || list, made || backup != nil)
	d.RemoveHooks(settings.IsOurs)
	if wired { // then its variables are part of the wiring, the client's own only if install did it
		byInstall := before.Installed()
		before.RemoveHooks(settings.IsOurs)
		for _, name := range ours {
			if name != claude.NoBackground || byInstall {
				before.UnsetEnv(name)
			}
		}
	}
	for _, name := range ours {
		if value, ok := before.Env(name); ok {
			if err := d.SetEnv(name, value); err != nil {
				return r, err
			}
			continue
		}
		d.UnsetEnv(name)
	}
	r.text = d.Bytes()
	switch {
	case backup != nil && sameMeaning(d, before, ours) && wired:
		r.text = before.Bytes()
	case backup != nil && sameMeaning(d, before, ours):
		r.text = backup
	case made && d.Empty():
		r.text, r.gone = nil, true
	}
	return r, nil
}

// written names the variables that uninstall takes out or gives back: ours, and the client's own one only where install
// wrote it, which it does with the gates. origin says that it is known what was before.
func written(gated, origin bool) []string {
	return slices.DeleteFunc(slices.Clone(variables), func(name string) bool {
		return name == claude.NoBackground && (!origin || !gated)
	})
}

// sameMeaning reports whether settings say the same but for variables. An env or hooks block that is empty says as much
// as none.
func sameMeaning(a, b *settings.Doc, but []string) bool {
	x, okA := meaning(a.Bytes(), but)
	y, okB := meaning(b.Bytes(), but)
	return okA && okB && reflect.DeepEqual(x, y)
}

func meaning(text []byte, but []string) (any, bool) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	if len(text) == 0 {
		text = []byte("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // two large numbers are not the same because a float holds neither
	var settings any
	if decoder.Decode(&settings) != nil {
		return nil, false
	}
	if root, ok := settings.(map[string]any); ok {
		if env, ok := root["env"].(map[string]any); ok {
			for _, name := range but {
				delete(env, name)
			}
		}
	}
	return withoutEmpty(settings), true
}

// withoutEmpty takes out of settings what removing our parts takes out, too, where nothing is left in it.
func withoutEmpty(settings any) any {
	root, _ := settings.(map[string]any)
	for _, key := range []string{"env", "hooks"} {
		block, ok := root[key].(map[string]any)
		if !ok {
			continue
		}
		for event, entries := range block {
			if list, ok := entries.([]any); ok && key == "hooks" && len(list) == 0 {
				delete(block, event)
			}
		}
		if len(block) == 0 {
			delete(root, key)
		}
	}
	return settings
}
