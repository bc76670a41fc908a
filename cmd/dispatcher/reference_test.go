package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestEveryCommandHasFacts, and each of its flags says what it does.
func TestEveryCommandHasFacts(t *testing.T) {
	t.Parallel()
	c := &cli{env: []string{"USER=ann"}}
	var want []string
	var walk func(*cobra.Command)
	walk = func(parent *cobra.Command) {
		for _, cmd := range parent.Commands() {
			if cmd.Hidden {
				continue
			}
			if path := commandPath(cmd); !cmd.HasSubCommands() || path == "report" {
				want = append(want, path)
			}
			walk(cmd)
		}
	}
	walk(c.root())
	described := c.reference()
	if len(described) != len(want) || len(facts) != len(want) {
		t.Fatalf("%d commands, %d facts, %d of them about a command", len(want), len(facts),
			len(described))
	}
	for _, d := range described {
		if !slices.Contains(want, d.path) {
			t.Errorf("there is no command %q", d.path)
		}
		if !strings.HasPrefix(d.synopsis, d.path) || d.purpose == "" || d.details == "" ||
			d.needs == "" {
			t.Errorf("%s: %+v", d.path, d)
		}
		format := false
		for _, flag := range d.flags {
			format = format || flag.name == "format"
			if flag.help == "" || strings.Contains(flag.byDefault, "ann") {
				t.Errorf("%s --%s: %+v", d.path, flag.name, flag)
			}
		}
		if csv := d.csv != ""; csv != format {
			t.Errorf("%s: --format is %v, rows of CSV %q", d.path, format, d.csv)
		}
		help := dispatcher(t, "", nil, append([]string{"help"}, strings.Fields(d.path)...)...)
		if help.code != exitOK || !strings.Contains(help.out, "Needs: "+d.needs+".") {
			t.Errorf("help %s: %d\n%s", d.path, help.code, help.out)
		}
	}
}
