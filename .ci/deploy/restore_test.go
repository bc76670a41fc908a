package deploy

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// restoreProgram is the jq program of docs/deploy.md that has these options and contains a text.
func restoreProgram(t *testing.T, options, text string) string {
	t.Helper()
	for _, found := range regexp.MustCompile(`(?s)jq `+options+`'([^']*)'`).FindAllStringSubmatch(
		string(read(t, "docs/deploy.md")), -1) {
		if strings.Contains(found[1], text) {
			return found[1]
		}
	}
	t.Fatalf("docs/deploy.md has no jq %s with %s", options, text)
	return ""
}

// jq runs a program over its input.
func jq(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	command := exec.Command("jq", arguments...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestARestoreCancelsWhatMayHaveBeenSent, and what has ended, as the events of the topic say.
func TestARestoreCancelsWhatMayHaveBeenSent(t *testing.T) {
	program := restoreProgram(t, "-rs ", "max_by")
	var events strings.Builder
	var want []string
	for _, c := range []struct {
		id     string
		listed bool
		states string // in the order of seq, each with further fields
	}{
		{"accepted", true, `sending accepted`},
		{"delivered", true, `waiting sending accepted delivered`},
		{"in-flight", true, `waiting sending`},
		{"in-flight-again", true, `sending retry,"reason":"refused" sending`},
		{"cancelled", true, `scheduled failed,"reason":"cancelled"`},
		{"unknown", true, `sending unknown`},
		{"same-key", true, `sending retry,"reason":"same_key"`},
		{"resent", true, `sending retry,"reason":"resend","possible_duplicate":true waiting`},
		{"in-part", true, `sending retry,"reason":"refused","parts_accepted":1 waiting`},
		{"no-receipt", true, `accepted no_receipt`},
		{"refused", false, `sending retry,"reason":"refused" waiting`},
		{"throttled", false, `sending retry,"reason":"throttled"`},
		{"scheduled", false, `scheduled`},
		{"waiting", false, `waiting`},
		{"unusable", false, `dead`},
	} {
		lines := []string{}
		for seq, state := range strings.Fields(c.states) {
			name, fields, _ := strings.Cut(state, ",")
			if fields != "" {
				fields = "," + fields
			}
			line, err := json.Marshal(map[string]any{"id": c.id, "state": name, "seq": 9 + seq})
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, strings.TrimSuffix(string(line), "}")+fields+"}")
		}
		slices.Reverse(lines) // they may come in any order
		events.WriteString(strings.Join(lines, "\n") + "\n")
		if c.listed {
			want = append(want, c.id)
		}
	}
	events.WriteString(`{"state":"dead","topic":"sms.otp","partition":1,"offset":2,"seq":5}` + "\n")
	got := strings.Fields(jq(t, events.String(), "-rs", program))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed are %q, want %q", got, want)
	}
}

// TestARestoreHasAPod: while the deployment has none, commands run in one with the same settings.
func TestARestoreHasAPod(t *testing.T) {
	of := render(t, "all-values.yaml", nil).deployment
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	var pod core.Pod
	if err := yaml.UnmarshalStrict([]byte(jq(t, string(text), restoreProgram(t, "", `kind: "Pod"`))),
		&pod); err != nil {
		t.Fatal(err)
	}
	want, got := of.Spec.Template.Spec.Containers[0], pod.Spec.Containers[0]
	if !reflect.DeepEqual(got.Env, want.Env) || !reflect.DeepEqual(got.EnvFrom, want.EnvFrom) ||
		!reflect.DeepEqual(got.VolumeMounts, want.VolumeMounts) || got.Image != want.Image ||
		!reflect.DeepEqual(pod.Spec.Volumes, of.Spec.Template.Spec.Volumes) ||
		!reflect.DeepEqual(pod.Labels, of.Spec.Template.Labels) {
		t.Errorf("the pod is %+v", pod)
	}
	if slices.Contains(got.Args, "run") || got.LivenessProbe != nil || got.ReadinessProbe != nil {
		t.Errorf("the pod runs %q", got.Args)
	}
	run(t, append(slices.Clone(got.Args), "--help")...)
}
