package machine

// Resume returns the events for a machine that replaces this one after a snapshot has replaced the state: which peers
// are within reach, and the requests of clients and peers that wait here. The blocks that the snapshot covers may have
// answered them already.
func (m *Machine) Resume() []Event {
	var all []Event
	for _, p := range m.peers {
		if m.away[p] {
			all = append(all, Parted{Peer: p})
		} else {
			all = append(all, Met{Peer: p})
		}
	}
	for _, e := range m.pool.order {
		if !e.gone && (e.local || m.pool.awaitsAny(e.bundle)) {
			all = append(all, Submit{Bundle: e.bundle, From: e.from, Again: true})
		}
	}
	for _, ids := range m.reads.all() {
		for _, id := range ids {
			all = append(all, Read{ID: id})
		}
	}
	return all
}
