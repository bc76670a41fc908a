package bench

import (
	"context"
	"errors"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"
)

// Usage is what messages cost: in total since the start of a process, or per message, see per.
// Scripts rely on the JSON names.
type Usage struct {
	RoundTrips float64 `json:"round_trips_per_message"` // to the database; the floor counts none
	Allocs     float64 `json:"allocs_per_message"`      // of the process; the floor counts none
	// CPU of the processes, and of PostgreSQL with all its backends, in microseconds; 0 except on
	// Linux.
	CPU         float64 `json:"cpu_us_per_message"`
	DatabaseCPU float64 `json:"database_cpu_us_per_message"`
	WAL         float64 `json:"wal_bytes_per_message"`
	Disk        float64 `json:"disk_bytes_per_message"` // growth of the database
}

// per is the cost per message since before.
func (u Usage) per(messages float64, before Usage) Usage {
	return Usage{
		RoundTrips:  (u.RoundTrips - before.RoundTrips) / messages,
		Allocs:      (u.Allocs - before.Allocs) / messages,
		CPU:         (u.CPU - before.CPU) / messages,
		DatabaseCPU: (u.DatabaseCPU - before.DatabaseCPU) / messages,
		WAL:         (u.WAL - before.WAL) / messages,
		Disk:        (u.Disk - before.Disk) / messages,
	}
}

// used is what a run has used so far.
func (r *run) used(ctx context.Context, p *process) (now Usage, err error) {
	for _, p := range append([]*process{p}, r.others...) {
		if r.command == runCommand {
			values, err := scrape(ctx, p.url)
			if err != nil {
				return now, err
			}
			now.RoundTrips += values["dispatcher_ledger_round_trips_total"]
			now.Allocs += values["go_memstats_mallocs_total"]
		}
		used, err := cpu(p.cmd.Process.Pid)
		if err != nil {
			return now, err
		}
		now.CPU += used
	}
	return now, r.database(ctx, &now)
}

// database reads what PostgreSQL has used. It is called last, so that its own cost hardly counts.
func (r *run) database(ctx context.Context, now *Usage) error {
	conn, err := pgx.Connect(ctx, r.rig.servers.Postgres.URLOf(r.ledgerName()))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the session ends either way
	var backend int
	if err := conn.QueryRow(ctx, `
		select pg_backend_pid(), pg_current_wal_insert_lsn() - '0/0',
		  pg_database_size(current_database())`).Scan(&backend, &now.WAL, &now.Disk); err != nil {
		return err
	}
	now.DatabaseCPU, err = serverCPU(backend)
	return err
}

// cpu is the CPU time of a process in microseconds; 0 if unknown.
func cpu(pid int) (float64, error) {
	stat, err := statOf(pid)
	return stat.CPUTime() * 1e6, err
}

// serverCPU is the CPU time of a process's parent and of all children of that parent, ended ones
// included.
func serverCPU(child int) (float64, error) {
	stat, err := statOf(child)
	if err != nil || stat.PPID == 0 {
		return 0, err
	}
	parent, err := statOf(stat.PPID)
	if err != nil {
		return 0, err
	}
	//nolint:gosec // Times are never negative.
	ended := procfs.ProcStat{UTime: uint(parent.CUTime), STime: uint(parent.CSTime)}
	total := parent.CPUTime() + ended.CPUTime()
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		if one, err := p.Stat(); err == nil && one.PPID == stat.PPID { // it may have ended meanwhile
			total += one.CPUTime()
		}
	}
	return total * 1e6, nil
}

// statOf is empty on systems without /proc.
func statOf(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return procfs.ProcStat{}, nil
	}
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}
