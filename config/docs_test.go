package config_test

import (
	"os"
	"strings"
	"testing"

	"dispatcher/config"
)

func TestDocumentationNamesEverySettingWithItsDefault(t *testing.T) {
	environment(t)
	s, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range s.List() {
		standard := "| "
		if l.Value != "" {
			standard = "| `" + l.Value + "` "
		}
		if row := "| `" + l.Name + "` " + standard + "| "; !strings.Contains(string(doc), row) {
			t.Errorf("docs/configuration.md has no row that begins with %s", row)
		}
	}
}

func TestDocumentOfTheDocumentationIsValid(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(doc), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/configuration.md shows no YAML")
	}
	parse(t, example)
}
