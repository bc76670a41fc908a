package config

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"dispatcher/selector"
)

// maxSecret bounds a file of secrets in bytes, so that a wrong path does not fill the memory.
const maxSecret = 64 << 10

// readSecrets reads the files that *_FILE settings name.
func (s *Settings) readSecrets() error {
	return errors.Join(s.readAuthorities(), s.readPassword(), s.checkClientSecret())
}

func (s *Settings) readAuthorities() error {
	if s.KafkaCAFile == "" {
		return nil
	}
	text, err := readSecretFile(Prefix+"_KAFKA_CA_FILE", s.KafkaCAFile)
	if err != nil {
		return err
	}
	s.KafkaCA = x509.NewCertPool()
	if !s.KafkaCA.AppendCertsFromPEM([]byte(text)) {
		return fmt.Errorf("%s_KAFKA_CA_FILE: file %s holds no certificate in PEM form; write "+
			"one into it", Prefix, s.KafkaCAFile)
	}
	return nil
}

func (s *Settings) readPassword() (err error) {
	s.KafkaSASLPassword, err = readPassword("KAFKA_SASL_PASSWORD_FILE", s.KafkaSASLPasswordFile)
	return err
}

// checkClientSecret refuses a file that no sign-in could use. Its content is read at each sign-in.
func (s *Settings) checkClientSecret() error {
	_, err := readPassword("OIDC_CLIENT_SECRET_FILE", s.OIDCClientSecretFile)
	return err
}

// readPassword is the content of the file that a setting names; empty when it names none.
func readPassword(setting, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := readSecretFile(Prefix+"_"+setting, path)
	if err != nil {
		return "", err
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", fmt.Errorf("%s_%s: file %s is empty; write the password into it", Prefix, setting,
			path)
	}
	return text, nil
}

// readSecretFile reads a small file that a setting names.
func readSecretFile(setting, path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s: there is no file %s; create it or correct the path", setting,
			path)
	case err != nil:
		return "", fmt.Errorf("%s: %w; correct the path or its permissions", setting, err)
	case info.IsDir():
		return "", fmt.Errorf("%s: %s is a folder; name the file in it", setting, path)
	case info.Size() > maxSecret:
		return "", fmt.Errorf("%s: file %s is larger than %d bytes; it cannot be the right one",
			setting, path, maxSecret)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w; correct its permissions", setting, err)
	}
	return string(text), nil
}

// defaultSecrets is the folder below DISPATCHER_DATA_DIR that is used without
// DISPATCHER_SECRETS_DIR.
const defaultSecrets = "secrets"

// Files that "run --embedded" creates in its data folder.
const (
	// EmbeddedDrawKey holds the draw keys.
	EmbeddedDrawKey = "draw.key"
	// EmbeddedEndpoints says where the embedded servers listen. It holds the password of the
	// database.
	EmbeddedEndpoints = "endpoints.json"
	// EmbeddedToken holds the token of the API and the console.
	EmbeddedToken = "api.token"
)

// ErrOutsideSecrets is wrapped by the error for a file name that leads out of the secrets folder.
var ErrOutsideSecrets = errors.New("lies outside of the secrets folder (DISPATCHER_SECRETS_DIR)")

// SecretsFolder reads the files that the routing document names, such as password_file of a
// channel. They must be in one folder, because the author of a document also decides to which
// address their content is sent.
type SecretsFolder struct {
	path string
	own  []ownFile
	// noWebhooks refuses the secrets of status webhooks, which are in the folder too.
	noWebhooks bool
}

// ownFile is a secret of the process itself. No document may use it, even if it is in the folder.
type ownFile struct {
	setting, path string
	keys          *keyFile // nil for any other secret
}

// keyFile is a kind of key file. Copies of it may be in the folder, perhaps with further keys.
type keyFile struct {
	what string
	// among reads the keys of a file, and returns a function that reports whether a line contains one
	// of them.
	among func(path string) (func(line string) bool, error)
}

var drawKeyFile = &keyFile{"the draw key", func(path string) (func(string) bool, error) {
	keys, err := DrawKeys(path)
	return func(line string) bool {
		key, err := selector.ParseKey(line)
		return err == nil && slices.Contains(keys, key)
	}, err
}}

var sealKeyFile = &keyFile{"the key of the log", func(path string) (func(string) bool, error) {
	keys, err := SealKeys(path)
	return func(line string) bool { return slices.Contains(keys, line) }, err
}}

