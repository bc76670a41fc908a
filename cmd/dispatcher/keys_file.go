package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// changeKeys replaces the text of a key file by what change makes of it. Whoever reads the file
// meanwhile sees the old text or the new one, whole: it is written beside the file, brought to the disk and
// moved over it. The file beside has a fixed name and must not exist yet, so of two changes at
// a time one is refused, before it has read what the other is about to replace, and no key is lost.
func changeKeys(path string, change func(text string) (string, error)) error {
	path, err := filepath.EvalSymlinks(path) // a link stays a link
	if err != nil {
		return fmt.Errorf("DISPATCHER_DRAW_KEY_FILE: %w; correct the path", err)
	}
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	beside, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the draw keys are being changed by somebody else, nothing was changed here; try again, and if that lasts, "+
			"remove %s, which a change that was cut off has left behind", name)
	}
	if err != nil {
		return fmt.Errorf("write the draw keys: %w; nothing was changed", err)
	}
	if err := errors.Join(rewrite(path, beside, change), beside.Close()); err != nil {
		return errors.Join(fmt.Errorf("change the draw keys: %w; nothing was changed", err), os.Remove(name))
	}
	if err := os.Rename(name, path); err != nil {
		return errors.Join(fmt.Errorf("write the draw keys: %w; nothing was changed", err), os.Remove(name))
	}
	return nil
}

// rewrite brings the changed text to the disk, in a file that belongs to the owner of the first one.
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
