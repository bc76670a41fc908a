package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"dispatcher/config"
)

// project is the compose file with every extension, anchor and variable resolved.
func project(t *testing.T) *types.Project {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join(root, "deploy/compose"))
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  folder,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(folder, "compose.yaml")}},
		Environment: types.Mapping{"POSTGRES_PASSWORD": "0123456789abcdef"},
	}, loader.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// dispatchers are the services that run this repository's image.
func dispatchers(p *types.Project) (names []string) {
	for name, service := range p.Services {
		if service.Image == "dispatcher:local" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// serviceEnvironment is what a container gets from its image and its service.
func serviceEnvironment(t *testing.T, p *types.Project, name string) map[string]string {
	t.Helper()
	environment := imageEnvironment(t)
	for key, value := range p.Services[name].Environment {
		environment[key] = *value
	}
	return environment
}

func TestComposeSettingsLoad(t *testing.T) {
	p := project(t)
	names := dispatchers(p)
	want := []string{"carriers", "dispatcher-1", "dispatcher-2", "keys", "migrate", "tokens",
		"topics"}
	if !slices.Equal(names, want) {
		t.Fatalf("the services of the image are %v", names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			s := loadSettings(t, serviceEnvironment(t, p, name))
			if s.DrawKeyFile == "" || len(s.KafkaBrokers) == 0 || s.PostgresURL == "" {
				t.Errorf("settings are missing: %+v", s)
			}
		})
	}
}

// TestComposeOpensTheConsole: the one-off service makes a token in the file by which the
// dispatchers let people in.
func TestComposeOpensTheConsole(t *testing.T) {
	p := project(t)
	program, err := dispatcher()
	if err != nil {
		t.Fatal(err)
	}
	const state = "/var/lib/dispatcher"
	folder := t.TempDir()
	execute := func(service string, arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), program, arguments...)
		command.Env = os.Environ()
		for name, value := range serviceEnvironment(t, p, service) {
			command.Env = append(command.Env, name+"="+strings.ReplaceAll(value, state, folder))
		}
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", service, err, out)
		}
		return string(out)
	}
	step := p.Services["tokens"]
	if !slices.Equal(step.Profiles, []string{"setup"}) || step.Restart != "no" {
		t.Errorf("tokens is started with the others: %+v", step)
	}
	execute("tokens", step.Command...)
	for _, name := range []string{"tokens", "dispatcher-1", "dispatcher-2"} {
		if !slices.ContainsFunc(p.Services[name].Volumes, func(v types.ServiceVolumeConfig) bool {
			return v.Source == "state" && v.Target == state
		}) {
			t.Errorf("%s does not have the volume of the tokens", name)
		}
		// Without this setting nobody can sign in.
		if out := execute(name, "tokens", "list"); !strings.Contains(out, "admin") {
			t.Errorf("%s lets nobody in:\n%s", name, out)
		}
	}
}

// TestComposeFilesExist checks every file that is mounted from the checkout.
func TestComposeFilesExist(t *testing.T) {
	p := project(t)
	for name, c := range p.Configs {
		if _, err := os.Stat(c.File); err != nil {
			t.Errorf("config %s: %v", name, err)
		}
	}
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("volume of %s: %v", name, err)
			}
		}
		if s.Build != nil {
			if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Errorf("build of %s: %v", name, err)
			}
		}
	}
}

// TestComposeWaitsForWhatIsReady: nothing is started before what it needs, and a condition names
// something that its service has.
func TestComposeWaitsForWhatIsReady(t *testing.T) {
	p := project(t)
	for name, s := range p.Services {
		for on, d := range s.DependsOn {
			needed := p.Services[on]
			switch d.Condition {
			case types.ServiceConditionHealthy:
				if needed.HealthCheck == nil {
					t.Errorf("%s waits for the health of %s, which has no check", name, on)
				}
			case types.ServiceConditionCompletedSuccessfully:
				if needed.Restart != "no" {
					t.Errorf("%s waits for the end of %s, which is restarted", name, on)
				}
			}
		}
	}
	for _, name := range []string{"dispatcher-1", "dispatcher-2"} {
		on := p.Services[name].DependsOn
		for _, needed := range []string{"kafka", "postgres", "migrate", "topics", "carriers"} {
			if on[needed].Condition == "" {
				t.Errorf("%s does not wait for %s", name, needed)
			}
		}
		grace := p.Services[name].StopGracePeriod
		timeout := loadSettings(t, serviceEnvironment(t, p, name)).ShutdownTimeout
		if grace == nil || time.Duration(*grace) <= timeout {
			t.Errorf("%s is killed before its %s to stop are over", name, timeout)
		}
		if s := p.Services[name]; !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") {
			t.Errorf("%s may write to its image, or has capabilities", name)
		}
	}
}

// TestComposeImagesArePinned, so that the same file brings up the same programs next year.
func TestComposeImagesArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`:v?\d+\.\d+(\.\d+)?$`)
	for name, s := range project(t).Services {
		if s.Image != "dispatcher:local" && !pinned.MatchString(s.Image) {
			t.Errorf("%s runs %s", name, s.Image)
		}
	}
}

var address = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// TestComposeRoutingIsThatOfItsCarriers starts the carriers of the plan elsewhere, and compares
// what they write with the document that is shipped.
func TestComposeRoutingIsThatOfItsCarriers(t *testing.T) {
	folder := t.TempDir()
	plan := regexp.MustCompile(`,? *address: "127\.0\.0\.1:\d+"`).ReplaceAll(
		read(t, "deploy/compose/sandbox.yaml"), nil)
	if err := os.WriteFile(filepath.Join(folder, "plan.yaml"), plan, 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := dispatcher()
	if err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(folder, "routing.yaml")
	sandbox := exec.CommandContext(t.Context(), program, "sandbox", "--plan",
		filepath.Join(folder, "plan.yaml"), "--routing", written, "--secrets", folder)
	sandbox.Stderr = os.Stderr
	if err := sandbox.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sandbox.Process.Signal(os.Interrupt)
		_ = sandbox.Wait()
	}()
	var text []byte
	for deadline := time.Now().Add(5 * time.Minute); len(text) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the carriers wrote nothing")
		}
		time.Sleep(50 * time.Millisecond)
		text, _ = os.ReadFile(written)
	}
	plain := func(text, secrets string) *config.Document {
		text = strings.ReplaceAll(text, secrets, "/secrets")
		d, err := config.ParseDocument("routing", []byte(address.ReplaceAllString(text, "host:1")))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	shipped := plain(string(read(t, "deploy/compose/routing.yaml")), "/var/lib/dispatcher/secrets")
	changes := config.Diff(plain(string(text), folder).Routing, shipped.Routing)
	if len(changes) > 0 {
		t.Errorf("routing.yaml differs from what the carriers write: %+v", changes)
	}
	for _, at := range address.FindAllString(string(read(t, "deploy/compose/sandbox.yaml")), -1) {
		if !strings.Contains(string(read(t, "deploy/compose/routing.yaml")), at) {
			t.Errorf("no channel reaches %s", at)
		}
	}
}
