package main

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// closedDays closes two of the three days of backDated.
func closedDays(t *testing.T) (db *pgx.Conn, env []string) {
	t.Helper()
	url := ledgertest.URL(t)
	openSeeded(t, url)
	env = []string{"DISPATCHER_POSTGRES_URL=" + url}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(t.Context()) }) //nolint:errcheck // The test is over.
	backDated(t, db)
	for day := 2; day > 0; day-- {
		got := dispatcher(t, "", env, "report", "close", "--day", ago(t, day))
		if got.code != exitOK {
			t.Fatalf("got %+v, want exit code %d", got, exitOK)
		}
	}
	return db, env
}

// publishedNames runs report publish and returns the names that it printed.
func publishedNames(t *testing.T, env []string, args ...string) (names []string) {
	t.Helper()
	got := dispatcher(t, "", env, append([]string{"report", "publish", "--format", "json"}, args...)...)
	if got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
	files := decoded[struct{ Files []publishedFile }](t, got)
	for _, f := range files.Files {
		names = append(names, f.Name)
	}
	return names
}

// TestARunningDispatcherPublishesTheDaysThatItCloses: without any command, and only once. It looks
// at the days within a minute of its start.
func TestARunningDispatcherPublishesTheDaysThatItCloses(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "reports")
	s := newStage(t, stageConfig{settings: map[string]string{"REPORTS_URL": folder}})
	db, err := pgx.Connect(t.Context(), s.postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	// The invariants that every story checks cover yesterday and today, but these rows are older.
	if _, err := db.Exec(t.Context(), `select dispatcher.make_day(dispatcher.day_at(now()) - n)
		from generate_series(2, 3) n`); err != nil {
		t.Fatal(err)
	}
	for day := 2; day <= 3; day++ {
		sentOn(t, db, day, 1, "a", "a", "", 25)
		sentOn(t, db, day, 1, "b", "b", "", 15)
	}
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().In(zone)
	newest := 1
	if yesterday := ledger.NewBusinessDay(now.AddDate(0, 0, -1), zone); !yesterday.CanClose(now) {
		newest = 2 // it is just over
	}
	s.run("dispatcher").awaitOutput(t, "dispatcher is running")
	// It checks the days for the first time within a minute of its start. Yesterday has no message,
	// and is published last.
	for day := 3; day >= newest; day-- {
		for _, as := range []string{".csv", ".html"} {
			name := filepath.Join(folder, "daily", ago(t, day)+as)
			tier.Within(t, stepTimeout, name+" is there", func() bool {
				info, err := os.Stat(name)
				return err == nil && info.Size() > 0
			})
		}
	}
	env := []string{"DISPATCHER_POSTGRES_URL=" + s.postgres}
	if names := days(publishedNames(t, env, "--url", folder)); len(names) > 0 {
		t.Errorf("the command found more to write: %v", names)
	}
}

