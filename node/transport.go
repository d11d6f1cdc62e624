package node

import (
	"context"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/p2p"
)

// Transport is what a node needs of the network. A p2p.Host is the real one, and its methods define what each of these
// does; tests have others. Config.Transport makes it.
type Transport interface {
	Start() error
	Close() error

	ID() peer.ID
	Addrs() []string
	Peers() []p2p.PeerInfo
	Stats() p2p.Stats
	SetMembers(ids []peer.ID)
	Blame(id peer.ID)
	Disconnect(id peer.ID)

	Send(to peer.ID, frame []byte) bool
	Request(ctx context.Context, to peer.ID, req []byte, max int) ([]byte, error)
	Join(topics ...p2p.Topic) error
	Publish(t p2p.Topic, data []byte) error
	Hears(t p2p.Topic) []peer.ID
}

// libp2pHost makes the transport of a node that runs for people.
func libp2pHost(cfg p2p.Config) (Transport, error) {
	h, err := p2p.New(cfg)
	if err != nil {
		return nil, err
	}
	return h, nil
}
