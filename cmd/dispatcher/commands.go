package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// commands is the one list of all commands.
func (c *cli) commands() []*cobra.Command {
	return []*cobra.Command{
		c.demoCommand(),
		c.runCommand(),
		c.topicsCommand(),
		c.sendCommand(),
		c.tailCommand(),
		c.statusCommand(),
		c.explainCommand(),
		c.reportCommand(),
		c.reconcileCommand(),
		c.auditCommand(),
		c.previewCommand(),
		c.routingCommand(),
		c.weightsCommand(),
		c.channelCommand(),
		c.limitsCommand(),
		c.budgetCommand(),
		c.pauseCommand(),
		c.resumeCommand(),
		c.cancelCommand(),
		c.deadCommand(),
		c.ambiguousCommand(),
		c.optOutsCommand(),
		c.eraseCommand(),
		c.keysCommand(),
		c.tokensCommand(),
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

// commandFacts are what users need to know of a command besides its name, synopsis, purpose and
// flags, which cobra has. "dispatcher help" prints them and docs/commands.md lists them.
type commandFacts struct {
	path  string // without "dispatcher", such as "weights set"
	needs string // what the command reaches or reads
	csv   string // what one row of its CSV is; empty for a command without --format
	fails string // other reasons for exit code 1 than a failure of its work
}

// Needs of commands.
const (
	needsNothing  = "nothing"
	needsBroker   = "broker"
	needsDatabase = "database"
	needsKeys     = "database, draw keys"
	needsKeyFile  = "key file"
)

// lostRace is why a correct change of the routing may fail.
const lostRace = "another version was applied first"

// facts has one line for each command that does work, in the order of docs/commands.md.
var facts = []commandFacts{
	{"demo", needsNothing, "a channel", ""},
	{"run", "broker, database, draw key; with --embedded nothing", "", ""},
	{"topics create", needsBroker, "a topic", "a topic differs from the flags or cannot be " +
		"created"},
	{
		"send", needsBroker, "the totals; with --wait the last event",
		"a line cannot be sent; with --wait: the message was not delivered",
	},
	{"tail", needsBroker, "an event", "with --until-final: a message was not delivered"},
	{"status", needsDatabase, "a channel", ""},
	{
		"explain", "database; with --routing nothing", "a candidate of the latest choice",
		"no message has the id; with --message: it would be a dead letter",
	},
	{
		"report", needsDatabase, "a channel of a route, without totals",
		"a route's traffic moved or its draws were unfair",
	},
	{
		"report daily", needsDatabase,
		"a channel of a route, without totals; with --from or --by as of report weekly",
		"a route's traffic moved or its draws were unfair",
	},
	{
		"report weekly", needsDatabase, "a row of the report, with all columns of any range",
		"a route's traffic moved or its draws were unfair in a week",
	},
	{
		"report monthly", needsDatabase, "a row of the report, with all columns of any range",
		"a route's traffic moved or its draws were unfair in a month",
	},
	{"report publish", needsDatabase, "a file that was written", ""},
	{
		"report contracts", needsDatabase, "a channel with a contract",
		"a cap is used up to 80 % or will be exceeded, or a commitment will be missed",
	},
	{"report close", needsDatabase, "the revision of the day", "another process is closing a day"},
	{
		"reconcile", "database, draw keys or --without-keys", "a difference",
		"the file differs from the ledger, or an ambiguous message could not be settled",
	},
	{"audit verify", needsKeys, "a difference", "a choice differs from the record"},
	{"audit proof", needsDatabase, "the proof", "the log has no such message or closing yet"},
	{"audit key", needsNothing, "the file and its verifier key", ""},
	{"audit invariants", needsDatabase, "a violation", "a guarantee is violated"},
	{
		"preview", "nothing; with --day or --against database, draw keys",
		"an interval of a route; with --day or --against a channel of a route", "",
	},
	{"routing show", needsDatabase, "the version, its document in one cell", ""},
	{"routing apply", needsDatabase, "a change", lostRace},
	{"routing diff", needsDatabase, "a change", "with --exit-code: the meaning differs"},
	{"routing history", needsDatabase, "a version, without ramps", ""},
	{"routing rollback", needsDatabase, "a change", lostRace},
	{"weights show", needsDatabase, "a channel of a route", ""},
	{"weights set", needsDatabase, "a change", lostRace},
	{"weights ramp", needsDatabase, "a planned step; the ramp when it is held, resumed or " +
		"cancelled", "another ramp of the route is under way, or none is"},
	{"channel list", needsDatabase, "a channel", ""},
	{"channel drain", needsDatabase, "a change", lostRace},
	{"channel enable", needsDatabase, "a change", lostRace},
	{"channel disable", needsDatabase, "a change", lostRace},
	{
		"channel test", "broker, database; with --dry-run database", "the message",
		"the message was not accepted, or not yet",
	},
	{"limits show", needsDatabase, "a limit with what JSON has of its channel", ""},
	{"limits set", needsDatabase, "a change; the limit with --restart", lostRace +
		"; with --restart: the limit's window does not begin in the future"},
	{"limits history", needsDatabase, "a change", ""},
	{"budget list", needsDatabase, "a budget", ""},
	{"budget top-up", needsDatabase, "the top-up", lostRace + "; a correction would take more than " +
		"is left; the key is that of another top-up"},
	{"budget history", needsDatabase, "a top-up", ""},
	{"pause", needsDatabase, "a change", lostRace},
	{"resume", needsDatabase, "a change", lostRace},
	{"cancel", needsDatabase, "a message that was left", "a message cannot be cancelled"},
	{"dead list", needsDatabase, "a record", ""},
	{"dead show", needsDatabase, "the record", "no dead record has the name; with --payload: the " +
		"record is not kept, or not for this login"},
	{"dead replay", "broker, database; with --dry-run database", "a record", "a record cannot be " +
		"published"},
	{"ambiguous list", needsDatabase, "a submission", ""},
	{
		"ambiguous settle", needsDatabase, "a submission that was left",
		"a message could not be settled",
	},
	{"optouts list", needsDatabase, "a source of a tenant", ""},
	{"optouts show", needsDatabase, "an opt-out of the number", ""},
	{"optouts add", needsDatabase, "the totals", ""},
	{"optouts remove", needsDatabase, "the totals", ""},
	{"optouts import", needsDatabase, "the totals", ""},
	{"erase", needsKeys, "a tenant", "messages to the number have not ended"},
	{"keys new", needsNothing, "a key", "the file exists"},
	{"keys show", needsKeyFile, "a key", ""},
	{"keys add", needsKeyFile, "a key", ""},
	{"keys promote", needsKeyFile, "a key", ""},
	{"keys rotate", needsKeyFile, "a key", ""},
	{"tokens new", needsNothing, "the token", "the file cannot be written"},
	{"tokens list", "file of tokens", "a token", ""},
	{"segments", needsNothing, "a text", "a line is not an object with a text"},
	{"simulate admission", needsNothing, "a policy, without its windows", ""},
	{"sandbox", needsNothing, "a carrier", "a carrier could not read a request"},
	{"doctor", "whatever it is to check", "a check", "a check failed"},
	{"migrate", needsDatabase, "the versions", ""},
	{"config", needsNothing, "a setting; with --routing the document", ""},
	{"bench", needsNothing, "a figure; with --faults a fault", ""},
	{"version", needsNothing, "the version", ""},
}

// exitCodes are the meanings of exit codes, the same for all commands.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "done"},
	{exitFailed, "the work failed, or a check found something"},
	{exitUsage, "wrong arguments or configuration: the sentence names the flag, variable or file " +
		"and how to correct it"},
	{exitInterrupted, "ended by Ctrl-C; what was under way was stopped in order"},
	{exitTerminated, "cut short by SIGTERM. `run`, `sandbox` and `tail` without --until-final run " +
		"until they are told to stop, so SIGTERM ends them with 0"},
}

// text is the part of the help with the facts, below the details of a command.
func (f *commandFacts) text() string {
	var out strings.Builder
	out.WriteString("\n\nNeeds: " + f.needs + ".")
	if f.csv != "" {
		out.WriteString("\nA row of CSV: " + f.csv + ".")
	}
	if f.fails != "" {
		out.WriteString("\nExit code 1 also: " + f.fails + ".")
	}
	return out.String()
}

// addFacts adds the facts to the help of each command.
func addFacts(root *cobra.Command) {
	for i := range facts {
		cmd, _, err := root.Find(strings.Fields(facts[i].path))
		if err != nil {
			continue // TestEveryCommandHasFacts reports it
		}
		if cmd.Long == "" {
			cmd.Long = cmd.Short + "."
		}
		cmd.Long += facts[i].text()
	}
}
