package tiles

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/mod/sumdb/tlog"
)

// Prove returns the proof that the first old entries, at least one, are the beginning of all entries, added ones too
// (RFC 6962, section 2.1.2). Calls may run at once, without calls of other methods. The error wraps ErrDamaged if a
// tile has other hashes.
func (d *Dir) Prove(old int64) (tlog.TreeProof, error) {
	tree := tlog.Tree{N: d.size, Hash: tlog.Hash(d.Root())}
	p, err := tlog.ProveTree(tree.N, old, tlog.TileHashReader(tree, reader{d})) // which checks the tiles by the root
	if err != nil && !errors.As(err, new(*fs.PathError)) || errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return p, err
}

// reader reads tiles for package tlog: full ones of the directory or staged, and the last ones of each level.
type reader struct{ d *Dir }

// Height returns the height of a tile, in levels of the tree.
func (r reader) Height() int { return 8 }

// SaveTiles does nothing: the directory keeps the tiles.
func (r reader) SaveTiles([]tlog.Tile, [][]byte) {}

// ReadTiles returns the hashes of each tile.
func (r reader) ReadTiles(tiles []tlog.Tile) (all [][]byte, err error) {
	for _, t := range tiles {
		raw, err := r.tile(t)
		if err != nil {
			return nil, err
		}
		if len(raw) < t.W*tlog.HashSize {
			return nil, fmt.Errorf("tile %d of level %d has %d bytes", t.N, t.L, len(raw))
		}
		all = append(all, raw[:t.W*tlog.HashSize])
	}
	return all, nil
}

func (r reader) tile(t tlog.Tile) ([]byte, error) {
	if t.L < len(r.d.levels) && t.N == r.d.levels[t.L].full {
		return joined(r.d.levels[t.L].hashes), nil
	}
	name := tilePath(t.L, t.N, width)
	raw, err := r.d.at.ReadFile(path.Join(staged, name))
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = r.d.at.ReadFile(name)
	}
	return raw, err
}
