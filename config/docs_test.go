package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dispatcher/config"
)

// blocks returns the examples of one language in the documentation.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	doc, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, rest := range strings.Split(string(doc), "```"+language+"\n")[1:] {
		block, _, closed := strings.Cut(rest, "```")
		if !closed {
			t.Fatal("docs/configuration.md does not close an example")
		}
		out = append(out, block)
	}
	return out
}

// TestOtherDocumentsOfTheRepositoryAreValid reads the documents in the README and in deploy/
// unchanged.
func TestOtherDocumentsOfTheRepositoryAreValid(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```yaml\n")
	block, _, _ := strings.Cut(rest, "```")
	example, err := os.ReadFile("../deploy/routing.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, doc := range map[string]string{
		"README.md": block, "routing.example.yaml": string(example),
	} {
		if _, err := config.ParseRouting(name, []byte(doc)); err != nil {
			t.Error(err)
		}
	}
}

// channelFile is a key of a channel that names a file or several, as the pages of providers write
// it.
var channelFile = regexp.MustCompile("`([a-z_]+_files?)`")

// TestEachFileOfTheSettingsIsAmongThoseToExchange: the page of deployments says for each file that
// a setting or a channel names how it is exchanged, and whether that needs a restart.
func TestEachFileOfTheSettingsIsAmongThoseToExchange(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Exchange secrets\n")
	section, _, ended := strings.Cut(section, "\n## ")
	if !found || !ended {
		t.Fatal("docs/deploy.md has no section about exchanging secrets")
	}
	files := 0
	for _, v := range config.Variables() {
		if !strings.HasSuffix(v.Name, "_FILE") {
			continue
		}
		files++
		if !strings.Contains(section, "`"+v.Name+"`") {
			t.Errorf("docs/deploy.md does not say how the file of %s is exchanged", v.Name)
		}
	}
	if files < 10 {
		t.Errorf("%d settings name a file", files)
	}
	pages, err := filepath.Glob("../docs/providers/*.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, path := range append(pages, "../docs/smpp.md", "../docs/providers.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range channelFile.FindAllSubmatch(text, -1) {
			keys[string(found[1])] = true
			if !strings.Contains(section, string(found[0])) {
				t.Errorf("docs/deploy.md does not say how %s of %s is exchanged", found[1], path)
			}
		}
	}
	if len(keys) < 15 {
		t.Errorf("channels name the files %v", keys)
	}
}

// priced is a channel with a price, which scoring by price needs.
const priced = `{provider: sandbox, price: {currency: EUR, default: "0.03"}}`

func TestExamplesOfTheDocumentationAreValid(t *testing.T) {
	t.Parallel()
	whole, routes, scorings := 0, 0, 0
	for _, block := range blocks(t, "yaml") {
		switch {
		case strings.HasPrefix(block, "routes:"):
			routes++
			parse(t, three+block)
		case strings.HasPrefix(block, "scoring:"):
			for _, one := range strings.Split("\n"+strings.TrimRight(block, "\n"), "\nscoring:")[1:] {
				scorings++
				one = strings.ReplaceAll("\nscoring:"+one, "\n", "\n  ")
				parse(t,
					"channels: {a: "+priced+", b: "+priced+
						"}\nroutes:\n- name: r\n  mode: best_worker\n  channels: [a, b]"+one+"\n")
			}
		default:
			whole++
			parse(t, block)
		}
	}
	if whole < 4 || routes < 2 || scorings < 4 {
		t.Errorf("found %d documents, %d lists of routes, %d scorings", whole, routes, scorings)
	}
	for _, block := range blocks(t, "json") {
		if !json.Valid([]byte(block)) {
			t.Errorf("not JSON: %s", block)
		}
	}
}

// The reader's error for an unknown key lists the known keys; the test takes them from there.
func TestDocumentationNamesEveryKey(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, document := range map[string]string{
		"document": "zzzzzzzz: 1",
		"channel":  channel("zzzzzzzz: 1"),
		"route":    route("zzzzzzzz: 1"),
		"limit":    channel("limits: [{zzzzzzzz: 1}]"),
		"policy":   channel("admission: {zzzzzzzz: 1}"),
		"active":   channel("active: {zzzzzzzz: 1}"),
		"receipts": channel("receipts: {zzzzzzzz: 1}"),
		"match":    route("match: {zzzzzzzz: 1}"),
		"function": scoring("{function: x, zzzzzzzz: 1}"),
		"formula":  scoring("{expression: load_ratio, zzzzzzzz: 1}"),
		"health":   route("health: {zzzzzzzz: 1}"),
		"timely":   route("health: {errors: 1, receipts: {zzzzzzzz: 1}}"),
		"price":    channel("price: {zzzzzzzz: 1}"),
		"senders":  channel("senders: {zzzzzzzz: 1}"),
		"rule":     channel("senders: {rules: [{zzzzzzzz: 1}]}"),
		"blocked":  "blocked: {zzzzzzzz: 1}",
		"allowed":  "allowed: {zzzzzzzz: 1}",
		"paused":   "paused: {zzzzzzzz: 1}",
		"quiet":    route("quiet: {zzzzzzzz: 1}"),
		"lane":     lanes("otp: {zzzzzzzz: 1}"),
		"inbound":  "inbound: {zzzzzzzz: 1}",
		"number":   "inbound: {numbers: {\"+15550100\": {zzzzzzzz: 1}}}",
		"keywords": "inbound: {keywords: {zzzzzzzz: 1}}",
	} {
		_, err := config.ParseRouting("r", []byte(document))
		_, list, found := strings.Cut(fmt.Sprint(err), "known are ")
		if !found {
			t.Errorf("%s: no list in %v", name, err)
			continue
		}
		list, _, _ = strings.Cut(list, "\n")
		for key := range strings.SplitSeq(list, ", ") {
			plural := slices.Contains([]string{"prefix", "country", "tenant", "lane", "route", "id", "sender"}, key) &&
				slices.Contains([]string{"match", "blocked", "allowed", "rule", "paused"}, name)
			if !plural && !strings.Contains(string(doc), key+"`") &&
				!strings.Contains(string(doc), "`"+key+".") && !strings.Contains(string(doc), "{"+key+": ") {
				t.Errorf("docs/configuration.md does not explain the key %s of a %s", key, name)
			}
		}
	}
}
