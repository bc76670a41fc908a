package tier

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNothingIsSkippedButByTheTier reads every test file. A test that skips itself, has its own
// size under -short, or draws a fresh seed in the fast tier would go unnoticed.
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