// TestReportsArePublishedOnce: for each closed day, and in another file when the day was corrected.
func TestReportsArePublishedOnce(t *testing.T) {
	t.Parallel()
	db, env := closedDays(t)
	folder := filepath.Join(t.TempDir(), "reports")
	env = append(env, "DISPATCHER_REPORTS_URL="+folder)
	want := []string{
		"daily/" + ago(t, 2) + ".csv", "daily/" + ago(t, 2) + ".html",
		"daily/" + ago(t, 1) + ".csv", "daily/" + ago(t, 1) + ".html",
	}
	first := publishedNames(t, env)
	if diff := cmp.Diff(want, days(first)); diff != "" {
		t.Error(diff)
	}
	var found []string
	err := filepath.WalkDir(folder, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, strings.TrimPrefix(name, folder+"/"))
		}
		return err
	})
	slices.Sort(first)
	slices.Sort(found)
	if diff := cmp.Diff(first, found); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	// A running dispatcher writes the same, and does not write it again.
	own, said := filepath.Join(t.TempDir(), "reports"), bytes.Buffer{}
	log := zerolog.New(&said)
	l, err := ledger.Connect(t.Context(), ledger.Config{
		URL: strings.TrimPrefix(env[0], "DISPATCHER_POSTGRES_URL="), MaxConns: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	publish := publishing(&config.Settings{
		ReportsURL: own, ReportsFiles: []string{"csv", "html"},
	}, &log)
	for range 2 {
		if again, err := publish(t.Context(), l); again || err != nil {
			t.Errorf("the running dispatcher has to try again: %v, %v", again, err)
		}
	}
	for _, name := range first {
		written, err := os.ReadFile(filepath.Join(own, name))
		if err != nil || len(written) == 0 {
			t.Errorf("%s of the running dispatcher: %d bytes, %v", name, len(written), err)
		}
	}
	if n := strings.Count(said.String(), "a report was published"); n != len(first) {
		t.Errorf("the running dispatcher wrote %d files, want %d:\n%s", n, len(first), &said)
	}
	text, err := os.ReadFile(filepath.Join(folder, want[0]))
	direct := dispatcher(t, "", env, "report", "daily", "--from", ago(t, 2), "--to", ago(t, 2),
		"--format", "csv").out
	if diff := cmp.Diff(direct, string(text)); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	if again := publishedNames(t, env); len(again) > 0 {
		t.Errorf("written a second time: %v", again)
	}
	if got := dispatcher(t, "", env, "report", "publish"); !strings.Contains(got.out,
		"Every report of a closed day, week and month is there") {
		t.Errorf("got %+v, want %q in the output",
			got, "Every report of a closed day, week and month is there")
	}
	if _, err := db.Exec(t.Context(), `update dispatcher.attempts set receipt_state = 'undelivered', delivered_at = null
		where channel = 'b'`); err != nil {
		t.Fatal(err)
	}
	if got := dispatcher(t, "", env, "report", "close", "--day", ago(t, 1)); got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
	before, err := os.ReadFile(filepath.Join(folder, want[2]))
	if err != nil {
		t.Fatal(err)
	}
	second := []string{"daily/" + ago(t, 1) + ".2.csv", "daily/" + ago(t, 1) + ".2.html"}
	if diff := cmp.Diff(second, days(publishedNames(t, env))); diff != "" {
		t.Errorf("after a correction: %s", diff)
	}
	kept, err := os.ReadFile(filepath.Join(folder, want[2]))
	if err != nil || !bytes.Equal(kept, before) {
		t.Errorf("the published file was changed: %v, %s", err, kept)
	}
	corrected, err := os.ReadFile(filepath.Join(folder, second[0]))
	if err != nil || bytes.Equal(corrected, before) {
		t.Errorf("the corrected file has the old figures: %v", err)
	}
	if page, err := os.ReadFile(filepath.Join(folder, second[1])); err != nil ||
		!bytes.Contains(page, []byte("Corrections since the day was closed")) {
		t.Errorf("the corrected page does not say what was corrected: %v", err)
	}
	if again := publishedNames(t, env); len(again) > 0 {
		t.Errorf("after a correction, written a second time: %v", again)
	}
	if more := days(publishedNames(t, env, "--files", "parquet,xlsx,json")); len(more) != 6 {
		t.Errorf("got %v, want %d of them", more, 6)
	}
	chosen := append(slices.Clone(env), "DISPATCHER_REPORTS_FILES=csv,json")
	if names := days(publishedNames(t, chosen, "--url", t.TempDir())); len(names) != 4 ||
		!strings.HasSuffix(names[0]+names[1], ".json"+"daily/"+ago(t, 2)+".csv") {
		t.Errorf("got %v, want JSON and CSV of two days", names)
	}
	for want, args := range map[string][]string{
		`--files: "pdf" is none of json`:            {"--files", "pdf"},
		"reports cannot be written to ftp://: name": {"--url", "ftp://x/y"},
	} {
		got := dispatcher(t, "", env, append([]string{"report", "publish"}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
	got := dispatcher(t, "", env[:1], "report", "publish")
	if got.code != exitUsage || !strings.Contains(got.err, "--url is missing") {
		t.Errorf("got %+v, want exit code %d and %q in the error", got, exitUsage, "--url is missing")
	}
}

// days keeps the names of daily reports: a week or a month may end between the days of the test.
func days(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return !strings.HasPrefix(n, "daily/")
	})
}

// TestReportsArePublishedToS3 uses a stand-in for S3 on loopback. Objects are listed before others
// are written.
func TestReportsArePublishedToS3(t *testing.T) {
	tier.LongOnly(t)
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-west-2",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	_, env := closedDays(t)
	storage := &s3StandIn{objects: map[string][]byte{}}
	server := httptest.NewServer(storage)
	defer server.Close()
	target := "s3://books?region=eu-west-2&use_path_style=true&prefix=sms/&endpoint=" + server.URL
	names := publishedNames(t, env, "--url", target, "--files", "csv,parquet")
	if len(days(names)) != 4 {
		t.Fatalf("got %v", names)
	}
	want := dispatcher(t, "", env, "report", "daily", "--from", ago(t, 2), "--to", ago(t, 2),
		"--format", "csv").out
	if got := storage.object("/books/sms/" + names[0]); got != want {
		t.Errorf("got object %q, want %q", got, want)
	}
	if again := publishedNames(t, env, "--url", target, "--files", "csv,parquet"); len(again) > 0 {
		t.Errorf("written a second time: %v", again)
	}
	storage.refuse()
	got := dispatcher(t, "", env, "report", "publish", "--url", target)
	if got.code != exitFailed || !strings.Contains(got.err, "list the reports in daily/") {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			got, exitFailed, "list the reports in daily/")
	}
}

// s3StandIn implements as much of S3 as writing and listing objects needs.
type s3StandIn struct {
	mu      sync.Mutex
	objects map[string][]byte // guarded by mu; by path
	fail    bool              // guarded by mu
}

func (s *s3StandIn) object(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.objects[path])
}

