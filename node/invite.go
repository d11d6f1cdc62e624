package node

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/plain"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Invite is what a new node needs to join a network: the network's identity, which is the hash of its genesis, and
// nodes to ask. It makes no node an anchor. Where the policy does not let every peer read, it has a secret, with
// which a node is admitted as an observer.
type Invite struct {
	_       struct{} `cbor:",toarray"`
	Network aweigh.NetworkID
	Name    string   // of the network, for people
	Peers   []string // multiaddrs ending in /p2p/ and a peer ID
	Recent  string   // the roster in force when it was made, a scope.Trusted; empty: only the genesis is known
	Ticket  string   // names what the network's state says about the secret; empty without one
	Secret  []byte   // the seed of an Ed25519 key; empty without a ticket
}

// trusted returns the roster that the invite carries, zero if it carries none.
func (i Invite) trusted() (t scope.Trusted) {
	t, _ = scope.ParseTrusted(i.Recent) // ParseInvite has checked it
	return t
}

// invitePrefix begins the text of an invite; its digit is the format.
const invitePrefix = "aweigh1"

// maxInvite bounds the text of an invite, in bytes.
const maxInvite = 8 << 10

var inviteText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// String returns "aweigh1" and the canonical encoding with a checksum of 4 bytes, in lower-case base32 (RFC 4648,
// section 6, without padding).
func (i Invite) String() string {
	raw := canon.Encode(i)
	sum := aweigh.Sum([]byte("aweigh/invite/1"), raw)
	return invitePrefix + inviteText.EncodeToString(append(raw, sum[:4]...))
}

// IsInvite reports whether a text looks like an invite.
func IsInvite(text []byte) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(string(text))), invitePrefix)
}

// ErrInvited means that there is an invite of the name already.
var ErrInvited = errors.New("node: there is an invite of this name already")

// ErrInvite is wrapped by errors about text that is no invite.
var ErrInvite = errors.New("node: not an invite")

// ParseInvite reads the form of Invite.String, in upper or lower case. Errors wrap ErrInvite.
func ParseInvite(text string) (Invite, error) {
	var i Invite
	text = strings.ToLower(strings.TrimSpace(text))
	body, ok := strings.CutPrefix(text, invitePrefix)
	if !ok || len(text) > maxInvite {
		return i, fmt.Errorf("%w: it starts with %s and has at most %d characters", ErrInvite, invitePrefix, maxInvite)
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
		return Invite{}, fmt.Errorf("%w: %w; one of another version has another form", ErrInvite, err)
	}
	if i.Recent != "" {
		if _, err := scope.ParseTrusted(i.Recent); err != nil {
			return Invite{}, fmt.Errorf("%w: its roster: %w", ErrInvite, err)
		}
	}
	if (i.Ticket == "") != (len(i.Secret) == 0) || len(i.Secret) > 0 && len(i.Secret) != secretBytes {
		return Invite{}, fmt.Errorf("%w: a secret of %d bytes with the ticket %q", ErrInvite, len(i.Secret), i.Ticket)
	}
	if _, err := p2p.ParsePeers(i.Peers); err != nil || len(i.Peers) == 0 {
		return Invite{}, fmt.Errorf("%w: it names no peer to ask: %w", ErrInvite, err)
	}
	return i, nil
}

// Ticket is what the network's state says about the secret of an invite, as JSON, under scope.Ticket.
type Ticket struct {
	Key   votes.PublicKey `json:"key"`  // of the secret
	Left  int             `json:"left"` // nodes that it can still admit
	Until time.Time       `json:"until"`
}

// Observer is what the network's state says about a node that was admitted, as JSON, under scope.Listing.
type Observer struct {
	Name     string    `json:"name"`   // that the node gave itself
	Invite   string    `json:"invite"` // the ticket's name
	Admitted time.Time `json:"admitted"`
}

// Tickets are what a new invite admits: at most Uses nodes, for a time.
type Tickets struct {
	Name string // 1 to 64 characters of a to z, A to Z, 0 to 9, - and _; empty: drawn
	Uses int    // 1 to maxUses
	For  time.Duration
}

// Bounds of invites.
const (
	maxUses     = 10_000
	MaxTicket   = 366 * 24 * time.Hour // for which an invite can be used
	secretBytes = 32
	maxObserver = 64 // bytes of an observer's name
)

// ErrNotAdmitted means that a network does not admit a node as an observer.
var ErrNotAdmitted = errors.New("node: not admitted")

// ErrNoList means that a policy admits no observers.
var ErrNoList = errors.New("node: the policy lists no observers, so invites can admit none; add an author, as in: " +
	"observers who=listed list=/observers/ verbs=read")

