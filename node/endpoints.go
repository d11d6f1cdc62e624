package node

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
)

// Endpoint holds the addresses of a node, as it reports them. They are not verified: clients find out.
type Endpoint struct {
	_       struct{} `cbor:",toarray"`
	Peers   []string // multiaddrs, for other nodes
	Clients []string // URLs of etcd's API; none if it serves none, or does not know which of its addresses clients use
}

// askEndpoint asks a node for its Endpoint.
const askWhere = "where/1"

const (
	whereFresh   = 30 * time.Second       // for how long an answer is good
	whereWithin  = 500 * time.Millisecond // in which one is to come
	maxWhere     = 16 << 10               // bytes of it
	maxAddresses = 16                     // of each kind
)

// endpointCache are what other nodes said lately.
type endpointCache struct {
	mu  sync.Mutex
	own []string // Clients of this node
	all map[machine.Peer]Endpoint
	at  map[machine.Peer]time.Time
}

// ServeClients notes where this node serves etcd's API, for clients that ask other nodes.
func (n *Node) ServeClients(urls []string) {
	n.endpoints.mu.Lock()
	defer n.endpoints.mu.Unlock()
	n.endpoints.own = urls
}

// endpoint returns the addresses of this node.
func (n *Node) endpoint() Endpoint {
	n.endpoints.mu.Lock()
	defer n.endpoints.mu.Unlock()
	addrs := n.Addrs()
	return Endpoint{Peers: addrs[:min(len(addrs), maxAddresses)], Clients: n.endpoints.own}
}

// Endpoints returns the addresses of some nodes, possibly including this one. For nodes that are not connected, or do
// not answer in time, it returns their last answer, if there was one.
func (n *Node) Endpoints(ctx context.Context, peers []machine.Peer) map[machine.Peer]Endpoint {
	ctx, cancel := context.WithTimeout(ctx, whereWithin)
	defer cancel()
	var asking sync.WaitGroup
	w := &n.endpoints
	for _, p := range peers {
		w.mu.Lock()
		fresh := time.Since(w.at[p]) < whereFresh
		w.mu.Unlock()
		if fresh || string(p) == n.peerID {
			continue
		}
		asking.Go(func() {
			got, err := n.askEndpoint(ctx, p)
			if err != nil {
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.all == nil || len(w.all) >= maxNamed {
				w.all, w.at = make(map[machine.Peer]Endpoint), make(map[machine.Peer]time.Time)
			}
			w.all[p], w.at[p] = got, time.Now()
		})
	}
	asking.Wait()
	own := n.endpoint()
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[machine.Peer]Endpoint, len(peers))
	for _, p := range peers {
		if string(p) == n.peerID {
			out[p] = own
		} else {
			out[p] = w.all[p]
		}
	}
	return out
}

func (n *Node) askEndpoint(ctx context.Context, p machine.Peer) (got Endpoint, err error) {
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
