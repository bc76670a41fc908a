package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"dispatcher/config"
)

func TestKeysRotatePutsANewKeyOnTopAndKeepsTheOld(t *testing.T) {
	t.Parallel()
	path := write(t, "draw.key",
		"# ours\n"+strings.Repeat("02", 32)+"\n"+strings.Repeat("03", 32)+"\n")
	if err := os.Chmod(path, 0o640); err != nil { // as for a service that is not its owner
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "current.key")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	env := []string{"DISPATCHER_DRAW_KEY_FILE=" + link}
	before := decoded[keyRing](t, dispatcher(t, "", env, "keys", "show", "--format", "json"))
	got := dispatcher(t, "", env, "keys", "rotate", "--format", "json")
	after := decoded[keyRing](t, got)
	if got.code != exitOK || len(before.Keys) != 2 || len(after.Keys) != 3 ||
		after.Added != after.Keys[0].KeyID || after.Keys[0].Use != keyDraws ||
		after.Keys[1].KeyID != before.Keys[0].KeyID || after.Keys[1].Use != keyVerifies ||
		after.Keys[2] != before.Keys[1] {
		t.Errorf("%+v then %+v", before, got)
	}
	keys, err := config.DrawKeys(path)
	if err != nil || keys[0].ID() != after.Added {
		t.Errorf("got %v, error %v", keys, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got %v, error %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v %v", info, err)
	}
	if beside, err := os.ReadDir(filepath.Dir(path)); err != nil || len(beside) != 1 {
		t.Errorf("got %v, error %v", beside, err)
	}
}

func TestKeysNeverShowAKey(t *testing.T) {
	t.Parallel()
	path := write(t, "draw.key", strings.Repeat("02", 32)+"\n")
	env := []string{"DISPATCHER_DRAW_KEY_FILE=" + path}
	for _, args := range [][]string{
		{"keys", "show"}, {"keys", "rotate"}, {"keys", "add"}, {"keys", "show", "--format", "csv"},
	} {
		got := dispatcher(t, "", env, args...)
		content, err := os.ReadFile(path)
		if err != nil || got.code != exitOK {
			t.Fatalf("%v: got %+v", err, got)
		}
		for line := range strings.Lines(string(content)) {
			key := strings.TrimSpace(line)
			if key != "" && !strings.HasPrefix(key, "#") &&
				strings.Contains(got.out+got.err, key[:16]) {
				t.Errorf("%v shows a key: %s", args, got.out)
			}
		}
		said := strings.Join(strings.Fields(got.out), " ") // where lines break depends on the path
		if args[1] == "rotate" &&
			(!strings.Contains(said, "Restart the instance") ||
				!strings.Contains(said, "Keep the old keys")) {
			t.Errorf("got %s", got.out)
		}
	}
}

func TestKeysRotateRefusesAFileThatIsNotThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "draw.key")
	for want, env := range map[string][]string{
		"there is no file " + path:            {"DISPATCHER_DRAW_KEY_FILE=" + path},
		"DISPATCHER_DRAW_KEY_FILE is missing": {},
	} {
		got := dispatcher(t, "", env, "keys", "rotate")
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%+v, want %q", got, want)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("a file was created")
	}
}

