package clients

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the folder of the module.
const root = "../.."

// block is one fenced block of a page.
type block struct {
	page     string
	language string
	text     string
}

var fence = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// blocks are the fenced blocks of a page that name a language.
func blocks(t *testing.T, page string) (all []block) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range fence.FindAllStringSubmatch(string(raw), -1) {
		all = append(all, block{page: page, language: found[1], text: found[2]})
	}
	return all
}

const guide = "docs/clients.md"

var fileName = regexp.MustCompile(`^(?:#|//) ([A-Za-z_]+\.[a-z]+)\n`)

// writePrograms puts the programs of the guide into a folder: each block whose first line is a
// comment with a file's name.
func writePrograms(t *testing.T, folder string) {
	t.Helper()
	for _, b := range blocks(t, guide) {
		if name := fileName.FindStringSubmatch(b.text); name != nil {
			write(t, filepath.Join(folder, name[1]), b.text)
		}
	}
}

// installLine is the package that a line of the guide such as "pip install NAME==VERSION" names.
func installLines(t *testing.T, command string) (packages []string) {
	t.Helper()
	for _, b := range blocks(t, guide) {
		if rest, ok := strings.CutPrefix(b.text, command+" "); ok && b.language == "sh" {
			packages = append(packages, strings.Fields(rest)...)
		}
	}
	if len(packages) == 0 {
		t.Fatalf("%s has no line that begins with %q", guide, command)
	}
	return packages
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
