package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// secrets are the files of accounts. One that exists is used as it is, so that a running dispatcher
// still knows a sandbox that was started again.
type secrets struct {
	folder string // where they are
	prefix string // of names within it
	err    error  // the first that happened
}

// file returns the path of a secret and its content, which fresh makes when there is none yet.
func (s *secrets) file(name string, fresh func() string) (path, content string) {
	path = filepath.Join(s.folder, s.prefix+"."+name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		content = fresh()
		err = os.WriteFile(path, []byte(content), 0o600)
		text = []byte(content)
	}
	if err != nil {
		s.fail(err)
	}
	return path, string(text)
}

func (s *secrets) fail(err error) {
	if s.err == nil {
		s.err = fmt.Errorf("secret of a sandbox account: %w", err)
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}

// text is a secret that a person might have been given.
func (s *secrets) text(name string) (path, content string) { return s.file(name, rand.Text) }
