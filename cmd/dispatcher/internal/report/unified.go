package report

import "github.com/aymanbagabas/go-udiff"

// Unified is the difference of two texts in the unified format of diff and patch; empty when they
// are the same.
func Unified(oldName, newName, before, after string) string {
	return udiff.Unified(oldName, newName, before, after)
}
