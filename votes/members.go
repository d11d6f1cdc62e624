package votes

import (
	"github.com/cloudflare/circl/sign"

	"github.com/aweigh/aweigh"
)

// members holds keys by their IDs. There are thousands of small sets, one for each scope; for a small set, a list is
// as fast as a map and a third of its size.
type members struct {
	list []member
	byID map[aweigh.Hash]int // places in list; nil if they are few
}

type member struct {
	id     aweigh.Hash
	key    PublicKey
	parsed sign.PublicKey
}

// fewMembers is the number of members up to which they are found without a map.
const fewMembers = 8

func newMembers(room int) members {
	m := members{list: make([]member, 0, room)}
	if room > fewMembers {
		m.byID = make(map[aweigh.Hash]int, room)
	}
	return m
}

// get returns a member, nil if there is none. The caller must not modify it.
func (m *members) get(id aweigh.Hash) *member {
	if m.byID != nil {
		if at, ok := m.byID[id]; ok {
			return &m.list[at]
		}
		return nil
	}
	for i := range m.list {
		if m.list[i].id == id {
			return &m.list[i]
		}
	}
	return nil
}

// add parses a key and adds it. A key that is there already stays, and fresh is false.
func (m *members) add(key PublicKey) (fresh bool, err error) {
	parsed, err := key.parse()
	if err != nil {
		return false, err
	}
	id := key.ID()
	if m.get(id) != nil {
		return false, nil
	}
	m.put(member{id, key, parsed})
	return true, nil
}

func (m *members) put(x member) {
	if m.byID != nil {
		m.byID[x.id] = len(m.list)
	}
	m.list = append(m.list, x)
}

// with returns a copy with more keys. It leaves out keys that are not valid.
func (m *members) with(more []PublicKey) members {
	all := newMembers(len(m.list) + len(more))
	for _, x := range m.list {
		all.put(x)
	}
	for _, key := range more {
		_, _ = all.add(key) // it had a seat, so it is one
	}
	return all
}

// key returns the key of a member; ok is false if there is none.
func (m *members) key(id aweigh.Hash) (PublicKey, bool) {
	if x := m.get(id); x != nil {
		return x.key, true
	}
	return PublicKey{}, false
}

// parsed returns the parsed key of a member, nil if there is none.
func (m *members) parsed(id aweigh.Hash) sign.PublicKey {
	if x := m.get(id); x != nil {
		return x.parsed
	}
	return nil
}