// refuse makes every request fail from now on.
func (s *s3StandIn) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = true
}

func (s *s3StandIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fail:
		w.WriteHeader(http.StatusForbidden)
	case r.Method == http.MethodPut:
		body, err := s3Body(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.objects[r.URL.Path] = body
		w.Header().Set("ETag", `"1"`)
	case r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2":
		s.list(w, r)
	default:
		http.Error(w, r.Method+" "+r.URL.String(), http.StatusNotImplemented)
	}
}

func (s *s3StandIn) list(w http.ResponseWriter, r *http.Request) {
	type object struct {
		Key          string
		LastModified string
		Size         int
	}
	result := struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []object
	}{}
	bucket := strings.TrimSuffix(r.URL.Path, "/") + "/"
	for path, body := range s.objects {
		key, _ := strings.CutPrefix(path, bucket)
		if strings.HasPrefix(key, r.URL.Query().Get("prefix")) {
			result.Contents = append(result.Contents, object{
				key, time.Now().UTC().Format(time.RFC3339), len(body),
			})
		}
	}
	slices.SortFunc(result.Contents, func(a, b object) int { return strings.Compare(a.Key, b.Key) })
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(&result) // the client reports a broken body
}

// s3Body returns the body of a PUT, plain or in chunks with their sizes in front.
func s3Body(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil || !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING") {
		return body, err
	}
	var out []byte
	in := bufio.NewReader(bytes.NewReader(body))
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("chunk %q: %w", line, err)
		}
		if n == 0 {
			return out, nil
		}
		chunk := make([]byte, n+2)
		if _, err := io.ReadFull(in, chunk); err != nil {
			return nil, errors.New("a chunk is cut short")
		}
		out = append(out, chunk[:n]...)
	}
}
