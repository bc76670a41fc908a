package awstest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // SignatureVersion 1.
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"dispatcher/provider/web/webtest"
)

// stamp is the time in events.
func stamp() time.Time { return time.Now().UTC() }

func lengthOf(body []byte) string { return strconv.Itoa(len(body)) }

// Publish is the request with which SNS posts a notification to a subscribed URL.
func (c *Config) Publish(callback string, event any) (*http.Request, error) {
	text, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	return c.post(callback, map[string]string{"Type": "Notification", "Message": string(text)})
}

// PublishAbout is Publish with a subject.
func (c *Config) PublishAbout(callback, subject string, event any) (*http.Request, error) {
	text, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	return c.post(callback, map[string]string{
		"Type": "Notification", "Message": string(text), "Subject": subject,
	})
}

// Ask is the request with which SNS asks a URL to confirm its subscription.
func (c *Config) Ask(callback, token string) (*http.Request, error) {
	return c.post(callback, map[string]string{
		"Type":    "SubscriptionConfirmation",
		"Message": "You have chosen to subscribe to the topic " + c.Topic, "Token": token,
		"SubscribeURL": "https://sns." + c.Region +
			".amazonaws.com/?Action=ConfirmSubscription&TopicArn=" + c.Topic + "&Token=" + token,
	})
}

func (c *Config) post(callback string, message map[string]string) (*http.Request, error) {
	message["MessageId"], message["TopicArn"] = rand.Text(), c.Topic
	message["Timestamp"] = stamp().Format("2006-01-02T15:04:05.000Z")
	if c.Key != nil {
		if err := c.sign(message); err != nil {
			return nil, err
		}
	}
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	if c.Secret != "" {
		callback += "?secret=" + url.QueryEscape(c.Secret)
	}
	r, err := webtest.Post(callback, "text/plain; charset=UTF-8", body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Amz-Sns-Message-Type", message["Type"])
	r.Header.Set("X-Amz-Sns-Topic-Arn", c.Topic)
	return r, nil
}

// sign signs all fields that are set so far, names and values on separate lines, in the order of
// the names.
func (c *Config) sign(message map[string]string) error {
	var names []string
	for name := range message {
		names = append(names, name)
	}
	slices.Sort(names)
	var text []byte
	for _, name := range names {
		text = append(text, name+"\n"+message[name]+"\n"...)
	}
	hash, sum := crypto.SHA256, digest256(text)
	message["SignatureVersion"] = "2"
	if c.Version1 {
		hash, sum = crypto.SHA1, digest1(text)
		message["SignatureVersion"] = "1"
	}
	signature, err := rsa.SignPKCS1v15(nil, c.Key, hash, sum)
	if err != nil {
		return err
	}
	message["Signature"] = base64.StdEncoding.EncodeToString(signature)
	message["SigningCertURL"] = "https://sns." + c.Region +
		".amazonaws.com/SimpleNotificationService-0123456789abcdef.pem"
	return nil
}

func digest256(text []byte) []byte {
	sum := sha256.Sum256(text)
	return sum[:]
}

func digest1(text []byte) []byte {
	sum := sha1.Sum(text) //nolint:gosec // SignatureVersion 1.
	return sum[:]
}
