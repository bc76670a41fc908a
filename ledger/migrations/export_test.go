package migrations

import (
	"context"
	"io/fs"
)

// MigrateFrom is Migrate with other files.
func MigrateFrom(ctx context.Context, url string, from fs.FS) error {
	all, err := read(from)
	if err != nil {
		return err
	}
	return migrate(ctx, url, all)
}
