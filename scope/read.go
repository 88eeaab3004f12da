package scope

// Read opens the session's marker.
//
// The error is ErrSession for an id that no marker can have, ErrState for a state directory that cannot be used, ErrNone
// when the session has no marker (the state directory may be absent, too), and ErrUnreadable when something is there that
// cannot be trusted. With ErrUnreadable the Marker still has Session and ModTime, so that its age can be judged, and can
// be given to [Remove].
func Read(state, session string) (Marker, error) {
	const doing = "read marker"
	if !ValidSession(session) {
		return Marker{}, errSession(doing, session)
	}
	dir, err := openDir(doing, state)
	if err != nil {
		return Marker{Session: session}, err
	}
	return readIn(doing, dir, session)
}

func readIn(doing, dir, session string) (Marker, error) {
	path := markerPath(dir, session)
	f, err := load(doing, path)
	if err != nil {
		return Marker{Session: session, ModTime: f.modTime, judged: f}, err
	}
	m, err := decode([]byte(f.content))
	if err != nil {
		err = errUnreadable(doing, path, err)
	}
	m.Session, m.ModTime, m.judged = session, f.modTime, f
	return m, err
}
