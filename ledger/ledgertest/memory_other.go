//go:build !linux

package ledgertest

import "os"

// serverFolder makes a folder for a server of this process.
func serverFolder() (string, error) { return os.MkdirTemp("", "ledgertest-") }
