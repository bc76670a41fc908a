package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// root is the path from this package to the root of the repository.
const root = "../.."

// pages returns every Markdown page of the repository by its path below root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "data" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".md"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		out[name] = string(text)
		return err
	})
	if err != nil || len(out) < 25 {
		t.Fatalf("found %d pages: %v", len(out), err)
	}
	return out
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notSlug = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// anchors returns the names that GitHub gives to the headings of a page.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		name := notSlug.ReplaceAllString(strings.ToLower(h[1]), "")
		out[strings.ReplaceAll(name, " ", "-")] = true
	}
	return out
}

// TestLinksOfThePagesLeadSomewhere follows every relative link to its file and heading.
func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	all := pages(t)
	headings := map[string]map[string]bool{}
	for name, text := range all {
		headings[name] = anchors(text)
	}
	for name, text := range all {
		for _, l := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			target, anchor, _ := strings.Cut(l[1], "#")
			path := name
			if target != "" {
				path = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s links to %s: %v", name, l[1], err)
			} else if anchor != "" && !headings[path][anchor] {
				t.Errorf("%s links to %s, which has no such heading", name, l[1])
			}
		}
	}
}

// TestEveryPageIsInTheIndex compares docs/README.md with the pages that exist.
func TestEveryPageIsInTheIndex(t *testing.T) {
	t.Parallel()
	all := pages(t)
	index := all["docs/README.md"]
	for name := range all {
		path, err := filepath.Rel("docs", name)
		if err != nil {
			t.Fatal(err)
		}
		if name != "docs/README.md" &&
			strings.Contains(name, "/") == strings.HasPrefix(name, "docs/") &&
			!strings.Contains(index, "]("+path) {
			t.Errorf("docs/README.md does not link to %s", path)
		}
	}
}

// TestEveryTestThatThePagesNameExists: no page refers to a test that was renamed or removed.
func TestEveryTestThatThePagesNameExists(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, f := range function.FindAllSubmatch(source, -1) {
			tests[string(f[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range pages(t) {
		for _, test := range regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllStringSubmatch(text,
			-1) {
			if !tests[test[1]] {
				t.Errorf("%s names %s, which does not exist", name, test[1])
			}
		}
	}
}

// TestTheDesignNamesEveryPackage: DESIGN.md names every package of the import table. One row may
// cover the packages below it.
func TestTheDesignNamesEveryPackage(t *testing.T) {
	t.Parallel()
	design := pages(t)["DESIGN.md"]
	for path := range rules {
		name := strings.TrimPrefix(strings.TrimPrefix(path, module), "cmd/dispatcher/")
		parent, _, child := strings.Cut(name, "/")
		if child && parent == "internal" {
			name = strings.Join(strings.Split(name, "/")[:2], "/")
		} else if path != module+"cmd/dispatcher" {
			name = parent
		}
		if !strings.Contains(design, "`"+name+"`") && !strings.Contains(design, "`"+name+"/") {
			t.Errorf("DESIGN.md does not name %s", name)
		}
	}
}

// TestProseIsInShortLines: tables and code may be wider.
func TestProseIsInShortLines(t *testing.T) {
	t.Parallel()
	for name, text := range pages(t) {
		// Code blocks keep their number of lines, so that the line numbers below are right.
		text = fence.ReplaceAllStringFunc(text, func(code string) string {
			return strings.Repeat("\n", strings.Count(code, "\n"))
		})
		for i, line := range strings.Split(text, "\n") {
			code := strings.HasPrefix(line, "    ")
			if utf8.RuneCountInString(line) > 100 && !code && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d has more than 100 columns", name, i+1)
			}
		}
	}
}
