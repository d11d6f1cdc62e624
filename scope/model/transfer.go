package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// sent is a name that is on its way to another scope.
type sent struct {
	to     string
	id     aweigh.Hash
	number int64 // of the version of the object
	until  aweigh.Instant
}

// decisionAbout names what was decided about a name that another scope sent.
func decisionAbout(to []byte, id aweigh.Hash) string { return string(to) + "\x00" + string(id[:]) }

// departs reports whether a name of [key, end) is on its way to another scope, and is not given up by a change that
// ends it.
func (m *Model) departs(key, end []byte, ends bool) bool {
	for on, is := range m.view.sent { // order-free: whether there is one
		if scope.Within([]byte(on), key, end) && !(ends && len(end) == 0 && m.block.Header.Time > is.until) {
			return true
		}
	}
	return false
}

// givesUp ends that a name is on its way, if it is.
func (m *Model) givesUp(key string) bool {
	is, on := m.view.sent[key]
	if on {
		delete(m.view.sent, key)
		m.leaves(key, is, ", given up")
	}
	return on
}

// send reports why a name cannot be sent to another scope, and how it is.
func (m *Model) send(n *scope.Naming, v scope.KeyValue) (apply func(), failure error) {
	now := m.block.Header.Time
	switch {
	case !m.block.policy.Transfers:
		return nil, scope.ErrNoTransfers
	case n.Until <= now || n.Until.Sub(now) > scope.MaxTransfer:
		return nil, scope.ErrTransferUntil
	case v.Lease != 0:
		return nil, scope.ErrSendLeased
	case len(m.view.objects[v.UID].held) > 1:
		return nil, scope.ErrSendAliases
	case len(m.block.mutation.Grants) > 0:
		return nil, scope.ErrSendGrant
	case int64(len(m.view.sent)) >= m.bounds.Transfers:
		return nil, scope.ErrTransfers
	case m.owns(n.To, nil):
		return nil, scope.ErrSendHere
	}
	return func() {
		is := sent{to: string(n.To), number: m.view.number(v), until: n.Until}
		about := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(n.Until)), uint64(is.number))
		at := m.entry(lineage.Entry{
			Class: lineage.Sent, Key: n.Key, Prior: v.Digest(), Posterior: aweigh.Sum([]byte("aweigh/sent/1"), about, n.To),
			Reason: "to " + quoted(n.To),
		}, nil)
		if i := at - m.block.told.First; i < int64(len(m.block.told.Log)) {
			is.id = m.block.told.Log[i].Hash()
		}
		m.view.sent[string(n.Key)] = is
	}, nil
}

// quoted is a key in a reason.
func quoted(key []byte) string {
	if len(key) <= 64 {
		return fmt.Sprintf("%+q", key)
	}
	return fmt.Sprintf("%+q…", key[:64])
}

// carryCost is what it costs to take a proof.
func carryCost(mut *scope.CheckedMutation) int64 { return 1500 + int64(len(mut.Content))/1024 }

// transfer takes what another scope decided about a name.
func (m *Model) transfer(mut *scope.CheckedMutation) error {
	if _, seated := m.seat(mut.Author); !seated {
		return fmt.Errorf("%w: only the node of an anchor can bring in what another scope decided", scope.ErrDenied)
	}
	if failure := m.spend(carryCost(mut)); failure != nil {
		return failure
	}
	none := errors.New("scope: nothing was sent that this decides about")
	c := mut.Carries
	if c.Network() != m.genesis.Network() {
		return fmt.Errorf("%w: of another network", none)
	}
	e := &c.Proof.Entry.Entry
	if e.Class == lineage.Sent {
		return m.receive(mut)
	}
	is, ok := m.view.sent[string(c.Key)]
	if !ok || is.id != e.Prior || is.to != string(e.Key) {
		return none
	}
	delete(m.view.sent, string(c.Key))
	if e.Class == lineage.Declined {
		m.entry(lineage.Entry{Class: lineage.Kept, Key: c.Key, Prior: is.id, Reason: e.Reason}, nil)
		return nil
	}
	m.leaves(string(c.Key), is, "")
	return nil
}

// leaves lets a name go that another scope received, or may have.
func (m *Model) leaves(key string, is sent, why string) {
	v := m.block.keys[key]
	m.unlist(v.UID, key)
	m.deleteKey(v, lineage.Entry{Class: lineage.Left, Reason: fmt.Sprintf("as version %d to %s", is.number, quoted([]byte(is.to))) + why}, false)
	m.handed[v.UID] = handed{entry: m.chains[v.UID] - 1, left: true}
	m.went[m.chains[v.UID]-1] = is.number
}

// settles does with what was sent to a scope that comes home what the decisions of that ask for.
func (m *Model) settles(decided map[string]bool) {
	for _, key := range slices.Sorted(maps.Keys(m.view.sent)) {
		is := m.view.sent[key]
		taken, ok := decided[decisionAbout([]byte(is.to), is.id)]
		if !ok {
			continue
		}
		if delete(m.view.sent, key); taken {
			m.leaves(key, is, "")
			continue
		}
		m.entry(lineage.Entry{Class: lineage.Kept, Key: []byte(key), Prior: is.id, Reason: "the scope that declined it came home"}, nil)
	}
}

