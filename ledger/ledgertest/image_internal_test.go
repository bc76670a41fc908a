package ledgertest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/pgserver"
)

// TestAllServersAreCopiesOfOneImage: the next process finds it, too.
func TestAllServersAreCopiesOfOneImage(t *testing.T) {
	t.Parallel()
	name := begun(t)
	// Only the time that prepare sets differs.
	schema := strings.Replace(fingerprint,
		`(select sum(hashtext(t::text)) from dispatcher.id_turns t),`, "", 1)
	var of [2]string
	for i, server := range []*pgserver.Server{shared.server, Server(t, nil)} {
		conn, err := pgx.Connect(t.Context(), server.URLOf(name))
		if err != nil {
			t.Fatal(err)
		}
		err = conn.QueryRow(t.Context(), schema).Scan(&of[i])
		if err := errors.Join(err, conn.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	if of[0] != of[1] {
		t.Errorf("two copies have the schemas %s and %s", of[0], of[1])
	}
	programs, err := pgserver.Programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path, unknown := imagePath(shared.image.day, programs, sources())
	if unknown == nil && !owned(path) {
		t.Errorf("no image is kept in %s", path)
	}
}

// TestAnImageIsNamedAfterWhatDecidesItsContent, and has no name when that is not known.
func TestAnImageIsNamedAfterWhatDecidesItsContent(t *testing.T) {
	t.Parallel()
	copied := t.TempDir()
	before := time.Now().Add(-24 * time.Hour)
	write := func(file, content string, at time.Time) {
		t.Helper()
		path := filepath.Join(copied, file)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	folders := []string{"ledgertest", "migrations", "pgserver"}
	for _, folder := range folders {
		if err := os.Mkdir(filepath.Join(copied, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		write(folder+"/one.go", "package "+folder, before)
	}
	seen := map[string]string{}
	name := func(what, day, programs string) (known string) {
		t.Helper()
		path, err := imagePath(day, programs, copied)
		if err != nil {
			t.Fatal(err)
		}
		known = seen[path]
		seen[path] = what
		return known
	}
	name("the first", "today", "15")
	write("pgserver/one_test.go", "package pgserver", before)
	if name("a test more", "today", "15") == "" {
		t.Error("a test changes the name")
	}
	differs := func(what, day, programs string) {
		t.Helper()
		if other := name(what, day, programs); other != "" {
			t.Errorf("%s: the name is that of %s", what, other)
		}
	}
	differs("another day", "tomorrow", "15")
	differs("other programs", "today", "16")
	for _, folder := range folders {
		write(folder+"/one.go", "package "+folder+" // changed", before)
		differs("another content in "+folder, "today", "15")
		write(folder+"/two.go", "package "+folder, before)
		differs("another file in "+folder, "today", "15")
	}

	write("migrations/two.go", "package migrations", time.Now().Add(time.Hour))
	if path, err := imagePath("today", "15", copied); err == nil {
		t.Errorf("sources that are newer than the program give %s", path)
	}
	if path, err := imagePath("today", "15", "dispatcher/ledger"); err == nil {
		t.Errorf("sources that are not there give %s", path)
	}
}

// TestTheFirstImageStays however many processes make one at once.
func TestTheFirstImageStays(t *testing.T) {
	earlier := images
	images = t.TempDir()
	defer func() { images = earlier }()
	path, made := imagePrefix()+"today", filepath.Join(t.TempDir(), "pg")
	if err := os.MkdirAll(filepath.Join(made, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	ages := map[string]time.Duration{"old": 40 * time.Hour, "recent": 30 * time.Hour}
	for name, age := range ages {
		if err := os.MkdirAll(filepath.Join(imagePrefix()+name, "pg"), 0o700); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(imagePrefix()+name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	var first int
	results := make(chan error, 8)
	for range cap(results) {
		all.Go(func() { results <- keep(made, path) })
	}
	all.Wait()
	close(results)
	for err := range results {
		if err == nil {
			first++
		}
	}
	if first != 1 || !owned(path) {
		t.Errorf("%d are kept in %s, want one", first, path)
	}
	if _, err := os.Stat(filepath.Join(path, "pg", "data")); err != nil {
		t.Error(err)
	}
	var left []string
	found, err := os.ReadDir(images)
	for _, f := range found {
		left = append(left, strings.TrimPrefix(filepath.Join(images, f.Name()), imagePrefix()))
	}
	if want := "recent today"; err != nil || strings.Join(left, " ") != want {
		t.Errorf("%v are left, %v, want %s", left, err, want)
	}
}

// TestAnImageIsTakenFromItsOwnerAlone: any user may take its name first in the temporary folder.
func TestAnImageIsTakenFromItsOwnerAlone(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "image")
	check := func(what string, path string, want bool) {
		t.Helper()
		if got := owned(path); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("none", folder, false)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	check("our own", folder, true)
	if err := os.Symlink(folder, folder+"-link"); err != nil {
		t.Fatal(err)
	}
	check("a link", folder+"-link", false)
	if err := os.Chmod(folder, 0o750); err != nil { //nolint:gosec // It is to be refused.
		t.Fatal(err)
	}
	check("open to others", folder, false)
	if os.Geteuid() != 0 {
		return // only root can give a folder away
	}
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(folder, 1, 1); err != nil {
		t.Fatal(err)
	}
	check("that of another user", folder, false)
}

// TestATemplateThatWasMadeHoursAgoIsLikeANewOne in the only time that tests read from it.
func TestATemplateThatWasMadeHoursAgoIsLikeANewOne(t *testing.T) {
	begun(t)
	old := Empty(t)
	conn, err := pgx.Connect(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // The server is stopped anyway.
	if _, err := conn.Exec(t.Context(), `create schema dispatcher;
		create table dispatcher.id_turns as select now() - interval '9 hours' as since`); err != nil {
		t.Fatal(err)
	}
	var age time.Duration
	err = errors.Join(renew(t.Context(), conn),
		conn.QueryRow(t.Context(), `select now() - since from dispatcher.id_turns`).Scan(&age))
	if err != nil || age > time.Hour {
		t.Errorf("the table of ids began %s ago, %v", age, err)
	}
}
