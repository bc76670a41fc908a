package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.yaml.in/yaml/v3"
)

// header is the comment at the top of a written document.
const header = `# Written by "dispatcher sandbox": every channel reaches a scripted carrier on this
# machine and nobody else. It is valid while that sandbox runs: without a plan that sets
# addresses, carriers listen elsewhere the next time.

`

// examplePrice is the price of a segment on every channel, so that reports show costs.
const examplePrice = "0.03"

// Routing is a document with one channel for each carrier and one route over all of them by weight.
func (s *Sandbox) Routing() ([]byte, error) {
	channels, weights := mapping(), mapping()
	for _, c := range s.carriers {
		settings := &yaml.Node{}
		if err := settings.Encode(c.settings); err != nil {
			return nil, err
		}
		channel := mapping()
		put(channel, "provider", scalar(vendorOf(c.Provider).provider))
		put(channel, "settings", settings)
		price := mapping()
		put(price, "currency", scalar("EUR"))
		put(price, "default", scalar(examplePrice))
		put(channel, "price", price)
		put(channels, c.Name, channel)
		weight := c.Weight
		if weight == "" {
			weight = "1"
		}
		put(weights, c.Name, &yaml.Node{Kind: yaml.ScalarNode, Value: weight})
	}
	route := mapping()
	put(route, "name", scalar("sandbox"))
	put(route, "weights", weights)
	top := mapping()
	put(top, "channels", channels)
	put(top, "routes", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{route}})
	out := bytes.NewBufferString(header)
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	if err := encoder.Encode(top); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// WriteRouting writes the document into a new file. It overwrites no existing file, which may be an
// operator's own.
func (s *Sandbox) WriteRouting(path string) error {
	if path == "" {
		return errNoFile
	}
	text, err := s.Routing()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf(
			"routing document of the sandbox: %s is there already and is never overwritten; "+
				"remove it or name another file",
			path,
		)
	}
	if err == nil {
		_, err = file.Write(text)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("routing document of the sandbox: %w", err)
	}
	return nil
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

// scalar is a text, quoted where it could be taken for something else.
func scalar(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	return n
}

func put(m *yaml.Node, key string, value *yaml.Node) {
	m.Content = append(m.Content, scalar(key), value)
}
