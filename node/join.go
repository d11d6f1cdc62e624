package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// askGenesis is the request that is answered with the genesis.
const askGenesis = "genesis"

// maxGenesis bounds the encoding of a genesis.
const maxGenesis = 4 << 20

// ask asks a peer for something of this scope.
func (n *Replica) ask(ctx context.Context, p peer.ID, what string, content any, most int) ([]byte, error) {
	req := slices.Concat(n.address, []byte(what), canon.Encode(content))
	return n.host.Request(ctx, p, req, most)
}

// request answers the requests of peers.
func (n *Replica) request(ctx context.Context, from peer.ID, req []byte) ([]byte, error) {
	if n.vacant.Load() {
		return nil, errVacant
	}
	if body, ok := bytes.CutPrefix(req, []byte(askForeign)); ok {
		var ask referral.Question
		if err := canon.Decode(body, &ask); err != nil {
			return nil, err
		}
		return n.serveForeign(ctx, n.called.of(from), ask)
	}
	if body, ok := bytes.CutPrefix(req, []byte(askKnock)); ok {
		return n.serveKnock(ctx, n.called.of(from), body)
	}
	p := n.called.of(from)
	var err error
	if bytes.HasPrefix(req, []byte(askHands)) { // authors, and readers of some keys, have to know the scope's anchors
		err = n.excludes(p, true)
	} else {
		err = n.refuses(p, nil)
	}
	if err != nil {
		n.measured.unread.Add(1)
		return nil, err
	}
	if body, ok := bytes.CutPrefix(req, []byte(askHeights)); ok {
		var ask heightsAsk
		if err := canon.Decode(body, &ask); err != nil {
			return nil, err
		}
		return n.serveHeights(ask)
	}
	if body, ok := bytes.CutPrefix(req, []byte(askSnapshot)); ok {
		var ask snapshotAsk
		if err := canon.Decode(body, &ask); err != nil {
			return nil, err
		}
		return n.serveOffer(ctx, ask)
	}
	if body, ok := bytes.CutPrefix(req, []byte(askPart)); ok {
		var ask partAsk
		if err := canon.Decode(body, &ask); err != nil {
			return nil, err
		}
		return n.servePart(machine.Peer(from.String()), ask)
	}
	if body, ok := bytes.CutPrefix(req, []byte(askHands)); ok {
		var ask handoversAsk
		if err := canon.Decode(body, &ask); err != nil {
			return nil, err
		}
		return n.serveHandovers(machine.Peer(from.String()), ask)
	}
	if body, ok := bytes.CutPrefix(req, []byte(askCosign)); ok {
		var ask cosignAsk
		if err := canon.Decode(body, &ask); err != nil {
			return nil, err
		}
		return n.serveCosign(ctx, machine.Peer(from.String()), ask)
	}
	if body, ok := bytes.CutPrefix(req, []byte(askCover)); ok {
		var ask coverAsk
		if err := canon.Decode(body, &ask); err != nil {
			return nil, err
		}
		return n.serveCover(ctx, machine.Peer(from.String()), ask)
	}
	if body, ok := bytes.CutPrefix(req, []byte(askIsland)); ok {
		var ask islandAsk
		if err := canon.Decode(body, &ask); err != nil {
			return nil, err
		}
		return n.serveIsland(ctx, p, ask)
	}
	if string(req) == askWhere {
		return canon.Encode(n.of.endpoint()), nil
	}
	if string(req) != askGenesis {
		return nil, fmt.Errorf("node: unknown request")
	}
	return n.genesis.Encode(), nil
}

// FetchGenesis asks the peers that an invite names for the network's genesis, and checks it against the network's
// identity: the peers are not trusted. If the invite has a secret, the peers first admit the node as an observer, under
// the name. It tries until a peer answers, all of them refuse, or ctx ends.
func FetchGenesis(ctx context.Context, identity votes.PrivateKey, invite Invite, name string) (g scope.Genesis, err error) {
	key, err := machine.HostKey(identity)
	if err != nil {
		return g, err
	}
	bootstrap, err := p2p.ParsePeers(invite.Peers)
	if err != nil {
		return g, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	met := make(chan peer.ID, 64)
	host, err := p2p.New(p2p.Config{
		Key: key, Network: invite.Network, Bootstrap: bootstrap, Listen: []string{},
		Handler: p2p.Handler{Peer: func(id peer.ID, up bool) {
			if up {
				select {
				case met <- id:
				case <-ctx.Done():
				}
			}
		}},
	})
	if err != nil {
		return g, err
	}
	defer func() {
		cancel() // the host waits for its handler
		err = errors.Join(err, host.Close())
	}()
	if err := host.Start(); err != nil {
		return g, err
	}
	last := errors.New("no peer could be reached")
	refused := make(map[peer.ID]bool)
	for {
		select {
		case <-ctx.Done():
			return g, fmt.Errorf("node: fetching the genesis: %w: %w", ctx.Err(), last)
		case id := <-met:
			if last = invite.knock(ctx, host, id, name); last == nil {
				g, last = fetchGenesis(ctx, host, id, invite.Network)
			}
			if last == nil {
				return g, nil
			}
			if !errors.Is(last, ErrNotAdmitted) {
				delete(refused, id)
				time.AfterFunc(askAgain, func() { // it may be busy, or wait for others
					select {
					case met <- id:
					case <-ctx.Done():
					}
				})
				continue
			}
			if refused[id] = true; len(refused) >= len(bootstrap) {
				return g, last
			}
		}
	}
}

// askAgain is after how long FetchGenesis asks a peer again.
const askAgain = 500 * time.Millisecond

// fetchGenesis asks one peer.
func fetchGenesis(ctx context.Context, host *p2p.Host, id peer.ID, network aweigh.NetworkID) (g scope.Genesis, err error) {
	raw, err := host.Request(ctx, id, []byte(askGenesis), maxGenesis)
	switch {
	case refusedReading(err):
		return g, fmt.Errorf("%w: this network admits observers by an invite with a secret: ask for one (aweigh invite)", ErrNotAdmitted)
	case err != nil:
		return g, err
	}
	if g, err = scope.DecodeGenesis(raw); err == nil && g.Hash() != network {
		err = fmt.Errorf("%w: peer %s sent another genesis than the invite names", machine.ErrOtherNetwork, id)
	}
	return g, err
}

// refusedReading reports whether a peer answered that this node may not read.
func refusedReading(err error) bool {
	return errors.Is(err, p2p.ErrRefused) && strings.Contains(err.Error(), scope.ErrNoReader.Error())
}
