package main

import (
	"bytes"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/demo"
	"dispatcher/config"
)

// TestTheDemoEndsWithCommandsThatWork as they are printed: they name the ports that the user had
// to choose, and each of them is a command with flags that it has.
func TestTheDemoEndsWithCommandsThatWork(t *testing.T) {
	t.Parallel()
	usual := demoFlags{kafkaPort: embeddedKafkaPort, postgresPort: embeddedPostgresPort}
	kept, moved, both := usual, usual, usual
	kept.keep = true
	moved.keep, moved.kafkaPort = true, 0
	both.kafkaPort, both.postgresPort = 29092, 25432
	for name, c := range map[string]struct {
		flags demoFlags
		want  []string
	}{
		"the usual ports":    {usual, []string{"demo --keep", "run --embedded"}},
		"data that was kept": {kept, []string{"run --embedded", "explain demo-7-0"}},
		"another port":       {moved, []string{"run --embedded --kafka-port 0"}},
		"two other ports": {both, []string{
			"demo --keep --kafka-port 29092 --postgres-port 25432",
			"run --embedded --kafka-port 29092 --postgres-port 25432",
		}},
	} {
		var out bytes.Buffer
		program := &cli{out: &out, err: &out}
		program.demoEpilogue(&demo.Result{Seed: 7}, &c.flags, &config.Settings{
			DataDir: "./elsewhere", Listen: "127.0.0.1:8080",
		})
		_, list, _ := strings.Cut(out.String(), "Go on from here:\n")
		if !strings.Contains(list, "run the dispatcher on ./elsewhere (console on "+
			"http://127.0.0.1:8080; it prints an address to sign in)") {
			t.Errorf("%s: it does not name the folder, or the console:\n%s", name, list)
		}
		var commands []string
		for line := range strings.Lines(list) {
			line = strings.TrimSpace(line)
			if command, ok := strings.CutPrefix(line, program.self()+" "); ok {
				commands = append(commands, command)
			} else if !strings.HasPrefix(line, "#") {
				t.Errorf("%s: %q is neither a command nor a comment", name, line)
			}
		}
		for _, command := range commands {
			cmd, arguments, err := program.root().Find(strings.Fields(command))
			if err == nil {
				err = cmd.ParseFlags(arguments)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", name, command, err)
			}
		}
		printed := "\n" + strings.Join(commands, "\n") + "\n"
		for _, want := range c.want {
			if !strings.Contains(printed, "\n"+want+"\n") {
				t.Errorf("%s: %q is missing in %q", name, want, commands)
			}
		}
	}
}
