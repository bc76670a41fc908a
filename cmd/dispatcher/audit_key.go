package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/config"
)

// auditKeyCommand is "audit key".
func (c *cli) auditKeyCommand() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "key NAME FILE",
		Short: "Make the key that signs the log of hashes",
		Long: `Makes FILE, which only its owner can read, with a new key under NAME, such as
sms.example.com. Give it to every instance as DISPATCHER_SEAL_KEY_FILE. Its verifier key is printed:
auditors need it, and nothing else, to see whether stored rows were changed. A file that is there
already is never touched.`,
		Example: "  dispatcher audit key sms.example.com seal.key",
		Args:    arguments(2, 2),
		RunE: work(func(_ context.Context, args []string) error {
			return c.newSealKey(args[0], args[1], as)
		}),
	}
	as.addTo(cmd.Flags())
	return cmd
}

// sealKey is a new key as the command shows it.
type sealKey struct {
	File     string `json:"file"`
	Verifier string `json:"verifier"`
}

func (c *cli) newSealKey(name, path string, as format) error {
	text, verifier, err := seal.NewKey(name)
	if err != nil {
		return usage(fmt.Errorf("%q cannot be the name of a key: %w", name, err))
	}
	if err := config.CreateSecret(path, text); err != nil {
		return failed(fmt.Errorf("write the key: %w", err))
	}
	if as == formatTable {
		fmt.Fprintf(c.out, "The key is in %s, which only its owner can read. Auditors verify with\n"+
			"%s\n", path, verifier)
		return nil
	}
	k := sealKey{path, verifier}
	return as.write(c.out, k, sheet{
		header: []string{"file", "verifier"}, rows: [][]string{{path, verifier}},
	})
}