// secretsDir is the folder for the files that the routing document names.
func (s *Settings) secretsDir() string {
	return cmp.Or(s.SecretsDir, filepath.Join(s.DataDir, defaultSecrets))
}

// Secrets is the folder of secrets that the settings name.
func (s *Settings) Secrets() *SecretsFolder {
	f := NewSecretsFolder(s.secretsDir())
	f.noWebhooks = s.StatusWebhooksFile != ""
	f.own = []ownFile{
		{Prefix + "_DRAW_KEY_FILE", s.DrawKeyFile, drawKeyFile},
		{Prefix + "_SEAL_KEY_FILE", s.SealKeyFile, sealKeyFile},
		{Prefix + "_DATA_DIR", filepath.Join(s.DataDir, EmbeddedDrawKey), drawKeyFile},
		{Prefix + "_DATA_DIR", filepath.Join(s.DataDir, EmbeddedEndpoints), nil},
		{Prefix + "_DATA_DIR", filepath.Join(s.DataDir, EmbeddedToken), nil},
		{Prefix + "_API_TOKENS_FILE", s.APITokensFile, nil},
		{Prefix + "_KAFKA_SASL_PASSWORD_FILE", s.KafkaSASLPasswordFile, nil},
		{Prefix + "_OIDC_CLIENT_SECRET_FILE", s.OIDCClientSecretFile, nil},
		{Prefix + "_RECEIPTS_TLS_KEY_FILE", s.ReceiptsTLSKeyFile, nil},
	}
	for _, path := range connectionFiles(s.PostgresURL) {
		f.own = append(f.own, ownFile{Prefix + "_POSTGRES_URL", path, nil})
	}
	f.own = slices.DeleteFunc(f.own, func(o ownFile) bool { return o.path == "" })
	return f
}

// connectionFiles are the files from which a PostgreSQL connection takes secrets: those named in
// the connection string, a URL or a list of key=value, and those of libpq's environment.
func connectionFiles(connection string) (paths []string) {
	for key, variable := range map[string]string{
		"passfile": "PGPASSFILE", "sslkey": "PGSSLKEY", "servicefile": "PGSERVICEFILE",
	} {
		paths = append(paths, os.Getenv(variable))
		if u, err := url.Parse(connection); err == nil && u.Scheme != "" {
			paths = append(paths, u.Query().Get(key))
			continue
		}
		for _, found := range connectionPair.FindAllStringSubmatch(connection, -1) {
			if found[1] == key {
				paths = append(paths, connectionQuotes.Replace(found[2]))
			}
		}
	}
	return paths
}

// connectionPair is a key=value of a connection string. A quoted value has a backslash before a
// quote or a backslash.
var (
	connectionPair   = regexp.MustCompile(`(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|\S+)`)
	connectionQuotes = strings.NewReplacer(`\\`, `\`, `\'`, `'`, `'`, ``)
)

// NewSecretsFolder returns a SecretsFolder that refuses no file in the folder.
func NewSecretsFolder(path string) *SecretsFolder { return &SecretsFolder{path: path} }

// Path is the folder; absolute if the working folder is known.
func (f *SecretsFolder) Path() string {
	if path, err := filepath.Abs(f.path); err == nil {
		return path
	}
	return f.path
}

// Read returns the content of a file in the folder. name is relative to the folder, or an absolute
// path in it. Links are followed while they stay in the folder, because Kubernetes mounts secrets
// as links. The error does not show content.
func (f *SecretsFolder) Read(name string) ([]byte, error) {
	within, err := f.within(name)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(f.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s cannot be read: there is no secrets folder %s; create it and "+
			"put the file into it, "+
			"or set %s_SECRETS_DIR to the folder that holds it", name, f.Path(), Prefix)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: secrets folder %s (%s_SECRETS_DIR): %w", name,
			f.Path(), Prefix, cause(err))
	}
	defer root.Close() //nolint:errcheck // nothing was written
	// Without O_NONBLOCK, opening a named pipe waits for a writer.
	file, err := root.OpenFile(within, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, f.unopened(name, within, err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return f.content(name, file)
}

// within returns name relative to the folder.
func (f *SecretsFolder) within(name string) (string, error) {
	if !filepath.IsAbs(name) {
		return name, LocalSecret(name)
	}
	folders := []string{f.Path()}
	if real, err := filepath.EvalSymlinks(f.Path()); err == nil {
		folders = append(folders, real)
	}
	for _, folder := range folders {
		if within, err := filepath.Rel(folder,
			name); err == nil && filepath.IsLocal(within) && within != "." {
			return within, nil
		}
	}
	return "", fmt.Errorf("%s %w; put the file into %s and write its name there", name,
		ErrOutsideSecrets, f.Path())
}

// LocalSecret returns an error for a relative file name that leads out of the secrets folder,
// whichever folder that is.
func LocalSecret(name string) error {
	if filepath.IsAbs(name) || filepath.IsLocal(name) {
		return nil
	}
	return fmt.Errorf("%s %w; put the file into that folder and write its name there", name,
		ErrOutsideSecrets)
}

// unopened explains why a file in the folder could not be opened.
func (f *SecretsFolder) unopened(name, within string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s in the secrets folder %s (%s_SECRETS_DIR); put "+
			"it there or correct the name",
			within, f.Path(), Prefix)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s in the secrets folder %s: %w; correct its permissions", within,
			f.Path(), cause(err))
	}
	if _, statErr := os.Stat(filepath.Join(f.path, within)); statErr == nil {
		return fmt.Errorf("%s is a link that %w; put the file itself into %s", name,
			ErrOutsideSecrets, f.Path())
	}
	return fmt.Errorf("%s in the secrets folder %s (%s_SECRETS_DIR): %w", within, f.Path(), Prefix,
		cause(err))
}

