package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	_ "gocloud.dev/blob/s3blob" // for addresses with s3://

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// publishedFile is one written file.
type publishedFile struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

func (c *cli) reportPublishCommand() *cobra.Command {
	var as format
	var target string
	var files []string
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "Write the reports of closed days, weeks and months that are not there yet",
		Long: `Writes a report for each day that is closed, and for each week and month all of whose
days are closed, to a folder or to storage that speaks S3: daily/2026-11-21.csv,
weekly/2026-W47.csv, monthly/2026-11.csv, and the same as .html. What is there is left as it is, so
that the command can run as often as one likes. A report whose figures were corrected since gets a
file of its own, daily/2026-11-21.2.csv after one correction: what was published stays. Beside each
CSV file is its checkpoint, in a file whose name has .checkpoint added. Where a log of hashes is
kept, a report is written when its figures are in the log, some minutes after a day was closed, so
that the checkpoint covers them.

The address is a folder, or s3://bucket?region=eu-west-2&prefix=reports/. Other storage than
Amazon's adds endpoint=https://host&use_path_style=true. Credentials come from the AWS_... variables, the
AWS configuration or the machine's role.

"dispatcher run" does it by itself when DISPATCHER_REPORTS_URL is set: at its start, and after it
has closed or corrected a day.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			for _, f := range files {
				if !slices.Contains(fileFormats, f) {
					return usage(fmt.Errorf("--files: %q is none of %s", f,
						strings.Join(fileFormats, ", ")))
				}
			}
			return c.withLedger(ctx, func(l *database) error {
				if target == "" {
					target = l.settings.ReportsURL
				}
				if target == "" {
					return usage(errors.New("--url is missing, and DISPATCHER_REPORTS_URL is not set: " +
						"name a folder, or s3://bucket?region=eu-west-2"))
				}
				if len(files) == 0 {
					files = l.settings.ReportsFiles
				}
				return c.publishTo(ctx, l, target, files, as)
			})
		}),
	}
	cmd.Flags().StringVar(&target, "url", "",
		"folder, or s3:// address (default DISPATCHER_REPORTS_URL)")
	cmd.Flags().StringSliceVar(&files, "files", nil, "what to write of each report: some of "+
		strings.Join(fileFormats, ", ")+" (default DISPATCHER_REPORTS_FILES)")
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) publishTo(
	ctx context.Context, l *database, target string, files []string, as format,
) error {
	bucket, err := openReports(ctx, target)
	if err != nil {
		return usage(err)
	}
	defer bucket.Close() //nolint:errcheck // What was written has been closed.
	show := func(int64) {}
	wipe := func() {}
	written, unsealed, err := publishReports(ctx, l, bucket, files, func(done, all int64) {
		if done == 0 {
			show, wipe = c.progress("publishing", all)
		}
		show(done)
	})
	wipe()
	if err != nil {
		return err
	}
	if unsealed > 0 {
		fmt.Fprintf(c.err, "Not written yet, because the log of hashes gets their figures in some "+
			"minutes: %d\n", unsealed)
	}
	if as == formatTable && len(written) == 0 {
		if unsealed == 0 {
			fmt.Fprintln(c.out, "Every report of a closed day, week and month is there.")
		}
		return nil
	}
	return as.write(c.out, map[string]any{"files": written},
		list(as, written, keys[publishedFile]("", "name", "bytes")...))
}

// publishing is what run calls when days were closed.
func publishing(
	settings *config.Settings, log *zerolog.Logger,
) func(context.Context, *ledger.Ledger) (again bool, err error) {
	return func(ctx context.Context, l *ledger.Ledger) (again bool, err error) {
		bucket, err := openReports(ctx, settings.ReportsURL)
		if err != nil {
			return false, err
		}
		defer bucket.Close() //nolint:errcheck // What was written has been closed.
		written, unsealed, err := publishReports(ctx, &database{Ledger: l, settings: settings}, bucket,
			settings.ReportsFiles, func(int64, int64) {})
		for _, file := range written {
			log.Info().Str("name", file.Name).Int("bytes", file.Bytes).Msg("a report was published")
		}
		return unsealed > 0, err
	}
}

// openReports opens the folder or object storage for reports.
func openReports(ctx context.Context, target string) (*blob.Bucket, error) {
	path := target
	scheme, _, isURL := strings.Cut(target, "://")
	switch {
	case !isURL:
	case scheme == "s3":
		bucket, err := blob.OpenBucket(ctx, target)
		if err != nil {
			return nil, fmt.Errorf("open the storage for reports: %w", err)
		}
		return bucket, nil
	case scheme == "file":
		address, err := url.Parse(target)
		if err != nil {
			return nil, fmt.Errorf("open the folder for reports: %w", err)
		}
		path = address.Path
	default:
		return nil, fmt.Errorf("reports cannot be written to %s://: name a folder, or "+
			"s3://bucket?region=eu-west-2", scheme)
	}
	if err := os.MkdirAll(path, 0o755); err != nil { //nolint:gosec // Others are to read reports.
		return nil, fmt.Errorf("open the folder for reports: %w", err)
	}
	bucket, err := fileblob.OpenBucket(path, &fileblob.Options{
		NoTempDir: true, Metadata: fileblob.MetadataDontWrite,
	})
	if err != nil {
		return nil, fmt.Errorf("open the folder for reports: %w", err)
	}
	return bucket, nil
}

// duePublication is a report to be written.
type duePublication struct {
	unit   report.Unit
	period report.ClosedPeriod
	names  map[format]string
}

// publishFolders are the folders for the reports of a unit.
var publishFolders = []struct {
	unit report.Unit
	name string
}{{report.Day, "daily/"}, {report.Week, "weekly/"}, {report.Month, "monthly/"}}

// publishReports writes the reports that are missing, except those whose figures are not in the log
// yet; unsealed is their number. The names say how often the figures were corrected, so what was
// published is never written again.
func publishReports(
	ctx context.Context, l *database, bucket *blob.Bucket, files []string,
	progress func(done, all int64),
) (written []publishedFile, unsealed int, err error) {
	written = []publishedFile{}
	due, err := duePublications(ctx, l, bucket, files)
	if err != nil {
		return written, 0, err
	}
	all := len(due)
	due = slices.DeleteFunc(due, func(d duePublication) bool { return d.period.Unsealed })
	unsealed = all - len(due)
	for i := range due {
		progress(int64(i), int64(len(due)))
		some, err := due[i].write(ctx, l, bucket)
		if written = append(written, some...); err != nil {
			return written, unsealed, err
		}
	}
	progress(int64(len(due)), int64(len(due)))
	return written, unsealed, nil
}

func duePublications(
	ctx context.Context, l *database, bucket *blob.Bucket, files []string,
) (due []duePublication, err error) {
	days, err := l.Reports.ClosedDays(ctx)
	if err != nil {
		return nil, err
	}
	for _, folder := range publishFolders {
		there, err := publishedIn(ctx, bucket, folder.name)
		if err != nil {
			return nil, err
		}
		periods, err := report.ClosedPeriods(folder.unit, days)
		if err != nil {
			return nil, err
		}
		for _, p := range periods {
			one := duePublication{unit: folder.unit, period: p, names: map[format]string{}}
			for _, as := range files {
				name := folder.name + p.Period
				if p.Corrections > 0 {
					name += fmt.Sprintf(".%d", p.Corrections+1)
				}
				if name += "." + as; !there[name] {
					one.names[format(as)] = name
				}
			}
			if len(one.names) > 0 {
				due = append(due, one)
			}
		}
	}
	return due, nil
}

// publishedIn are the names of the files in a folder.
func publishedIn(ctx context.Context, bucket *blob.Bucket, folder string) (map[string]bool, error) {
	there := map[string]bool{}
	all := bucket.List(&blob.ListOptions{Prefix: folder})
	for {
		one, err := all.Next(ctx)
		if errors.Is(err, io.EOF) {
			return there, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list the reports in %s: %w", folder, err)
		}
		there[one.Key] = true
	}
}

// write adds up the period and writes its files. If a day is open again, because the routing names
// another time zone, the period is left for later.
func (d *duePublication) write(
	ctx context.Context, l *database, bucket *blob.Bucket,
) (written []publishedFile, err error) {
	noons, err := app.BusinessDays(ctx, l.Routing, d.period.Dates)
	if err != nil {
		return nil, err
	}
	by, err := report.ParseDimensions(nil)
	if err != nil {
		return nil, err
	}
	figures, err := readRange(ctx, l, &report.RangeFigures{Unit: d.unit, By: by, Days: noons},
		d.names[formatHTML] != "", nil)
	if err != nil || len(figures.Ledger.Open) > 0 {
		return nil, err
	}
	r := report.NewRange(figures)
	for _, as := range fileFormats {
		name := d.names[format(as)]
		if name == "" {
			continue
		}
		var file bytes.Buffer
		out := showing(&file)
		if err := writeRange(out, format(as), &r, figures, &rangeFlags{in: inMessages}); err != nil {
			return written, err
		}
		out.finish()
		if as == formatCSV && r.Checkpoint != "" { // before the file that says that all is there
			beside := name + checkpointSuffix
			if err := put(ctx, bucket, beside, []byte(r.Checkpoint), plainText); err != nil {
				return written, err
			}
			written = append(written, publishedFile{beside, len(r.Checkpoint)})
		}
		if err := put(ctx, bucket, name, file.Bytes(), contentTypes[format(as)]); err != nil {
			return written, err
		}
		written = append(written, publishedFile{name, file.Len()})
	}
	return written, nil
}

func put(ctx context.Context, bucket *blob.Bucket, name string, content []byte, kind string) error {
	err := bucket.WriteAll(ctx, name, content, &blob.WriterOptions{ContentType: kind})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

const plainText = "text/plain; charset=utf-8"

// contentTypes are the content types of the files in object storage.
var contentTypes = map[format]string{
	formatJSON: "application/json", formatCSV: "text/csv; charset=utf-8",
	formatXLSX:    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	formatParquet: "application/vnd.apache.parquet", formatHTML: "text/html; charset=utf-8",
}
