package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dispatcher/config"
)

func TestKeysRotatePutsANewKeyOnTopAndKeepsTheOld(t *testing.T) {
	t.Parallel()
	path := write(t, "draw.key", "# ours\n"+strings.Repeat("02", 32)+"\n"+strings.Repeat("03", 32)+"\n")
	if err := os.Chmod(path, 0o644); err != nil {
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
	if got.code != exitOK || len(before.Keys) != 2 || len(after.Keys) != 3 || after.Added != after.Keys[0].KeyID || after.Keys[0].Use != keyDraws ||
		after.Keys[1].KeyID != before.Keys[0].KeyID || after.Keys[1].Use != keyVerifies || after.Keys[2] != before.Keys[1] {
		t.Errorf("%+v then %+v", before, got)
	}
	keys, err := config.DrawKeys(path)
	if err != nil || keys[0].ID() != after.Added {
		t.Errorf("%v %v", keys, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v %v", info, err)
	}
	if beside, err := os.ReadDir(filepath.Dir(path)); err != nil || len(beside) != 1 {
		t.Errorf("%v %v", beside, err)
	}
}

func TestKeysNeverShowAKey(t *testing.T) {
	t.Parallel()
	path := write(t, "draw.key", strings.Repeat("02", 32)+"\n")
	env := []string{"DISPATCHER_DRAW_KEY_FILE=" + path}
	for _, args := range [][]string{{"keys", "show"}, {"keys", "rotate"}, {"keys", "show", "--format", "csv"}} {
		got := dispatcher(t, "", env, args...)
		content, err := os.ReadFile(path)
		if err != nil || got.code != exitOK {
			t.Fatalf("%v %+v", err, got)
		}
		for line := range strings.Lines(string(content)) {
			if key := strings.TrimSpace(line); key != "" && !strings.HasPrefix(key, "#") && strings.Contains(got.out+got.err, key[:16]) {
				t.Errorf("%v shows a key: %s", args, got.out)
			}
		}
		if args[1] == "rotate" && (!strings.Contains(got.out, "restart them one by") || !strings.Contains(got.out, "Keep the old keys")) {
			t.Errorf("%s", got.out)
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
		if got := dispatcher(t, "", env, "keys", "rotate"); got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%+v, want %q", got, want)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("a file was made")
	}
}
