package scope

import "syscall"

func modTime(st *syscall.Stat_t) *syscall.Timespec { return &st.Mtim }
