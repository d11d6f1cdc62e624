package scope

import (
	"bytes"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
)

// Cache is a Reader of the final state that answers from memory what every
// mutation asks of it: the newest version of a key, and whether the mutation is
// on record, which it nearly never is. It is exact as long as Applied is called
// with all ops that the store applies; it changes no answer, only its cost.
// Not safe for concurrent use.
type Cache struct {
	kv.Reader
	space  space
	bounds *Bounds

	young    map[string]newestVersion // by the prefix of a key's versions; nil while there are none
	old      map[string]newestVersion // those before; together they are an approximate LRU
	bytes    int                      // of young
	receipts map[aweigh.Hash]struct{} // on record; nil if there are too many
	unread   bool                     // the receipts are in the store alone
}

// newestVersion is the first pair under a prefix; there is none if record is nil.
type newestVersion struct{ key, record []byte }

const (
	cacheBytes    = 8 << 20 // of each generation
	cacheRecord   = 4 << 10 // the longest record that is kept
	cacheReceipts = 1 << 19 // beyond them the store is asked
	fewReceipts   = 64      // so many are soon read
)

// NewCache is a cache of a scope's state in r.
func NewCache(r kv.Reader, id aweigh.ScopeID) (*Cache, error) {
	c := &Cache{Reader: r, space: spaceOf(id), bounds: &defaults}
	return c, c.read()
}

// read reads which receipts are on record.
func (c *Cache) read() error {
	c.receipts = make(map[aweigh.Hash]struct{})
	prefix := c.space.at(atReceipt)
	err := c.Reader.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, _ []byte) bool {
		c.record(k)
		return c.receipts != nil
	})
	c.unread = err != nil
	return err
}

// Applied updates the cache with ops that the store has applied.
func (c *Cache) Applied(ops []kv.Op) {
	for i := range ops {
		op := &ops[i]
		if !bytes.HasPrefix(op.Key, c.space[:]) || len(op.Key) <= len(c.space) {
			continue
		}
		switch kind := op.Key[len(c.space)]; {
		case kind == atReceipt && c.unread:
		case kind == atReceipt && op.Delete:
			delete(c.receipts, receiptID(op.Key))
		case kind == atReceipt:
			c.record(op.Key)
		case kind == atVersion:
			prefix := string(op.Key[:len(op.Key)-revBytes])
			c.forget(prefix)
			if !op.Delete {
				c.keep(prefix, newestVersion{op.Key, op.Value})
			}
		}
	}
}

func (c *Cache) record(key []byte) {
	if c.receipts == nil {
		return
	}
	if len(c.receipts) >= c.bounds.Receipts {
		c.receipts = nil // until the node starts again
		return
	}
	c.receipts[receiptID(key)] = struct{}{}
}

func receiptID(key []byte) (id aweigh.Hash) {
	copy(id[:], key[len(space{})+1:])
	return id
}

func (c *Cache) keep(prefix string, v newestVersion) {
	if len(v.record) > c.bounds.CacheRecord {
		return
	}
	if c.bytes > c.bounds.CacheBytes {
		c.old, c.young, c.bytes = c.young, make(map[string]newestVersion), 0
	}
	if c.young == nil {
		c.young = make(map[string]newestVersion)
	}
	c.young[prefix] = v
	c.bytes += v.size(prefix)
}

func (c *Cache) forget(prefix string) {
	if v, ok := c.young[prefix]; ok {
		c.bytes -= v.size(prefix)
		delete(c.young, prefix)
	}
	delete(c.old, prefix)
}

// FreeMemory forgets what is in memory between blocks.
func (c *Cache) FreeMemory() {
	c.young, c.old, c.bytes = nil, nil, 0
	if c.receipts != nil && len(c.receipts) <= c.bounds.FewReceipts {
		c.receipts, c.unread = nil, true
	}
}

// size is about what an entry takes in memory.
func (v newestVersion) size(prefix string) int { return 2*len(prefix) + len(v.record) + 128 }

// Get implements kv.Reader.
func (c *Cache) Get(key []byte) ([]byte, bool, error) {
	if len(key) > len(c.space) && key[len(c.space)] == atReceipt && bytes.HasPrefix(key, c.space[:]) {
		if c.unread {
			if err := c.read(); err != nil {
				return nil, false, err
			}
		}
		if _, there := c.receipts[receiptID(key)]; c.receipts != nil && !there {
			return nil, false, nil
		}
	}
	return c.Reader.Get(key)
}

// newest is the first pair from prefix up to end, which bound the versions of a key.
func (c *Cache) newest(prefix, end []byte) (v newestVersion, err error) {
	v, ok := c.young[string(prefix)]
	if !ok {
		if v, ok = c.old[string(prefix)]; ok {
			c.keep(string(prefix), v)
		}
	}
	if ok {
		return v, nil
	}
	return c.load(prefix, end)
}

// load is newest from the store.
func (c *Cache) load(prefix, end []byte) (v newestVersion, err error) {
	err = c.Reader.Scan(prefix, end, false, func(k, record []byte) bool {
		v = newestVersion{bytes.Clone(k), bytes.Clone(record)}
		return false
	})
	if err == nil {
		c.keep(string(prefix), v)
	}
	return v, err
}
