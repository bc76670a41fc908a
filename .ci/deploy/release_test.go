package deploy

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	releases "github.com/goreleaser/goreleaser/v2/pkg/config"
)

// TestReleaseHasItsFiles reads the configuration as GoReleaser does, which refuses unknown keys.
func TestReleaseHasItsFiles(t *testing.T) {
	p, err := releases.LoadReader(bytes.NewReader(read(t, ".goreleaser.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, a := range p.Archives {
		for _, f := range a.Files {
			files = append(files, f.Source)
		}
	}
	for _, n := range p.NFPMs {
		for _, c := range n.Contents {
			files = append(files, c.Source)
		}
		files = append(files, n.Scripts.PostInstall) // makes the user that the unit names
		unit := string(read(t, "deploy/systemd/dispatcher.service"))
		if !strings.Contains(unit, "ExecStart="+n.Bindir+"/"+p.Builds[0].Binary+" ") {
			t.Errorf("the unit starts another program than %s/%s", n.Bindir, p.Builds[0].Binary)
		}
	}
	if len(files) < 8 {
		t.Errorf("it packs %q", files)
	}
	for _, pattern := range files {
		if found, err := filepath.Glob(filepath.Join(root, pattern)); err != nil || len(found) == 0 {
			t.Errorf("there is no file %s: %v", pattern, err)
		}
	}
	for _, b := range p.Builds {
		if b.Main != "./cmd/dispatcher" ||
			!slices.Contains(b.Env, "CGO_ENABLED=0") ||
			!strings.Contains(strings.Join(b.Ldflags, " "), "main.version=") {
			t.Errorf("it builds %+v", b)
		}
	}
}
