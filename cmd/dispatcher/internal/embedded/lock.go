package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// lock keeps a data folder to one process. The kernel drops it with the process,
// however that ends, so there is no stale lock to clean up.
type lock struct {
	file *os.File
	once sync.Once
	err  error // guarded by once
}

// lockFolder takes the lock or says who to stop.
func lockFolder(folder string) (*lock, error) {
	path := filepath.Join(folder, "lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &lock{file: file}, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("data folder %s is in use by another dispatcher: stop that one or choose another folder with DISPATCHER_DATA_DIR", folder)
	} else {
		err = fmt.Errorf("lock %s: %w", path, err)
	}
	return nil, errors.Join(err, file.Close())
}

// release gives the folder free. The file stays: to remove it could take it from under
// a process that has just locked it.
func (l *lock) release() error {
	l.once.Do(func() { l.err = l.file.Close() })
	return l.err
}
