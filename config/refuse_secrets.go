package config

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// secretKey finds settings that would put a secret into the document.
var secretKey = regexp.MustCompile(`(?i)(password|passphrase|secret|token|api_?key|private_?key)$`)

// exemption is what sounds like a secret in the settings of one kind of provider and is none.
type exemption struct {
	// account is what the provider calls the name of an account.
	account string
	// files is a key whose members are names of secrets with their files.
	files string
	// placeholders says that a value may stand for a secret that is filled in when it is used.
	placeholders bool
}

var exempt = map[string]exemption{
	"vonage":  {account: "api_key"},
	"httpapi": {files: "secrets", placeholders: true},
}

// refuseSecrets faults every secret at the top of a channel's settings and below.
func refuseSecrets(v value, e exemption) {
	switch v.node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(v.node.Content); i += 2 {
			name := v.node.Content[i].Value
			child := v.child(name, v.node.Content[i+1])
			if e.files != "" && name == e.files && child.node.Kind == yaml.MappingNode {
				continue
			}
			harmless := name == e.account || e.placeholders && standsIn(child.node)
			if secretKey.MatchString(name) && !harmless {
				child.fail("secrets do not belong in this document; write the secret into a file and its path as %s_file", name)
			}
			refuseSecrets(child, exemption{placeholders: e.placeholders})
		}
	case yaml.SequenceNode:
		for _, item := range v.items() {
			refuseSecrets(item, exemption{placeholders: e.placeholders})
		}
	case yaml.ScalarNode, yaml.AliasNode, yaml.DocumentNode:
	}
}

// standsIn reports whether a text is a placeholder for a secret, or has one in it.
func standsIn(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && (strings.Contains(node.Value, "{secret:") || node.Value == "{callback_secret}")
}
