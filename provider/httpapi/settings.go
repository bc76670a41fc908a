package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/settings"
	"dispatcher/provider/sms"
	"dispatcher/provider/web"
)

// Config is the description of a gateway. Only ParseSettings makes one.
type Config struct {
	// From is the sender of messages without one.
	From string
	// SameKeyFor is how long the gateway recognises {key} and sends a message only once; zero:
	// never.
	SameKeyFor time.Duration
	// LongestValidity is how long the gateway keeps a message at most; zero: it takes no validity.
	LongestValidity time.Duration
	// Callback is the public URL for receipts; empty for none.
	Callback string
	Web      web.Config

	secrets  map[string]string
	alphabet map[sms.Alphabet]string
	request  request
	answer   answer
	callback callback
	verify   *verification
	receipts *receipts
	inbound  *inbound
	reply    reply
	kinds    map[string]bool // of the places in callbacks
}

// callback is the part after the public URL in {callback_url}.
type callback struct {
	query fields
	raw   string
}

// ParseSettings reads the description of a gateway; all faults are reported together, each under
// its key.
//
//	from               sender of messages that name none
//	secrets            {NAME: file}: what {secret:NAME} stands for
//	alphabet           {gsm7: WORD, ucs2: WORD}: what {alphabet} stands for
//	same_key_for       how long the gateway recognises a {key} and sends its message only once
//	longest_validity   how long it keeps a message; needed by {validity_seconds}, {validity_minutes},
//	                   {expires}
//	request            method (POST), path, basic {user, password_file}, headers, query, and one of
//	                   form, json, xml
//	answer             id, code, retry_after (places), outcomes [{status, code, outcome}]
//	callback           query, raw: behind the public URL in {callback_url}
//	verify             by: secret {at}, basic {user}, hmac {at, algorithm, encoding, prefix, signed,
//	                   time} or certificate; secret_files
//	receipts           each, reference, key, state, code (places), states {word: state}, causes
//	                   {code: cause}
//	inbound            reference, from, to, text (places)
//	reply              {body, type}: what callbacks are answered with; an empty 200 unless set
//
// and those of web.ParseConfig.
func ParseSettings(values map[string]any, o web.Environment) (Config, error) {
	r := settings.New(values, o.ReadFile)
	p := parser{readFile: o.ReadFile}
	cfg := Config{
		From: r.Text("from"), SameKeyFor: r.Duration("same_key_for"),
		LongestValidity: r.Duration("longest_validity"),
		Web:             web.ParseConfig(r, ""), secrets: p.secrets(r), alphabet: alphabets(r),
	}
	p.section(r, "request", true, cfg.readRequest)
	p.section(r, "answer", true, cfg.readAnswer)
	p.section(r, "callback", false, cfg.readCallback)
	p.section(r, "verify", false, cfg.readVerify)
	p.section(r, "receipts", false, cfg.readReceipts)
	p.section(r, "inbound", false, cfg.readInbound)
	p.section(r, "reply", false, cfg.readReply)
	r.RefuseUnknown()
	if err := r.Err(); err != nil {
		return Config{}, err
	}
	if err := errors.Join(cfg.Web.Validate(), cfg.check(), cfg.composeSample()); err != nil {
		return Config{}, err
	}
	return cfg, cfg.listenAt(o.Callback)
}

// parser reads the sections of a description.
type parser struct {
	readFile func(string) ([]byte, error)
}

// section reads the map under a key with a separate reader; its faults are reported under the key.
func (p parser) section(
	r *settings.Reader, key string, needed bool, read func(p parser, r *settings.Reader),
) {
	value, ok := r.Take(key)
	if !ok {
		if needed {
			r.Failf(key, "is missing")
		}
		return
	}
	members, ok := settings.Map(value)
	if !ok {
		r.Failf(key, "is not a map")
		return
	}
	inner := settings.New(members, p.readFile)
	read(p, inner)
	inner.RefuseUnknown()
	if err := inner.Err(); err != nil {
		r.Fail(key, err)
	}
}

var secretNames = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// secrets reads the files of the secrets by their names.
func (p parser) secrets(r *settings.Reader) map[string]string {
	files := words(r, "secrets")
	list := make(map[string]string, len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !secretNames.MatchString(name) {
			r.Failf("secrets", "%q is not a name such as api_key", name)
			continue
		}
		secret, err := p.secret(files[name])
		if err != nil {
			r.Failf("secrets", "%s: %w", name, err)
		}
		list[name] = secret
	}
	return list
}

// secret reads a file of one line.
func (p parser) secret(path string) (string, error) {
	content, err := p.readFile(path)
	if err != nil {
		return "", err
	}
	return web.OneLine(content)
}

func alphabets(r *settings.Reader) map[sms.Alphabet]string {
	list := map[sms.Alphabet]string{}
	for name, word := range words(r, "alphabet") {
		switch name {
		case sms.GSM7.String():
			list[sms.GSM7] = word
		case sms.UCS2.String():
			list[sms.UCS2] = word
		default:
			r.Failf("alphabet", "%q is neither gsm7 nor ucs2", name)
		}
	}
	return list
}

// words reads a map of texts. Numbers and truth values need no quotes where a text is expected.
func words(r *settings.Reader, key string) map[string]string {
	value, ok := r.Take(key)
	if !ok {
		return nil
	}
	members, ok := settings.Map(value)
	if !ok {
		r.Failf(key, "is not a map")
		return nil
	}
	list := make(map[string]string, len(members))
	for name, member := range members {
		switch v := member.(type) {
		case string, int, int64, uint64, bool, float64:
			list[name] = fmt.Sprint(v)
		default:
			r.Failf(key, "%s is not text", name)
		}
	}
	return list
}

// listenAt sets the public URL. The values that the gateway inserts into {callback_url} begin with
// a percent sign, so the URL must not contain another one.
func (c *Config) listenAt(address string) error {
	c.Callback = address
	if address == "" || c.callback.raw == "" {
		return nil
	}
	sample := (&values{cfg: c, s: sample()}).callbackURL()
	if strings.Contains(strings.TrimSuffix(sample, c.callback.raw), "%") &&
		strings.Contains(c.callback.raw, "%") {
		return errors.New(
			"callback: the public URL, or a secret in it, has characters that need escaping by percent " +
				"signs, which this gateway takes for its own")
	}
	return nil
}

// composeSample composes a message, to find faults that only show then.
func (c *Config) composeSample() error {
	if c.request.method == "" {
		return nil
	}
	s := sample()
	s.Validity = time.Now().Add(time.Hour)
	if _, err := (api{c}).Compose(s); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	return nil
}

// sample is a message to a number that Ofcom reserves for drama.
func sample() *provider.Submission {
	return &provider.Submission{
		ID: "rehearsal", Attempt: 1, Key: strings.Repeat("0", 32), To: "+447700900000",
		From: "REHEARSAL", Text: "rehearsal",
	}
}
