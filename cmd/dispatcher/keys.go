package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"dispatcher/config"
	"dispatcher/selector"
)

// What a key of the file is for.
const (
	keyDraws    = "draws"    // the first key: every new message
	keyVerifies = "verifies" // any other key: what was drawn with it
)

// keyRing is a key file as the command shows it: ids only, never a key.
type keyRing struct {
	File string     `json:"file"`
	Keys []keyShown `json:"keys"`
	// Added is the id of the key that this command has created; empty if none.
	Added string `json:"added,omitempty"`
	// Promoted is the id of the key that this command has moved to the top.
	Promoted string `json:"promoted,omitempty"`
}

// keyShown is one key of the file.
type keyShown struct {
	KeyID string `json:"key_id"`
	Use   string `json:"use"`
}

func (c *cli) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, show, add and change the draw keys",
		Long: `Works on the file of DISPATCHER_DRAW_KEY_FILE. Its first key draws; the others
serve what was drawn with them: messages on their way, and the verification of old days. A key
itself is never shown, only its id: the first eight hexadecimal digits of its SHA-256, as it
stands beside every draw.

With several instances a new key takes two steps, so that none meets a message that was drawn with
a key it does not have: "keys add", copy the file to all and restart them; then "keys promote",
copy and restart again.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(
		c.keysNewCommand(),
		c.keysChild("show", "List the ids of the keys; the first one draws", cobra.NoArgs,
			c.showKeys),
		c.keysChild("add", "Add a new key below the one that draws; no process draws with it yet",
			cobra.NoArgs, c.addKey),
		c.keysChild("promote ID", "Move a key of the file to the top, so that it draws",
			cobra.ExactArgs(1), c.promoteKey),
		c.keysChild("rotate",
			"Add a new key at the top, which draws at once; for a single instance", cobra.NoArgs,
			c.rotateKeys),
	)
	return cmd
}

// keysNewCommand is "keys new". Unlike the other commands it works without a key file.
func (c *cli) keysNewCommand() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "new [FILE]",
		Short: "Make a file with a first draw key, readable by its owner alone",
		Long: `Makes FILE, or the file of DISPATCHER_DRAW_KEY_FILE, with one new random key and
mode 0600. A file that is there already is never touched: "keys add" puts a further key into it.`,
		Example: "  dispatcher keys new draw.key",
		Args:    arguments(0, 1),
		RunE: work(func(_ context.Context, args []string) error {
			path := c.lookup("DISPATCHER_DRAW_KEY_FILE")
			if len(args) == 1 {
				path = args[0]
			}
			if path == "" {
				return misused(errors.New("name the file to make, for example draw.key, or set " +
					"DISPATCHER_DRAW_KEY_FILE"))
			}
			return c.newKeyFile(path, as)
		}),
	}
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) newKeyFile(path string, as format) error {
	err := config.CreateDrawKey(path)
	switch {
	case errors.Is(err, fs.ErrExist):
		return failed(fmt.Errorf("%s is there already and was left as it is: \"dispatcher keys "+
			"add\" puts a further key into it", path))
	case err != nil:
		return failed(fmt.Errorf("write the draw key: %w; correct the path", err))
	}
	ring, err := readKeyRing(path)
	if err != nil {
		return err
	}
	ring.Added = ring.Keys[0].KeyID
	if as != formatTable {
		return as.write(c.out, ring, ring.sheet(as))
	}
	fmt.Fprintf(c.out, "Key %s is in %s, which only its owner can read. Give every instance this "+
		"file as DISPATCHER_DRAW_KEY_FILE and\n"+
		"keep a copy: without it no draw can be verified.\n", ring.Added, path)
	return nil
}

// keysChild is one subcommand that works on the key file.
func (c *cli) keysChild(
	use, short string, args cobra.PositionalArgs, run func(path string, args []string,
		as format) error,
) *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: work(func(_ context.Context, args []string) error {
			s, err := c.settings()
			if err != nil {
				return err
			}
			if s.DrawKeyFile == "" {
				return usage(errors.New("DISPATCHER_DRAW_KEY_FILE is missing; set it to the file " +
					"with the draw keys, or start \"dispatcher run --embedded\" in another " +
					"terminal"))
			}
			return run(s.DrawKeyFile, args, as)
		}),
	}
	as.addTo(cmd.Flags())
	return cmd
}

// drawKeys reads all keys of the key file: older ones check older draws. of says which keys are
// needed, for the error when the file is not set.
func drawKeys(s *config.Settings, of string) ([]selector.Key, error) {
	if s.DrawKeyFile == "" {
		return nil, usage(errors.New("DISPATCHER_DRAW_KEY_FILE is missing; set it to the file with " +
			"the keys that " + of))
	}
	keys, err := config.DrawKeys(s.DrawKeyFile)
	if err != nil {
		return nil, usage(err)
	}
	return keys, nil
}

func (c *cli) showKeys(path string, _ []string, as format) error {
	ring, err := readKeyRing(path)
	if err != nil {
		return usage(err)
	}
	return as.write(c.out, ring, ring.sheet(as))
}

// addKey creates a key that makes no draws yet.
func (c *cli) addKey(path string, _ []string, as format) error {
	var added string
	return c.changeKeys(path, as, func(text string) (string, error) {
		text, key, err := config.AppendDrawKey(text)
		added = key.ID()
		return text, err
	}, func(ring *keyRing) string {
		ring.Added = added
		return fmt.Sprintf(`Key %s is new in %s and draws nothing yet. Copy the file to every
