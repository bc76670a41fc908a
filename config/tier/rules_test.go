package tier

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNothingIsSkippedButByTheTier reads every file with tests: one that skips itself, has a size
// of its own under -short, or draws a fresh seed in the fast tier would do so unseen.
func TestNothingIsSkippedButByTheTier(t *testing.T) {
	t.Parallel()
	forbidden := regexp.MustCompile(
		`\b\w+\.(Skip|Skipf|SkipNow)\(|\btesting\.Short\(|\brapid\.(Check|MakeCheck)\(`)
	files := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "rules_test.go" {
			return err
		}
		files++
		source, err := os.ReadFile(path)
		for _, found := range forbidden.FindAllString(string(source), -1) {
			t.Errorf("%s calls %s...): use package tier", path, found)
		}
		return err
	})
	if err != nil || files < 100 {
		t.Errorf("read %d files: %v", files, err)
	}
}
