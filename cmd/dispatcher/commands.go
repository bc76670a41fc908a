package main

import "github.com/spf13/cobra"

// commands is the one list of all commands, in the order of the help text.
func (c *cli) commands() []*cobra.Command {
	return []*cobra.Command{
		c.segmentsCommand(),
		c.demoCommand(),
		c.runCommand(),
		c.versionCommand(),
	}
}