// Check returns why there can be no such tickets. Errors wrap scope.ErrInvalid.
func (t *Tickets) Check() error {
	unfit := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", r)
	}
	switch {
	case len(t.Name) > 64 || strings.ContainsFunc(t.Name, unfit):
		return fmt.Errorf("%w: the name of an invite has 1 to 64 letters, digits, - and _; %q has not", scope.ErrInvalid, t.Name)
	case t.Uses < 1 || t.Uses > maxUses:
		return fmt.Errorf("%w: an invite admits 1 to %d nodes", scope.ErrInvalid, maxUses)
	case t.For < time.Second || t.For > MaxTicket:
		return fmt.Errorf("%w: an invite can be used for 1s to %v", scope.ErrInvalid, MaxTicket)
	}
	return nil
}

// Invite returns an invite to this node's network that names this node and the roster in force. If not every peer may
// read the root scope, it writes a ticket for the invite's secret, and returns the outcome: the invite is of use when
// that is applied. Errors wrap ErrNoList, or are those of a write.
func (n *Node) Invite(ctx context.Context, t Tickets, once Once) (i Invite, r machine.Receipt, err error) {
	root := n.root
	i = Invite{Network: root.network(), Name: root.genesis.Name, Peers: n.host.Addrs(), Recent: n.recent()}
	policy := &root.epochs.epoch().Policy
	if policy.Open() {
		return i, r, nil
	}
	if policy.List() == nil {
		return i, r, ErrNoList
	}
	if err := t.Check(); err != nil {
		return i, r, err
	}
	if t.Name == "" {
		var drawn [5]byte
		rand.Read(drawn[:])
		t.Name = hex.EncodeToString(drawn[:])
	}
	i.Ticket, i.Secret = t.Name, make([]byte, secretBytes)
	rand.Read(i.Secret)
	key, err := votes.KeyFromSeed(votes.Ed25519, i.Secret)
	if err != nil {
		return i, r, err
	}
	at := scope.Ticket(policy.List(), t.Name)
	value, err := json.Marshal(Ticket{Key: key.Public(), Left: t.Uses, Until: root.time().Add(t.For).Time().UTC().Truncate(time.Second)})
	if err != nil {
		return i, r, err
	}
	r, err = root.Txn(ctx, scope.Txn{
		Compare: []scope.Compare{{Target: scope.OnCreate, Relation: scope.Equal, Key: at}},
		Success: []scope.Op{{Kind: scope.OpPut, Key: at, Value: value}},
	}, once)
	if err == nil && r.Code == scope.Applied && !r.Succeeded {
		err = fmt.Errorf("%w: %s; name another with --name, or revoke it", ErrInvited, t.Name)
	}
	return i, r, err
}

// done returns why a mutation that is final changed nothing yet, nil if it did.
func done(r machine.Receipt) error {
	if r.Code == scope.Pending {
		return fmt.Errorf("%w: it waits for approval as motion %s; join again when that is carried", ErrNotAdmitted, r.Mutation.Short())
	}
	if err := scope.Failure(r.Reason); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAdmitted, err)
	}
	return nil
}

// askKnock begins the request of a node that is not admitted yet.
const askKnock = "knock/1 "

// knock asks to be admitted.
type knock struct {
	_         struct{} `cbor:",toarray"`
	Ticket    string
	Name      string // of the node, for people; see Observer
	Signature []byte // of the secret's key in votes.ContextKnock, over knockBytes
}

// knockBytes are what the holder of an invite's secret signs: so the signature admits one peer to one network.
func knockBytes(network aweigh.NetworkID, p machine.Peer, ticket, name string) []byte {
	return canon.Encode([]any{network, string(p), ticket, name})
}

// knocked answers a knock.
type knocked struct {
	_       struct{} `cbor:",toarray"`
	Refused string   // why, if it is of no use to ask again
}

// knock asks a peer to admit this node, if the invite has a secret. Errors that wrap ErrNotAdmitted are final.
func (i *Invite) knock(ctx context.Context, host *p2p.Host, to peer.ID, name string) error {
	if i.Ticket == "" {
		return nil
	}
	key, err := votes.KeyFromSeed(votes.Ed25519, i.Secret)
	if err != nil {
		return err
	}
	k := knock{Ticket: i.Ticket, Name: name}
	k.Signature = key.Sign(votes.ContextKnock, knockBytes(i.Network, machine.Peer(host.ID().String()), k.Ticket, k.Name))
	raw, err := host.Request(ctx, to, slices.Concat([]byte(askKnock), canon.Encode(k)), 1<<10)
	if err != nil {
		return err
	}
	var a knocked
	if err := canon.Decode(raw, &a); err != nil {
		return err
	}
	if a.Refused != "" {
		return fmt.Errorf("%w: %s", ErrNotAdmitted, a.Refused)
	}
	return nil
}

// knockCost is what a knock costs the peer, in µs of one processor: a signature and a block.
const knockCost = 2 * foreignBlock

