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
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Invite is what a new node needs to join a network: the network's identity, which is the hash of its genesis, and
// nodes to ask. It does not make the new node an anchor, but a node that reaches those nodes can read everything and
// propose writes.
type Invite struct {
	_       struct{} `cbor:",toarray"`
	Network aweigh.NetworkID
	Name    string   // of the network, for people
	Peers   []string // multiaddrs ending in /p2p/ and a peer ID
	Recent  string   // the roster in force when it was made, a scope.Trusted; empty: only the genesis is known
}

// oldInvite is an Invite without a roster, as earlier versions made it.
type oldInvite struct {
	_       struct{} `cbor:",toarray"`
	Network aweigh.NetworkID
	Name    string
	Peers   []string
}

// Trusted returns the roster that the invite carries, zero if it carries none.
func (i Invite) Trusted() (t scope.Trusted) {
	t, _ = scope.ParseTrusted(i.Recent) // ParseInvite has checked it
	return t
}

// invitePrefix begins the text of an invite; its digit is the format.
const invitePrefix = "aweigh1"

// MaxInvite bounds the text of an invite, in bytes.
const MaxInvite = 8 << 10

var inviteText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// String returns "aweigh1" and the canonical encoding with a checksum of 4 bytes, in lower-case base32 (RFC 4648,
// section 6, without padding).
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

// ParseInvite reads the form of Invite.String, in upper or lower case. Errors wrap ErrInvite.
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

// Invite returns an invite to this node's network that names this node and the roster in force.
func (n *Replica) Invite() Invite {
	return Invite{Network: n.network(), Name: n.genesis.Name, Peers: n.host.Addrs(), Recent: n.of.recent()}
}

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
	if body, ok := bytes.CutPrefix(req, []byte(askForeign)); ok {
		var ask referral.Question
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

// FetchGenesis asks the peers that an invite names for the network's genesis, and checks it against the network's
// identity: the peers are not trusted. It tries until one answers or ctx ends.
func FetchGenesis(ctx context.Context, identity votes.PrivateKey, invite Invite) (g scope.Genesis, err error) {
	key, err := machine.HostKey(identity)
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
				err = fmt.Errorf("%w: peer %s sent another genesis than the invite names", machine.ErrOtherNetwork, id)
			}
			if err != nil {
				last = err
				continue
			}
			return g, nil
		}
	}
}