func TestANewKeyIsAddedFirstAndDrawsWhenItIsPromoted(t *testing.T) {
	t.Parallel()
	path := write(t, "draw.key",
		"# ours\n"+strings.Repeat("02", 32)+"\n"+strings.Repeat("03", 32)+"\n")
	env := []string{"DISPATCHER_DRAW_KEY_FILE=" + path}
	before := decoded[keyRing](t, dispatcher(t, "", env, "keys", "show", "--format", "json"))
	added := decoded[keyRing](t, dispatcher(t, "", env, "keys", "add", "--format", "json"))
	if len(added.Keys) != 3 || added.Keys[0] != before.Keys[0] ||
		added.Keys[1].KeyID != added.Added || added.Keys[1].Use != keyVerifies ||
		added.Promoted != "" {
		t.Fatalf("%+v then %+v", before, added)
	}
	got := dispatcher(t, "", env, "keys", "promote", added.Added)
	if got.code != exitOK || !strings.Contains(got.out, "Keep the old keys") ||
		!strings.Contains(got.out, "is on top of") {
		t.Errorf("got %+v, want exit code %d, %q in the output and %q in the output",
			got, exitOK, "Keep the old keys", "is on top of")
	}
	after := decoded[keyRing](t,
		dispatcher(t, "", env, "keys", "promote", added.Added, "--format", "json"))
	if after.Promoted != added.Added || len(after.Keys) != 3 ||
		after.Keys[0] != (keyShown{added.Added, keyDraws}) ||
		after.Keys[1].KeyID != before.Keys[0].KeyID {
		t.Errorf("%+v then %+v", added, after)
	}
	got = dispatcher(t, "", env, "keys", "add")
	if !strings.Contains(got.out, "draws nothing yet") ||
		!strings.Contains(got.out, "keys promote") {
		t.Errorf("got %+v, want %q in the output and %q in the output",
			got, "draws nothing yet", "keys promote")
	}
	for _, args := range [][]string{{"keys", "promote", "12345678"}, {"keys", "promote"}} {
		if got := dispatcher(t, "", env, args...); got.code != exitUsage {
			t.Errorf("%v: got %+v, want exit code %d", args, got, exitUsage)
		}
	}
}

// TestChangesOfKeysAtTheSameTimeLoseNone: each change is made, or refused with an error that says
// what to do.
func TestChangesOfKeysAtTheSameTimeLoseNone(t *testing.T) {
	t.Parallel()
	path := write(t, "draw.key", strings.Repeat("02", 32)+"\n")
	const n = 20
	made := make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			err := changeKeys(path, func(text string) (string, error) {
				text, key, err := config.AppendDrawKey(text)
				made[i] = key.ID()
				return text, err
			})
			if err != nil {
				made[i] = ""
				if !strings.Contains(err.Error(), "being changed by somebody else") {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	ring, err := readKeyRing(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, id := range made {
		if id != "" {
			want = append(want, id)
		}
	}
	var got []string
	for _, key := range ring.Keys[1:] {
		got = append(got, key.KeyID)
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%d keys were created, but the file has %d of them", len(want), len(got))
	}
}

func TestAChangeOfKeysThatWasCutOffIsNamed(t *testing.T) {
	t.Parallel()
	path := write(t, "draw.key", strings.Repeat("02", 32)+"\n")
	left := filepath.Join(filepath.Dir(path), ".draw.key.new")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"DISPATCHER_DRAW_KEY_FILE=" + path}
	got := dispatcher(t, "", env, "keys", "rotate")
	if got.code != exitFailed || !strings.Contains(got.err, "remove "+left) {
		t.Errorf("got %+v, want exit code %d and %q in the error", got, exitFailed, "remove "+left)
	}
	if ring, err := readKeyRing(path); err != nil || len(ring.Keys) != 1 {
		t.Errorf("got %+v, error %v", ring, err)
	}
	if err := os.Remove(left); err != nil {
		t.Fatal(err)
	}
	err := changeKeys(path, func(string) (string, error) { return "", errors.New("refused") })
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Error(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Error("a failed change left its file behind")
	}
}

func TestKeysNewMakesAFileThatOnlyItsOwnerReads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "draw.key")
	got := dispatcher(t, "", []string{}, "keys", "new", path, "--format", "json")
	ring := decoded[keyRing](t, got)
	keys, err := config.DrawKeys(path)
	if err != nil || got.code != exitOK || len(ring.Keys) != 1 || ring.Added != keys[0].ID() {
		t.Fatalf("got %+v, error %v", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestKeysNewTouchesNoFileThatIsThere(t *testing.T) {
	t.Parallel()
	old := strings.Repeat("02", 32) + "\n"
	path := write(t, "draw.key", old)
	got := dispatcher(t, "", []string{"DISPATCHER_DRAW_KEY_FILE=" + path}, "keys", "new")
	content, err := os.ReadFile(path)
	if err != nil || string(content) != old || got.code != exitFailed ||
		!strings.Contains(got.err, "is there already") {
		t.Errorf("got %+v, error %v", got, err)
	}
	got = dispatcher(t, "", []string{}, "keys", "new")
	if got.code != exitUsage || !strings.Contains(got.err, "name the file to make") {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			got, exitUsage, "name the file to make")
	}
}
