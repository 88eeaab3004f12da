package paths

import "syscall"

// procMagic is the type of the process file system.
const procMagic = 0x9fa0

// onProc reports whether a directory is in a process file system, wherever that is mounted: in one that is prepared for chroot,
// for instance. Links in it lead where the process stands that follows them.
func onProc(dir string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && int64(fs.Type) == procMagic
}
