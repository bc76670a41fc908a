package ledgertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// memory is the file system of Linux whose files stay in memory. A server there starts in a third
// of the time, and clones a database without waiting for a disk.
const memory = "/dev/shm"

// memoryNeeded is how much the tests of one package may write, with a margin. With less free
// memory, as in a container by default, TempDir uses the temporary folder.
const memoryNeeded = 8 << 30

// prefix is the prefix of a folder's name. For a folder in memory the id of its process follows.
const prefix = "ledgertest-"

// TempDir makes a folder for the files of this process: in memory where there is enough of it, else
// in the temporary folder. The caller removes it.
func TempDir() (string, error) {
	var room syscall.Statfs_t
	err := syscall.Statfs(memory, &room)
	if err != nil || room.Bavail*uint64(room.Bsize) < memoryNeeded {
		return os.MkdirTemp("", prefix)
	}
	removeLeft(memory)
	folder, err := os.MkdirTemp(memory, fmt.Sprintf("%s%d-", prefix, os.Getpid()))
	if err != nil {
		return "", err
	}
	return folder, os.Chmod(folder, 0o711) //nolint:gosec // The user of PostgreSQL passes through.
}

// removeLeft removes the folders of processes that were killed, which would fill the memory.
func removeLeft(below string) {
	left, _ := filepath.Glob(filepath.Join(below, prefix+"*-*")) // the pattern is well formed
	for _, folder := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(folder), prefix), "-")
		if _, err := strconv.Atoi(pid); err != nil {
			continue
		}
		if _, err := os.Stat("/proc/" + pid); os.IsNotExist(err) {
			_ = os.RemoveAll(folder) // another process may be removing it, too
		}
	}
}
