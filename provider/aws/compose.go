package aws

import (
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	sms "github.com/aws/aws-sdk-go-v2/service/pinpointsmsvoicev2"

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
	cfg            Config
	writer, reader *sms.Client
	keys           *keys
}

var _ web.API = (*api)(nil)

func newAPI(cfg Config, k *keys) *api {
	return &api{cfg: cfg, writer: newWriter(&cfg), reader: newReader(&cfg), keys: k}
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
	return write(a.writer, a.input(s), *with)
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

func (a *api) input(s *provider.Submission) *sms.SendTextMessageInput {
	in := &sms.SendTextMessageInput{
		DestinationPhoneNumber: aws.String(s.To), MessageBody: aws.String(s.Text), MessageType: a.cfg.MessageType,
		OriginationIdentity: optional(orElse(s.From, a.cfg.From)), ConfigurationSetName: optional(a.cfg.ConfigurationSet),
		ProtectConfigurationId: optional(a.cfg.ProtectID), MaxPrice: optional(a.cfg.MaxPrice),
		DestinationCountryParameters: a.cfg.CountryParameters,
	}
	if s.Key != "" {
		in.Context = map[string]string{contextKey: s.Key}
	}
	if !s.Validity.IsZero() {
		left := max(min(time.Until(s.Validity), longestValidity), shortestValidity)
		in.TimeToLive = aws.Int32(int32(math.Ceil(left.Seconds())))
	}
	return in
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func orElse(v, otherwise string) string {
	if v == "" {
		return otherwise
	}
	return v
}