// content reads a file that is open. Its size is bounded twice, because a file may grow.
func (f *SecretsFolder) content(name string, file *os.File) ([]byte, error) {
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, cause(err))
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder; name the file in it", name)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not an ordinary file; write the secret into one", name)
	}
	if o, ok := f.ownOf(info); ok {
		return nil, o.refused(name)
	}
	content, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, cause(err))
	case len(content) > maxSecret:
		return nil, fmt.Errorf("%s is larger than %d bytes; it cannot be the right file", name,
			maxSecret)
	}
	if err := f.holdsNoKey(name, content); err != nil {
		return nil, err
	}
	if f.noWebhooks && bytes.HasPrefix(bytes.TrimSpace(content), []byte(secretPrefix)) {
		return nil, ownFile{setting: Prefix + "_STATUS_WEBHOOKS_FILE"}.refused(name)
	}
	return content, nil
}

// ownOf finds the process's own secret that is this file, even under another name.
func (f *SecretsFolder) ownOf(info fs.FileInfo) (ownFile, bool) {
	for _, o := range f.own {
		if own, err := os.Stat(o.path); err == nil && os.SameFile(own, info) {
			return o, true
		}
	}
	return ownFile{}, false
}

// holdsNoKey refuses content that contains a key of the process. The file may be a copy: Kubernetes
// mounts one secret twice as two files. If the keys cannot be read, all content is refused.
func (f *SecretsFolder) holdsNoKey(name string, content []byte) error {
	for _, o := range f.own {
		if o.keys == nil {
			continue
		}
		if _, err := os.Stat(o.path); errors.Is(err, fs.ErrNotExist) {
			continue // without keys there is nothing to protect
		}
		isKey, err := o.keys.among(o.path)
		if err != nil {
			return fmt.Errorf("%s is not read, because %s (%s), of which it could be a copy, "+
				"cannot be compared with it: %w", name, o.keys.what, o.setting, err)
		}
		for line := range strings.Lines(string(content)) {
			if isKey(strings.TrimSpace(line)) {
				return o.refused(name)
			}
		}
	}
	return nil
}

func (o ownFile) refused(name string) error {
	what := "a secret of the dispatcher itself"
	if o.keys != nil {
		what = o.keys.what
	}
	return fmt.Errorf("%s is %s (%s), which no routing document may use; name another file", name,
		what, o.setting)
}

// cause is an error of a file without its path, because the surrounding message has the path.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// isAround reports whether inner is the folder outer or lies in it, with links resolved.
func isAround(outer, inner string) bool {
	outer = resolved(outer)
	info, err := os.Stat(outer)
	for at := resolved(inner); ; at = filepath.Dir(at) {
		if at == outer {
			return true
		}
		// The same folder may have two paths, on a file system that ignores case for example.
		if other, otherErr := os.Stat(at); err == nil && otherErr == nil && os.SameFile(info,
			other) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// resolved is an absolute path without links, as far as the path exists.
func resolved(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if parent := filepath.Dir(path); err != nil && parent != path {
		return filepath.Join(resolved(parent), filepath.Base(path))
	}
	if err != nil {
		return path
	}
	return real
}
