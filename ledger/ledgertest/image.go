package ledgertest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dispatcher/ledger/migrations"
	"dispatcher/ledger/pgserver"
)

// image returns the folder of a stopped server with a template. All servers of tests are copies of
// it. Making it takes most of the CPU time of a short test, so the first process of a day keeps it
// in the temporary folder for the others.
func image() (string, error) {
	s := &shared.image
	s.once.Do(func() {
		// a download takes a while
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		var programs string
		if programs, s.err = pgserver.Programs(ctx); s.err != nil {
			return
		}
		s.day = today()
		kept, unknown := imagePath(s.day, programs, sources())
		if unknown == nil && owned(kept) {
			s.dir = filepath.Join(kept, "pg")
			return
		}
		if s.made, s.err = TempDir(); s.err != nil {
			return
		}
		s.dir = filepath.Join(s.made, "pg")
		if s.err = makeImage(ctx, s.dir, template+s.day); s.err == nil && unknown == nil {
			_ = keep(s.dir, kept) // else each process makes its own
		}
	})
	return s.dir, s.err
}

func makeImage(ctx context.Context, dir, template string) error {
	settings := fast()
	settings["wal_recycle"], settings["min_wal_size"] = "off", "32MB" // less to copy
	server, err := pgserver.Start(ctx, pgserver.Config{Dir: dir, Settings: settings})
	if err != nil {
		return err
	}
	return errors.Join(makeTemplate(ctx, server, template), server.Stop(ctx), trust(dir))
}

// images is the folder of images. It is read at the start, because a TestMain may set another
// temporary folder for its process.
var images = os.TempDir()

// imagePrefix is the prefix of the names of this user's images.
func imagePrefix() string {
	return filepath.Join(images, "ledgertest-image-"+strconv.Itoa(os.Geteuid())+"-")
}

// sources is the folder of package ledger, as the compiler saw it.
func sources() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(file))
}

// imagePath is where the image of a day is kept. Its name has a hash of everything that decides
// what is in it. imagePath returns an error when the sources of this program are not there, or were
// changed after it was built.
func imagePath(day, programs, sources string) (string, error) {
	self, _ := os.Executable() // else there is no such file
	built, err := os.Stat(self)
	if err != nil {
		return "", err
	}
	// An image is not flushed to the disk, so it may be damaged when the machine has crashed.
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // known on Linux only
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %q", day, programs, boot, migrations.RolesSQL)
	err = hashFiles(sum, migrations.Files, "*.sql", built.ModTime())
	for _, folder := range []string{"ledgertest", "migrations", "pgserver"} {
		err = errors.Join(err,
			hashFiles(sum, os.DirFS(sources), folder+"/*.go", built.ModTime()))
	}
	return fmt.Sprintf("%s%x", imagePrefix(), sum.Sum(nil)[:16]), err
}

// hashFiles adds files to a hash, if all of them are older than the program.
func hashFiles(sum io.Writer, from fs.FS, pattern string, built time.Time) error {
	names, err := fs.Glob(from, pattern)
	if err != nil || len(names) == 0 {
		return errors.Join(errors.New("there is no "+pattern), err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		info, err := fs.Stat(from, name)
		if err == nil && info.ModTime().After(built) {
			err = errors.New(name + " is newer than this program")
		}
		content, unread := fs.ReadFile(from, name)
		if err := errors.Join(err, unread); err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %q", name, content)
	}
	return nil
}

// owned reports whether a folder was made by this user and is closed to all others. In a temporary
// folder that all users share, any of them may take a name first.
func owned(folder string) bool {
	info, err := os.Lstat(folder)
	if err != nil || info.Mode() != fs.ModeDir|0o700 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// imageAge is the age at which an image is removed. It is used for one day, and until the tests
// that began before midnight end.
const imageAge = 36 * time.Hour

// keep copies an image to path, unless another process was faster. It removes old ones.
func keep(dir, path string) error {
	old, _ := filepath.Glob(imagePrefix() + "*") // without any, nothing is removed
	for _, folder := range old {
		info, err := os.Lstat(folder)
		if err == nil && time.Since(info.ModTime()) > imageAge && owned(folder) {
			_ = os.RemoveAll(folder) // another process may be removing it, too
		}
	}
	fresh, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // After the rename there is none.
	if err := copyFolder(dir, filepath.Join(fresh, "pg")); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// fromImage makes dir the folder of a server that has not been started yet.
func fromImage(dir string) error {
	from, err := image()
	if err != nil {
		return err
	}
	return copyFolder(from, dir)
}

// copyFolder copies the folder of a stopped server. CopyFS lets everybody read what is in it, so
// the folder is closed, and so is the cluster's own, as PostgreSQL demands.
func copyFolder(from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	return errors.Join(os.CopyFS(to, os.DirFS(from)), os.Chmod(filepath.Join(to, "data"), 0o700))
}
