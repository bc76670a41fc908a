package clients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// installTimeout bounds each step of an installation, downloads included.
const installTimeout = 5 * time.Minute

// Validators that check the schemas, beside the libraries of the guide.
var (
	pythonValidators = []string{"jsonschema==4.26.0", "rfc3339-validator==0.1.4"}
	nodeValidators   = []string{"ajv@8.20.0", "ajv-formats@3.0.1", "@asyncapi/parser@3.6.6"}
)

// installed are the libraries, kept in bin/clients from one run to the next.
var installed struct{ python, node, java, kafka, api once }

// once is a folder that is filled by the first test that asks for it.
type once struct {
	sync.Once
	folder string
}

// python is the interpreter of a virtual environment with all packages.
func python(t *testing.T) string {
	t.Helper()
	packages := append(installLines(t, "pip install"), pythonValidators...)
	folder := installed.python.fill(t, "python", strings.Join(packages, "\n"), func(folder string) {
		run(t, "python3", "-m", "venv", folder)
		run(t, filepath.Join(folder, "bin/python"), append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, packages...)...)
	})
	return filepath.Join(folder, "bin/python")
}

// node is a folder whose node_modules holds all packages.
func node(t *testing.T) string {
	t.Helper()
	packages := append(installLines(t, "npm install"), nodeValidators...)
	return installed.node.fill(t, "node", strings.Join(packages, "\n"), func(folder string) {
		run(t, "npm", append([]string{"install", "--silent", "--no-audit", "--no-fund", "--prefix", folder}, packages...)...)
	})
}

// goProgram builds a program of the guide in a module of its own, with the versions of this one,
// which are those that the guide names.
func goProgram(t *testing.T, file string) string {
	t.Helper()
	mod, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, named := range installLines(t, "go get") {
		if !strings.Contains(string(mod), "\t"+strings.Replace(named, "@", " ", 1)+"\n") {
			t.Errorf("%s names %s, which is not the version of go.mod", guide, named)
		}
	}
	folder := t.TempDir()
	sums, err := os.ReadFile(root + "/go.sum")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "go.mod"), strings.Replace(string(mod), "module dispatcher", "module shop", 1))
	write(t, filepath.Join(folder, "go.sum"), string(sums))
	write(t, filepath.Join(folder, "follow.go"), string(source))
	program := filepath.Join(folder, "follow")
	run(t, "go", "-C", folder, "vet", ".")
	run(t, "go", "-C", folder, "build", "-o", program, ".")
	if wrong := run(t, "gofmt", "-l", file); wrong != "" {
		t.Errorf("%s: a program is not formatted: %s", guide, wrong)
	}
	return program
}

// java is a folder with the jars that the guide's dependencies need.
func java(t *testing.T) string {
	t.Helper()
	dependencies := ""
	for _, b := range blocks(t, guide) {
		if b.language == "xml" {
			dependencies += b.text
		}
	}
	pom := `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>dispatcher.ci</groupId><artifactId>clients</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>` + dependencies + `</dependencies></project>`
	return installed.java.fill(t, "java", pom, func(folder string) {
		file := filepath.Join(t.TempDir(), "pom.xml")
		write(t, file, pom)
		run(t, "mvn", "--batch-mode", "--quiet", "--file", file, "dependency:copy-dependencies", "-DoutputDirectory="+folder)
	})
}

// kafka is the folder of the broker's programs, which section kafka of .ci/run uses too.
func kafka(t *testing.T) string {
	t.Helper()
	folder := absolute(t, root+"/bin/kafka")
	installed.kafka.Do(func() { run(t, absolute(t, "../kafka/kafka.sh"), "fetch", folder) })
	return folder
}

// fill makes bin/clients/name anew unless it was made of the same parts. A file beside it lists the
// parts, and is written last.
func (o *once) fill(t *testing.T, name, parts string, make func(folder string)) string {
	t.Helper()
	o.Do(func() {
		folder := absolute(t, root+"/bin/clients/"+name)
		if made, err := os.ReadFile(folder + ".parts"); err != nil || string(made) != parts {
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			make(folder)
			write(t, folder+".parts", parts)
		}
		o.folder = folder
	})
	if o.folder == "" {
		t.Fatalf("the libraries for %s could not be installed", name)
	}
	return o.folder
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run carries out one command and expects it to succeed.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := try(t, installTimeout, nil, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// try carries out one command with further variables and returns what it printed on standard
// output. What it has started ends with it.
func try(t *testing.T, within time.Duration, variables []string, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var out, faults strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), variables...), &out, &faults
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), faults.String())
	}
	return out.String(), nil
}
