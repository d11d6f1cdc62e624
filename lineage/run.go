package lineage

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh/kv"
)

const (
	// entriesInRun bounds the entries stored as one pair, all of which are read
	// to read one.
	entriesInRun = 64
	// hashesInRun bounds the hashes likewise.
	hashesInRun = 128
)

// entryRuns appends the ops that store encoded entries, the last of which is the
// log's last. A run is the number of its entries, then the length and bytes of
// each, numbers as unsigned LEB128.
func (l *Log) entryRuns(ops []kv.Op, raw [][]byte) []kv.Op {
	for at := l.size - int64(len(raw)); len(raw) > 0; {
		n := min(len(raw), l.bounds.Entries)
		size := binary.MaxVarintLen64
		for _, e := range raw[:n] {
			size += binary.MaxVarintLen32 + len(e)
		}
		run := binary.AppendUvarint(make([]byte, 0, size), uint64(n))
		for _, e := range raw[:n] {
			run = append(binary.AppendUvarint(run, uint64(len(e))), e...)
		}
		at, raw = at+int64(n), raw[n:]
		ops = append(ops, kv.Set(l.key('e', at-1), run))
	}
	return ops
}

// hashRuns appends the ops that store hashes, the last of which is the log's last.
func (l *Log) hashRuns(ops []kv.Op, hashes []byte) []kv.Op {
	for at := tlog.StoredHashCount(l.size) - int64(len(hashes)/tlog.HashSize); len(hashes) > 0; {
		n := min(len(hashes)/tlog.HashSize, l.bounds.Hashes)
		run := hashes[: n*tlog.HashSize : n*tlog.HashSize]
		at, hashes = at+int64(n), hashes[len(run):]
		ops = append(ops, kv.Set(l.key('h', at-1), run))
	}
	return ops
}

// run reads the run of a kind that holds an index, and where the run ends.
func (l *Log) run(kind byte, index int64) (last int64, run []byte, err error) {
	last = -1
	err = l.r.Scan(l.key(kind, index), kv.PrefixEnd(append(l.prefix[:len(l.prefix):len(l.prefix)], kind)), false, func(k, v []byte) bool {
		last, run = int64(binary.BigEndian.Uint64(k[len(k)-8:])), bytes.Clone(v)
		return false
	})
	if err == nil && last < 0 {
		err = fmt.Errorf("%w: nothing from %d on", ErrCorrupt, index)
	}
	return last, run, err
}

// entry reads the encoding of an entry.
func (l *Log) entry(index int64) ([]byte, error) {
	last, run, err := l.run('e', index)
	if err != nil {
		return nil, err
	}
	count, n := binary.Uvarint(run)
	skip := int64(count) - 1 - (last - index)
	for run = run[max(n, 0):]; n > 0 && skip >= 0; skip-- {
		size, n := binary.Uvarint(run)
		if n <= 0 || size > uint64(len(run)-n) {
			break
		}
		if run = run[n:]; skip == 0 {
			return run[:size:size], nil
		}
		run = run[size:]
	}
	return nil, fmt.Errorf("%w: entry %d", ErrCorrupt, index)
}

// hashes implements tlog.HashReaderFunc.
func (l *Log) hashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		last, run, err := l.run('h', index)
		if err != nil {
			return nil, fmt.Errorf("lineage: reading hash %d: %w", index, err)
		}
		n, back := int64(len(run)/tlog.HashSize), last-index
		if back < 0 || back >= n || len(run)%tlog.HashSize != 0 {
			return nil, fmt.Errorf("%w: hash %d", ErrCorrupt, index)
		}
		out[i] = tlog.Hash(run[(n-1-back)*tlog.HashSize:])
	}
	return out, nil
}

func (l *Log) key(kind byte, index int64) []byte {
	k := make([]byte, 0, len(l.prefix)+9)
	return binary.BigEndian.AppendUint64(append(append(k, l.prefix...), kind), uint64(index))
}

// DecodeRun is the entries of a run, as Append stores them. Errors wrap ErrEntry.
func DecodeRun(run []byte) ([]Entry, error) {
	count, n := binary.Uvarint(run)
	if n <= 0 || count == 0 || count > entriesInRun {
		return nil, fmt.Errorf("%w: a run of %d entries", ErrEntry, count)
	}
	entries := make([]Entry, 0, count)
	for run = run[n:]; len(run) > 0; {
		size, n := binary.Uvarint(run)
		if n <= 0 || size > uint64(len(run)-n) {
			return nil, fmt.Errorf("%w: a run that ends early", ErrEntry)
		}
		e, err := DecodeEntry(run[n:][:size])
		if err != nil {
			return nil, err
		}
		entries, run = append(entries, e), run[n+int(size):]
	}
	if uint64(len(entries)) != count {
		return nil, fmt.Errorf("%w: a run of %d entries that says %d", ErrEntry, len(entries), count)
	}
	return entries, nil
}
