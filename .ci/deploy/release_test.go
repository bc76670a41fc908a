package deploy

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
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

// TestEveryArtifactHasItsListOfModules: GoReleaser and BuildKit make it (SBOM) from what is in the
// program. So all modules must be in it, with their checksums, as a build of CI has them.
func TestEveryArtifactHasItsListOfModules(t *testing.T) {
	p, err := releases.LoadReader(bytes.NewReader(read(t, ".goreleaser.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.SBOMs) != 1 || p.SBOMs[0].Artifacts != "archive" {
		t.Errorf("GoReleaser makes %+v", p.SBOMs)
	}
	if page := string(read(t, "docs/deploy.md")); !strings.Contains(page, "--sbom=true") {
		t.Error("docs/deploy.md builds the image without --sbom=true")
	}
	program := filepath.Join(t.TempDir(), "dispatcher")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/dispatcher")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	required := strings.Split(string(read(t, "go.mod")), "\n\t")
	for _, one := range []string{
		"github.com/twmb/franz-go", "github.com/jackc/pgx/v5", "github.com/sony/gobreaker/v2",
		"github.com/rs/zerolog",
	} {
		i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == one })
		if i < 0 || info.Deps[i].Sum == "" || !slices.Contains(required, one+" "+info.Deps[i].Version) {
			t.Errorf("the program does not say which %s it has", one)
		}
	}
	for _, m := range info.Deps {
		if m.Sum == "" && m.Replace == nil {
			t.Errorf("%s has no checksum", m.Path)
		}
	}
	if len(info.Deps) < 40 {
		t.Errorf("the program names %d modules", len(info.Deps))
	}
}
