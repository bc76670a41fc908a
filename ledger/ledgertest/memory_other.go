//go:build !linux

package ledgertest

import "os"

// TempDir makes a folder for the files of this process. The caller removes it.
func TempDir() (string, error) { return os.MkdirTemp("", "ledgertest-") }
