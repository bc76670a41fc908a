package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestEveryCommandHasFacts: each of its flags has a description.
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
		for _, form := range strings.Split(d.synopsis, " | ")[1:] {
			if _, name, _ := strings.Cut(" "+d.path, " "); !strings.HasPrefix(form,
				name[strings.LastIndexByte(name, ' ')+1:]+" ") {
				t.Errorf("%s: the form %q does not begin with the name of the command", d.path, form)
			}
		}
		if !strings.HasPrefix(d.synopsis, d.path) || d.purpose == "" || d.details == "" ||
			d.needs == "" {
			t.Errorf("%s: got %+v", d.path, d)
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

// described is a command with everything that its reference contains.
type described struct {
	commandFacts
	synopsis string // "weights set ROUTE CHANNEL=WEIGHT... --reason TEXT"
	purpose  string // one line
	details  string // the help text, without the facts
	example  string
	flags    []describedFlag
}

// describedFlag is one flag; its default is empty for none.
type describedFlag struct{ name, value, byDefault, help string }

// reference describes every command that does something, in the order of facts.
func (c *cli) reference() []described {
	root := c.root()
	all := make([]described, 0, len(facts))
	for _, f := range facts {
		cmd, _, err := root.Find(strings.Fields(f.path))
		if err != nil || commandPath(cmd) != f.path {
			continue // see TestEveryCommandHasFacts
		}
		d := described{
			commandFacts: f, purpose: cmd.Short, details: strings.TrimSuffix(cmd.Long, f.text()),
			example: cmd.Example,
			synopsis: strings.TrimSpace(strings.TrimPrefix(commandPath(cmd.Parent())+" "+cmd.Use,
				" ")),
		}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Name == "help" {
				return
			}
			value, help := pflag.UnquoteUsage(flag)
			d.flags = append(d.flags, describedFlag{flag.Name, value, defaultOf(flag), help})
		})
		all = append(all, d)
	}
	return all
}

// defaultOf returns the default of a flag as users would write it; empty for none.
func defaultOf(flag *pflag.Flag) string {
	switch flag.DefValue {
	case "false", "0", "0s", "[]":
		return ""
	}
	return flag.DefValue
}

// commandPath returns the path of a command below the root.
func commandPath(cmd *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), " ")
}
