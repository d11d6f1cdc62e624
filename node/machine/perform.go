package machine

import "github.com/aweigh/aweigh/kv"

// Host carries out Effects: package node's runner, or a simulated world.
type Host interface {
	// Commit applies ops as one atomic batch. If sync is set it returns only
	// when they, and all commits before them, are durable.
	Commit(ops []kv.Op, sync bool) error
	Send(Packet)
	Gossip(frame []byte)
	Reply(Reply)
	Note(Note)
}

// Perform carries out the effects of one step in the only safe order (P8): write, durably if something was signed,
// then send, then reply. If the commit fails, nothing is sent and the node must stop, because what it signed may or
// may not be on record.
func Perform(h Host, fx Effects) error {
	if len(fx.Write) > 0 {
		if err := h.Commit(fx.Write, fx.Sync); err != nil {
			return err
		}
	}
	for _, p := range fx.Send {
		h.Send(p)
	}
	for _, f := range fx.Gossip {
		h.Gossip(f)
	}
	for _, r := range fx.Reply {
		h.Reply(r)
	}
	for _, n := range fx.Notes {
		h.Note(n)
	}
	return nil
}
