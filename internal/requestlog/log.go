package requestlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// Config states where requests are recorded, and which.
type Config struct {
	Path  string // of the newest file; older ones have .1, .2, … after it
	Rules []Rule
	Node  string       // the node's name, for its lines
	Log   *slog.Logger // gets the first failure of the file, and that it works again
	Size  int64        // bytes of a file, about; 0: 64 MiB
	Files int          // at most, the newest included; 0: 8
}

const (
	defaultSize  = 64 << 20
	defaultFiles = 8
	waiting      = 4096            // lines in memory
	again        = 5 * time.Second // after which a file that failed is tried again
)

// Log is the record. The zero pointer records nothing.
type Log struct {
	cfg           Config
	wantsReads    bool
	lines         chan []byte
	file          *os.File
	size          int64
	failed        time.Time // when the file failed last; zero: it works
	written, lost atomic.Uint64
}

// Open opens the record, and makes its file if there is none. Run writes.
func Open(cfg Config) (*Log, error) {
	if cfg.Size <= 0 {
		cfg.Size = defaultSize
	}
	if cfg.Files <= 0 {
		cfg.Files = defaultFiles
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	l := &Log{cfg: cfg, lines: make(chan []byte, waiting)}
	l.wantsReads = slices.ContainsFunc(cfg.Rules, func(r Rule) bool { return r.Level == Request })
	return l, errors.Join(l.tighten(), l.open())
}

// Counts are the lines that were written, and those that were lost.
type Counts struct{ Written, Lost uint64 }

// Counts may be called at any time, also of a nil Log.
func (l *Log) Counts() Counts {
	if l == nil {
		return Counts{}
	}
	return Counts{l.written.Load(), l.lost.Load()}
}

// put hands on a line without waiting.
func (l *Log) put(x *line) {
	select {
	case l.lines <- x.encode():
	default:
		l.lost.Add(1)
	}
}

// Run writes until ctx ends, and then what waits. Nothing may be recorded any more when it returns.
func (l *Log) Run(ctx context.Context) error {
	if l == nil {
		return nil
	}
	for {
		select {
		case text := <-l.lines:
			l.write(text)
		case <-ctx.Done():
			for len(l.lines) > 0 {
				l.write(<-l.lines)
			}
			return l.Close()
		}
	}
}

// Close closes the file of a record that does not Run.
func (l *Log) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// write appends a line, or counts it as lost.
func (l *Log) write(text []byte) {
	if !l.failed.IsZero() && time.Since(l.failed) < again {
		l.lost.Add(1)
		return
	}
	if err := l.append(text); err != nil {
		l.lost.Add(1)
		if l.failed.IsZero() {
			l.cfg.Log.Error("requests cannot be recorded; they are served, and counted as lost", "file", l.cfg.Path,
				"error", err)
		}
		l.failed = time.Now()
		return
	}
	l.written.Add(1)
	if !l.failed.IsZero() {
		l.failed = time.Time{}
		l.cfg.Log.Info("requests are recorded again", "file", l.cfg.Path, "lost", l.lost.Load())
	}
}

func (l *Log) append(text []byte) error {
	if l.file == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	if l.size > 0 && l.size+int64(len(text)) > l.cfg.Size {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(text)
	if err == nil {
		l.size += int64(n)
		return nil
	}
	if n > 0 { // a full disk took a part of the line
		err = errors.Join(err, l.file.Truncate(l.size))
	}
	_ = l.Close() // the next line opens it again
	return err
}

// tighten makes files that are there accessible to the node's user alone.
func (l *Log) tighten() error {
	for i := range l.cfg.Files {
		name := l.name(i)
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0) {
			continue
		}
		if err == nil {
			l.cfg.Log.Warn("other users could read the record of requests; now they cannot", "file", name, "mode", info.Mode())
			err = os.Chmod(name, 0o600)
		}
		if err != nil {
			return fmt.Errorf("requestlog: %w", err)
		}
	}
	return nil
}

// name is that of a file, of which 0 is the newest.
func (l *Log) name(i int) string {
	if i == 0 {
		return l.cfg.Path
	}
	return fmt.Sprintf("%s.%d", l.cfg.Path, i)
}

// open opens the newest file to append to it.
func (l *Log) open() error {
	f, err := os.OpenFile(l.cfg.Path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("requestlog: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("requestlog: %s is not a regular file", l.cfg.Path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	if err := l.endLine(); err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

// endLine ends a line of which a crash left the first part, so that the next line is one of its own.
func (l *Log) endLine() error {
	if l.size == 0 {
		return nil
	}
	last := make([]byte, 1)
	if _, err := l.file.ReadAt(last, l.size-1); err != nil {
		return fmt.Errorf("requestlog: %w", err)
	}
	if last[0] == '\n' {
		return nil
	}
	n, err := l.file.Write([]byte{'\n'})
	l.size += int64(n)
	if err != nil {
		return fmt.Errorf("requestlog: %w", err)
	}
	return nil
}

// rotate renames the files, the oldest of which goes, and opens a new one.
func (l *Log) rotate() error {
	if err := l.Close(); err != nil {
		return err
	}
	if l.cfg.Files == 1 {
		if err := os.Remove(l.cfg.Path); err != nil {
			return fmt.Errorf("requestlog: %w", err)
		}
	}
	for i := l.cfg.Files - 2; i >= 0; i-- {
		if err := os.Rename(l.name(i), l.name(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("requestlog: %w", err)
		}
	}
	return l.open()
}
