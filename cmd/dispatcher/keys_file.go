package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"dispatcher/config"
)

// addKey puts a new key on top of a key file. Whoever reads the file meanwhile sees the old
// one or the new one, whole: the text is written beside it, brought to the disk and moved
// over it.
func addKey(path string) error {
	path, err := filepath.EvalSymlinks(path) // a link stays a link
	if err != nil {
		return fmt.Errorf("DISPATCHER_DRAW_KEY_FILE: %w; correct the path", err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("DISPATCHER_DRAW_KEY_FILE: %w; correct the path", err)
	}
	if err := replaceFile(path, config.AddDrawKey(string(old))); err != nil {
		return fmt.Errorf("write the draw keys: %w; nothing was changed", err)
	}
	return nil
}

// replaceFile swaps the content of a secret file in one step. Only its owner, who stays the
// same, may read it.
func replaceFile(path, text string) (err error) {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	beside, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // made with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(beside.Name()))
		}
	}()
	_, err = beside.WriteString(text)
	if err = errors.Join(err, beside.Chmod(0o600), keepOwner(beside, info), beside.Sync(), beside.Close()); err != nil {
		return err
	}
	return os.Rename(beside.Name(), path)
}