instance and restart them one by one. When all have it: "dispatcher keys promote %s".`,
			added, path, added)
	})
}

// promoteKey makes a key of the file the one that draws.
func (c *cli) promoteKey(path string, args []string, as format) error {
	ring, err := readKeyRing(path)
	if err != nil {
		return usage(err)
	}
	id := args[0]
	if !slices.ContainsFunc(ring.Keys, func(k keyShown) bool { return k.KeyID == id }) {
		return usage(fmt.Errorf("%s has no key with the id %q; \"dispatcher keys show\" lists them",
			path, id))
	}
	return c.changeKeys(path, as, func(text string) (string, error) {
		return config.PromoteDrawKey(text, id)
	}, func(ring *keyRing) string {
		ring.Promoted = id
		return fmt.Sprintf(`Key %s is on top of %s. Copy the file to every instance and restart
them one by one: an instance draws with it from its start on. Do that only when every
instance has had the key from "dispatcher keys add" on. `, id, path) + keepOldKeys
	})
}

const keepOldKeys = `Messages that were drawn before keep their draw as long as their key stands
in the file. Keep the old keys: without them old days cannot be verified.`

// rotateKeys adds a key, moves it to the top and says what to do with the file next.
func (c *cli) rotateKeys(path string, _ []string, as format) error {
	return c.changeKeys(path, as, func(text string) (string, error) {
		return config.AddDrawKey(text), nil
	}, func(ring *keyRing) string {
		ring.Added, ring.Promoted = ring.Keys[0].KeyID, ring.Keys[0].KeyID
		return fmt.Sprintf(`Key %s is on top of %s. Restart the instance: it draws with the new
key from its start on. With several instances use "keys add" and "keys promote" instead: one
that does not have the new key yet would choose again, with its own, for messages that were
drawn with the new one and wait. `, ring.Added, path) + keepOldKeys
	})
}

// changeKeys changes the file and prints it with what to do next.
func (c *cli) changeKeys(
	path string, as format, change func(string) (string, error), next func(*keyRing) string,
) error {
	if _, err := readKeyRing(path); err != nil {
		return usage(err) // a new file in a wrong place would lose the old keys
	}
	if err := changeKeys(path, change); err != nil {
		return err
	}
	ring, err := readKeyRing(path)
	if err != nil {
		return err
	}
	text := next(&ring)
	if as != formatTable {
		return as.write(c.out, ring, ring.sheet(as))
	}
	ring.sheet(as).draw(c.out)
	fmt.Fprintln(c.out, wrapped(text, 100))
	return nil
}

// readKeyRing reads the ids of a key file.
func readKeyRing(path string) (keyRing, error) {
	stored, err := config.DrawKeys(path)
	if err != nil {
		return keyRing{}, err
	}
	ring := keyRing{File: path}
	for i, key := range stored {
		use := keyVerifies
		if i == 0 {
			use = keyDraws
		}
		ring.Keys = append(ring.Keys, keyShown{KeyID: key.ID(), Use: use})
	}
	return ring, nil
}

func (r *keyRing) sheet(as format) sheet {
	s := list(as, r.Keys, keys[keyShown]("", "key_id", "use")...)
	s.title = filepath.Base(r.File)
	return s
}

// changeKeys replaces the text of a key file by the result of change. Concurrent readers see the
// whole old text or the whole new one: the new text is written to a second file, synced, and
// renamed over the first. The second file has a fixed name and must not exist yet. So of two
// concurrent changes one is refused before it has read the old text, and no key is lost.
func changeKeys(path string, change func(text string) (string, error)) error {
	path, err := filepath.EvalSymlinks(path) // a link stays a link
	if err != nil {
		return fmt.Errorf("DISPATCHER_DRAW_KEY_FILE: %w; correct the path", err)
	}
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	beside, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the draw keys are being changed by somebody else, nothing was changed "+
			"here; try again, and if that lasts, remove %s, which a change that was cut off has "+
			"left behind", name)
	}
	if err != nil {
		return fmt.Errorf("write the draw keys: %w; nothing was changed", err)
	}
	if err := errors.Join(rewrite(path, beside, change), beside.Close()); err != nil {
		return errors.Join(fmt.Errorf("change the draw keys: %w; nothing was changed", err),
			os.Remove(name))
	}
	if err := os.Rename(name, path); err != nil {
		return errors.Join(fmt.Errorf("write the draw keys: %w; nothing was changed", err),
			os.Remove(name))
	}
	return nil
}

// rewrite writes the changed text to the second file and syncs it. The file gets the owner, group
// and mode of the first one.
func rewrite(path string, beside *os.File, change func(string) (string, error)) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := change(string(old))
	if err != nil {
		return err
	}
	_, err = beside.WriteString(text)
	return errors.Join(err, keepOwner(beside, info), beside.Sync())
}
