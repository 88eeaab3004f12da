// Package disk holds what this module does to files beyond reading and writing them: durable names, locks between
// processes, and opening what may not be a file. It knows nothing of ledgers or markers, and imports nothing of this
// module.
//
// # Crash guarantees
//
//	[Replace]   whoever reads the path, also after kill -9, a full disk or a power failure, finds the old content in
//	            whole or the new one. Once it has returned, kill -9 no longer takes the new content back; a power
//	            failure does only where the directory could not be flushed, which is tried.
//	[Swap]      the same, without the flush of the directory: until [SyncDir] has succeeded, a power failure may
//	            bring the old content back.
//	[SyncDir]   once it has succeeded, a power failure leaves the names in the directory as they were.
//	[MakeDirs]  once it has succeeded, a power failure leaves the directories that it made. [ErrNotDurable] says that
//	            they are there, and may be lost.
//
// All of it presumes a disk that honours flushes. A crash may leave a temporary file behind, never half a file under its
// final name. Names from [TempPath] tell their age, so that whoever owns the directory can remove what [IsStale];
// [SweepTemps] goes by modification times instead.
//
// # Locks
//
// A lock is an flock: it belongs to the open file, holds between processes, and the kernel gives it back when the last
// descriptor is closed, so a killed process leaves none behind. Waiting happens in the kernel's queue, which is fair;
// polling starves whoever polls. [HasFlock] says whether the system has it.
//
// # Errors
//
// An error about a path is an [fs.PathError] or an [os.LinkError], as those of package os are. [Bare] takes operation and
// path off for callers that name both themselves.
package disk
