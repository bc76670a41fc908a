package app

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/provider/smpp"
	"dispatcher/provider/web"
)

// CheckChannels reports the settings that adapters would refuse, each with its key. name is the
// name of the document in errors. The files that settings name are not read, because they are on
// the machines where dispatchers run. File names outside of every secrets folder are reported.
//
// before is the document that this one changes; nil for none. Senders that it has too are not
// reported, so that a pause needs no other change first.
func CheckChannels(name string, doc, before *config.Routing) error {
	return errors.Join(checkChannels(name, doc.Channels, checkUnread),
		checkSenders(name, doc.Channels, before), checkTokens(name, doc.Routes))
}

// checkSenders reports senders that the document puts on messages and that the channel's adapter
// cannot write.
func checkSenders(document string, channels []config.Channel, before *config.Routing) error {
	var problems []error
	for i := range channels {
		if before != nil && slices.ContainsFunc(before.Channels, func(old config.Channel) bool {
			return old.Name == channels[i].Name && old.Provider == channels[i].Provider &&
				reflect.DeepEqual(old.Senders, channels[i].Senders)
		}) {
			continue
		}
		var c decide.Channel
		adapt(&channels[i], &c)
		check := func(key, sender string) {
			if c.Writes != nil && !c.Writes(sender, "") {
				problems = append(problems, fmt.Errorf("%s: channels.%s.senders.%s: SMPP cannot send "+
					"this sender; write a name of ASCII characters", document, channels[i].Name, key))
			}
		}
		if sender, _ := channels[i].Senders.For("", ""); sender == channels[i].Senders.Default {
			check("default", sender) // else a rule for all countries replaces it
		}
		for k := range channels[i].Senders.Rules {
			check(fmt.Sprintf("rules[%d].from", k), channels[i].Senders.Rules[k].From)
		}
	}
	return errors.Join(problems...)
}

// checkTokens reports scoring functions whose token file is outside of every secrets folder.
func checkTokens(document string, routes []config.Route) error {
	var problems []error
	for i := range routes {
		f := routes[i].Scoring.Function
		if f == nil {
			continue
		}
		if err := config.LocalSecret(f.TokenFile); f.TokenFile != "" && err != nil {
			problems = append(problems,
				fmt.Errorf("%s: route %s: scoring.token_file: %w", document, routes[i].Name, err))
		}
	}
	return errors.Join(problems...)
}

// checker returns the faults of a channel's settings.
type checker func(channel *config.Channel) error

func checkChannels(document string, channels []config.Channel, check checker) error {
	var problems []error
	for i := range channels {
		channel := &channels[i]
		if channel.Test || channel.Provider == "sandbox" {
			continue
		}
		if err := check(channel); err != nil {
			problems = append(problems,
				fmt.Errorf("%s: channels.%s.settings: %w", document, channel.Name, err))
		}
	}
	return errors.Join(problems...)
}

// checkRead finds all faults, including those in the files that settings name.
func checkRead(readFile func(file string) ([]byte, error)) checker {
	return func(channel *config.Channel) error { return Faults(channel, readFile) }
}

// checkUnread finds the faults that do not depend on the content of files.
func checkUnread(channel *config.Channel) error {
	if !Webbed(channel.Provider) {
		return Faults(channel, local(substitutes(channel.Settings)))
	}
	return withoutFiles(channel.Settings, Faults(channel, local(webSubstitutes(channel.Settings))))
}

// local refuses file names outside of every secrets folder, and calls read for others.
func local(read func(string) ([]byte, error)) func(string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		if err := config.LocalSecret(file); err != nil {
			return nil, err
		}
		return read(file)
	}
}

// Faults returns the faults that a channel's adapter finds in its settings and in the files that
// they name. No connection is made.
func Faults(channel *config.Channel, readFile func(file string) ([]byte, error)) error {
	if channel.Provider == "smpp" {
		_, err := smpp.ParseSettings(channel.Settings, readFile)
		return err
	}
	open := opener(channel.Provider)
	if open == nil {
		return fmt.Errorf("provider %q is not known", channel.Provider)
	}
	// The callback address is a placeholder: without one, the settings for callbacks would not be
	// checked.
	opened, err := open(channel.Settings,
		web.Environment{ReadFile: readFile, Callback: "https://callbacks.invalid/" + channel.Name})
	if err != nil {
		return err
	}
	return opened.Close(context.Background()) // nothing is in flight
}

// withoutFiles drops the faults of files that a channel's settings name: the placeholder content
// cannot be a key, a token and a certificate at once.
func withoutFiles(settings map[string]any, err error) error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		key, _, _ := strings.Cut(err.Error(), ": ")
		if errors.Is(err, config.ErrOutsideSecrets) {
			return err
		}
		if named := settings[key] != nil; named &&
			(strings.HasSuffix(key, "_file") || strings.HasSuffix(key, "_files")) {
			return nil
		}
		return err
	}
	var left []error
	for _, fault := range joined.Unwrap() {
		left = append(left, withoutFiles(settings, fault))
	}
	return errors.Join(left...)
}

// readTokens fills in the tokens of scoring functions, and returns by route why one cannot be read.
// Such a function is called without its token and will refuse, so its route uses the default
// scoring.
func readTokens(
	doc *config.Routing, compiled *decide.Routing, read func(string) ([]byte, error),
) map[string]error {
	troubles := map[string]error{}
	for i := range doc.Routes {
		f := doc.Routes[i].Scoring.Function
		if f == nil || f.TokenFile == "" {
			continue
		}
		token, err := readToken(f.TokenFile, read)
		if err != nil {
			troubles[doc.Routes[i].Name] = fmt.Errorf("scoring.token_file: %w", err)
			continue
		}
		compiled.Routes[i].Scoring.Function.Token = token
	}
	return troubles
}

// ReadTokens is readTokens for the commands.
func ReadTokens(
	doc *config.Routing, compiled *decide.Routing, secrets *config.SecretsFolder,
) map[string]error {
	return readTokens(doc, compiled, secrets.Read)
}

// maxToken bounds a token in bytes, because it is sent in a header.
const maxToken = 4 << 10

func readToken(path string, read func(string) ([]byte, error)) (string, error) {
	raw, err := read(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	switch {
	case token == "":
		return "", fmt.Errorf("file %s is empty; write the token into it", path)
	case len(token) > maxToken:
		return "", fmt.Errorf("file %s is longer than %d bytes; it cannot be the right one", path,
			maxToken)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New(
			"file " + path + " holds more than one word of plain ASCII; write the token alone " +
				"into it",
		)
	}
	return token, nil
}