// serveKnock admits a peer that holds the secret of an invite.
func (n *Replica) serveKnock(ctx context.Context, p machine.Peer, body []byte) ([]byte, error) {
	var k knock
	if err := canon.Decode(body, &k); err != nil {
		return nil, err
	}
	if n != n.of.root {
		return nil, errNoPart
	}
	if may, err := n.mayReadNow(p); may || err != nil { // it asks again
		return canon.Encode(knocked{}), err
	}
	if err := n.charge(ctx, p, knockCost, len(body)); err != nil {
		return nil, err
	}
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	err := n.admit(ctx, p, &k)
	if errors.Is(err, ErrNotAdmitted) {
		n.note(machine.Dropped{From: p, Class: refusal.Denied, Why: "a knock: " + err.Error()})
		return canon.Encode(knocked{Refused: strings.TrimPrefix(err.Error(), ErrNotAdmitted.Error()+": ")}), nil
	}
	if err == nil {
		n.noteListed(p)
		n.log.Info("admitted an observer", "peer", p, "invite", k.Ticket, "name", k.Name)
	}
	return canon.Encode(knocked{}), err
}

// errNoTicket refuses a knock without the secret of an invite. It does not tell whether there is such an invite.
var errNoTicket = fmt.Errorf("%w: the invite is revoked, or not of this network; ask for a new one", ErrNotAdmitted)

// admit lists a peer, at the cost of a use of its invite.
func (n *Replica) admit(ctx context.Context, p machine.Peer, k *knock) error {
	list := n.epochs.epoch().Policy.List()
	if list == nil {
		return errNoTicket
	}
	if t := (Tickets{Name: k.Ticket, Uses: 1, For: time.Second}); k.Ticket == "" || t.Check() != nil || len(k.Name) > maxObserver ||
		plain.Name(k.Name) != nil {
		return fmt.Errorf("%w: a knock of another form", ErrNotAdmitted)
	}
	said := knockBytes(n.network(), p, k.Ticket, k.Name)
	for newest := false; ; newest = true { // what is here suffices to refuse a signature
		t, mod, err := n.ticket(ctx, list, k.Ticket, newest)
		now := n.time()
		switch {
		case err != nil:
			return err
		case mod == 0 && !newest: // this node may be behind
			if !n.knocked.CompareAndSwap(false, true) {
				return machine.ErrBusy
			}
			defer n.knocked.Store(false)
			continue
		case mod == 0, votes.Verify(t.Key, votes.ContextKnock, said, k.Signature) != nil:
			return errNoTicket
		case now.Time().After(t.Until):
			return fmt.Errorf("%w: the invite ended at %s; ask for a new one", ErrNotAdmitted, t.Until.Format(time.RFC3339))
		case t.Left < 1:
			return fmt.Errorf("%w: the invite has admitted as many nodes as it may; ask for a new one", ErrNotAdmitted)
		case !newest:
			continue
		}
		t.Left = min(t.Left, maxUses) - 1
		ticket, err := json.Marshal(t)
		if err != nil {
			return err
		}
		admitted := now.Time().UTC().Truncate(time.Second)
		observer, err := json.Marshal(Observer{Name: k.Name, Invite: k.Ticket, Admitted: admitted})
		if err != nil {
			return err
		}
		key := scope.Ticket(list, k.Ticket)
		receipt, err := n.Txn(ctx, scope.Txn{
			Compare: []scope.Compare{{Target: scope.OnMod, Relation: scope.Equal, Key: key, Number: mod}},
			Success: []scope.Op{
				{Kind: scope.OpPut, Key: key, Value: ticket}, {Kind: scope.OpPut, Key: scope.Listing(list, string(p)), Value: observer},
			},
		}, Once{Caller: "invite:" + k.Ticket, ValidUntil: min(now.Add(defaultValidity), aweigh.InstantOf(t.Until))})
		if err == nil {
			err = done(receipt)
		}
		if err != nil || receipt.Succeeded {
			return err
		}
	}
}

// ticket reads a ticket, with the revision that changed it last, 0 if there is none: the newest of the scope, or this
// node's.
func (n *Replica) ticket(ctx context.Context, list []byte, name string, newest bool) (t Ticket, mod int64, err error) {
	v, err := n.Read(ctx, newest)
	if err != nil {
		return t, 0, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	found, err := v.State.Range(scope.Ticket(list, name), nil, scope.Range{})
	if err != nil || len(found.Kvs) == 0 {
		return t, 0, err
	}
	if err := json.Unmarshal(found.Kvs[0].Value, &t); err != nil {
		return t, 0, fmt.Errorf("%w: the invite is no ticket: %w", ErrNotAdmitted, err)
	}
	return t, found.Kvs[0].ModRevision, nil
}
