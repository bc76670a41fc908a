package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheOfficialParserReadsTheAsyncAPIDocument without a warning, and refuses one that is broken.
func TestTheOfficialParserReadsTheAsyncAPIDocument(t *testing.T) {
	parse := func(file string) (string, error) {
		return try(t, timeout, []string{"NODE_PATH=" + filepath.Join(node(t), "node_modules")},
			"node", absolute(t, "asyncapi.js"), file)
	}
	document := absolute(t, root+"/docs/asyncapi.yaml")
	out, err := parse(document)
	if err != nil {
		t.Fatal(err)
	}
	const want = "receive sms.otp\nreceive sms.transactional\nreceive sms.bulk\nreceive sms.control\n" +
		"send sms.status\nsend sms.dead\nsend sms.inbound\n"
	if out != want {
		t.Errorf("the parser finds\n%s", out)
	}
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "schema"), os.DirFS(root+"/docs/schema")); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string][2]string{
		"no such channel": {"channel: {$ref: \"#/channels/bulk\"}", "channel: {$ref: \"#/channels/nothing\"}"},
		"no such schema":  {"schema/dead.schema.json", "schema/nothing.schema.json"},
		"no such action":  {"action: receive", "action: takes"},
	} {
		file := filepath.Join(folder, strings.ReplaceAll(what, " ", "-")+".yaml")
		write(t, file, strings.Replace(string(raw), change[0], change[1], 1))
		if out, err := parse(file); err == nil {
			t.Errorf("%s: the parser takes it:\n%s", what, out)
		}
	}
}
