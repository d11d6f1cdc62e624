package node

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
)

// Where is where a node is reached. What it says of itself nobody checks: clients find out.
type Where struct {
	_       struct{} `cbor:",toarray"`
	Peers   []string // multiaddrs, for other nodes
	Clients []string // URLs of etcd's API; none if it serves none, or does not know which of its addresses they use
}

// askWhere asks a node for its Where.
const askWhere = "where/1"

const (
	whereFresh   = 30 * time.Second       // for how long an answer is good
	whereWithin  = 500 * time.Millisecond // in which one is to come
	maxWhere     = 16 << 10               // bytes of it
	maxAddresses = 16                     // of each kind
)

// wheres are what other nodes said lately.
type wheres struct {
	mu  sync.Mutex
	own []string // Clients of this node
	all map[Peer]Where
	at  map[Peer]time.Time
}

// ServeClients notes where this node serves etcd's API, for those who ask other nodes.
func (n *Node) ServeClients(urls []string) {
	n.wheres.mu.Lock()
	defer n.wheres.mu.Unlock()
	n.wheres.own = urls
}

// where is this node's.
func (n *Node) where() Where {
	n.wheres.mu.Lock()
	defer n.wheres.mu.Unlock()
	addrs := n.Addrs()
	return Where{Peers: addrs[:min(len(addrs), maxAddresses)], Clients: n.wheres.own}
}

// Wheres are where some nodes are reached, this one among them. Of those that are not
// connected, or say nothing in time, it is what they said last, if they did.
func (n *Node) Wheres(ctx context.Context, peers []Peer) map[Peer]Where {
	ctx, cancel := context.WithTimeout(ctx, whereWithin)
	defer cancel()
	var asking sync.WaitGroup
	w := &n.wheres
	for _, p := range peers {
		w.mu.Lock()
		fresh := time.Since(w.at[p]) < whereFresh
		w.mu.Unlock()
		if fresh || string(p) == n.peerID {
			continue
		}
		asking.Go(func() {
			got, err := n.askWhere(ctx, p)
			if err != nil {
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.all == nil || len(w.all) >= maxNamed {
				w.all, w.at = make(map[Peer]Where), make(map[Peer]time.Time)
			}
			w.all[p], w.at[p] = got, time.Now()
		})
	}
	asking.Wait()
	own := n.where()
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[Peer]Where, len(peers))
	for _, p := range peers {
		if string(p) == n.peerID {
			out[p] = own
		} else {
			out[p] = w.all[p]
		}
	}
	return out
}

func (n *Node) askWhere(ctx context.Context, p Peer) (got Where, err error) {
	id, err := n.called.id(p)
	if err != nil {
		return got, err
	}
	raw, err := n.host.Request(ctx, id, []byte(askWhere), maxWhere)
	if err != nil {
		return got, err
	}
	if err := canon.Decode(raw, &got); err != nil {
		return got, err
	}
	got.Peers = got.Peers[:min(len(got.Peers), maxAddresses)]
	var urls []string
	for _, text := range got.Clients[:min(len(got.Clients), maxAddresses)] {
		if u, err := url.Parse(text); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
			urls = append(urls, u.Scheme+"://"+u.Host)
		}
	}
	got.Clients = urls
	return got, nil
}
