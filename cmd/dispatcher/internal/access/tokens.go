package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Entry is a line of the file of tokens: name, role, SHA-256 of the token in hexadecimal digits
// and, for a sender, optionally its tenant, separated by white space. After the tenant may stand
// lanes=LANE,LANE and ids=PREFIX. A line that begins with # is a comment. Tokens have 256 random
// bits, so the hash needs no salt. A name may have two lines, while one token replaces another.
type Entry struct {
	Name string
	Role Role
	Hash [sha256.Size]byte
	// Tenant is the tenant that a sender is bound to; empty for all.
	Tenant string
	// Lanes and Prefix bound the lanes and the ids of a sender with a tenant.
	Lanes  Lanes
	Prefix string
}

// String is the line of the file.
func (e *Entry) String() string {
	line := fmt.Sprintf("%s %s %x", e.Name, e.Role, e.Hash)
	if e.Tenant != "" {
		line += " " + e.Tenant
	}
	if e.Lanes != "" {
		line += " " + lanesOption + string(e.Lanes)
	}
	if e.Prefix != "" {
		line += " " + idsOption + e.Prefix
	}
	return line
}

// What may stand after the tenant in a line.
const (
	lanesOption = "lanes="
	idsOption   = "ids="
)

// BoundTo lets a token with a tenant send only on some lanes, and only ids with a prefix. Empty
// ones bound nothing.
func (e *Entry) BoundTo(lanes Lanes, prefix string) error {
	for _, text := range []string{string(lanes), prefix} {
		if text != "" && (e.Tenant == "" || checkName(text) != nil) {
			return errors.New("lanes and ids are for a sender with a tenant, and have 1 to 64 " +
				"printable characters without white space: lanes with commas between them, and how " +
				"the ids begin")
		}
	}
	e.Lanes, e.Prefix = lanes, prefix
	return nil
}

// Bind lets the token send for one tenant only.
func (e *Entry) Bind(tenant string) error {
	switch {
	case e.Role != Sender:
		return errors.New("only a sender is bound to a tenant")
	case checkName(tenant) != nil:
		return errors.New("a tenant has 1 to 64 printable characters without white space here, " +
			"and does not begin with #")
	}
	e.Tenant = tenant
	return nil
}

// tokenPrefix lets scanners of secrets recognise a token.
const tokenPrefix = "sms_"

// NewToken makes a random token. The entry holds only its hash.
func NewToken(name string, role Role) (token string, e Entry, err error) {
	if err := checkName(name); err != nil {
		return "", Entry{}, err
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	return token, Entry{Name: name, Role: role, Hash: sha256.Sum256([]byte(token))}, nil
}

const longestName = 64

// checkName refuses a name that is not one printable word.
func checkName(name string) error {
	odd := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }
	if name == "" || utf8.RuneCountInString(name) > longestName || strings.ContainsFunc(name, odd) ||
		name[0] == '#' || !utf8.ValidString(name) {
		return errors.New("a name has 1 to 64 printable characters without white space, and does " +
			"not begin with #")
	}
	return nil
}

// ReadTokens reads a file of tokens.
func ReadTokens(path string) ([]Entry, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the file of tokens: %w", err)
	}
	entries, err := parseTokens(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return entries, nil
}

// parseTokens parses a file of tokens. Its errors name the number of a wrong line and quote nothing
// of it, because it may hold a token.
func parseTokens(raw []byte) ([]Entry, error) {
	var entries []Entry
	number := 0
	for line := range strings.Lines(string(raw)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		e, err := parseEntry(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func parseEntry(fields []string) (Entry, error) {
	if len(fields) < 3 {
		return Entry{}, errNoEntry
	}
	e := Entry{Name: fields[0]}
	if err := checkName(e.Name); err != nil {
		return Entry{}, err
	}
	var err error
	if e.Role, err = ParseRole(fields[1]); err != nil {
		return Entry{}, errors.New("the role is not " + RoleNames)
	}
	hash, err := hex.DecodeString(fields[2])
	if err != nil || len(hash) != len(e.Hash) {
		return Entry{}, errors.New("the hash is not a SHA-256 in 64 hexadecimal digits")
	}
	copy(e.Hash[:], hash)
	if len(fields) == 3 {
		return e, nil
	}
	if err := e.Bind(fields[3]); err != nil {
		return Entry{}, err
	}
	var lanes, prefix string
	for _, option := range fields[4:] {
		text, isLanes := strings.CutPrefix(option, lanesOption)
		other, isIDs := strings.CutPrefix(option, idsOption)
		switch {
		case isLanes && lanes == "" && text != "":
			lanes = text
		case isIDs && prefix == "" && other != "":
			prefix = other
		default: // a word that is not understood could be a bound
			return Entry{}, errNoEntry
		}
	}
	return e, e.BoundTo(Lanes(lanes), prefix)
}

var errNoEntry = errors.New("write name, role and the SHA-256 of the token; " +
	`"dispatcher tokens new" makes such a line`)

// tokenFile caches the entries of a file. The file is read for every check, so that a token that
// was removed is refused at once; it is parsed only when it has changed.
type tokenFile struct {
	path string

	mu     sync.Mutex
	raw    []byte                          // the text that byHash was parsed from
	byHash map[[sha256.Size]byte]Principal // replaced as a whole, never changed
}

// read returns the principals by the hash of their tokens. When the file cannot be read, nobody is
// let in: the new file may have revoked a stolen token.
func (f *tokenFile) read() (map[[sha256.Size]byte]Principal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("read the file of tokens: %w", err)
	}
	if f.byHash != nil && bytes.Equal(raw, f.raw) {
		return f.byHash, nil
	}
	entries, err := parseTokens(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	f.raw, f.byHash = raw, make(map[[sha256.Size]byte]Principal, len(entries))
	for i := range entries {
		e := &entries[i]
		f.byHash[e.Hash] = Principal{
			Name: e.Name, Role: e.Role, Tenant: e.Tenant, Lanes: e.Lanes, Prefix: e.Prefix,
		}
	}
	return f.byHash, nil
}

func (f *tokenFile) principal(hash [sha256.Size]byte) (Principal, error) {
	byHash, err := f.read()
	if err != nil {
		return Principal{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	p, known := byHash[hash]
	if !known {
		return Principal{}, ErrUnauthenticated
	}
	return p, nil
}
