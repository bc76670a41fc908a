package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"dispatcher/config"
)

// What a key of the file is for.
const (
	keyDraws    = "draws"    // every new message
	keyVerifies = "verifies" // what was drawn with it before
)

// keyRing is a key file as the command shows it: ids, never a key.
type keyRing struct {
	File string     `json:"file"`
	Keys []keyShown `json:"keys"`
	// Added is the id of the key that this command put on top; empty when it only shows.
	Added string `json:"added,omitempty"`
}

// keyShown is one key of the file.
type keyShown struct {
	KeyID string `json:"key_id"`
	Use   string `json:"use"`
}

func (c *cli) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Show or rotate the draw keys",
		Long: `Works on the file of DISPATCHER_DRAW_KEY_FILE. Its first key draws; the others are kept to verify
what was drawn with them. A key itself is never shown, only its id: the first eight hexadecimal
digits of its SHA-256, as it stands beside every draw.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(
		c.keysChild("show", "List the ids of the keys, the one that draws first", c.showKeys),
		c.keysChild("rotate", "Put a new key on top of the file; the old ones stay to verify old days", c.rotateKeys),
	)
	return cmd
}

// keysChild is one subcommand over the key file.
func (c *cli) keysChild(use, short string, run func(path string, as format) error) *cobra.Command {
	as := format(formatTable)
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: work(func(context.Context, []string) error {
			s, err := c.settings()
			if err != nil {
				return err
			}
			if s.DrawKeyFile == "" {
				return usage(errors.New("DISPATCHER_DRAW_KEY_FILE is missing; set it to the file with the draw keys, or start \"dispatcher run --embedded\" in another terminal"))
			}
			return run(s.DrawKeyFile, as)
		}),
	}
	cmd.Flags().Var(&as, "format", "output format")
	return cmd
}

func (c *cli) showKeys(path string, as format) error {
	ring, err := readKeyRing(path)
	if err != nil {
		return usage(err)
	}
	return as.print(c.out, ring, ring.sheet())
}

// rotateKeys adds a key and says what is to be done with the file then.
func (c *cli) rotateKeys(path string, as format) error {
	if _, err := readKeyRing(path); err != nil {
		return usage(err) // a new file beside the right one would lose the old keys
	}
	if err := addKey(path); err != nil {
		return err
	}
	ring, err := readKeyRing(path)
	if err != nil {
		return err
	}
	ring.Added = ring.Keys[0].KeyID
	if as != formatTable {
		return as.print(c.out, ring, ring.sheet())
	}
	ring.sheet().draw(c.out)
	fmt.Fprintln(c.out, wrapped(fmt.Sprintf(`Key %s is on top of %s. Copy the file to every instance and restart them one by one: an instance draws
with the new key from its start on. Messages that were drawn before keep their draw as long as their key stands in the file.
Keep the old keys: without them old days cannot be verified.`, ring.Added, path), 100))
	return nil
}

// readKeyRing reads the ids of a key file.
func readKeyRing(path string) (keyRing, error) {
	keys, err := config.DrawKeys(path)
	if err != nil {
		return keyRing{}, err
	}
	ring := keyRing{File: path}
	for i, key := range keys {
		use := keyVerifies
		if i == 0 {
			use = keyDraws
		}
		ring.Keys = append(ring.Keys, keyShown{KeyID: key.ID(), Use: use})
	}
	return ring, nil
}

func (r *keyRing) sheet() sheet {
	s := sheet{title: filepath.Base(r.File), header: []string{"key_id", "use"}}
	for _, key := range r.Keys {
		s.rows = append(s.rows, []string{key.KeyID, key.Use})
	}
	return s
}
