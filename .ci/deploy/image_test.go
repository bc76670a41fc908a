package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

const dockerfile = "deploy/Dockerfile"

// emptyImages stands in for the registry: every base is an empty image.
type emptyImages struct{}

func (emptyImages) ResolveImageConfig(
	_ context.Context, ref string, _ sourceresolver.Opt,
) (string, digest.Digest, []byte, error) {
	image := ocispecs.Image{Platform: ocispecs.Platform{OS: "linux", Architecture: "amd64"}}
	text, err := json.Marshal(image)
	return ref, digest.FromBytes(text), text, err
}

// TestDockerfileHasNoWarning of BuildKit's linter, as in "docker build --check".
func TestDockerfileHasNoWarning(t *testing.T) {
	text := read(t, dockerfile)
	source := llb.NewSourceMap(nil, dockerfile, "dockerfile", text)
	source.Definition = &llb.Definition{}
	results, err := dockerfile2llb.DockerfileLint(t.Context(), text, dockerfile2llb.ConvertOpt{
		MetaResolver: emptyImages{}, SourceMap: source,
	})
	if err != nil {
		t.Fatal(err)
	}
	if results.Error != nil {
		t.Error(results.Error.Message)
	}
	for _, w := range results.Warnings {
		t.Errorf("%s: %s", w.RuleName, w.Detail)
	}
}

// stages are those of the Dockerfile.
func stages(t *testing.T) []instructions.Stage {
	t.Helper()
	parsed, err := parser.Parse(bytes.NewReader(read(t, dockerfile)))
	if err != nil {
		t.Fatal(err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stages
}

// imageEnvironment is what the image sets.
func imageEnvironment(t *testing.T) map[string]string {
	t.Helper()
	environment := map[string]string{}
	all := stages(t)
	for _, command := range all[len(all)-1].Commands {
		if env, ok := command.(*instructions.EnvCommand); ok {
			for _, pair := range env.Env {
				environment[pair.Key] = pair.Value
			}
		}
	}
	if len(environment) == 0 {
		t.Fatal("the image sets nothing")
	}
	return environment
}

// TestImageIsStaticAndWithoutRoot holds the Dockerfile to what docs/deploy.md says of the image.
func TestImageIsStaticAndWithoutRoot(t *testing.T) {
	all := stages(t)
	last := all[len(all)-1]
	if !regexp.MustCompile(`^gcr\.io/distroless/static-debian.*:nonroot$`).MatchString(
		last.BaseName) {
		t.Errorf("the base is %s", last.BaseName)
	}
	user := ""
	for _, command := range last.Commands {
		switch c := command.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.RunCommand:
			t.Errorf("the base has no shell for %s", c)
		}
	}
	if user != "65532:65532" {
		t.Errorf("it runs as %q", user)
	}
	if !strings.Contains(string(read(t, dockerfile)), "CGO_ENABLED=0") {
		t.Error("the program is not static")
	}
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(read(t, "go.mod"))[1]
	if !bytes.Contains(read(t, dockerfile), append([]byte("ARG GO_VERSION="), goVersion...)) {
		t.Errorf("go.mod needs Go %s", goVersion)
	}
}

// TestBuildContextHasEveryFileOfTheProgram and nothing of the tests.
func TestBuildContextHasEveryFileOfTheProgram(t *testing.T) {
	patterns, err := ignorefile.ReadAll(bytes.NewReader(read(t, dockerfile+".dockerignore")))
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	list := exec.Command("go", "list", "-deps", "-f", `{{if and .Module .Module.Main}}`+
		`{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`+
		`{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`, "./cmd/dispatcher")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"go.mod", "go.sum"}
	for _, file := range strings.Fields(string(out)) {
		relative, err := filepath.Rel(top, file)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, relative)
	}
	if len(files) < 300 {
		t.Fatalf("only %d files", len(files))
	}
	check := func(file string, want bool) {
		if got, err := ignored.MatchesOrParentMatches(file); err != nil || got != want {
			t.Errorf("%s is ignored: %t, %v", file, got, err)
		}
	}
	for file := range slices.Values(files) {
		check(file, false)
	}
	for _, file := range []string{".git/config", "docs/README.md", "data/draw.key", "bin/dispatcher",
		"deploy/compose/.env", "config/settings_test.go"} {
		check(file, true)
	}
}
