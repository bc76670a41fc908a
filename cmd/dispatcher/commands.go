package main

import "github.com/spf13/cobra"

// commands is the one list of all commands.
func (c *cli) commands() []*cobra.Command {
	return []*cobra.Command{
		c.demoCommand(),
		c.runCommand(),
		c.topicsCommand(),
		c.sendCommand(),
		c.tailCommand(),
		c.explainCommand(),
		c.reportCommand(),
		c.auditCommand(),
		c.previewCommand(),
		c.routingCommand(),
		c.weightsCommand(),
		c.channelCommand(),
		c.limitsCommand(),
		c.ambiguousCommand(),
		c.optOutsCommand(),
		c.keysCommand(),
		c.segmentsCommand(),
		c.simulateCommand(),
		c.sandboxCommand(),
		c.doctorCommand(),
		c.migrateCommand(),
		c.configCommand(),
		c.benchCommand(),
		c.benchFloorCommand(),
		c.versionCommand(),
	}
}