// receive decides about what another scope sent.
func (m *Model) receive(mut *scope.CheckedMutation) error {
	p := &mut.Carries.Proof
	e := &p.Entry.Entry
	if !m.owns(p.To, nil) {
		return scope.ErrElsewhere
	}
	about := decisionAbout(p.To, e.Hash())
	if _, known := m.view.received[about]; known {
		return errors.New("scope: this was decided before")
	}
	if int64(len(m.view.received)) >= m.bounds.Transfers {
		return errors.New("scope: 10000 decisions about names that were sent are on record, as many as can be")
	}
	as := &scope.CheckedMutation{Mutation: scope.Mutation{Class: scope.Name, Author: e.Author}, Naming: &scope.Naming{Kind: scope.Bind, Key: p.To}}
	if failure := m.paced(as); failure != nil {
		return failure
	}
	why := m.declines(mut, as)
	if m.block.purse.empty {
		return why
	}
	m.view.received[about] = why == nil
	if why != nil {
		m.entry(lineage.Entry{Class: lineage.Declined, Key: p.To, Prior: e.Hash(), Reason: reason(why)}, nil)
		return nil
	}
	delete(m.view.redirects, string(p.To))
	if m.block.arrived == nil {
		m.block.arrived = make(map[aweigh.UID]bool)
	}
	m.block.arrived[p.Kv.UID] = true
	rev, _ := m.at()
	m.write(
		scope.KeyValue{Key: p.To, Value: p.Kv.Value, CreateRevision: rev, Version: p.Number + 1, UID: p.Kv.UID},
		lineage.Entry{Class: lineage.Received, Prior: e.Hash(), Reason: "from scope " + e.Scope.String() + " as " + quoted(p.Kv.Key)},
	)
	return nil
}

// declines is why what another scope sent is not taken.
func (m *Model) declines(mut, as *scope.CheckedMutation) error {
	p, policy := &mut.Carries.Proof, m.block.policy
	_, ruled := policy.Actions.Find("write")
	switch {
	case !policy.Transfers:
		return scope.ErrNoTransfers
	case p.Number >= m.next():
		return errors.New("no object has so many versions")
	case p.Until < m.block.Header.Time:
		return errors.New("it came too late")
	case len(p.Kv.Value) > policy.Limits.ValueBytes:
		return fmt.Errorf("a value of %d bytes, at most %d are taken", len(p.Kv.Value), policy.Limits.ValueBytes)
	case !m.mayDo(as, "alias", p.To, nil):
		return m.denied(as, ask{"alias", p.To, nil})
	case slices.ContainsFunc(policy.Approvals, func(a scope.Approval) bool {
		return a.Matter == scope.Changes && len(a.Verbs) == 0 && strings.HasPrefix(string(p.To), string(a.Prefix))
	}):
		return errors.New("a put of this key takes approval, which nothing that is sent can have")
	case ruled:
		return errors.New("rules decide here what may be written, and judge nothing that is sent")
	case slices.ContainsFunc(policy.Partitions, func(q scope.Partition) bool { return strings.HasPrefix(string(p.To), string(q.Prefix)) }):
		return errors.New("the key is of a partition, which takes nothing that is sent")
	case m.full():
		return scope.ErrNoSpace
	case len(p.To) > policy.Limits.KeyBytes:
		return fmt.Errorf("a key of %d bytes, at most %d are taken", len(p.To), policy.Limits.KeyBytes)
	}
	m.block.mutation = as
	failure := m.free(string(p.To), p.Kv.Value)
	m.block.mutation = mut
	if failure != nil {
		return failure
	}
	u := p.Kv.UID
	last, left := m.handed[u]
	if m.block.arrived[u] || m.chains[u] != 0 && (!left || m.chains[u] != last.entry+1 || last.entry >= m.block.told.First) {
		return errors.New("an object of this scope has the identity")
	}
	return nil
}

// compareTransfers compares what is on its way to other scopes, and what was decided about what came from there.
func (v *View) compareTransfers(d *Differences, s *scope.State) {
	all, err := s.Sent(len(v.sent) + 1)
	if d.fail(err, "what was sent"); err != nil {
		return
	}
	d.look(len(all) == len(v.sent), "%d names are on their way, want %d", len(all), len(v.sent))
	for _, is := range all {
		want, ok := v.sent[string(is.Key)]
		d.look(ok && string(is.To) == want.to && is.ID == want.id && is.Number == want.number, "%+v is on its way, want %+v", is, want)
	}
	for _, about := range slices.Sorted(maps.Keys(v.received)) {
		n := len(about) - len(aweigh.Hash{})
		is, ok, err := s.Received([]byte(about[:n-1]), aweigh.Hash([]byte(about[n:])))
		if !d.fail(err, "what was received") {
			d.look(ok && is.Taken == v.received[about], "about %q it was decided: %v, %+v; want %v", about[:n-1], ok, is, v.received[about])
		}
	}
}
