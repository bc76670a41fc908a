package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Confirm answers a SubscriptionConfirmation of one of the configured topics, with which SNS asks whether a subscribed URL
// wants its messages; any other callback it leaves alone and returns false. It believes no more than ReadCallback does and
// follows no address that the message names: the question goes to SNS in the topic's own region.
func (c *Channel) Confirm(ctx context.Context, callback *provider.Callback) (confirmed bool, err error) {
	e, err := c.cfg.verify(callback)
	if err != nil {
		return false, err
	}
	arn := topic.FindStringSubmatch(e.TopicArn)
	if e.Type != confirmation || arn == nil || len(c.cfg.Topics) == 0 {
		return false, nil
	}
	query := url.Values{
		"Action": {"ConfirmSubscription"}, "Version": {"2010-03-31"}, "TopicArn": {e.TopicArn}, "Token": {e.Token},
	}
	answer, err := c.Ask(ctx, &web.Request{Method: http.MethodGet, URL: c.cfg.sns(arn[1]) + "/?" + query.Encode()})
	if err != nil {
		return false, fmt.Errorf("confirm the subscription of a topic: %w", err)
	}
	if answer.Status != http.StatusOK {
		return false, errors.New("confirm the subscription of a topic: SNS says no")
	}
	return true, nil
}

// sns is where SNS is reached.
func (c *Config) sns(region string) string {
	if c.SNSBase != "" {
		return c.SNSBase
	}
	return "https://sns." + region + ".amazonaws.com"
}
