package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/config"
	"dispatcher/provider/smpp"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/web"
)

// checkKafka checks brokers, topics and the consumer groups.
func (ck *checker) checkKafka(ctx context.Context) []finding {
	s := ck.settings
	if len(s.KafkaBrokers) == 0 {
		return nil // the check of the settings has reported it
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	client, err := openKafka(ctx, s)
	if err != nil {
		return []finding{broken("brokers", err)}
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	brokers, err := admin.ListBrokers(ctx)
	if err != nil {
		return []finding{broken("brokers", kafkaTrouble(s, err))}
	}
	out := []finding{fine("brokers", "%d at %s", len(brokers), brokerList(s))}
	out = append(out, ck.checkTopics(ctx, admin)...)
	return append(out, ck.checkGroups(ctx, admin)...)
}

// checkTopics checks every topic that is read or written.
func (ck *checker) checkTopics(ctx context.Context, admin *kadm.Client) []finding {
	topics := []string{ck.settings.StatusTopic, ck.settings.DeadTopic, ck.settings.InboundTopic}
	if ck.settings.ControlTopic != "" {
		topics = append(topics, ck.settings.ControlTopic)
	}
	if ck.routing != nil {
		var in []string
		for _, lane := range ck.routing.Lanes {
			in = append(in, lane.Topics...)
		}
		topics = append(in, topics...)
	}
	list, err := admin.ListTopics(ctx, topics...)
	if err != nil {
		return []finding{broken("topics", kafkaTrouble(ck.settings, err))}
	}
	out := make([]finding, len(topics))
	for i, name := range topics {
		out[i] = ck.topicFinding(name, list[name])
	}
	return out
}

func (ck *checker) topicFinding(name string, topic kadm.TopicDetail) finding {
	check := "topic " + name
	switch n := len(topic.Partitions); {
	case topic.Err != nil:
		return broken(check, kafkaTopicTrouble(ck.settings, name, topic.Err))
	case n == 0:
		return broken(check, errors.New("it has no partition: create it anew"))
	case n == 1:
		return fine(check, "1 partition, so one instance reads it")
	default:
		return fine(check, "%d partitions, so up to %d instances share it", n, n)
	}
}

// checkGroups checks the coordinator of each lane's group.
func (ck *checker) checkGroups(ctx context.Context, admin *kadm.Client) []finding {
	if ck.routing == nil {
		return nil // the check of the routing has reported it
	}
	names := make([]string, len(ck.routing.Lanes))
	for i, lane := range ck.routing.Lanes {
		names[i] = kafka.Group(ck.settings.KafkaGroup, lane.Name)
	}
	answers := admin.FindGroupCoordinators(ctx, names...)
	out := make([]finding, len(names))
	for i, name := range names {
		check := "group " + name
		if answer := answers[name]; answer.Err != nil {
			out[i] = broken(check, fmt.Errorf("no broker coordinates it (%s): check the brokers "+
				"and the rights to the group", app.Cause(answer.Err)))
		} else {
			out[i] = fine(check, "broker %d coordinates it", answer.NodeID)
		}
	}
	return out
}

// checkChannels connects to every channel of the routing concurrently.
func (ck *checker) checkChannels(ctx context.Context) []finding {
	if ck.routing == nil {
		return nil // the check of the routing has reported it
	}
	checks := make([]func(context.Context) []finding, len(ck.routing.Channels))
	for i := range ck.routing.Channels {
		checks[i] = func(ctx context.Context) []finding {
			return []finding{ck.checkChannel(ctx, &ck.routing.Channels[i])}
		}
	}
	return round(ctx, checks...)
}

// checkChannel binds once and unbinds.
func (ck *checker) checkChannel(ctx context.Context, c *config.Channel) finding {
	check := "channel " + c.Name
	switch {
	case c.State == config.Disabled:
		return fine(check, "switched off, not tried")
	case c.Provider == "sandbox":
		return fine(check, "a sandbox needs no connection")
	case c.Test:
		return ck.checkTest(check, c)
	case app.Webbed(c.Provider):
		return ck.checkWebbed(ctx, check, c)
	}
	settings, err := smpp.ParseSettings(c.Settings, ck.settings.Secrets().Read)
	if err != nil {
		return finding{
			Check: check, Status: statusFail, Detail: err.Error(),
			Fix: "correct the settings of this channel in the routing document",
		}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	err = bindOnce(ctx, settings)
	var link *smpp.LinkError
	switch {
	case err == nil && app.Overlong(c, ck.settings.SendTimeout) != "":
		return warned(check, "bound and unbound, but "+app.Overlong(c, ck.settings.SendTimeout),
			"lower response_timeout, or raise DISPATCHER_SEND_TIMEOUT")
	case err == nil:
		return fine(check, "bound and unbound in %d ms", time.Since(began).Milliseconds())
	case errors.As(err, &link) && link.Why == smpp.WhyBindRefused &&
		link.Status == pdu.StatusAlyBnd:
		return warned(check, "the account is bound already",
			"nothing to do if a running dispatcher holds the bind")
	}
	return finding{
		Check: check, Status: statusFail, Detail: err.Error(),
		Fix: "check address, system_id and password_file in the routing document, and that the " +
			"provider lets this machine in",
	}
}

// checkTest checks a channel marked test. It needs no settings; those that it has are for the time
// after the mark is removed.
func (ck *checker) checkTest(check string, c *config.Channel) finding {
	if len(c.Settings) == 0 {
		return fine(check, "marked test, so nothing is sent and no settings are needed")
	}
	if err := app.Faults(c, ck.settings.Secrets().Read); err != nil {
		return warned(check, "marked test, so nothing is sent; its settings, which are not used, "+
			"have faults:\n"+err.Error(),
			"correct them before the mark is taken away")
	}
	return fine(check, "marked test, so nothing is sent; its settings can be used")
}

// bindOnce binds once for a moment. Whatever the provider delivers meanwhile gets a temporary
// error, so that it is sent again, because this process cannot store it.
func bindOnce(ctx context.Context, cfg smpp.Config) error {
	states := make(chan smpp.BindState, 16)
	cfg.Binds = 1
	cfg.OnDeliver = func(context.Context, pdu.DeliverSM) pdu.Status {
		return pdu.StatusReceiverTemporary
	}
	cfg.OnState = func(s smpp.BindState) {
		select {
		case states <- s:
		default: // enough is known
		}
	}
	client, err := smpp.New(cfg)
	if err != nil {
		return err
	}
	err = awaitBind(ctx, states, len(cfg.Addresses))
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachTimeout)
	defer cancel()
	return errors.Join(err, client.Close(leave))
}

// awaitBind waits until the bind is up or has failed once at every address.
func awaitBind(ctx context.Context, states <-chan smpp.BindState, addresses int) error {
	var last error
	for failures := 0; failures < addresses; {
		select {
		case s := <-states:
			switch s.Phase {
			case smpp.Bound:
				return nil
			case smpp.Failed, smpp.Lost:
				failures++
				last = s.Err
			case smpp.Connecting, smpp.Closed:
			}
		case <-ctx.Done():
			return errors.Join(last, errors.New("no answer in time"))
		}
	}
	return last
}

// checkWebbed reads the settings of a channel with an HTTP API. It makes no call, because not all
// APIs have one that costs nothing.
func (ck *checker) checkWebbed(ctx context.Context, check string, c *config.Channel) finding {
	if err := app.Faults(c, ck.settings.Secrets().Read); err != nil {
		return finding{
			Check: check, Status: statusFail, Detail: err.Error(),
			Fix: "correct the settings of this channel in the routing document",
		}
	}
	if host := plainChannel(c); host != "" {
		return warned(check, "numbers, texts and its secrets go to "+host+" without encryption",
			"write base_url with https")
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if host := inward(ctx, c); host != "" {
		return warned(check, host+" of base_url lies in a private network, so every send fails "+
			"before it is made",
			"set allow_private: true in the settings of this channel, if that is meant")
	}
	if route := endsPendingOn(ck.routing, c); route != "" {
		return warned(check, "in some countries its last receipt is TEXT_SUCCESSFUL, which is "+
			"pending, so route "+route+" with no_receipt sends such messages twice",
			"set successful: delivered, or take the channel off the route")
	}
	switch {
	case ck.settings.PublicURL == "" && !app.Local(c):
		return warned(check, "its settings can be used, but "+c.Provider+" is not asked for "+
			"receipts, because it would not know where to call",
			"set DISPATCHER_PUBLIC_URL to the address under which providers reach "+
				ck.settings.ReceiptsListen)
	}
	return fine(check, "its settings can be used; the API is called with the first message")
}

// endsPendingOn is the first route that sends messages on although the channel had no more to say
// about them: AWS may end with an event that is not final. It is empty if there is none.
func endsPendingOn(routing *config.Routing, c *config.Channel) (route string) {
	if c.Provider != "aws" || c.Settings["successful"] == "delivered" {
		return ""
	}
	for i := range routing.Routes {
		r := &routing.Routes[i]
		if r.NoReceipt != nil && c.Receipts.Wait() > r.NoReceipt.After &&
			slices.Contains(r.Channels, c.Name) {
			return r.Name
		}
	}
	return ""
}

// inward is the host of a channel's base_url if its address is in a private network, where requests
// are refused unless allow_private is set; else empty. How a proxy resolves the name is not known
// here.
func inward(ctx context.Context, c *config.Channel) (host string) {
	text, _ := c.Settings["base_url"].(string)
	base, err := url.Parse(text)
	if err != nil || base.Hostname() == "" || c.Settings["proxy"] != nil ||
		allowed(c.Settings["allow_private"]) {
		return ""
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", base.Hostname())
	if err != nil {
		return "" // the first message will show it, like a wrong path
	}
	for _, address := range addresses {
		if !web.Public(address) {
			return base.Hostname()
		}
	}
	return ""
}

// allowed reads a boolean setting as settings.Reader does.
func allowed(value any) bool { return value == true || value == "true" || value == "on" }
