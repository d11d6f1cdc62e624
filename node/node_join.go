package node

import (
	"bytes"
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Invite is all that a stranger needs to join a network: its identity, which is
// the hash of its genesis, and nodes to ask. It makes nobody an anchor; but whoever
// reaches the nodes can read everything and propose writes.
type Invite struct {
	_       struct{} `cbor:",toarray"`
	Network aweigh.NetworkID
	Name    string   // of the network, for people
	Peers   []string // multiaddrs ending in /p2p/ and a peer ID
	Recent  string   // the roster that was in force, a scope.Trusted; empty: the genesis is all that is known
}

// oldInvite is an Invite without a roster, as it was made once.
type oldInvite struct {
	_       struct{} `cbor:",toarray"`
	Network aweigh.NetworkID
	Name    string
	Peers   []string
}

// Trusted is the roster that the invite carries, if it does.
func (i Invite) Trusted() (t scope.Trusted) {
	t, _ = scope.ParseTrusted(i.Recent) // ParseInvite has looked
	return t
}

// invitePrefix begins the text of an invite; its digit is the format.
const invitePrefix = "aweigh1"

// MaxInvite bounds the text of an invite, in bytes.
const MaxInvite = 8 << 10

var inviteText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// String is "aweigh1" and the canonical encoding with a checksum of 4 bytes, in
// lower-case base32 (RFC 4648, section 6, without padding).
func (i Invite) String() string {
	raw := canon.Encode(i)
	if len(i.Recent) == 0 {
		raw = canon.Encode(oldInvite{Network: i.Network, Name: i.Name, Peers: i.Peers})
	}
	sum := aweigh.Sum([]byte("aweigh/invite/1"), raw)
	return invitePrefix + inviteText.EncodeToString(append(raw, sum[:4]...))
}

// ErrInvite is wrapped by errors about text that is no invite.
var ErrInvite = errors.New("node: not an invite")

// ParseInvite reads the form of Invite.String, in either case. Errors wrap
// ErrInvite.
func ParseInvite(text string) (Invite, error) {
	var i Invite
	text = strings.ToLower(strings.TrimSpace(text))
	body, ok := strings.CutPrefix(text, invitePrefix)
	if !ok || len(text) > MaxInvite {
		return i, fmt.Errorf("%w: it starts with %s and has at most %d characters", ErrInvite, invitePrefix, MaxInvite)
	}
	raw, err := inviteText.DecodeString(body)
	if err != nil || len(raw) < 4 || inviteText.EncodeToString(raw) != body {
		return i, fmt.Errorf("%w: a character is wrong or missing", ErrInvite)
	}
	raw, check := raw[:len(raw)-4], raw[len(raw)-4:]
	if sum := aweigh.Sum([]byte("aweigh/invite/1"), raw); string(sum[:4]) != string(check) {
		return i, fmt.Errorf("%w: a character is wrong or missing", ErrInvite)
	}
	if err := canon.Decode(raw, &i); err != nil {
		var old oldInvite
		if again := canon.Decode(raw, &old); again != nil {
			return Invite{}, fmt.Errorf("%w: %w", ErrInvite, err)
		}
		i = Invite{Network: old.Network, Name: old.Name, Peers: old.Peers}
	} else if _, err := scope.ParseTrusted(i.Recent); err != nil {
		return Invite{}, fmt.Errorf("%w: its roster: %w", ErrInvite, err)
	}
	if _, err := p2p.ParsePeers(i.Peers); err != nil || len(i.Peers) == 0 {
		return Invite{}, fmt.Errorf("%w: it names no peer to ask: %w", ErrInvite, err)
	}
	return i, nil
}

// Invite is an invite to this node's network, naming this node and the roster in force.
func (n *Part) Invite() Invite {
	return Invite{Network: n.network(), Name: n.genesis.Name, Peers: n.Addrs(), Recent: n.of.recent()}
}

// askGenesis is the request that is answered with the genesis.
const askGenesis = "genesis"

// maxGenesis bounds the encoding of a genesis.
const maxGenesis = 4 << 20

// ask asks a peer for something of this scope.
func (n *Part) ask(ctx context.Context, p peer.ID, what string, content any, most int) ([]byte, error) {
	req := slices.Concat(n.address, []byte(what), canon.Encode(content))
	return n.host.Request(ctx, p, req, most)
}

// request answers what peers pull.
func (n *Part) request(ctx context.Context, from peer.ID, req []byte) ([]byte, error) {
	if n.vacant.Load() {
		return nil, errVacant
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
		return n.servePart(Peer(from.String()), ask)
	}
	if body, ok := bytes.CutPrefix(req, []byte(askHands)); ok {
		var ask handoversAsk
		if err := canon.Decode(body, &ask); err != nil {
			return nil, err
		}
		return n.serveHandovers(Peer(from.String()), ask)
	}
	if body, ok := bytes.CutPrefix(req, []byte(askCosign)); ok {
		var ask cosignAsk
		if err := canon.Decode(body, &ask); err != nil {
			return nil, err
		}
		return n.serveCosign(ctx, Peer(from.String()), ask)
	}
	if body, ok := bytes.CutPrefix(req, []byte(askForeign)); ok {
		var ask ForeignAsk
		if err := canon.Decode(body, &ask); err != nil {
			return nil, err
		}
		return n.serveForeign(ctx, n.called.of(from), ask)
	}
	if string(req) == askWhere {
		return canon.Encode(n.of.where()), nil
	}
	if string(req) != askGenesis {
		return nil, fmt.Errorf("node: unknown request")
	}
	return n.genesis.Encode(), nil
}

// FetchGenesis asks the peers that an invite names for the network's genesis,
// and checks it against the network's identity: the peers are not trusted. It
// tries until one answers or ctx ends.
func FetchGenesis(ctx context.Context, identity votes.PrivateKey, invite Invite) (g scope.Genesis, err error) {
	key, err := libp2pKey(identity)
	if err != nil {
		return g, err
	}
	bootstrap, err := p2p.ParsePeers(invite.Peers)
	if err != nil {
		return g, err
	}
	met := make(chan peer.ID, 64)
	host, err := p2p.New(p2p.Config{
		Key: key, Network: invite.Network, Bootstrap: bootstrap, Listen: []string{},
		Handler: p2p.Handler{Peer: func(id peer.ID, up bool) {
			select {
			case met <- id:
			default:
			}
		}},
	})
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	if err := host.Start(); err != nil {
		return g, err
	}
	last := errors.New("no peer could be reached")
	for {
		select {
		case <-ctx.Done():
			return g, fmt.Errorf("node: fetching the genesis: %w: %w", ctx.Err(), last)
		case id := <-met:
			raw, err := host.Request(ctx, id, []byte(askGenesis), maxGenesis)
			if err != nil {
				last = err
				continue
			}
			g, err := scope.DecodeGenesis(raw)
			if err == nil && g.Hash() != invite.Network {
				err = fmt.Errorf("%w: peer %s sent another genesis than the invite names", ErrOtherNetwork, id)
			}
			if err != nil {
				last = err
				continue
			}
			return g, nil
		}
	}
}
