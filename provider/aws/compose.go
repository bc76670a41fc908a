package aws

import (
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// How long AWS keeps a message, in seconds (TimeToLive of SendTextMessage).
const (
	shortestValidity = 5 * time.Second
	longestValidity  = 72 * time.Hour
)

// longestText is how many characters MessageBody may have (TextMessageBody of the API's model, which takes no text of
// white space alone either).
const longestText = 1600

// contextKey is the name of our reference in the Context map.
const contextKey = "dispatcher"

// api writes and reads SendTextMessage.
type api struct {
	cfg    Config
	writer *writer
	keys   *keys
}

var _ web.API = (*api)(nil)

func newAPI(cfg Config, k *keys) *api {
	return &api{cfg: cfg, writer: newWriter(&cfg), keys: k}
}

// Compose writes a submission. AWS cuts texts itself and chooses the alphabet as they are counted here: GSM 03.38 where it
// suffices, UCS-2 otherwise.
func (a *api) Compose(s *provider.Submission) (*web.Request, error) {
	if err := fits(s.Text); err != nil {
		return nil, err
	}
	with := a.keys.current.Load()
	if with == nil {
		return nil, errors.New("there are no credentials")
	}
	return a.writer.write(a.input(s), *with)
}

// fits reports what is wrong with a text.
func fits(text string) error {
	switch {
	case text == "":
		return web.Unsendable("there is no text")
	case strings.TrimSpace(text) == "":
		return errors.New("the text is white space alone")
	case utf8.RuneCountInString(text) > longestText:
		return errors.New("the text has more than 1600 characters")
	}
	return nil
}

func (a *api) input(s *provider.Submission) *input {
	in := &input{
		DestinationPhoneNumber: s.To, MessageBody: s.Text, MessageType: a.cfg.MessageType,
		OriginationIdentity: orElse(s.From, a.cfg.From), ConfigurationSetName: a.cfg.ConfigurationSet,
		ProtectConfigurationID: a.cfg.ProtectID, MaxPrice: a.cfg.MaxPrice, DestinationCountryParameters: a.cfg.CountryParameters,
	}
	if s.Key != "" {
		in.Context = map[string]string{contextKey: s.Key}
	}
	if ends := s.Ends(); !ends.IsZero() {
		left := max(min(time.Until(ends), longestValidity), shortestValidity)
		in.TimeToLive = int(math.Ceil(left.Seconds()))
	}
	return in
}

func orElse(v, otherwise string) string {
	if v == "" {
		return otherwise
	}
	return v
}
